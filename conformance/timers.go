package conformance

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/loomgate/loomgate/spi"
)

// wakeNever is due on no clock.
var wakeNever = time.Date(9999, time.December, 31, 23, 59, 59, 999_999_000, time.UTC)

var timers = topic{"timers", []testCase{
	{
		"a timer whose time has passed is due",
		spi.CapTimers,
		func(f *fixture) {
			f.wantDue(spi.DueTimersRequest{}, f.schedule("late", longAgo))
		},
	},
	{
		"a timer whose time has not come is not due",
		spi.CapTimers,
		func(f *fixture) {
			f.schedule("early", wakeNever)
			f.wantDue(spi.DueTimersRequest{})
		},
	},
	{
		"the store's clock decides what is due, neither early nor late",
		spi.CapTimers,
		func(f *fixture) {
			now := f.due(spi.DueTimersRequest{}).Now
			soon := f.schedule("soon", now.Add(2*clockSpread+time.Millisecond))
			f.wantPunctual(f.schedule("sooner", now.Add(2*clockSpread)), soon)
		},
	},
	{
		"the store tells its clock in whole microseconds, as a wake time is",
		spi.CapTimers,
		func(f *fixture) {
			now := f.due(spi.DueTimersRequest{}).Now
			if now.IsZero() || !now.Equal(now.Truncate(time.Microsecond)) {
				f.Fatalf("the store's clock shows %v", now)
			}
			f.wantPunctual(f.schedule("now", now))
		},
	},
	{
		"due timers come by time and then by execution in code point order",
		spi.CapTimers,
		func(f *fixture) {
			var want []spi.Timer
			for i := range 3 {
				for _, id := range []spi.ExecutionID{
					"A", "B-1", "B1", "B_1", "Z", "a", "a b", "cafe\u0301", "café", "z", "é", "\ue000", "\ufffd", "\uffff", "\U00010000", "\U0010ffff",
				} {
					want = append(want, spi.Timer{Execution: id, WakeAt: longAgo.Add(time.Duration(i) * time.Microsecond)})
				}
			}
			for _, i := range rand.Perm(len(want)) {
				want[i] = f.scheduleTimer(want[i])
			}
			f.wantDue(spi.DueTimersRequest{}, want...)
			for _, limit := range []int{1, 2, 16, 17, len(want) - 1, len(want)} {
				f.wantDue(spi.DueTimersRequest{Limit: limit}, want[:limit]...)
			}
		},
	},
	{
		"two executions may wake at the same time",
		spi.CapTimers,
		func(f *fixture) {
			one, two := f.schedule("one", longAgo), f.schedule("two", longAgo)
			f.wantCompleted(one, true)
			f.wantDue(spi.DueTimersRequest{}, two)
		},
	},
	{
		"an execution may wake at several times",
		spi.CapTimers,
		func(f *fixture) {
			first, second := f.schedule("twice", longAgo), f.schedule("twice", longAgo.Add(time.Microsecond))
			f.wantDue(spi.DueTimersRequest{}, first, second)
			f.wantCompleted(first, true)
			f.wantDue(spi.DueTimersRequest{}, second)
		},
	},
	{
		"only timers of executions with the prefix are returned",
		spi.CapTimers,
		func(f *fixture) {
			for _, id := range []spi.ExecutionID{"a", "a\uD7FF", "a\uD7FFx", "a\uE000", "a\U0010FFFF", "a\U0010FFFFx", "b"} {
				f.schedule(id, longAgo)
			}
			for prefix, want := range map[string][]spi.ExecutionID{
				"a":           {"a", "a\uD7FF", "a\uD7FFx", "a\uE000", "a\U0010FFFF", "a\U0010FFFFx"},
				"a\uD7FF":     {"a\uD7FF", "a\uD7FFx"},
				"a\U0010FFFF": {"a\U0010FFFF", "a\U0010FFFFx"},
				"b":           {"b"},
				"c":           nil,
			} {
				var got []spi.ExecutionID
				for _, t := range f.due(spi.DueTimersRequest{Prefix: prefix}).Timers {
					got = append(got, t.Execution)
				}
				if !slices.Equal(got, want) {
					f.Errorf("with the prefix %q, %q are due, not %q", prefix, got, want)
				}
			}
		},
	},
	{
		"the prefix is applied before the limit",
		spi.CapTimers,
		func(f *fixture) {
			for i := range 10 {
				f.schedule(id("others-%d", i), longAgo)
			}
			mine := f.schedule("mine", longAgo.Add(time.Hour))
			f.wantDue(spi.DueTimersRequest{Prefix: "mine", Limit: 1}, mine)
		},
	},
	{
		"a timer is due again until it is completed (invariant 14)",
		spi.CapTimers,
		func(f *fixture) {
			timer := f.schedule("patient", longAgo)
			for range 3 {
				f.wantDue(spi.DueTimersRequest{}, timer)
			}
			f.wantCompleted(timer, true)
			f.wantDue(spi.DueTimersRequest{})
		},
	},
	{
		"a timer is completed once",
		spi.CapTimers,
		func(f *fixture) {
			timer := f.schedule("once", longAgo)
			f.wantCompleted(timer, true)
			f.wantCompleted(timer, false)
		},
	},
	{
		"of eight who complete a timer at once one did it",
		spi.CapTimers,
		func(f *fixture) {
			timer := f.schedule("raced", longAgo)
			var completed [8]bool
			together(len(completed), func(i int) {
				res, err := spi.CompleteTimer(f.ctx, f.store, completion(timer))
				if err != nil {
					f.Error(err)
				}
				completed[i] = res.Completed
			})
			equal(f, "the number of completions", countTrue(completed[:]), 1)
		},
	},
	{
		"to complete a timer that never was is no error",
		spi.CapTimers,
		func(f *fixture) {
			f.wantCompleted(spi.Timer{Execution: "never", WakeAt: longAgo, Version: 1}, false)
		},
	},
	{
		"a timer that is not due yet can be completed",
		spi.CapTimers,
		func(f *fixture) {
			f.wantCompleted(f.schedule("early", wakeNever), true)
		},
	},
	{
		"to complete removes only the version that was seen",
		spi.CapTimers,
		func(f *fixture) {
			seen := f.schedule("fires", longAgo)
			redrive := f.scheduleRedrive("fires", longAgo, 0)
			f.wantCompleted(seen, false)
			f.wantDue(spi.DueTimersRequest{}, redrive)
			f.wantCompleted(redrive, true)
		},
	},
	{
		"a timer has a new version each time that it is scheduled",
		spi.CapTimers,
		func(f *fixture) {
			seen := map[int64]bool{}
			for i := range 6 {
				timer := f.schedule("again", longAgo)
				if timer.Version < 1 || seen[timer.Version] {
					f.Errorf("the version %d is below 1 or was used before", timer.Version)
				}
				seen[timer.Version] = true
				if i%2 == 1 {
					f.wantCompleted(timer, true)
				}
			}
		},
	},
	{
		"a completion that comes late spares the timer that was scheduled since",
		spi.CapTimers,
		func(f *fixture) {
			old := f.schedule("reborn", longAgo)
			f.wantCompleted(old, true)
			reborn := f.schedule("reborn", longAgo)
			f.wantCompleted(old, false)
			f.wantDue(spi.DueTimersRequest{}, reborn)
		},
	},
	{
		"a timer scheduled twice is one row",
		spi.CapTimers,
		func(f *fixture) {
			f.schedule("double", longAgo)
			f.wantDue(spi.DueTimersRequest{}, f.schedule("double", longAgo))
		},
	},
	{
		"of eight who schedule a timer at once all land on one row",
		spi.CapTimers,
		func(f *fixture) {
			var rows [8]spi.Timer
			together(len(rows), func(i int) {
				res, err := spi.ScheduleTimer(f.ctx, f.store, spi.ScheduleTimerRequest{Timer: spi.Timer{Execution: "crowd", WakeAt: longAgo}})
				if err != nil {
					f.Error(err)
				}
				rows[i] = res.Timer
			})
			equal(f, "the number of rows", len(f.due(spi.DueTimersRequest{}).Timers), 1)
			versions := map[int64]bool{}
			removed := 0
			for _, t := range rows {
				versions[t.Version] = true
				if f.complete(t) {
					removed++
				}
			}
			equal(f, "the number of versions", len(versions), len(rows))
			equal(f, "the number of the versions that complete the row", removed, 1)
		},
	},
	{
		"a redrive timer comes back as one, with its attempt",
		spi.CapTimers,
		func(f *fixture) {
			f.wantDue(spi.DueTimersRequest{}, f.scheduleRedrive("a", longAgo, 0), f.scheduleRedrive("b", longAgo, 7), f.schedule("c", longAgo))
		},
	},
	{
		"a plain schedule never clears the redrive flag",
		spi.CapTimers,
		func(f *fixture) {
			for _, attempt := range []int{0, 4} {
				execution := id("kept-%d", attempt)
				f.scheduleRedrive(execution, longAgo, attempt)
				f.wantRedrive(f.schedule(execution, longAgo), attempt)
			}
		},
	},
	{
		"a redrive that lands on a plain timer marks it",
		spi.CapTimers,
		func(f *fixture) {
			for _, attempt := range []int{0, 4} {
				execution := id("marked-%d", attempt)
				f.schedule(execution, longAgo)
				f.wantRedrive(f.scheduleRedrive(execution, longAgo, attempt), attempt)
			}
		},
	},
	{
		"the next redrive attempt replaces the one before",
		spi.CapTimers,
		func(f *fixture) {
			f.scheduleRedrive("tried", longAgo, 0)
			f.scheduleRedrive("tried", longAgo, 1)
			f.wantRedrive(f.scheduleRedrive("tried", longAgo, 2), 2)
		},
	},
	{
		"a timer scheduled after its redrive was completed is plain",
		spi.CapTimers,
		func(f *fixture) {
			f.wantCompleted(f.scheduleRedrive("fresh", longAgo, 3), true)
			plain := f.schedule("fresh", longAgo)
			equal(f, "the redrive flag", plain.Redrive, false)
			equal(f, "the attempt", plain.Attempt, 0)
			f.wantDue(spi.DueTimersRequest{ExcludeRedrive: true}, plain)
		},
	},
	{
		"redrive timers are left out before the limit is applied",
		spi.CapTimers,
		func(f *fixture) {
			for i := range 10 {
				f.scheduleRedrive(id("redrive-%d", i), longAgo, i)
			}
			plain := f.schedule("plain", longAgo.Add(time.Hour))
			f.wantDue(spi.DueTimersRequest{ExcludeRedrive: true, Limit: 1}, plain)
			equal(f, "the number of all that are due", len(f.due(spi.DueTimersRequest{}).Timers), 11)
		},
	},
	{
		"a wake time comes back to the microsecond, in UTC",
		spi.CapTimers,
		func(f *fixture) {
			zone := time.FixedZone("far east", 13*3600+45*60)
			times := []time.Time{
				time.Date(1, time.January, 1, 0, 0, 0, 1000, time.UTC),
				time.Date(1582, time.October, 10, 1, 2, 3, 0, time.UTC),
				time.Date(1969, time.December, 31, 23, 59, 59, 999_999_000, time.UTC),
				time.Date(1970, time.January, 1, 0, 0, 0, 0, time.UTC),
				time.Date(2001, time.February, 3, 4, 5, 6, 123_457_000, zone),
			}
			var want []spi.Timer
			for i, at := range times {
				got := f.schedule("exact", at)
				want = append(want, spi.Timer{Execution: "exact", WakeAt: at.UTC(), Version: got.Version})
				equal(f, "the row", timerText(got), timerText(want[i]))
			}
			f.wantDue(spi.DueTimersRequest{}, want...)
			never := f.schedule("exact", wakeNever)
			equal(f, "the row", timerText(never), timerText(spi.Timer{Execution: "exact", WakeAt: wakeNever, Version: never.Version}))
		},
	},
	{
		"the same instant in another zone is the same timer",
		spi.CapTimers,
		func(f *fixture) {
			f.schedule("instant", longAgo.In(time.FixedZone("far west", -11*3600)))
			timer := f.schedule("instant", longAgo)
			f.wantDue(spi.DueTimersRequest{}, timer)
			timer.WakeAt = timer.WakeAt.In(time.FixedZone("far east", 14*3600))
			f.wantCompleted(timer, true)
		},
	},
	{
		"an execution of the longest id has timers",
		spi.CapTimers,
		func(f *fixture) {
			f.wantDue(spi.DueTimersRequest{}, f.schedule(spi.ExecutionID(f.longest("é")), longAgo))
		},
	},
	{
		"a timer needs no events and lists no execution",
		spi.CapTimers,
		func(f *fixture) {
			f.schedule("eventless", longAgo)
			equal(f, "the head", f.head("eventless").Head, 0)
			equal(f, "the number of executions", len(f.list("", 10)), 0)
		},
	},
	{
		"every shard of a store that is well answers for its timers",
		spi.CapTimers,
		func(f *fixture) {
			if missing := f.due(spi.DueTimersRequest{}).Missing; len(missing) != 0 {
				f.Errorf("the shards %q are missing", missing)
			}
		},
	},
	{
		"a deletion removes the execution's timers and no others",
		spi.CapTimers | spi.CapDeleteExecution,
		func(f *fixture) {
			f.append("gone", 0, "Noted")
			f.schedule("gone", longAgo)
			f.scheduleRedrive("gone", longAgo.Add(time.Second), 1)
			others := f.schedule("gone too", longAgo)
			f.delete("gone")
			f.wantDue(spi.DueTimersRequest{}, others)
		},
	},
	{
		"timers survive reopening",
		spi.CapTimers,
		func(f *fixture) {
			plain, redrive, gone := f.schedule("plain", longAgo), f.scheduleRedrive("redrive", longAgo, 5), f.schedule("gone", longAgo)
			f.wantCompleted(gone, true)
			f.reopen()
			f.wantDue(spi.DueTimersRequest{}, plain, redrive)
			if again := f.schedule("gone", longAgo); again.Version == gone.Version {
				f.Errorf("the version %d is used again", again.Version)
			}
			f.wantCompleted(redrive, true)
		},
	},
}}

