package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/loomgate/loomgate/api/server"
	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/backends/postgres"
	"github.com/loomgate/loomgate/backends/remote"
	"github.com/loomgate/loomgate/backends/sqlite"
	"github.com/loomgate/loomgate/decorators/sharded"
	"github.com/loomgate/loomgate/decorators/tenant"
	"github.com/loomgate/loomgate/internal/pgtest"
	"github.com/loomgate/loomgate/runtime/events"
	"github.com/loomgate/loomgate/runtime/resume"
	"github.com/loomgate/loomgate/runtime/retention"
	"github.com/loomgate/loomgate/runtime/supervise"
	"github.com/loomgate/loomgate/runtime/timers"
	"github.com/loomgate/loomgate/spi"
)

// TestTheRuntimeWorksOverEveryKindOfStore takes executions through their lives, with two
// nodes that are after each of them at once.
func TestTheRuntimeWorksOverEveryKindOfStore(t *testing.T) {
	for name, open := range map[string]func(*testing.T) *spi.Store{
		"memory": inMemory, "SQLite": overSQLite, "Postgres": overPostgres, "a tenant of shards": overShards, "a gateway": throughAGateway,
	} {
		t.Run(name, func(t *testing.T) {
			s := &stage{T: t, resumer: resume.New(open(t))}
			s.aTimerWakesItsExecutionOnce()
			s.aMessageIsDeliveredOnce()
			s.aParentIsResumedOnceWhenItsChildrenHaveSettled()
			s.whatWasAbandonedIsRecoveredOnce()
			s.whatHasEndedIsRemoved()
		})
	}
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func inMemory(t *testing.T) *spi.Store { return must[*spi.Store](t)(memory.New()) }

func overSQLite(t *testing.T) *spi.Store {
	db := must[*sqlite.Database](t)(sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "store.db")))
	t.Cleanup(func() { db.Close() })
	return db.Store()
}

func overPostgres(t *testing.T) *spi.Store {
	at := pgtest.Fresh(t, pgtest.ICU)
	if err := postgres.Migrate(t.Context(), at.Direct); err != nil {
		t.Fatal(err)
	}
	db := must[*postgres.Database](t)(postgres.Open(t.Context(), at.DSN))
	t.Cleanup(func() { db.Close() })
	return db.Store()
}

func overShards(t *testing.T) *spi.Store {
	var shards []sharded.Shard
	for _, name := range []string{"a", "b", "c"} {
		shards = append(shards, sharded.Shard{Name: name, Store: inMemory(t)})
	}
	if err := sharded.Init(t.Context(), "cluster", sharded.ByExecution, shards); err != nil {
		t.Fatal(err)
	}
	return must[*spi.Store](t)(tenant.New("acme", must[*spi.Store](t)(sharded.New(t.Context(), shards, sharded.Options{}))))
}

// throughAGateway serves a tenant of shards over gRPC.
func throughAGateway(t *testing.T) *spi.Store {
	behind := overShards(t)
	listener := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	resolve := func(context.Context) (server.Caller, error) { return server.Caller{Store: behind}, nil }
	gateway, _ := server.New(resolve, slog.New(slog.DiscardHandler)).GRPC()
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := gateway.Serve(listener); err != nil {
			t.Error(err)
		}
	})
	client := must[*remote.Client](t)(remote.Open(t.Context(), listener.Addr().String(), remote.Options{Plaintext: true}))
	t.Cleanup(func() {
		client.Close()
		gateway.Stop()
		serving.Wait()
	})
	return client.Store()
}

type stage struct {
	*testing.T
	resumer *resume.Resumer
}

func (s *stage) start(id spi.ExecutionID, started events.Started, waits ...events.Wait) *resume.Run {
	s.Helper()
	run := must[*resume.Run](s.T)(s.resumer.Start(s.Context(), id, started))
	if len(waits) > 0 && !must[bool](s.T)(run.Park(s.Context(), waits...)) {
		s.Fatalf("%s is not parked", id)
	}
	return run
}

// atOnce lets two nodes do the same at the same time. Of all that they resume there has
// to be one, which it returns.
func (s *stage) atOnce(do func(node string, resumed func(*resume.Run)) error) *resume.Run {
	s.Helper()
	var mu sync.Mutex
	var runs []*resume.Run
	var errs [2]error
	var nodes sync.WaitGroup
	for i := range errs {
		nodes.Go(func() {
			errs[i] = do(fmt.Sprint("node-", i), func(run *resume.Run) {
				mu.Lock()
				defer mu.Unlock()
				if run != nil {
					runs = append(runs, run)
				}
			})
		})
	}
	nodes.Wait()
	if err := errors.Join(errs[:]...); err != nil || len(runs) != 1 {
		s.Fatalf("%d are resumed: %v", len(runs), err)
	}
	return runs[0]
}

