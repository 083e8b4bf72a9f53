package conformance

import (
	"maps"
	"time"

	"github.com/loomgate/loomgate/spi"
)

var copies = topic{"copies", []testCase{
	{
		"the first events of one execution become another, which goes on by itself (invariant 12)",
		spi.CapCopyPrefix,
		func(f *fixture) {
			source := events(5)
			source[1].Kernel, source[1].Kind = true, spi.KindExecutionSuspended
			source[1].RecordedAt = time.Date(2020, 1, 2, 3, 4, 5, 6000, time.UTC)
			source[1].Metadata, source[1].Payload = map[string]string{"k": "v"}, []byte("\x00payload")
			f.mustAppend(spi.AppendRequest{Execution: "from", Fence: 7, Events: source})
			res := f.copyPrefix("from", "to", 3)
			equal(f, "the answer", res, spi.CopyPrefixResponse{Head: 3, Incarnation: 1})
			f.wantLog("to", 1, 2, 3)
			from := f.read("from")
			for i, e := range f.read("to") {
				want := from[i]
				if e.ID != want.ID || e.Kind != want.Kind || e.Kernel != want.Kernel || !e.RecordedAt.Equal(want.RecordedAt) ||
					string(e.Payload) != string(want.Payload) || !maps.Equal(e.Metadata, want.Metadata) {
					f.Errorf("the event at %d is %+v, not %+v", e.Sequence, e, want)
				}
				equal(f, "the token of a copy", e.Fence, 0)
			}
			f.appendN("to", 3, 1)
			f.wantLog("to", 1, 2, 3, 4)
			f.wantLog("from", upTo(5)...)
			f.wantNames("the executions", f.list("", 10), []string{"from", "to"})
		},
	},
	{
		"a copy again is a duplicate",
		spi.CapCopyPrefix,
		func(f *fixture) {
			f.appendN("from", 0, 4)
			f.copyPrefix("from", "to", 2)
			res := f.copyPrefix("from", "to", 2)
			equal(f, "the answer, again", res, spi.CopyPrefixResponse{Head: 2, Incarnation: 1, Duplicate: true})
			f.wantLog("to", 1, 2)
		},
	},
	{
		"a target that has other events is a conflict and stays as it is",
		spi.CapCopyPrefix,
		func(f *fixture) {
			f.appendN("from", 0, 4)
			f.appendN("to", 0, 1)
			_, err := spi.CopyPrefix(f.ctx, f.store, spi.CopyPrefixRequest{From: "from", To: "to", N: 2})
			equal(f, "the conflict", wantError[*spi.ConflictError](f, err).Execution, "to")
			f.wantLog("to", 1)
		},
	},
	{
		"a source that is too short leaves no copy",
		spi.CapCopyPrefix,
		func(f *fixture) {
			f.appendN("from", 0, 2)
			_, err := spi.CopyPrefix(f.ctx, f.store, spi.CopyPrefixRequest{From: "from", To: "to", N: 3})
			equal(f, "the error", *wantError[*spi.RangeError](f, err), spi.RangeError{Execution: "from", Head: 2})
			_, err = spi.CopyPrefix(f.ctx, f.store, spi.CopyPrefixRequest{From: "absent", To: "to", N: 1})
			equal(f, "the error", *wantError[*spi.RangeError](f, err), spi.RangeError{Execution: "absent"})
			f.wantNothing("to")
		},
	},
	{
		"a source that is truncated leaves no copy",
		spi.CapCopyPrefix | spi.CapTruncatePrefixKeeping,
		func(f *fixture) {
			f.appendN("from", 0, 4)
			f.truncate("from", 2, 1)
			_, err := spi.CopyPrefix(f.ctx, f.store, spi.CopyPrefixRequest{From: "from", To: "to", N: 3})
			equal(f, "the error", *wantError[*spi.TruncatedError](f, err), spi.TruncatedError{Execution: "from", Floor: 2})
			f.wantNothing("to")
		},
	},
	{
		"more than ten thousand events are too many, and ten thousand are not",
		spi.CapCopyPrefix,
		func(f *fixture) {
			f.appendN("from", 0, spi.MaxEvents)
			f.appendN("from", spi.MaxEvents, 1)
			_, err := spi.CopyPrefix(f.ctx, f.store, spi.CopyPrefixRequest{From: "from", To: "to", N: spi.MaxEvents + 1})
			equal(f, "the error", *wantError[*spi.TooLargeError](f, err), spi.TooLargeError{Execution: "from"})
			f.wantNothing("to")
			equal(f, "the head", f.copyPrefix("from", "to", spi.MaxEvents).Head, spi.MaxEvents)
		},
	},
	{
		"a deleted target has to be meant, and keeps its fence",
		spi.CapCopyPrefix | spi.CapDeleteExecution | spi.CapAcquireFence,
		func(f *fixture) {
			f.append("from", 0, "Noted", spi.KindExecutionSuspended, spi.KindExecutionCompleted)
			f.appendN("to", 0, 1)
			f.acquire("to")
			f.delete("to")
			_, err := spi.CopyPrefix(f.ctx, f.store, spi.CopyPrefixRequest{From: "from", To: "to", N: 2})
			equal(f, "the incarnation", wantError[*spi.IncarnationError](f, err).Current, 2)
			f.wantNothing("to")
			res, err := spi.CopyPrefix(f.ctx, f.store, spi.CopyPrefixRequest{From: "from", To: "to", Incarnation: 2, N: 2})
			if err != nil || res.Incarnation != 2 {
				f.Errorf("it answers %+v (%v)", res, err)
			}
			equal(f, "the token", f.head("to").Fence, 2)
		},
	},
	{
		"an execution with a data key is not copied by a store that does not encrypt",
		spi.CapCopyPrefix | spi.CapDataKeys,
		func(f *fixture) {
			f.appendN("plain", 0, 2)
			for _, owner := range []spi.KeyOwner{"keyed", "keyed-target", "shredded"} {
				key := spi.DataKey{Owner: owner, Version: 1, ID: spi.KeyID(spi.NewEventID()), WrappedBy: "kms", Wrapped: []byte{1}}
				if _, err := spi.CreateDataKey(f.ctx, f.store, spi.CreateDataKeyRequest{Key: key}); err != nil {
					f.Fatal(err)
				}
				if owner != "keyed-target" {
					f.mustAppend(spi.AppendRequest{Execution: spi.ExecutionID(owner), KeyID: key.ID, Events: events(2)})
				}
				equal(f, "whether a read tells of the key", f.keyState(spi.ExecutionID(owner)).Keyed, true)
			}
			if _, err := spi.DestroyDataKey(f.ctx, f.store, spi.DestroyDataKeyRequest{Owner: "shredded", Version: 1}); err != nil {
				f.Fatal(err)
			}
			equal(f, "whether a read tells of the destruction", f.keyState("shredded").Shredded, true)
			_, err := spi.CopyPrefix(f.ctx, f.store, spi.CopyPrefixRequest{From: "keyed", To: "to", N: 2})
			wantError[*spi.KeyMismatchError](f, err)
			_, err = spi.CopyPrefix(f.ctx, f.store, spi.CopyPrefixRequest{From: "plain", To: "keyed-target", N: 2})
			wantError[*spi.KeyMismatchError](f, err)
			_, err = spi.CopyPrefix(f.ctx, f.store, spi.CopyPrefixRequest{From: "shredded", To: "to", N: 2})
			wantError[*spi.ShreddedError](f, err)
			f.wantNothing("to")
			f.wantNothing("keyed-target")
		},
	},
	{
		"of several copies to one target at once the target is one of them",
		spi.CapCopyPrefix,
		func(f *fixture) {
			for i := range 4 {
				f.appendN(id("from%d", i), 0, 3)
			}
			together(4, func(i int) {
				_, err := spi.CopyPrefix(f.ctx, f.store, spi.CopyPrefixRequest{From: id("from%d", i), To: "to", N: 3})
				if err != nil && !isIncarnationOrConflict(err) {
					f.Error(err)
				}
			})
			for i := range 4 {
				if sameIDs(f.read(id("from%d", i)), f.read("to")) {
					return
				}
			}
			f.Error("it is none of them")
		},
	},
}}

// keyState reads an execution for what it tells of the data key.
func (f *fixture) keyState(id spi.ExecutionID) spi.ReadResponse {
	f.Helper()
	res, err := spi.Read(f.ctx, f.store, spi.ReadRequest{Execution: id, Limit: 1})
	if err != nil {
		f.Fatal(err)
	}
	return res
}

func (f *fixture) copyPrefix(from, to spi.ExecutionID, n int64) spi.CopyPrefixResponse {
	f.Helper()
	res, err := spi.CopyPrefix(f.ctx, f.store, spi.CopyPrefixRequest{From: from, To: to, N: n})
	if err != nil {
		f.Fatal(err)
	}
	return res
}