// longest returns a name of one character repeated, as long as the store admits
// one: [spi.MaxOuterID], or less where several layers put a scope in front.
func (f *fixture) longest(char string) string {
	scopes := 0
	for _, l := range f.store.Layers() {
		if l.Isolates {
			scopes++
		}
	}
	size := spi.MaxOuterID - max(0, scopes-1)*(spi.MaxTenantName+len("128:/"))
	return strings.Repeat(char, size/len(char))
}

// schedule schedules a plain timer and returns the row.
func (f *fixture) schedule(id spi.ExecutionID, at time.Time) spi.Timer {
	f.Helper()
	return f.scheduleTimer(spi.Timer{Execution: id, WakeAt: at})
}

func (f *fixture) scheduleRedrive(id spi.ExecutionID, at time.Time, attempt int) spi.Timer {
	f.Helper()
	return f.scheduleTimer(spi.Timer{Execution: id, WakeAt: at, Redrive: true, Attempt: attempt})
}

func (f *fixture) scheduleTimer(t spi.Timer) spi.Timer {
	f.Helper()
	res, err := spi.ScheduleTimer(f.ctx, f.store, spi.ScheduleTimerRequest{Timer: t})
	if err != nil {
		f.Fatal(err)
	}
	return res.Timer
}

// due asks what is due; without a limit, for all.
func (f *fixture) due(req spi.DueTimersRequest) spi.DueTimersResponse {
	f.Helper()
	if req.Limit == 0 {
		req.Limit = spi.MaxLimit
	}
	res, err := spi.DueTimers(f.ctx, f.store, req)
	if err != nil {
		f.Fatal(err)
	}
	return res
}

