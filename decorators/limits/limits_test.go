package limits_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loomgate/loomgate/decorators/faults"
	"github.com/loomgate/loomgate/decorators/limits"
	"github.com/loomgate/loomgate/spi"
)

// none is no limit but those that edit sets.
func none(edit func(*limits.Limits)) limits.Limits {
	l := limits.None
	edit(&l)
	return l
}

func over(tb testing.TB, inner *spi.Store, l limits.Limits) (*spi.Store, *limits.Account) {
	tb.Helper()
	account := limits.NewAccount(l)
	store, err := limits.New(inner, account)
	if err != nil {
		tb.Fatal(err)
	}
	return store, account
}

// first is the first append to an execution, of some events of a size each.
func first(id spi.ExecutionID, events, size int) spi.AppendRequest {
	req := spi.AppendRequest{Execution: id}
	for range events {
		req.Events = append(req.Events, spi.Event{ID: spi.NewEventID(), Kind: "k", Payload: make([]byte, size-1)})
	}
	return req
}

func appendTo(ctx context.Context, s *spi.Store, req spi.AppendRequest) error {
	_, err := spi.Append(ctx, s, req)
	return err
}

func head(ctx context.Context, s *spi.Store) error {
	_, err := spi.Head(ctx, s, spi.HeadRequest{Execution: "e"})
	return err
}

func renew(ctx context.Context, s *spi.Store) error {
	_, err := spi.AcquireLease(ctx, s, spi.AcquireLeaseRequest{Name: "l", Holder: "h", TTL: time.Second})
	return err
}

// throttled returns how long a call is told to wait for which limit; "" if it is not.
func throttled(t *testing.T, err error) (limit string, after time.Duration) {
	t.Helper()
	if err == nil {
		return "", 0
	}
	e, ok := errors.AsType[*spi.ThrottledError](err)
	if !ok {
		t.Fatalf("the error is %v", err)
	}
	return e.Limit, e.RetryAfter
}

// expect fails the test unless a call is refused by a limit; "" for not at all.
func expect(t *testing.T, err error, limit string) (after time.Duration) {
	t.Helper()
	got, after := throttled(t, err)
	if got != limit {
		t.Errorf("refused by %q, not by %q: %v", got, limit, err)
	}
	return after
}

func TestRequestsASecondAreABurstOfOneSecondAndThenTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := over(t, newMemory(t), none(func(l *limits.Limits) { l.RequestsPerSecond = 4 }))
		for range 4 {
			expect(t, head(t.Context(), s), "")
		}
		after := expect(t, head(t.Context(), s), "requests a second")
		if after < 250*time.Millisecond || after > 251*time.Millisecond {
			t.Errorf("it is told to wait %v", after)
		}
		time.Sleep(after - time.Millisecond)
		expect(t, head(t.Context(), s), "requests a second") // a refusal costs nothing, and does not put it off
		time.Sleep(time.Millisecond)
		expect(t, head(t.Context(), s), "")
		expect(t, head(t.Context(), s), "requests a second")
		time.Sleep(time.Hour) // no more than one second's worth gathers
		for range 4 {
			expect(t, head(t.Context(), s), "")
		}
		expect(t, head(t.Context(), s), "requests a second")
	})
}

func TestWhatIsLargerThanTheRateIsDoneOnceAndMadeUpFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for limit, l := range map[string]limits.Limits{
			"events a second": none(func(l *limits.Limits) { l.EventsPerSecond = 10 }),
			"bytes a second":  none(func(l *limits.Limits) { l.BytesPerSecond = 10 * 100 }),
		} {
			s, _ := over(t, newMemory(t), l)
			expect(t, appendTo(t.Context(), s, first("large", 35, 100)), "") // of 10 that there are
			after := expect(t, appendTo(t.Context(), s, first("small", 1, 100)), limit)
			if after < 2500*time.Millisecond || after > 2601*time.Millisecond {
				t.Errorf("%s: it is told to wait %v", limit, after)
			}
			time.Sleep(after)
			expect(t, appendTo(t.Context(), s, first("small", 1, 100)), "")
		}
	})
}

