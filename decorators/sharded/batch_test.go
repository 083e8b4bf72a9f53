package sharded_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loomgate/loomgate/decorators/sharded"
	"github.com/loomgate/loomgate/spi"
)

// batch appends one event to each of some executions.
func (f *fixture) batch(ids ...spi.ExecutionID) []spi.AppendResult {
	f.Helper()
	var req spi.AppendBatchRequest
	for _, id := range ids {
		req.Appends = append(req.Appends, spi.AppendRequest{Execution: id, ExpectedHead: spi.AnyHead, Events: events(1)})
	}
	res, err := spi.AppendBatch(f.Context(), f.store, req)
	if err != nil || len(res.Results) != len(ids) {
		f.Fatalf("%d results, %v", len(res.Results), err)
	}
	return res.Results
}

func TestTheResultsOfABatchAreInTheCallersOrder(t *testing.T) {
	f := newFixture(t, 4, sharded.Options{})
	ids := f.fill(40)
	for i, id := range ids {
		for range i % 7 {
			f.mustAppend(id)
		}
	}
	for i, r := range f.batch(ids...) {
		if want := int64(2 + i%7); r.Err != nil || r.Head != want {
			t.Errorf("append %d has head %d (%v), not %d", i, r.Head, r.Err, want)
		}
	}
}

func TestABatchIsMadeAtAllShardsAtOnceAndOneThatHangsFailsItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 3, sharded.Options{CallTimeout: 3 * time.Second})
		ids := f.fill(30)
		f.doubles[1].on(hanging)
		for _, i := range []int{0, 2} {
			f.doubles[i].on(func(context.Context, string, any) (any, error) {
				time.Sleep(2 * time.Second)
				return nil, nil
			})
		}
		took := elapsed(func() {
			for i, r := range f.batch(ids...) {
				if at, _ := f.cluster.Where(string(ids[i])); at.Shard != shardName(1) {
					if r.Err != nil || r.Head != 2 {
						t.Errorf("an append at %s has head %d (%v)", at.Shard, r.Head, r.Err)
					}
				} else if wantShard(t, r.Err, shardName(1)); !errors.Is(r.Err, context.DeadlineExceeded) {
					t.Error(r.Err)
				}
			}
		})
		if took != 3*time.Second {
			t.Errorf("it takes %v", took)
		}
	})
}

// TestABatchFollowsTheSlotsThatHaveMoved makes what was refused again, and only that.
func TestABatchFollowsTheSlotsThatHaveMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 3, sharded.Options{})
		ids := f.fill(30)
		moved := f.ids(shardName(0), 1)[0]
		f.moveWith(moved, 0, 1)
		frozen := f.ids(shardName(2), 1)[0]
		slot := f.placement.Slot(string(frozen))
		f.change(2, record(slot, spi.SlotFrozen, 1, ""))
		time.AfterFunc(time.Second, func() { f.change(2, record(slot, spi.SlotOwned, 1, "")) })
		for i, r := range f.batch(ids...) {
			if r.Err != nil || r.Head != 2 || r.Duplicate {
				t.Errorf("append %d is %+v", i, r)
			}
		}
		for _, id := range ids {
			f.wantHead(id, 2)
		}
	})
}

func TestABatchOfASlotThatStaysFrozenFailsThatAppend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 3, sharded.Options{})
		ids := f.fill(30)
		frozen := f.ids(shardName(2), 1)[0]
		f.change(2, record(f.placement.Slot(string(frozen)), spi.SlotFrozen, 1, ""))
		for i, r := range f.batch(ids...) {
			if ids[i] == frozen {
				want[*spi.SlotMovingError](t, r.Err)
			} else if r.Err != nil {
				t.Error(r.Err)
			}
		}
	})
}

// TestABatchWaitsOnceForAShardThatHangs has many appends that are nobody's.
func TestABatchWaitsOnceForAShardThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 2, sharded.Options{})
		ids := f.ids(shardName(1), 20)
		f.doubles[1].on(hanging)
		f.open(sharded.Options{AwaitMissing: true, CallTimeout: 3 * time.Second})
		time.Sleep(time.Minute)
		if took := elapsed(func() { f.batch(ids...) }); took != 3*time.Second {
			t.Errorf("it takes %v", took)
		}
	})
}

func TestABatchAwaitsWhatNobodyHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 2, sharded.Options{})
		ids := []spi.ExecutionID{f.ids(shardName(0), 1)[0], f.ids(shardName(1), 1)[0]}
		f.doubles[1].on(failing)
		f.open(sharded.Options{AwaitMissing: true})
		results := f.batch(ids...)
		if want[*sharded.UnreadError](t, results[1].Err); results[0].Err != nil {
			t.Error(results[0].Err)
		}
		f.doubles[1].on(nil)
		time.Sleep(time.Second)
		for _, r := range f.batch(ids...) {
			if r.Err != nil {
				t.Error(r.Err)
			}
		}
	})
}
