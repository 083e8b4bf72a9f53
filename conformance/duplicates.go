package conformance

import (
	"sync/atomic"

	"github.com/loomgate/loomgate/spi"
)

var duplicates = topic{"duplicates", []testCase{
	{
		"the same append again is a success that stores nothing (invariant 4)",
		0,
		func(f *fixture) {
			first := spi.AppendRequest{Execution: "e", Events: events(1)}
			several := spi.AppendRequest{Execution: "e", ExpectedHead: 1, Events: events(3)}
			anywhere := spi.AppendRequest{Execution: "e", ExpectedHead: spi.AnyHead, Events: events(2)}
			requests := []spi.AppendRequest{first, several, anywhere}
			starts := []int64{1, 2, 5}
			for _, req := range requests {
				if f.mustAppend(req).Duplicate {
					f.Error("a new append is marked duplicate")
				}
			}
			f.reopen()
			for i, req := range requests {
				again := f.mustAppend(req)
				if !again.Duplicate || again.FirstSeq != starts[i] || again.Head != 6 {
					f.Errorf("the append at %d, again, answers %+v", starts[i], again)
				}
			}
			f.wantLog("e", upTo(6)...)
		},
	},
	{
		"an append is a duplicate even if the fence has moved since",
		spi.CapAcquireFence,
		func(f *fixture) {
			token := f.acquire("e")
			req := spi.AppendRequest{Execution: "e", Fence: token, Events: []spi.Event{event(spi.KindExecutionSuspended)}}
			f.mustAppend(req)
			f.acquire("e")
			if again := f.mustAppend(req); !again.Duplicate {
				f.Errorf("the append, again, answers %+v", again)
			}
			f.wantLog("e", 1)
		},
	},
	{
		"another event at the same place is a conflict",
		0,
		func(f *fixture) {
			f.appendN("e", 0, 2)
			_, err := spi.Append(f.ctx, f.store, spi.AppendRequest{Execution: "e", ExpectedHead: 1, Events: events(1)})
			equal(f, "the conflict", *wantError[*spi.ConflictError](f, err), spi.ConflictError{Execution: "e", Head: 2})
			f.wantLog("e", 1, 2)
		},
	},
	{
		"an append of which only a part is there is a conflict that stores nothing",
		0,
		func(f *fixture) {
			stored, fresh := events(3), events(1)
			f.mustAppend(spi.AppendRequest{Execution: "e", Events: stored})
			for what, part := range map[string][]spi.Event{
				"the beginning and a new event":  {stored[0], stored[1], fresh[0]},
				"a new event and the end":        {fresh[0], stored[1], stored[2]},
				"the events in another order":    {stored[1], stored[0], stored[2]},
				"the events without one between": {stored[0], stored[2]},
				"the end and a new event":        {stored[2], fresh[0]},
			} {
				for _, head := range []int64{0, spi.AnyHead} {
					_, err := spi.Append(f.ctx, f.store, spi.AppendRequest{Execution: "e", ExpectedHead: head, Events: part})
					if conflict := wantError[*spi.ConflictError](f, err); conflict.Head != 3 || !conflict.Reused {
						f.Errorf("%s at %d: %+v", what, head, conflict)
					}
				}
			}
			f.wantLog("e", 1, 2, 3)
		},
	},
	{
		"a retry at a newer head is recognised by its first SinceSeq, whichever way it comes",
		0,
		func(f *fixture) {
			for _, way := range f.ways() {
				e := spi.ExecutionID(way.name)
				f.appendN(e, 0, 2)
				lost := spi.AppendRequest{Execution: e, ExpectedHead: 2, SinceSeq: 3, Events: events(2)}
				f.appendN(e, 2, 1) // a rival; the first try comes after it
				again := lost
				again.ExpectedHead = 3
				f.mustAppend(again)
				f.appendN(e, 5, 2) // another
				again.ExpectedHead = 7
				res, err := way.append(again)
				if err != nil || !res.Duplicate || res.FirstSeq != 4 || res.Head != 7 {
					f.Errorf("the retry by %s answers %+v (%v)", way.name, res, err)
				}
				f.wantLog(e, upTo(7)...)
			}
		},
	},
	{
		"an append at any head is recognised among the last ten thousand events",
		0,
		func(f *fixture) {
			req := spi.AppendRequest{Execution: "e", ExpectedHead: spi.AnyHead, Events: events(2)}
			f.mustAppend(req)
			f.appendN("e", 2, spi.DuplicateWindow-2)
			res := f.mustAppend(req)
			if !res.Duplicate || res.FirstSeq != 1 || res.Head != spi.DuplicateWindow {
				f.Errorf("the append, again, answers %+v", res)
			}
			req.SinceSeq = 1
			f.appendN("e", spi.DuplicateWindow, 2)
			if res := f.mustAppend(req); !res.Duplicate {
				f.Errorf("with SinceSeq 1 further back, it answers %+v", res)
			}
		},
	},
	{
		"the event of another execution is no duplicate",
		0,
		func(f *fixture) {
			same := events(1)
			f.mustAppend(spi.AppendRequest{Execution: "e", Events: same})
			if res := f.mustAppend(spi.AppendRequest{Execution: "f", Events: same}); res.Duplicate {
				f.Error("it is marked duplicate")
			}
			f.wantLog("f", 1)
		},
	},
	{
		"of many tries of one append at once one stores it and the rest are duplicates",
		0,
		func(f *fixture) {
			for i, head := range []int64{0, spi.AnyHead} {
				e := id("e%d", i)
				req := spi.AppendRequest{Execution: e, ExpectedHead: head, Events: events(2)}
				var stored atomic.Int32
				together(8, func(int) {
					res, err := spi.Append(f.ctx, f.store, req)
					if err != nil {
						f.Error(err)
					}
					if !res.Duplicate {
						stored.Add(1)
					}
				})
				equal(f, "the number of tries that stored it", stored.Load(), 1)
				f.wantLog(e, 1, 2)
			}
		},
	},
	{
		"an append that was deleted since is no duplicate, and does not come back",
		spi.CapDeleteExecution,
		func(f *fixture) {
			req := spi.AppendRequest{Execution: "e", Events: events(1)}
			f.mustAppend(req)
			f.delete("e")
			_, err := spi.Append(f.ctx, f.store, req)
			equal(f, "the incarnation", wantError[*spi.IncarnationError](f, err).Current, 2)
			f.wantNothing("e")
		},
	},
}}