func (s *stage) complete(runs ...*resume.Run) {
	s.Helper()
	for _, run := range runs {
		if err := run.Complete(s.Context(), "fine"); err != nil {
			s.Errorf("%s: %v", run.State().Execution, err)
		}
	}
}

func (s *stage) aTimerWakesItsExecutionOnce() {
	s.Helper()
	s.start("late", events.Started{}, events.Wait{ID: "nap", Reason: events.ReasonTimer, WakeAt: time.Now().Add(-time.Hour)})
	s.start("early", events.Started{}, events.Wait{ID: "nap", Reason: events.ReasonTimer, WakeAt: time.Now().Add(time.Hour)})
	run := s.atOnce(func(node string, resumed func(*resume.Run)) error {
		service, err := timers.New(s.resumer, timers.Config{
			Holder: node, Lease: spi.LeaseName(node), // no lease keeps them from each other
			Body: func(_ context.Context, run *resume.Run) { resumed(run) }, OnError: func(err error) { s.Error(err) },
		})
		if err != nil {
			return err
		}
		return service.Poll(s.Context())
	})
	if state := run.State(); state.Execution != "late" || state.Answer == nil || !slices.Equal(state.Answer.Waits, []string{"nap"}) {
		s.Errorf("woken is %+v", state)
	}
	s.complete(run)
	if due := must[spi.DueTimersResponse](s.T)(spi.DueTimers(s.Context(), s.resumer.Store(), spi.DueTimersRequest{Limit: 10})); len(due.Timers) > 0 {
		s.Errorf("due is still %+v", due.Timers)
	}
}

func (s *stage) aMessageIsDeliveredOnce() {
	s.Helper()
	s.start("order", events.Started{}, events.Wait{ID: "payment", Reason: events.ReasonMessage, Channel: "paid"})
	message := spi.NewEventID()
	run := s.atOnce(func(_ string, resumed func(*resume.Run)) error {
		run, err := s.resumer.Deliver(s.Context(), "order", message, "paid", 12)
		resumed(run)
		return err
	})
	state := must[*resume.State](s.T)(s.resumer.Fold(s.Context(), "order"))
	if state.Head != 5 || state.Status != resume.Running || len(state.Inbox) > 0 { // started, parked, received, consumed, resumed
		s.Errorf("the log comes to %+v", state)
	}
	s.complete(run)
}

func (s *stage) aParentIsResumedOnceWhenItsChildrenHaveSettled() {
	s.Helper()
	both := events.Wait{ID: "both", Reason: events.ReasonChildren}
	var children []*resume.Run
	for _, key := range []string{"flight", "hotel"} {
		id := spi.ExecutionID("trip/" + key)
		both.Children = append(both.Children, events.Child{Key: key, Execution: id})
		children = append(children, s.start(id, events.Started{Parent: &events.Parent{Execution: "trip", Key: key}}))
	}
	s.start("trip", events.Started{}, both)
	supervisor := func(resumed func(*resume.Run)) *supervise.Supervisor {
		return supervise.New(s.resumer, supervise.Config{Body: func(_ context.Context, run *resume.Run) { resumed(run) }})
	}
	s.complete(children[0])
	if err := supervisor(func(*resume.Run) { s.Error("resumed too early") }).Settled(s.Context(), "trip/flight"); err != nil {
		s.Error(err)
	}
	s.complete(children[1])
	s.complete(s.atOnce(func(node string, resumed func(*resume.Run)) error {
		if node == "node-0" { // which has seen the crash of the one that saw the child end
			return supervisor(resumed).Recover(s.Context())
		}
		return supervisor(resumed).Settled(s.Context(), "trip/hotel")
	}))
}

func (s *stage) whatWasAbandonedIsRecoveredOnce() {
	s.Helper()
	lost := s.start("lost", events.Started{})
	run := s.atOnce(func(node string, resumed func(*resume.Run)) error {
		run, err := s.resumer.Recover(s.Context(), "lost", node, time.Minute)
		resumed(run)
		return err
	})
	s.complete(run)
	if err := lost.Append(s.Context(), spi.Event{ID: spi.NewEventID(), Kind: "Noted"}); err == nil {
		s.Error("the owner that was thought to be gone writes on")
	}
}

func (s *stage) whatHasEndedIsRemoved() {
	s.Helper()
	supervisor := supervise.New(s.resumer, supervise.Config{})
	report, err := retention.Apply(s.Context(), s.resumer, supervisor.Retention(retention.Policy{
		MaxAge: time.Hour, Now: func() time.Time { return time.Now().Add(24 * time.Hour) },
	}))
	if err != nil || report.Deleted != 6 {
		s.Errorf("%+v, %v", report, err)
	}
	left := must[spi.ListExecutionsResponse](s.T)(spi.ListExecutions(s.Context(), s.resumer.Store(), spi.ListExecutionsRequest{Limit: 10}))
	if !slices.Equal(left.Executions, []spi.ExecutionID{"early"}) {
		s.Errorf("left are %q", left.Executions)
	}
}