// wantDue checks that exactly these rows are due, in this order.
func (f *fixture) wantDue(req spi.DueTimersRequest, want ...spi.Timer) {
	f.Helper()
	if got, want := timerTexts(f.due(req).Timers), timerTexts(want); got != want {
		f.Errorf("due are:%s\nnot:%s", got, want)
	}
}

// wantPunctual polls until these rows are due, and checks that none is before its
// time or after it.
func (f *fixture) wantPunctual(want ...spi.Timer) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.ctx, 10*time.Second)
	defer cancel()
	for waiting := true; waiting && !f.Failed(); {
		res, err := spi.DueTimers(ctx, f.store, spi.DueTimersRequest{Limit: spi.MaxLimit})
		if err != nil {
			f.Fatal(err)
		}
		// Now may be that of the earliest of several shards; by the next call it
		// has come for all.
		later := f.due(spi.DueTimersRequest{}).Now
		waiting = false
		for _, t := range want {
			due := slices.ContainsFunc(res.Timers, func(row spi.Timer) bool { return timerText(row) == timerText(t) })
			switch {
			case due && t.WakeAt.After(later.Add(clockSpread)):
				f.Errorf("at %v due is already %s", later, timerText(t))
			case !due && !t.WakeAt.After(res.Now):
				f.Errorf("at %v due is not yet %s", res.Now, timerText(t))
			case !due:
				waiting = true
			}
		}
	}
	f.wantDue(spi.DueTimersRequest{}, want...)
}

