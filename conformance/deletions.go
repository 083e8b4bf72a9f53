package conformance

import (
	"slices"
	"time"

	"github.com/loomgate/loomgate/spi"
)

var deletions = topic{"deletions", []testCase{
	{
		"a deletion takes all events and begins another incarnation",
		spi.CapDeleteExecution,
		func(f *fixture) {
			f.appendN("e", 0, 3)
			equal(f, "the answer", f.delete("e"), spi.DeleteExecutionResponse{Existed: true, Incarnation: 2})
			f.wantNothing("e")
			equal(f, "the head", f.head("e"), spi.HeadResponse{Incarnation: 2, Floor: 1})
			f.reopen()
			equal(f, "the head, opened again", f.head("e"), spi.HeadResponse{Incarnation: 2, Floor: 1})
		},
	},
	{
		"a deletion takes the timers",
		spi.CapDeleteExecution | spi.CapTimers,
		func(f *fixture) {
			f.appendN("e", 0, 1)
			for _, e := range []spi.ExecutionID{"e", "e2"} {
				if _, err := spi.ScheduleTimer(f.ctx, f.store, spi.ScheduleTimerRequest{Timer: spi.Timer{Execution: e, WakeAt: longAgo}}); err != nil {
					f.Fatal(err)
				}
			}
			f.delete("e")
			due, err := spi.DueTimers(f.ctx, f.store, spi.DueTimersRequest{Limit: 10})
			if err != nil || len(due.Timers) != 1 || due.Timers[0].Execution != "e2" {
				f.Errorf("due are %+v (%v)", due.Timers, err)
			}
		},
	},
	{
		"the first append after a deletion states the incarnation, or does not land (invariant 11)",
		spi.CapDeleteExecution,
		func(f *fixture) {
			f.appendN("e", 0, 1)
			f.delete("e")
			for _, head := range []int64{0, spi.AnyHead, 1} {
				for _, incarnation := range []int64{0, 1, 3} {
					_, err := spi.Append(f.ctx, f.store, spi.AppendRequest{Execution: "e", ExpectedHead: head, Incarnation: incarnation, Events: events(1)})
					equal(f, "the error", *wantError[*spi.IncarnationError](f, err), spi.IncarnationError{Execution: "e", Current: 2})
				}
			}
			f.wantNothing("e")
			res := f.mustAppend(spi.AppendRequest{Execution: "e", Incarnation: 2, Events: events(2)})
			equal(f, "the answer", res, spi.AppendResponse{FirstSeq: 1, Head: 2, Incarnation: 2, Floor: 1})
			f.wantNames("the executions", f.list("", 10), []string{"e"})
		},
	},
	{
		"a writer of the old incarnation does not write the new one",
		spi.CapDeleteExecution,
		func(f *fixture) {
			f.appendN("e", 0, 3)
			f.delete("e")
			f.mustAppend(spi.AppendRequest{Execution: "e", Incarnation: 2, Events: events(3)})
			_, err := spi.Append(f.ctx, f.store, spi.AppendRequest{Execution: "e", ExpectedHead: 3, Incarnation: 1, Events: events(1)})
			equal(f, "the incarnation", wantError[*spi.IncarnationError](f, err).Current, 2)
			f.mustAppend(spi.AppendRequest{Execution: "e", ExpectedHead: 3, Incarnation: 2, Events: events(1)})
			f.mustAppend(spi.AppendRequest{Execution: "e", ExpectedHead: 4, Events: events(1)})
		},
	},
	{
		"the holder of a fence does not outlive the deletion (invariant 6)",
		spi.CapDeleteExecution | spi.CapAcquireFence,
		func(f *fixture) {
			f.appendN("e", 0, 1)
			old := f.acquire("e")
			f.delete("e")
			equal(f, "the token", f.head("e").Fence, old+1)
			f.mustAppend(spi.AppendRequest{Execution: "e", Incarnation: 2, Events: events(1)})
			for _, kind := range []string{spi.KindExecutionResumed, "Noted"} {
				_, err := spi.Append(f.ctx, f.store, spi.AppendRequest{Execution: "e", ExpectedHead: 1, Fence: old, Events: []spi.Event{event(kind)}})
				equal(f, "the token", wantError[*spi.StaleFenceError](f, err).Current, old+1)
			}
			equal(f, "the next token", f.acquire("e"), old+2)
		},
	},
	{
		"an execution that was never fenced is not fenced by its deletion",
		spi.CapDeleteExecution,
		func(f *fixture) {
			f.appendN("e", 0, 1)
			f.delete("e")
			f.mustAppend(spi.AppendRequest{Execution: "e", Incarnation: 2, Events: []spi.Event{event(spi.KindExecutionSuspended)}})
			equal(f, "the token", f.head("e").Fence, 0)
		},
	},
	{
		"a deletion again is no error, and its late twin leaves the new log alone (invariant 5)",
		spi.CapDeleteExecution,
		func(f *fixture) {
			f.appendN("e", 0, 1)
			f.delete("e")
			twin := spi.DeleteExecutionRequest{Execution: "e", Incarnation: 1}
			res, err := spi.DeleteExecution(f.ctx, f.store, twin)
			if err != nil || res.Existed || res.Incarnation != 2 {
				f.Errorf("again, it answers %+v (%v)", res, err)
			}
			f.mustAppend(spi.AppendRequest{Execution: "e", Incarnation: 2, Events: events(1)})
			_, err = spi.DeleteExecution(f.ctx, f.store, twin)
			equal(f, "the incarnation", wantError[*spi.IncarnationError](f, err).Current, 2)
			f.wantLog("e", 1)
		},
	},
	{
		"what has no events is deleted without an error and without a trace",
		spi.CapDeleteExecution,
		func(f *fixture) {
			res, err := spi.DeleteExecution(f.ctx, f.store, spi.DeleteExecutionRequest{Execution: "e", Incarnation: 1})
			if err != nil || res.Existed || res.Incarnation != 1 {
				f.Errorf("it answers %+v (%v)", res, err)
			}
			f.wantNothing("e")
			f.appendN("e", 0, 1)
		},
	},
	{
		"of two deletions at once one finds events",
		spi.CapDeleteExecution,
		func(f *fixture) {
			for round := range raceRounds / 4 {
				e := id("e%d", round)
				f.appendN(e, 0, 1)
				existed := make([]bool, 2)
				together(2, func(i int) {
					res, err := spi.DeleteExecution(f.ctx, f.store, spi.DeleteExecutionRequest{Execution: e, Incarnation: 1})
					if err != nil || res.Incarnation != 2 {
						f.Errorf("it answers %+v (%v)", res, err)
					}
					existed[i] = res.Existed
				})
				if existed[0] == existed[1] {
					f.Errorf("they answer %v", existed)
				}
			}
		},
	},
	{
		"an old tombstone is swept, and only that",
		spi.CapDeleteExecution | spi.CapSweepTombstones | spi.CapAcquireFence,
		func(f *fixture) {
			for _, e := range []spi.ExecutionID{"gone-1", "gone-2", "gone-3", "again", "there"} {
				f.appendN(e, 0, 1)
			}
			f.acquire("fenced")
			for _, e := range []spi.ExecutionID{"gone-1", "gone-2", "gone-3", "again"} {
				f.delete(e)
			}
			f.mustAppend(spi.AppendRequest{Execution: "again", Incarnation: 2, Events: events(1)})
			equal(f, "the number swept that are an hour old", f.sweep("", time.Hour, 10), 0)
			equal(f, "the number swept with another prefix", f.sweep("g-", 0, 10), 0)
			equal(f, "the number swept of at most two", f.sweep("", 0, 2), 2)
			equal(f, "the number swept of the rest", f.sweep("gone", 0, 10), 1)
			equal(f, "the number swept of nothing", f.sweep("", 0, 10), 0)
			equal(f, "the incarnation of what was swept", f.head("gone-2").Incarnation, 1)
			equal(f, "the incarnation of what came back", f.head("again").Incarnation, 2)
			equal(f, "the token of what never had events", f.head("fenced").Fence, 1)
			f.wantLog("again", 1)
			f.wantLog("there", 1)
		},
	},
	{
		"a deleted execution can be written, deleted and written again and again",
		spi.CapDeleteExecution,
		func(f *fixture) {
			for n := int64(1); n <= 4; n++ {
				f.mustAppend(spi.AppendRequest{Execution: "e", Incarnation: n, Events: events(int(n))})
				if got := f.read("e"); !slices.EqualFunc(got, upTo(n), func(e spi.Event, seq int64) bool { return e.Sequence == seq }) {
					f.Errorf("incarnation %d holds %d events", n, len(got))
				}
				f.delete("e")
			}
		},
	},
}}

func (f *fixture) sweep(prefix string, olderThan time.Duration, limit int) int {
	f.Helper()
	res, err := spi.SweepTombstones(f.ctx, f.store, spi.SweepTombstonesRequest{Prefix: prefix, OlderThan: olderThan, Limit: limit})
	if err != nil {
		f.Fatal(err)
	}
	return res.Swept
}
