package decorators_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/loomgate/loomgate/backends/postgres"
	"github.com/loomgate/loomgate/decorators/faults"
	"github.com/loomgate/loomgate/decorators/retry"
	"github.com/loomgate/loomgate/decorators/tenant"
	"github.com/loomgate/loomgate/internal/model"
	"github.com/loomgate/loomgate/internal/pgtest"
	"github.com/loomgate/loomgate/spi"
)

// clients of one run; what they do is the seed's.
var clients = model.Options{Clients: 4, Calls: 100, Executions: 4, Retried: true, CallTimeout: 20 * time.Second}

// rates of what goes wrong between the stack and a shard.
var rates = faults.Rates{Refuse: 0.03, Lose: 0.03, Delay: 0.2, MaxDelay: 3 * time.Millisecond}

// faulty is a shard that refuses calls, does some late, and loses answers of those whose
// outcome can be found out.
func faulty(tb testing.TB, s *spi.Store, seed uint64) *spi.Store {
	tb.Helper()
	plan := faults.Random(seed, rates).Only(func(c faults.Call) bool {
		switch c.Method {
		case "AcquireFence", "AcquireFenceIf": // a lost one cannot be resolved: server kills lose some
			return false
		case "GetOwnership": // which a stack asks for when it is built, below whoever tries again
			return false
		}
		return true
	})
	store, err := faults.New(s, plan)
	if err != nil {
		tb.Fatal(err)
	}
	return store
}

// patient outlasts a server that is restarted.
func patient(tb testing.TB, s *spi.Store) *spi.Store {
	tb.Helper()
	store, err := retry.New(s, retry.Options{Tries: 500, Within: 15 * time.Second, Cap: 200 * time.Millisecond})
	if err != nil {
		tb.Fatal(err)
	}
	return store
}

func TestEveryAnswerOfTheWholeStackIsExplainedThoughShardsFail(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			var shards []*spi.Store
			for range shardCount {
				shards = append(shards, newMemory(t))
			}
			initialised(t, shards)
			for i := range shards {
				shards[i] = faulty(t, shards[i], seed*shardCount+uint64(i))
			}
			explain(t, patient(t, tenantOverShards(t, shards)), seed, nil)
		})
	}
}

func TestEveryAnswerOfTheWholeStackIsExplainedThoughServersAreKilled(t *testing.T) {
	var servers []*pgtest.Cluster
	var stores []*spi.Store
	for range shardCount {
		server := pgtest.Private(t, pgtest.Options{Durable: true})
		db, err := postgres.Open(t.Context(), server.Copy(t, pgtest.ICU, migrated).DSN)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(db.Close)
		servers, stores = append(servers, server), append(stores, db.Store())
	}
	initialised(t, stores)
	for i := range stores {
		stores[i] = faulty(t, stores[i], uint64(i))
	}
	shared := sharedStack(t, stores)
	for seed := range uint64(2) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			view, err := tenant.New(spi.TenantName(fmt.Sprintf("tenant-%d", seed)), shared)
			if err != nil {
				t.Fatal(err)
			}
			explain(t, patient(t, view), seed, func() {
				for _, server := range servers {
					server.Kill9(t)
					server.Restart(t)
				}
			})
		})
	}
}

// explain runs clients on a store, while something disturbs them, and checks the history.
func explain(t *testing.T, store *spi.Store, seed uint64, disturb func()) {
	t.Helper()
	opts := clients
	opts.Seed = seed
	var disturbing sync.WaitGroup
	if disturb != nil {
		disturbing.Go(disturb)
	}
	history, err := model.Run(t.Context(), store, opts)
	disturbing.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if err := history.Check(); err != nil {
		t.Error(err)
	}
	all, unclear := history.Count()
	t.Logf("%d calls, %d of them unclear", all, unclear)
}
