package sharded_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loomgate/loomgate/decorators/sharded"
	"github.com/loomgate/loomgate/spi"
)

func (f *fixture) schedule(at time.Time, ids ...spi.ExecutionID) {
	f.Helper()
	for _, id := range ids {
		if _, err := spi.ScheduleTimer(f.Context(), f.store, spi.ScheduleTimerRequest{Timer: spi.Timer{Execution: id, WakeAt: at}}); err != nil {
			f.Fatal(err)
		}
	}
}

func (f *fixture) due(limit int) (spi.DueTimersResponse, error) {
	return spi.DueTimers(f.Context(), f.store, spi.DueTimersRequest{Limit: limit})
}

// TestAnOldTimerWaitsForNoNewerOnesOfAnotherShard has one shard with more rows than a
// poll takes.
func TestAnOldTimerWaitsForNoNewerOnesOfAnotherShard(t *testing.T) {
	f := newFixture(t, 3, sharded.Options{})
	f.schedule(longAgo.Add(time.Hour), f.ids(shardName(0), 50)...)
	old := slices.Concat(f.ids(shardName(1), 2), f.ids(shardName(2), 2))
	f.schedule(longAgo, old...)
	res, err := f.due(5)
	if err != nil || len(res.Timers) != 5 || len(res.Missing) > 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	slices.Sort(old)
	for i, id := range old {
		if res.Timers[i].Execution != id {
			t.Errorf("timer %d is of %q, not of %q", i, res.Timers[i].Execution, id)
		}
	}
}

func TestShardsThatHangDelayTimersByOneTimeoutAndAreMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 4, sharded.Options{CallTimeout: 2 * time.Second})
		for i := range 4 {
			f.schedule(longAgo, f.ids(shardName(i), 1)...)
		}
		f.doubles[1].on(hanging)
		f.doubles[3].on(hanging)
		took := elapsed(func() {
			res, err := f.due(10)
			if err != nil || len(res.Timers) != 2 || !slices.Equal(res.Missing, []string{shardName(1), shardName(3)}) {
				t.Errorf("%+v, %v", res, err)
			}
		})
		if took != 2*time.Second {
			t.Errorf("it takes %v", took)
		}
	})
}

// TestTheTimeOfDueTimersIsTheEarliestClocks has shards whose clocks differ.
func TestTheTimeOfDueTimersIsTheEarliestClocks(t *testing.T) {
	f := newFixture(t, 3, sharded.Options{})
	for i, d := range f.doubles {
		d.on(func(context.Context, string, any) (any, error) {
			return spi.DueTimersResponse{Now: longAgo.Add(time.Duration((i+2)%3) * time.Hour)}, nil
		})
	}
	if res, err := f.due(10); err != nil || !res.Now.Equal(longAgo) {
		t.Errorf("%v, %v", res.Now, err)
	}
}

func TestDueTimersAreAnErrorWhenNobodyAnswersOrTheCallerIsGone(t *testing.T) {
	f := newFixture(t, 2, sharded.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := spi.DueTimers(ctx, f.store, spi.DueTimersRequest{Limit: 10}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for _, d := range f.doubles {
		d.on(failing)
	}
	if _, err := f.due(10); !errors.Is(err, errBroken) {
		t.Error(err)
	} else {
		want[*spi.ShardError](t, err)
	}
}

// bury deletes executions.
func (f *fixture) bury(ids ...spi.ExecutionID) {
	f.Helper()
	f.mustAppend(ids...)
	for _, id := range ids {
		if _, err := spi.DeleteExecution(f.Context(), f.store, spi.DeleteExecutionRequest{Execution: id, Incarnation: 1}); err != nil {
			f.Fatal(err)
		}
	}
}

func TestASweepKeepsToItsLimitOverAllShards(t *testing.T) {
	f := newFixture(t, 3, sharded.Options{})
	f.bury(slices.Concat(f.ids(shardName(0), 4), f.ids(shardName(1), 4), f.ids(shardName(2), 4))...)
	for _, want := range []int{5, 5, 2, 0} {
		res, err := spi.SweepTombstones(t.Context(), f.store, spi.SweepTombstonesRequest{Limit: 5})
		if err != nil || res.Swept != want {
			t.Errorf("%d are swept (%v), not %d", res.Swept, err, want)
		}
	}
}

func TestAShardThatFailsKeepsNoOtherFromBeingSwept(t *testing.T) {
	f := newFixture(t, 3, sharded.Options{})
	f.bury(slices.Concat(f.ids(shardName(0), 2), f.ids(shardName(1), 2), f.ids(shardName(2), 2))...)
	f.doubles[0].on(failing)
	_, err := spi.SweepTombstones(t.Context(), f.store, spi.SweepTombstonesRequest{Limit: 100})
	wantShard(t, err, shardName(0))
	f.doubles[0].on(nil)
	if res, err := spi.SweepTombstones(t.Context(), f.store, spi.SweepTombstonesRequest{Limit: 100}); err != nil || res.Swept != 2 {
		t.Errorf("%d are left to be swept (%v), not the first shard's 2", res.Swept, err)
	}
}

func TestOwnershipIsWhatTheShardsSayNow(t *testing.T) {
	f := newFixture(t, 3, sharded.Options{})
	f.pin(2, 0, "acme")
	res, err := spi.GetOwnership(t.Context(), f.store, spi.GetOwnershipRequest{})
	if err != nil || len(res.Shards) != 3 || len(res.Shards[2].Slots) != len(sharded.Share(3)[2])+1 {
		t.Errorf("%d shards, %v", len(res.Shards), err)
	}
	f.doubles[1].on(failing)
	_, err = spi.GetOwnership(t.Context(), f.store, spi.GetOwnershipRequest{})
	wantShard(t, err, shardName(1))
}