func TestABatchCountsAllItsEventsAndBytesAndOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for limit, l := range map[string]limits.Limits{
			"requests a second": none(func(l *limits.Limits) { l.RequestsPerSecond = 2 }),
			"events a second":   none(func(l *limits.Limits) { l.EventsPerSecond = 4 }),
			"bytes a second":    none(func(l *limits.Limits) { l.BytesPerSecond = 400 }),
		} {
			s, _ := over(t, newMemory(t), l)
			batch := func(n int) error {
				req := spi.AppendBatchRequest{Appends: []spi.AppendRequest{
					first(spi.ExecutionID(fmt.Sprint("a", n)), 1, 100), first(spi.ExecutionID(fmt.Sprint("b", n)), 1, 100),
				}}
				_, err := spi.AppendBatch(t.Context(), s, req)
				return err
			}
			expect(t, batch(1), "")
			expect(t, batch(2), "")
			expect(t, batch(3), limit)
		}
	})
}

func TestWhatIsReadIsChargedAfterTheFact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := newMemory(t)
		if err := appendTo(t.Context(), inner, first("eeeee", 10, 100)); err != nil {
			t.Fatal(err)
		}
		if _, err := spi.PutRef(t.Context(), inner, spi.PutRefRequest{Name: "rrrrr", Execution: "eeeee"}); err != nil {
			t.Fatal(err)
		}
		for what, c := range map[string]struct {
			call func(context.Context, *spi.Store) error
			size int64
		}{
			"Read": {func(ctx context.Context, s *spi.Store) error {
				_, err := spi.Read(ctx, s, spi.ReadRequest{Execution: "eeeee", Limit: 100})
				return err
			}, 1000},
			"ListExecutions": {func(ctx context.Context, s *spi.Store) error {
				_, err := spi.ListExecutions(ctx, s, spi.ListExecutionsRequest{Limit: 100})
				return err
			}, 5},
			"ListRefs": {func(ctx context.Context, s *spi.Store) error {
				_, err := spi.ListRefs(ctx, s, spi.ListRefsRequest{Limit: 100})
				return err
			}, 10},
		} {
			s, _ := over(t, inner, none(func(l *limits.Limits) { l.BytesPerSecond = c.size }))
			expect(t, c.call(t.Context(), s), "")
			if limit, _ := throttled(t, c.call(t.Context(), s)); limit != "bytes a second" {
				t.Errorf("%s is refused by %q", what, limit)
			}
			expect(t, head(t.Context(), s), "") // it reads nothing
			s, _ = over(t, inner, none(func(l *limits.Limits) { l.BytesPerSecond = c.size + 1 }))
			expect(t, c.call(t.Context(), s), "")
			if limit, _ := throttled(t, c.call(t.Context(), s)); limit != "" {
				t.Errorf("%s counts more than %d bytes", what, c.size)
			}
		}
	})
}

func TestFencesTimersAndLeasesAreNotRefusedForWhatElseIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := faults.NewGate()
		inner, err := faults.New(newMemory(t), func(c faults.Call) faults.Fault {
			if c.Method == "Append" {
				return faults.Fault{Hold: gate}
			}
			return faults.Fault{}
		})
		if err != nil {
			t.Fatal(err)
		}
		s, account := over(t, inner, none(func(l *limits.Limits) {
			l.RequestsPerSecond, l.InFlight, l.EventsPerSecond, l.BytesPerSecond = 9, 2, 1, 1
		}))
		done := make(chan error)
		for i := range 2 {
			go func() { done <- appendTo(t.Context(), s, first(spi.ExecutionID(fmt.Sprint(i)), 1, 1)) }()
			synctest.Wait()
			time.Sleep(time.Second) // for the next event
		}
		expect(t, appendTo(t.Context(), s, first("third", 1, 1)), "calls in flight")
		for what, call := range coordinating {
			if err := call(t.Context(), s); err != nil {
				t.Errorf("%s beside appends: %v", what, err)
			}
		}
		expect(t, renew(t.Context(), s), "") // the ninth: they have a rate of their own
		expect(t, renew(t.Context(), s), "requests a second")
		gate.Open()
		for range 2 {
			expect(t, <-done, "")
		}
		expect(t, head(t.Context(), s), "") // and take nothing from the others'
		if n := account.Usage().InFlight; n != 0 {
			t.Errorf("%d calls are in flight", n)
		}
	})
}

