package sharded_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loomgate/loomgate/decorators/sharded"
	"github.com/loomgate/loomgate/spi"
)

// moveWith moves the slot of an execution, and the execution with it.
func (f *fixture) moveWith(id spi.ExecutionID, from, to int) {
	f.Helper()
	slot := f.placement.Slot(string(id))
	old := spi.Route{Slot: slot, Epoch: f.epoch(from, slot)}
	log, err := spi.Read(f.Context(), f.doubles[from].inner, spi.ReadRequest{Route: old, Execution: id, Limit: spi.MaxLimit})
	if err != nil {
		f.Fatal(err)
	}
	for i := range log.Events {
		log.Events[i].Sequence, log.Events[i].Fence = 0, 0
	}
	f.move(slot, from, to, "")
	f.write(to, old.Epoch+1, id, log.Events)
}

// write writes an execution at a shard.
func (f *fixture) write(i int, epoch int64, id spi.ExecutionID, all []spi.Event) {
	f.Helper()
	_, err := spi.Append(f.Context(), f.doubles[i].inner, spi.AppendRequest{
		Route: spi.Route{Slot: f.placement.Slot(string(id)), Epoch: epoch}, Execution: id, Events: all,
	})
	if err != nil {
		f.Fatal(err)
	}
}

// counting counts the calls of a method at each shard.
func (f *fixture) counting(method string) []atomic.Int64 {
	counts := make([]atomic.Int64, len(f.doubles))
	for i, d := range f.doubles {
		d.on(func(_ context.Context, m string, _ any) (any, error) {
			if m == method {
				counts[i].Add(1)
			}
			return nil, nil
		})
	}
	return counts
}

func (f *fixture) wantHead(id spi.ExecutionID, head int64) {
	f.Helper()
	res, err := spi.Head(f.Context(), f.store, spi.HeadRequest{Execution: id})
	if err != nil || res.Head != head {
		f.Errorf("%q is at %d (%v), not at %d", id, res.Head, err, head)
	}
}

func (f *fixture) mustAppend(ids ...spi.ExecutionID) {
	f.Helper()
	for _, id := range ids {
		if err := f.append(f.Context(), id); err != nil {
			f.Fatal(err)
		}
	}
}

// elapsed returns how long something takes by the bubble's clock.
func elapsed(do func()) time.Duration {
	begin := time.Now()
	do()
	return time.Since(begin)
}

// TestACallFollowsASlotThatHasMoved needs the word of the shard that gave the slot away
// and of nobody else: the third shard hangs.
func TestACallFollowsASlotThatHasMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 3, sharded.Options{})
		id := f.ids(shardName(0), 1)[0]
		f.mustAppend(id)
		f.moveWith(id, 0, 1)
		reads := f.counting("GetOwnership")
		f.doubles[2].on(hanging)
		if took := elapsed(func() { f.mustAppend(id) }); took > 0 {
			t.Errorf("it takes %v", took)
		}
		f.wantHead(id, 2)
		if a, b := reads[0].Load(), reads[1].Load(); a != 1 || b != 0 {
			t.Errorf("the shards are read %d and %d times", a, b)
		}
		if at, err := f.cluster.Where(string(id)); err != nil || at.Shard != shardName(1) || at.Route.Epoch != 2 {
			t.Errorf("it is at %+v (%v)", at, err)
		}
	})
}

func TestACallFollowsASlotThroughSeveralMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 4, sharded.Options{})
		id := f.ids(shardName(0), 1)[0]
		f.mustAppend(id)
		for i := range 3 {
			f.moveWith(id, i, i+1)
		}
		f.wantHead(id, 1)
	})
}

func TestACallWaitsUntilAMoveIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 2, sharded.Options{})
		id := f.ids(shardName(0), 1)[0]
		slot := f.placement.Slot(string(id))
		f.change(0, record(slot, spi.SlotFrozen, 1, shardName(1)))
		var done sync.WaitGroup
		done.Go(func() { f.mustAppend(id) })
		time.Sleep(time.Second)
		f.change(1, record(slot, spi.SlotReceiving, 1, shardName(0)))
		f.change(0, record(slot, spi.SlotReleased, 2, shardName(1)))
		time.Sleep(time.Second)
		f.change(1, record(slot, spi.SlotOwned, 2, ""))
		done.Wait()
		f.wantHead(id, 1)
	})
}

func TestACallToASlotThatStaysFrozenFailsAtItsDeadlineOrAtTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 2, sharded.Options{CallTimeout: 3 * time.Second})
		id := f.ids(shardName(0), 1)[0]
		f.change(0, record(f.placement.Slot(string(id)), spi.SlotFrozen, 1, shardName(1)))
		reads := f.counting("GetOwnership")
		for limit, deadline := range map[time.Duration]bool{3 * time.Second: false, time.Second: true, time.Minute: true} {
			ctx := t.Context()
			if deadline {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, limit)
				defer cancel()
			}
			took := elapsed(func() {
				if e := want[*spi.SlotMovingError](t, f.append(ctx, id)); e.State != spi.SlotFrozen {
					t.Error(e)
				}
			})
			if took > limit || took < limit-time.Second/5 {
				t.Errorf("with %v to go it fails after %v", limit, took)
			}
		}
		if n := reads[0].Load(); n > 0 {
			t.Errorf("while the shard says that nothing has moved it is read %d times", n)
		}
	})
}

func TestACallerWhoCancelsWhileASlotMovesIsAnsweredSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 2, sharded.Options{})
		id := f.ids(shardName(0), 1)[0]
		f.change(0, record(f.placement.Slot(string(id)), spi.SlotFrozen, 1, shardName(1)))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if err := f.append(ctx, id); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// TestAMisrouteThatNoMapExplainsIsAnsweredAtOnce has an execution in another slot than
