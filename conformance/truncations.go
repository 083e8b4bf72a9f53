package conformance

import (
	"math"

	"github.com/loomgate/loomgate/spi"
)

var truncations = topic{"truncations", []testCase{
	{
		"the events before a sequence go, except those to keep, and no sequence changes",
		spi.CapTruncatePrefixKeeping,
		func(f *fixture) {
			req := spi.AppendRequest{Execution: "e", Events: events(8)}
			f.mustAppend(req)
			res := f.truncate("e", 6, 4, 2, 7)
			equal(f, "the answer", res, spi.TruncatePrefixKeepingResponse{Floor: 6, Dropped: 3})
			f.wantLog("e", 2, 4, 6, 7, 8)
			for _, e := range f.read("e") {
				if e.ID != req.Events[e.Sequence-1].ID {
					f.Errorf("the event at %d is another", e.Sequence)
				}
			}
			equal(f, "the head", f.head("e"), spi.HeadResponse{Head: 8, Incarnation: 1, Floor: 6})
			f.reopen()
			f.wantLog("e", 2, 4, 6, 7, 8)
			equal(f, "the head, opened again", f.head("e"), spi.HeadResponse{Head: 8, Incarnation: 1, Floor: 6})
		},
	},
	{
		"the last event always stays, and the head never decreases (invariant 6)",
		spi.CapTruncatePrefixKeeping,
		func(f *fixture) {
			f.appendN("e", 0, 5)
			for _, before := range []int64{5, 6, math.MaxInt64} {
				equal(f, "the floor", f.truncate("e", before).Floor, 5)
				f.wantLog("e", 5)
			}
			equal(f, "the next sequence", f.appendN("e", 5, 1).FirstSeq, 6)
			equal(f, "the next sequence", f.appendN("e", spi.AnyHead, 1).FirstSeq, 7)
			f.wantLog("e", 5, 6, 7)
			f.wantNames("the executions", f.list("", 10), []string{"e"})
		},
	},
	{
		"a log is read across what is missing",
		spi.CapTruncatePrefixKeeping,
		func(f *fixture) {
			f.appendN("e", 0, 9)
			f.truncate("e", 7, 2, 5)
			for _, c := range []struct {
				req  spi.ReadRequest
				want []int64
				more bool
			}{
				{spi.ReadRequest{Limit: 3}, []int64{2, 5, 7}, true},
				{spi.ReadRequest{After: 3, Until: 7, Limit: 9}, []int64{5, 7}, false},
				{spi.ReadRequest{After: 2, Limit: 1}, []int64{5}, true},
				{spi.ReadRequest{Until: 1, Limit: 9}, nil, false},
				{spi.ReadRequest{Backward: true, After: 7, Limit: 1}, []int64{5}, true},
				{spi.ReadRequest{Backward: true, After: 5, Limit: 9}, []int64{2}, false},
				{spi.ReadRequest{Backward: true, After: 2, Limit: 9}, nil, false},
			} {
				c.req.Execution = "e"
				f.wantRead(c.req, c.want, c.more)
			}
			res, err := spi.Read(f.ctx, f.store, spi.ReadRequest{Execution: "e", Limit: 1})
			if err != nil || res.Floor != 7 {
				f.Errorf("a read tells the floor %d (%v)", res.Floor, err)
			}
		},
	},
	{
		"the floor never falls, and a later truncation drops what it does not keep",
		spi.CapTruncatePrefixKeeping,
		func(f *fixture) {
			f.appendN("e", 0, 9)
			f.truncate("e", 5, 2, 3)
			equal(f, "the floor after a lower one", f.truncate("e", 3, 2).Floor, 5)
			equal(f, "the answer", f.truncate("e", 7, 3), spi.TruncatePrefixKeepingResponse{Floor: 7, Dropped: 3})
			equal(f, "the answer, again", f.truncate("e", 7, 3), spi.TruncatePrefixKeepingResponse{Floor: 7})
			f.wantLog("e", 3, 7, 8, 9)
		},
	},
	{
		"an append whose duplicate might be below the floor is refused (invariant 4)",
		spi.CapTruncatePrefixKeeping,
		func(f *fixture) {
			req := spi.AppendRequest{Execution: "e", Events: events(2)}
			f.mustAppend(req)
			f.appendN("e", 2, 4)
			f.truncate("e", 4)
			_, err := spi.Append(f.ctx, f.store, req)
			equal(f, "the error", *wantError[*spi.TruncatedError](f, err), spi.TruncatedError{Execution: "e", Floor: 4})
			_, err = spi.Append(f.ctx, f.store, spi.AppendRequest{Execution: "e", ExpectedHead: 6, SinceSeq: 3, Events: events(1)})
			wantError[*spi.TruncatedError](f, err)
			f.mustAppend(spi.AppendRequest{Execution: "e", ExpectedHead: 6, SinceSeq: 4, Events: events(1)})
			f.wantLog("e", 4, 5, 6, 7)
			// An append that was cut in two is as unrecognisable as one that is gone: it
			// is no conflict, after which a writer would append its events anew.
			cut := spi.AppendRequest{Execution: "e", ExpectedHead: 7, Events: events(3)}
			f.mustAppend(cut)
			f.truncate("e", 9)
			_, err = spi.Append(f.ctx, f.store, cut)
			equal(f, "the error", *wantError[*spi.TruncatedError](f, err), spi.TruncatedError{Execution: "e", Floor: 9})
			f.wantLog("e", 9, 10)
		},
	},
	{
		"an append at or past the floor is still recognised",
		spi.CapTruncatePrefixKeeping,
		func(f *fixture) {
			f.appendN("e", 0, 3)
			req := spi.AppendRequest{Execution: "e", ExpectedHead: 3, Events: events(2)}
			f.mustAppend(req)
			f.truncate("e", 4)
			if res := f.mustAppend(req); !res.Duplicate || res.FirstSeq != 4 || res.Floor != 4 {
				f.Errorf("the append, again, answers %+v", res)
			}
			any := spi.AppendRequest{Execution: "e", ExpectedHead: spi.AnyHead, Events: events(1)}
			f.mustAppend(any)
			if res := f.mustAppend(any); !res.Duplicate || res.FirstSeq != 6 {
				f.Errorf("the append to any head, again, answers %+v", res)
			}
		},
	},
	{
		"another incarnation is refused, and an execution without events is not found",
		spi.CapTruncatePrefixKeeping,
		func(f *fixture) {
			f.appendN("e", 0, 3)
			_, err := spi.TruncatePrefixKeeping(f.ctx, f.store, spi.TruncatePrefixKeepingRequest{Execution: "e", Incarnation: 2, Before: 3})
			equal(f, "the incarnation", wantError[*spi.IncarnationError](f, err).Current, 1)
			f.wantLog("e", 1, 2, 3)
			_, err = spi.TruncatePrefixKeeping(f.ctx, f.store, spi.TruncatePrefixKeepingRequest{Execution: "absent", Incarnation: 1, Before: 3})
			equal(f, "the error", *wantError[*spi.NotFoundError](f, err), spi.NotFoundError{What: "execution", Name: "absent"})
			f.wantNothing("absent")
		},
	},
}}

// truncate drops events of an execution in its incarnation.
func (f *fixture) truncate(id spi.ExecutionID, before int64, keep ...int64) spi.TruncatePrefixKeepingResponse {
	f.Helper()
	res, err := spi.TruncatePrefixKeeping(f.ctx, f.store, spi.TruncatePrefixKeepingRequest{
		Execution: id, Incarnation: f.head(id).Incarnation, Before: before, Keep: keep,
	})
	if err != nil {
		f.Fatal(err)
	}
	return res
}