var coordinating = map[string]func(context.Context, *spi.Store) error{
	"AcquireFence": func(ctx context.Context, s *spi.Store) error {
		_, err := spi.AcquireFence(ctx, s, spi.AcquireFenceRequest{Execution: "f"})
		return err
	},
	"AcquireFenceIf": func(ctx context.Context, s *spi.Store) error {
		_, err := spi.AcquireFenceIf(ctx, s, spi.AcquireFenceIfRequest{Execution: "f", ParkSeq: 1})
		return err
	},
	"ScheduleTimer": func(ctx context.Context, s *spi.Store) error {
		_, err := spi.ScheduleTimer(ctx, s, spi.ScheduleTimerRequest{Timer: spi.Timer{Execution: "f", WakeAt: time.Unix(1, 0)}})
		return err
	},
	"DueTimers": func(ctx context.Context, s *spi.Store) error {
		_, err := spi.DueTimers(ctx, s, spi.DueTimersRequest{Limit: 1})
		return err
	},
	"CompleteTimer": func(ctx context.Context, s *spi.Store) error {
		_, err := spi.CompleteTimer(ctx, s, spi.CompleteTimerRequest{Execution: "f", WakeAt: time.Unix(1, 0), Version: 1})
		return err
	},
	"AcquireLease": renew,
	"RenewLease": func(ctx context.Context, s *spi.Store) error {
		_, err := spi.RenewLease(ctx, s, spi.RenewLeaseRequest{Name: "none", Token: 1, TTL: time.Second})
		if _, lost := errors.AsType[*spi.LeaseLostError](err); lost {
			return nil
		}
		return err
	},
	"ReleaseLease": func(ctx context.Context, s *spi.Store) error {
		_, err := spi.ReleaseLease(ctx, s, spi.ReleaseLeaseRequest{Name: "none", Token: 1})
		return err
	},
}

func TestALimitOfZeroRefusesEverythingOfTheKind(t *testing.T) {
	write := func(ctx context.Context, s *spi.Store) error { return appendTo(ctx, s, first("e", 1, 1)) }
	for limit, c := range map[string]struct {
		limits limits.Limits
		calls  []func(context.Context, *spi.Store) error
	}{
		"requests a second": {none(func(l *limits.Limits) { l.RequestsPerSecond = 0 }), []func(context.Context, *spi.Store) error{write, head, renew}},
		"events a second":   {none(func(l *limits.Limits) { l.EventsPerSecond = 0 }), []func(context.Context, *spi.Store) error{write}},
		"bytes a second":    {none(func(l *limits.Limits) { l.BytesPerSecond = 0 }), []func(context.Context, *spi.Store) error{write}},
		"calls in flight":   {none(func(l *limits.Limits) { l.InFlight = 0 }), []func(context.Context, *spi.Store) error{write, head, renew}},
		"executions stored": {none(func(l *limits.Limits) { l.Executions = 0 }), []func(context.Context, *spi.Store) error{write}},
	} {
		s, _ := over(t, newMemory(t), c.limits)
		for _, call := range c.calls {
			if after := expect(t, call(t.Context(), s), limit); after != time.Minute {
				t.Errorf("%s: it is told to wait %v", limit, after)
			}
		}
	}
}

func TestTheLargestLimitsRefuseNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, n := range []int64{math.MaxInt64, math.MaxInt64 - 1} {
			s, account := over(t, newMemory(t), limits.Limits{n, n, n, n, n})
			account.Counted(math.MaxInt64 / 2)
			for i := range 100 {
				expect(t, appendTo(t.Context(), s, first(spi.ExecutionID(fmt.Sprint(i)), 10, 1000)), "")
			}
			time.Sleep(240 * time.Hour)
			expect(t, head(t.Context(), s), "")
		}
	})
}

