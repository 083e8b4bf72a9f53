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

// TestAClusterThatAwaitsAShardServesTheOthersAndHeals starts while one of three shards
// is down.
func TestAClusterThatAwaitsAShardServesTheOthersAndHeals(t *testing.T) {
	for what, down := range map[string]hook{"it fails": failing, "it hangs": hanging} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newShards(t, sharded.ByExecution, 3)
				f.open(sharded.Options{})
				ids := slices.Concat(f.ids(shardName(0), 1), f.ids(shardName(1), 1), f.ids(shardName(2), 1))
				f.mustAppend(ids...)
				for i, id := range ids {
					if _, err := spi.ScheduleTimer(t.Context(), f.store, spi.ScheduleTimerRequest{Timer: spi.Timer{Execution: id, WakeAt: longAgo}}); err != nil {
						t.Fatal(i, err)
					}
				}
				f.doubles[1].on(down)
				f.open(sharded.Options{AwaitMissing: true, CallTimeout: 3 * time.Second})

				f.mustAppend(ids[0], ids[2])
				e := want[*spi.UnavailableError](t, f.append(t.Context(), ids[1]))
				if unread := want[*sharded.UnreadError](t, e); !slices.Equal(unread.Shards, []string{shardName(1)}) {
					t.Errorf("unread are %q", unread.Shards)
				}
				want[*spi.UnavailableError](t, f.wantFailedPage(shardName(1)))
				due, err := spi.DueTimers(t.Context(), f.store, spi.DueTimersRequest{Limit: 10})
				if err != nil || !slices.Equal(due.Missing, []string{shardName(1)}) || len(due.Timers) != 2 {
					t.Errorf("due are %+v, %v", due, err)
				}
				if _, err := f.cluster.Where(string(ids[1])); err == nil {
					t.Error("a place that nobody can know is known")
				}

				f.doubles[1].on(nil)
				time.Sleep(time.Second)
				f.mustAppend(ids[1])
				if res, err := f.page("", 10); err != nil || len(res.Executions) != 3 {
					t.Errorf("%+v, %v", res, err)
				}
			})
		})
	}
}

func TestAPageAloneFindsThatAShardHasComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newShards(t, sharded.ByExecution, 3)
		f.pin(1, 0, "acme")
		f.doubles[1].on(failing)
		f.open(sharded.Options{AwaitMissing: true})
		f.doubles[1].on(nil)
		time.Sleep(time.Second)
		if _, err := f.page("", 10); err != nil {
			t.Error(err)
		}
	})
}

func TestAShardThatStaysAwayIsAskedOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 2, sharded.Options{})
		id := f.ids(shardName(1), 1)[0]
		f.doubles[1].on(failing)
		f.open(sharded.Options{AwaitMissing: true})
		reads := 0
		f.doubles[1].on(func(context.Context, string, any) (any, error) {
			reads++
			return nil, errBroken
		})
		for range 10 {
			for range 10 {
				want[*spi.UnavailableError](t, f.append(t.Context(), id))
			}
			time.Sleep(time.Second)
		}
		if reads < 9 || reads > 10 {
			t.Errorf("in ten seconds it is asked %d times", reads)
		}
	})
}

// TestAShardThatComesBackAsAnotherIsNotUsed lets the name say one thing and the database
// another.
func TestAShardThatComesBackAsAnotherIsNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 2, sharded.Options{})
		id := f.ids(shardName(1), 1)[0]
		f.doubles[1].on(failing)
		f.open(sharded.Options{AwaitMissing: true})
		f.doubles[1].on(nil)
		f.doubles[1].inner = f.doubles[0].inner
		time.Sleep(time.Second)
		for _, err := range []error{f.append(t.Context(), id), f.wantFailedPage(shardName(1))} {
			wantText(t, want[*sharded.IdentityError](t, err), shardName(0), shardName(1))
		}
		if res, err := spi.SweepTombstones(t.Context(), f.store, spi.SweepTombstonesRequest{Limit: 10}); !errors.As(err, new(*spi.ShardError)) {
			t.Errorf("a sweep answers %+v, %v", res, err)
		}
	})
}

func TestACallerWhoIsGoneDoesNotOpenACluster(t *testing.T) {
	f := newShards(t, sharded.ByExecution, 2)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := sharded.New(ctx, f.shards, sharded.Options{AwaitMissing: true}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestNothingIsSentToAShardThatIsNotKnownYet has a slot on its way to a shard that is
// down: what answers there later may be another database.
func TestNothingIsSentToAShardThatIsNotKnownYet(t *testing.T) {
	f := newFixture(t, 2, sharded.Options{})
	id := f.ids(shardName(0), 1)[0]
	f.move(f.placement.Slot(string(id)), 0, 1, "")
	var sent []string
	f.doubles[1].on(func(_ context.Context, method string, _ any) (any, error) {
		sent = append(sent, method)
		return nil, errBroken
	})
	f.open(sharded.Options{AwaitMissing: true})
	want[*sharded.UnreadError](t, f.append(t.Context(), id))
	if !slices.Equal(sent, []string{"GetOwnership"}) {
		t.Errorf("it is sent %q", sent)
	}
}