// its own.
func TestAMisrouteThatNoMapExplainsIsAnsweredAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 2, sharded.Options{})
		two := f.ids(shardName(0), 2)
		other := spi.Route{Slot: f.placement.Slot(string(two[1])), Epoch: 1}
		if _, err := spi.Append(t.Context(), f.doubles[0].inner, spi.AppendRequest{Route: other, Execution: two[0], Events: events(1)}); err != nil {
			t.Fatal(err)
		}
		took := elapsed(func() {
			if e := want[*spi.MisroutedError](t, f.append(t.Context(), two[0])); e.Shard != shardName(0) {
				t.Error(e)
			}
		})
		if took > 0 {
			t.Errorf("it takes %v", took)
		}
	})
}

// TestManyCallsToOneStaleSlotReadTheMapTogether lets a hundred calls arrive before the
// first is refused.
func TestManyCallsToOneStaleSlotReadTheMapTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 100
		f := newFixture(t, 3, sharded.Options{})
		id := f.ids(shardName(0), 1)[0]
		f.mustAppend(id)
		f.moveWith(id, 0, 1)
		reads := f.counting("GetOwnership")
		arrived := make(chan struct{}, n)
		all := make(chan struct{})
		f.doubles[0].on(func(_ context.Context, method string, _ any) (any, error) {
			switch method {
			case "Head":
				arrived <- struct{}{}
				<-all
			case "GetOwnership":
				reads[0].Add(1)
				time.Sleep(time.Second)
			}
			return nil, nil
		})
		var calls sync.WaitGroup
		for range n {
			calls.Go(func() { f.wantHead(id, 1) })
		}
		for range n {
			<-arrived
		}
		close(all)
		calls.Wait()
		if got := reads[0].Load() + reads[1].Load() + reads[2].Load(); got < 1 || got > 2 {
			t.Errorf("the shards are read %d times", got)
		}
	})
}

func TestAReadOfTheMapOutlivesTheCallerThatBeganIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 2, sharded.Options{})
		id := f.ids(shardName(0), 1)[0]
		f.mustAppend(id)
		f.moveWith(id, 0, 1)
		reads := 0
		f.doubles[0].on(func(ctx context.Context, method string, _ any) (any, error) {
			if method == "GetOwnership" {
				reads++
				time.Sleep(time.Second)
				return nil, ctx.Err()
			}
			return nil, nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		var calls sync.WaitGroup
		calls.Go(func() {
			if err := f.append(ctx, id); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		synctest.Wait()
		cancel()
		synctest.Wait()
		calls.Wait() // it does not wait for the read
		time.Sleep(2 * time.Second)
		f.mustAppend(id)
		if reads != 1 {
			t.Errorf("the shard is read %d times", reads)
		}
	})
}

func TestAPinIsInEffectAfterARefresh(t *testing.T) {
	f := newFixture(t, 3, sharded.Options{})
	f.pin(2, 0, "acme")
	if err := f.cluster.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if at, err := f.cluster.Where(fmt.Sprintf("4:acme/e-%d", i)); err != nil || at != (sharded.Location{Shard: shardName(2), Route: spi.Route{Slot: spi.FirstPin, Epoch: 1}}) {
			t.Errorf("%+v, %v", at, err)
		}
	}
}

func TestARefreshSaysWhatIsWrongWithTheMap(t *testing.T) {
	f := newFixture(t, 3, sharded.Options{})
	f.pin(1, 0, "acme")
	f.pin(2, 0, "acme")
	want[*sharded.OverlapError](t, f.cluster.Refresh(t.Context()))
	e := want[*spi.UnavailableError](t, f.append(t.Context(), "4:acme/e"))
	if c := want[*spi.CoverageError](t, e); !c.Twice.Contains(spi.FirstPin) {
		t.Error(c)
	}
	f.mustAppend("e")
}

// TestAShardThatBecomesAnotherIsNotUsed has its database exchanged under a cluster that
// is open.
func TestAShardThatBecomesAnotherIsNotUsed(t *testing.T) {
	f := newFixture(t, 2, sharded.Options{})
	id := f.ids(shardName(0), 1)[0]
	f.doubles[0].inner = bare(t)
	e := want[*spi.UnavailableError](t, f.append(t.Context(), id))
	wantText(t, want[*sharded.IdentityError](t, e), shardName(0), "lost its identity")
	if _, err := spi.ListExecutions(t.Context(), f.store, spi.ListExecutionsRequest{Limit: 1}); err == nil {
		t.Error("there is a page")
	} else {
		wantShard(t, err, shardName(0))
	}
	f.mustAppend(f.ids(shardName(1), 1)...)
}

// TestAShardThatCannotSayWhatItOwnsIsTakenAtItsLastWord fails to read the map, while all
// other calls work.
func TestAShardThatCannotSayWhatItOwnsIsTakenAtItsLastWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 2, sharded.Options{})
		ids := f.ids(shardName(0), 2)
		f.mustAppend(ids...)
		f.moveWith(ids[0], 0, 1)
		f.doubles[0].on(func(_ context.Context, method string, _ any) (any, error) {
			if method == "GetOwnership" {
				return nil, errBroken
			}
			return nil, nil
		})
		want[*spi.SlotMovingError](t, f.append(t.Context(), ids[0]))
		f.mustAppend(ids[1])
		f.doubles[0].on(nil)
		f.mustAppend(ids[0])
	})
}