// wantRedrive checks that a row, also as it is due, is a redrive at an attempt.
func (f *fixture) wantRedrive(row spi.Timer, attempt int) {
	f.Helper()
	equal(f, "the redrive flag", row.Redrive, true)
	equal(f, "the attempt", row.Attempt, attempt)
	f.wantDue(spi.DueTimersRequest{Prefix: string(row.Execution)}, row)
	f.wantDue(spi.DueTimersRequest{Prefix: string(row.Execution), ExcludeRedrive: true})
}

func completion(t spi.Timer) spi.CompleteTimerRequest {
	return spi.CompleteTimerRequest{Execution: t.Execution, WakeAt: t.WakeAt, Version: t.Version}
}

// complete reports whether it removed a row in its version.
func (f *fixture) complete(t spi.Timer) bool {
	f.Helper()
	res, err := spi.CompleteTimer(f.ctx, f.store, completion(t))
	if err != nil {
		f.Fatal(err)
	}
	return res.Completed
}

// wantCompleted checks whether completing a row in its version removes it.
func (f *fixture) wantCompleted(t spi.Timer, want bool) {
	f.Helper()
	equal(f, "completed", f.complete(t), want)
}

// timerText is equal for equal rows.
func timerText(t spi.Timer) string {
	return fmt.Sprintf("%q at %s, redrive %t, attempt %d, version %d", t.Execution, t.WakeAt.Format(time.RFC3339Nano), t.Redrive, t.Attempt, t.Version)
}

func timerTexts(all []spi.Timer) string {
	var b strings.Builder
	for _, t := range all {
		b.WriteString("\n\t" + timerText(t))
	}
	return b.String()
}

// countTrue returns how many are true.
func countTrue(all []bool) (n int) {
	for _, b := range all {
		if b {
			n++
		}
	}
	return n
}
