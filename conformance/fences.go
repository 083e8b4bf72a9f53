package conformance

import (
	"slices"

	"github.com/loomgate/loomgate/spi"
)

var fences = topic{"fences", []testCase{
	{
		"an acquire returns the next token, and the old holder is fenced out (invariant 7)",
		spi.CapAcquireFence,
		func(f *fixture) {
			f.appendN("e", 0, 1)
			equal(f, "the first token", f.acquire("e"), 1)
			f.mustAppend(spi.AppendRequest{Execution: "e", ExpectedHead: 1, Fence: 1, Events: []spi.Event{event(spi.KindExecutionSuspended)}})
			equal(f, "the next token", f.acquire("e"), 2)
			_, err := spi.Append(f.ctx, f.store, spi.AppendRequest{Execution: "e", ExpectedHead: 2, Fence: 1, Events: []spi.Event{event(spi.KindExecutionResumed)}})
			equal(f, "the error", *wantError[*spi.StaleFenceError](f, err), spi.StaleFenceError{Execution: "e", Current: 2})
			f.mustAppend(spi.AppendRequest{Execution: "e", ExpectedHead: 2, Fence: 2, Events: []spi.Event{event(spi.KindExecutionResumed)}})
			f.wantLog("e", 1, 2, 3)
		},
	},
	{
		"no answering event lands without a token once there is one",
		spi.CapAcquireFence,
		func(f *fixture) {
			f.appendN("e", 0, 1)
			f.acquire("e")
			for _, e := range answeringEvents() {
				for _, head := range []int64{1, spi.AnyHead} {
					_, err := spi.Append(f.ctx, f.store, spi.AppendRequest{Execution: "e", ExpectedHead: head, Events: []spi.Event{event("Noted"), e}})
					equal(f, "the token after "+e.Kind, wantError[*spi.StaleFenceError](f, err).Current, 1)
				}
			}
			f.wantLog("e", 1)
		},
	},
	{
		"every answering event lands without a token where there is none",
		0,
		func(f *fixture) {
			for i, e := range answeringEvents() {
				f.mustAppend(spi.AppendRequest{Execution: "e", ExpectedHead: int64(i), Events: []spi.Event{e}})
			}
		},
	},
	{
		"an event that answers nothing lands without a token",
		spi.CapAcquireFence,
		func(f *fixture) {
			f.appendN("e", 0, 1)
			f.acquire("e")
			for _, e := range ignorableEvents() {
				f.mustAppend(spi.AppendRequest{Execution: "e", ExpectedHead: spi.AnyHead, Events: []spi.Event{e}})
			}
		},
	},
	{
		"no event at all lands under a lower token",
		spi.CapAcquireFence,
		func(f *fixture) {
			old := f.acquire("e")
			f.acquire("e")
			for _, e := range slices.Concat(answeringEvents(), ignorableEvents()) {
				_, err := spi.Append(f.ctx, f.store, spi.AppendRequest{Execution: "e", Fence: old, Events: []spi.Event{e}})
				equal(f, "the token after "+e.Kind, wantError[*spi.StaleFenceError](f, err).Current, 2)
			}
			f.wantNothing("e")
		},
	},
	{
		"an event carries the token that it was written under",
		spi.CapAcquireFence,
		func(f *fixture) {
			f.appendN("e", 0, 1)
			f.acquire("e")
			f.acquire("e")
			f.mustAppend(spi.AppendRequest{Execution: "e", ExpectedHead: 1, Fence: 2, Events: events(2)})
			f.appendN("e", 3, 1)
			var tokens []int64
			for _, e := range f.read("e") {
				tokens = append(tokens, e.Fence)
			}
			if !slices.Equal(tokens, []int64{0, 2, 2, 0}) {
				f.Errorf("the tokens are %v", tokens)
			}
		},
	},
	{
		"an execution without events is fenced, and not listed",
		spi.CapAcquireFence,
		func(f *fixture) {
			token := f.acquire("e")
			f.wantNothing("e")
			f.mustAppend(spi.AppendRequest{Execution: "e", Fence: token, Events: []spi.Event{event(spi.KindExecutionCompleted)}})
			f.wantLog("e", 1)
		},
	},
	{
		"a token is still there when the store is opened again",
		spi.CapAcquireFence,
		func(f *fixture) {
			f.appendN("e", 0, 1)
			f.acquire("e")
			f.acquire("without-events")
			f.reopen()
			equal(f, "the token", f.head("e").Fence, 1)
			equal(f, "the next token", f.acquire("e"), 2)
			equal(f, "the next token", f.acquire("without-events"), 2)
		},
	},
	{
		"of many acquires at once each has a token of its own (invariant 6)",
		spi.CapAcquireFence,
		func(f *fixture) {
			tokens := make([]int64, 8)
			together(len(tokens), func(i int) {
				res, err := spi.AcquireFence(f.ctx, f.store, spi.AcquireFenceRequest{Execution: "e"})
				if err != nil {
					f.Error(err)
				}
				tokens[i] = res.Token
			})
			slices.Sort(tokens)
			if !slices.Equal(tokens, upTo(8)) {
				f.Errorf("the tokens are %v", tokens)
			}
		},
	},
	{
		"an acquire that states another incarnation changes nothing",
		spi.CapAcquireFence,
		func(f *fixture) {
			f.appendN("e", 0, 1)
			_, err := spi.AcquireFence(f.ctx, f.store, spi.AcquireFenceRequest{Execution: "e", Incarnation: 2})
			equal(f, "the incarnation", wantError[*spi.IncarnationError](f, err).Current, 1)
			equal(f, "the token", f.head("e").Fence, 0)
		},
	},
	{
		"the fence of one execution is not another's",
		spi.CapAcquireFence,
		func(f *fixture) {
			f.acquire("e")
			f.append("e2", 0, spi.KindExecutionSuspended, spi.KindExecutionResumed)
			equal(f, "the token", f.head("e2").Fence, 0)
		},
	},
}}

// answeringEvents returns one event of each kind that answers a park: the kernel
// kinds of that class, with and without the stamp, and a kind that only a newer
// node knows.
func answeringEvents() []spi.Event {
	var all []spi.Event
	for _, kind := range kindsOf(spi.Answering) {
		all = append(all, event(kind), spi.Event{ID: spi.NewEventID(), Kind: kind})
	}
	return append(all, spi.Event{ID: spi.NewEventID(), Kind: "KIND_OF_A_NEWER_NODE", Kernel: true})
}

// ignorableEvents returns one event of each kind that leaves a park open.
func ignorableEvents() []spi.Event {
	var all []spi.Event
	for _, kind := range kindsOf(spi.Ignorable) {
		all = append(all, event(kind))
	}
	return append(all, event("Noted"), spi.Event{
		ID: spi.NewEventID(), Kind: "KIND_OF_A_NEWER_NODE",
		Metadata: map[string]string{"kernel": "true"}, // metadata is no stamp
	})
}
