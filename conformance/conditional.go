package conformance

import (
	"math"
	"sync/atomic"

	"github.com/loomgate/loomgate/spi"
)

var conditionalFences = topic{"conditional fences", []testCase{
	{
		"a park that nothing answers is acquired with the next token, and the old holder is fenced out",
		spi.CapAcquireFenceIf,
		func(f *fixture) {
			f.appendN("e", 0, 1)
			park := f.park("e", 1, 0)
			f.wantAcquired(f.acquireIf("e", 0, park), 1)
			_, err := spi.Append(f.ctx, f.store, spi.AppendRequest{Execution: "e", ExpectedHead: 2, Events: []spi.Event{event(spi.KindExecutionResumed)}})
			equal(f, "the current token", wantError[*spi.StaleFenceError](f, err).Current, 1)
			f.mustAppend(spi.AppendRequest{Execution: "e", ExpectedHead: 2, Fence: 1, Events: []spi.Event{event(spi.KindExecutionResumed)}})
			park = f.park("e", 3, 1)
			f.wantAcquired(f.acquireIf("e", 1, park), 2)
		},
	},
	{
		"a token that has moved is stale and stays what it is",
		spi.CapAcquireFence | spi.CapAcquireFenceIf,
		func(f *fixture) {
			park := f.park("e", 0, 0)
			f.acquire("e")
			f.acquire("e")
			for _, token := range append([]int64{0, 1, 3}, edges...) {
				f.wantStale(f.acquireIf("e", token, park), 2)
			}
			equal(f, "the token", f.head("e").Fence, 2)
		},
	},
	{
		"a holder that died after its acquire does not keep others from the park",
		spi.CapAcquireFence | spi.CapAcquireFenceIf,
		func(f *fixture) {
			park := f.park("e", 0, 0)
			f.acquire("e") // and never appends
			stale := f.acquireIf("e", 0, park)
			f.wantStale(stale, 1)
			f.wantAcquired(f.acquireIf("e", stale.Token, park), 2)
		},
	},
	{
		"of eight callers at once one wins (invariant 8)",
		spi.CapAcquireFenceIf,
		func(f *fixture) {
			for round := range 10 {
				e := id("e%d", round)
				park := f.park(e, 0, 0)
				var won atomic.Int32
				together(8, func(int) {
					res, err := spi.AcquireFenceIf(f.ctx, f.store, spi.AcquireFenceIfRequest{Execution: e, ParkSeq: park})
					if err != nil || res.Token != 1 {
						f.Errorf("an acquire answers %+v (%v)", res, err)
					}
					if res.Acquired {
						won.Add(1)
					}
				})
				equal(f, "the number of winners", won.Load(), 1)
				equal(f, "the token", f.head(e).Fence, 1)
			}
		},
	},
	{
		"each answering event past the park makes it stale though the token matches",
		spi.CapAcquireFenceIf,
		func(f *fixture) {
			for i, answer := range answeringEvents() {
				e := id("e%d", i)
				park := f.park(e, 0, 0)
				f.mustAppend(spi.AppendRequest{Execution: e, ExpectedHead: 1, Events: []spi.Event{event("Noted"), answer, event("Noted")}})
				f.wantStale(f.acquireIf(e, 0, park), 0)
				equal(f, "the token after "+answer.Kind, f.head(e).Fence, 0)
			}
		},
	},
	{
		"an answering event before the park does not",
		spi.CapAcquireFenceIf,
		func(f *fixture) {
			for i, answer := range answeringEvents() {
				e := id("e%d", i)
				f.mustAppend(spi.AppendRequest{Execution: e, Events: []spi.Event{answer}})
				f.wantAcquired(f.acquireIf(e, 0, f.park(e, 1, 0)), 1)
			}
		},
	},
	{
		"an event that answers nothing leaves the park open, though the head has moved",
		spi.CapAcquireFenceIf,
		func(f *fixture) {
			for i, ignorable := range ignorableEvents() {
				e := id("e%d", i)
				park := f.park(e, 0, 0)
				f.mustAppend(spi.AppendRequest{Execution: e, ExpectedHead: 1, Events: []spi.Event{ignorable}})
				f.wantAcquired(f.acquireIf(e, 0, park), 1)
			}
		},
	},
	{
		"an unknown kind is answering if it is stamped kernel, and the application's if not",
		spi.CapAcquireFenceIf,
		func(f *fixture) {
			for i, stamped := range []bool{true, false} {
				e := id("e%d", i)
				park := f.park(e, 0, 0)
				f.mustAppend(spi.AppendRequest{Execution: e, ExpectedHead: 1, Events: []spi.Event{{ID: spi.NewEventID(), Kind: "EXECUTION_ENCHANTED", Kernel: stamped}}})
				if res := f.acquireIf(e, 0, park); res.Acquired == stamped {
					f.Errorf("stamped %v, the acquire answers %+v", stamped, res)
				}
			}
		},
	},
	{
		"a place that is no park is stale",
		spi.CapAcquireFenceIf,
		func(f *fixture) {
			f.append("e", 0, "Noted", spi.KindExecutionSuspended, "Noted")
			for _, seq := range []int64{0, 1, 3, 4, math.MaxInt64} {
				f.wantStale(f.acquireIf("e", 0, seq), 0)
			}
			f.wantStale(f.acquireIf("without-events", 0, 1), 0)
			f.wantNothing("without-events")
			f.wantAcquired(f.acquireIf("e", 0, 2), 1)
		},
	},
	{
		"a park that a later one supersedes is stale",
		spi.CapAcquireFenceIf,
		func(f *fixture) {
			first := f.park("e", 0, 0)
			second := f.park("e", 1, 0)
			f.wantStale(f.acquireIf("e", 0, first), 0)
			f.wantAcquired(f.acquireIf("e", 0, second), 1)
		},
	},
	{
		"a park below the floor is stale: its answer may be gone",
		spi.CapAcquireFenceIf | spi.CapTruncatePrefixKeeping,
		func(f *fixture) {
			park := f.park("e", 0, 0)
			f.append("e", 1, spi.KindExecutionResumed, "Noted", "Noted")
			f.truncate("e", 3, park) // the park stays, its answer goes
			f.wantLog("e", 1, 3, 4)
			f.wantStale(f.acquireIf("e", 0, park), 0)
		},
	},
	{
		"an acquire of another incarnation is refused and changes nothing",
		spi.CapAcquireFenceIf,
		func(f *fixture) {
			park := f.park("e", 0, 0)
			_, err := spi.AcquireFenceIf(f.ctx, f.store, spi.AcquireFenceIfRequest{Execution: "e", Incarnation: 2, ParkSeq: park})
			equal(f, "the incarnation", wantError[*spi.IncarnationError](f, err).Current, 1)
			equal(f, "the token", f.head("e").Fence, 0)
		},
	},
}}