func TestTheSmallestRateAndTheLargestCallMakeAWaitThatCanBeTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, account := over(t, newMemory(t), none(func(l *limits.Limits) { l.BytesPerSecond = 1 }))
		expect(t, appendTo(t.Context(), s, first("e", 60, 1<<20)), "")
		after := expect(t, appendTo(t.Context(), s, first("f", 1, 1)), "bytes a second")
		if want := 60 << 20 * time.Second; after != want+1 {
			t.Errorf("it is told to wait %v, not %v", after, want)
		}
		account.Set(none(func(l *limits.Limits) { l.BytesPerSecond = 2 })) // an operator ends it
		expect(t, appendTo(t.Context(), s, first("f", 1, 1)), "")
	})
}

func TestASetLimitHoldsForTheNextCallAndForgetsOnlyWhatItChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, account := over(t, newMemory(t), none(func(l *limits.Limits) { l.RequestsPerSecond = 1 }))
		expect(t, head(t.Context(), s), "")
		expect(t, head(t.Context(), s), "requests a second")
		account.Set(none(func(l *limits.Limits) { l.RequestsPerSecond, l.InFlight = 1, 5 }))
		expect(t, head(t.Context(), s), "requests a second")
		account.Set(none(func(l *limits.Limits) { l.RequestsPerSecond, l.InFlight = 2, 0 }))
		expect(t, head(t.Context(), s), "calls in flight")
		account.Set(none(func(l *limits.Limits) { l.RequestsPerSecond = 2 }))
		expect(t, head(t.Context(), s), "")
	})
}

func TestACallStaysInFlightUntilItsAnswerIsTaken(t *testing.T) {
	s, account := over(t, newMemory(t), none(func(l *limits.Limits) { l.InFlight = 1 }))
	ctx, taken := limits.Extend(t.Context())
	expect(t, head(ctx, s), "")
	expect(t, head(t.Context(), s), "calls in flight")
	taken()
	expect(t, head(t.Context(), s), "")
	expect(t, head(ctx, s), "") // late, as a call whose client has gone
	leave, err := account.Enter()
	if err != nil {
		t.Fatal(err)
	}
	expect(t, head(t.Context(), s), "calls in flight")
	_, err = account.Enter()
	expect(t, err, "calls in flight")
	leave()
	leave()
	expect(t, head(t.Context(), s), "")
	if n := account.Usage().InFlight; n != 0 {
		t.Errorf("%d calls are in flight", n)
	}
}

func TestAPanicGivesItsPlaceBack(t *testing.T) {
	inner, err := faults.New(newMemory(t), func(faults.Call) faults.Fault { panic("broken") })
	if err != nil {
		t.Fatal(err)
	}
	s, account := over(t, inner, none(func(l *limits.Limits) { l.InFlight = 1 }))
	func() {
		defer func() { _ = recover() }()
		_ = head(t.Context(), s)
	}()
	if n := account.Usage().InFlight; n != 0 {
		t.Errorf("%d calls are in flight", n)
	}
}

func TestNegativeLimitsAreRefused(t *testing.T) {
	for i, l := range []limits.Limits{
		none(func(l *limits.Limits) { l.RequestsPerSecond = -1 }), none(func(l *limits.Limits) { l.BytesPerSecond = -1 }),
		none(func(l *limits.Limits) { l.EventsPerSecond = -1 }), none(func(l *limits.Limits) { l.InFlight = -1 }),
		none(func(l *limits.Limits) { l.Executions = math.MinInt64 }),
	} {
		if _, ok := errors.AsType[*spi.InvalidArgumentError](l.Validate()); !ok {
			t.Errorf("limits %d: %v", i, l.Validate())
		}
	}
	if err := errors.Join(limits.None.Validate(), limits.Limits{}.Validate()); err != nil {
		t.Error(err)
	}
	if _, err := limits.New(newMemory(t), nil); !strings.Contains(fmt.Sprint(err), "account") {
		t.Error(err)
	}
}
