package memory_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/spi"
)

func open(t testing.TB, options ...memory.Option) *spi.Store {
	t.Helper()
	s, err := memory.New(options...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func event(kind string) []spi.Event { return []spi.Event{{ID: spi.NewEventID(), Kind: kind}} }

func TestOffersEverything(t *testing.T) {
	if got := open(t).Offered(); got != spi.AllCaps {
		t.Errorf("offers %v, not all", got)
	}
}

func TestClockIsAskedForEveryTime(t *testing.T) {
	ctx := context.Background()
	start := time.Date(2026, 5, 1, 12, 0, 0, 1234, time.FixedZone("east", 3600))
	var passed atomic.Int64
	s := open(t, memory.WithClock(func() time.Time { return start.Add(time.Duration(passed.Load())) }))
	now := start.UTC().Truncate(time.Microsecond)

	if _, err := spi.Append(ctx, s, spi.AppendRequest{Execution: "a", Events: event("K")}); err != nil {
		t.Fatal(err)
	}
	log, err := spi.Read(ctx, s, spi.ReadRequest{Execution: "a", Limit: 1})
	if err != nil || log.Events[0].RecordedAt != now {
		t.Errorf("recorded at %v, %v; want %v", log.Events, err, now)
	}

	held, err := spi.AcquireLease(ctx, s, spi.AcquireLeaseRequest{Name: "l", Holder: "h", TTL: time.Second})
	if err != nil || held.ExpiresAt != now.Add(time.Second) {
		t.Errorf("lease until %v, %v", held.ExpiresAt, err)
	}
	timer := spi.Timer{Execution: "a", WakeAt: now.Add(time.Second)}
	if _, err := spi.ScheduleTimer(ctx, s, spi.ScheduleTimerRequest{Timer: timer}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{0, 1} {
		due, err := spi.DueTimers(ctx, s, spi.DueTimersRequest{Limit: 10})
		if err != nil || len(due.Timers) != want {
			t.Errorf("due %v, %v; want %d", due.Timers, err, want)
		}
		passed.Store(int64(time.Second))
	}
	_, err = spi.RenewLease(ctx, s, spi.RenewLeaseRequest{Name: "l", Token: held.Token, TTL: time.Second})
	if _, lost := errors.AsType[*spi.LeaseLostError](err); !lost {
		t.Errorf("renewing an expired lease: %v", err)
	}

	if _, err := spi.DeleteExecution(ctx, s, spi.DeleteExecutionRequest{Execution: "a", Incarnation: 1}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{0, 1, 0} {
		swept, err := spi.SweepTombstones(ctx, s, spi.SweepTombstonesRequest{OlderThan: time.Hour, Limit: 10})
		if err != nil || swept.Swept != want {
			t.Errorf("swept %d, %v; want %d", swept.Swept, err, want)
		}
		passed.Store(int64(time.Hour + time.Second))
	}
}

// TestCallsRunConcurrently lets every kind of call meet every other. The race
// detector judges; what is counted here is that no write was lost or done twice.
func TestCallsRunConcurrently(t *testing.T) {
	ctx := context.Background()
	s := open(t)
	const workers, rounds = 4, 100
	var workersDone, readersDone sync.WaitGroup
	var appended atomic.Int64
	stop := make(chan struct{})

	for w := range workers {
		workersDone.Go(func() {
			own := spi.ExecutionID(fmt.Sprintf("own-%d", w))
			for i := range rounds {
				res, err := spi.Append(ctx, s, spi.AppendRequest{Execution: "shared", ExpectedHead: spi.AnyHead, Events: event("K")})
				if err != nil || res.Duplicate {
					t.Errorf("append: %+v, %v", res, err)
				}
				appended.Add(1)
				_, _ = spi.Append(ctx, s, spi.AppendRequest{Execution: own, ExpectedHead: spi.AnyHead, Incarnation: int64(i/2 + 1), Events: event("K")})
				_, _ = spi.ScheduleTimer(ctx, s, spi.ScheduleTimerRequest{Timer: spi.Timer{Execution: own, WakeAt: time.UnixMicro(int64(i))}})
				_, _ = spi.PutRef(ctx, s, spi.PutRefRequest{Name: spi.RefName(own), Execution: own, ExpectedVersion: spi.AnyVersion})
				_, _ = spi.TruncatePrefixKeeping(ctx, s, spi.TruncatePrefixKeepingRequest{Execution: "shared", Incarnation: 1, Before: int64(i)})
				if i%2 == 1 {
					_, _ = spi.DeleteExecution(ctx, s, spi.DeleteExecutionRequest{Execution: own, Incarnation: int64(i/2 + 1)})
				}
			}
		})
		readersDone.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				for _, back := range []bool{false, true} {
					log, err := spi.Read(ctx, s, spi.ReadRequest{Execution: "shared", Backward: back, Limit: 100})
					if err != nil {
						t.Errorf("read: %v", err)
					}
					for _, e := range log.Events {
						if e.Sequence < 1 || e.Kind != "K" {
							t.Errorf("read %+v", e)
						}
					}
				}
				_, _ = spi.ListExecutions(ctx, s, spi.ListExecutionsRequest{Limit: 100})
				_, _ = spi.ListRefs(ctx, s, spi.ListRefsRequest{Limit: 100})
				_, _ = spi.DueTimers(ctx, s, spi.DueTimersRequest{Limit: 100})
			}
		})
	}
	workersDone.Wait()
	close(stop)
	readersDone.Wait()

	head, err := spi.Head(ctx, s, spi.HeadRequest{Execution: "shared"})
	if err != nil || head.Head != appended.Load() {
		t.Errorf("head %d, %v; want %d", head.Head, err, appended.Load())
	}
	page, err := spi.ListExecutions(ctx, s, spi.ListExecutionsRequest{Limit: 100})
	if err != nil || len(page.Executions) != 1 {
		t.Errorf("left %q, %v; want only the shared one", page.Executions, err)
	}
}
