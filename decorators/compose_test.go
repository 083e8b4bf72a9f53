// Package decorators_test composes the decorators as the design does: the whole stack,
// in both orders, over every backend, and each layer over each other.
package decorators_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/backends/postgres"
	"github.com/loomgate/loomgate/backends/sqlite"
	"github.com/loomgate/loomgate/conformance"
	"github.com/loomgate/loomgate/decorators/coalescing"
	"github.com/loomgate/loomgate/decorators/crypto"
	"github.com/loomgate/loomgate/decorators/profiling"
	"github.com/loomgate/loomgate/decorators/retry"
	"github.com/loomgate/loomgate/decorators/sharded"
	"github.com/loomgate/loomgate/decorators/tenant"
	"github.com/loomgate/loomgate/internal/pgtest"
	"github.com/loomgate/loomgate/spi"
)

const kitTenant spi.TenantName = "kit"

// A layer puts one decorator over a store.
type layer struct {
	name string
	over func(testing.TB, *spi.Store) (*spi.Store, error)
}

var layers = []layer{
	{"tenant", func(_ testing.TB, s *spi.Store) (*spi.Store, error) { return tenant.New(kitTenant, s) }},
	{"crypto", func(tb testing.TB, s *spi.Store) (*spi.Store, error) {
		return crypto.New(s, keyring(tb), crypto.Options{})
	}},
	{"sharded", func(tb testing.TB, s *spi.Store) (*spi.Store, error) {
		return sharded.New(tb.Context(), []sharded.Shard{{Store: s}}, sharded.Options{Exclusive: true})
	}},
	{"profiling", func(_ testing.TB, s *spi.Store) (*spi.Store, error) {
		return profiling.New(s, profiling.Options{Name: "test"})
	}},
	{"coalescing", coalesce},
	{"retry", func(_ testing.TB, s *spi.Store) (*spi.Store, error) { return retry.New(s, impatient) }},
}

// keyring is one for all tests: to make one takes a while on purpose.
func keyring(tb testing.TB) crypto.KMS {
	tb.Helper()
	ring, err := oneKeyring()
	if err != nil {
		tb.Fatal(err)
	}
	return ring
}

var oneKeyring = sync.OnceValues(func() (*crypto.Keyring, error) {
	return crypto.CreateKeyring(filepath.Join(tempDir, "keyring"), []byte("a secret of the tests, long enough"))
})

func coalesce(tb testing.TB, s *spi.Store) (*spi.Store, error) {
	c, err := coalescing.New(s, coalescing.Options{})
	if err != nil {
		return nil, err
	}
	tb.Cleanup(func() {
		if err := c.Close(); err != nil {
			tb.Error(err)
		}
	})
	return c.Store(), nil
}

// put puts layers over a store, the last one outermost.
func put(tb testing.TB, s *spi.Store, names ...string) *spi.Store {
	tb.Helper()
	s, err := over(tb, s, names...)
	if err != nil {
		tb.Fatalf("%s: %v", strings.Join(names, " over "), err)
	}
	return s
}

// A backend makes the shards of a test: empty ones, of which the same test gets the
// same.
type backend struct {
	name string
	open func(t *testing.T) []*spi.Store
}

const shardCount = 2

var migrated = pgtest.NewTemplate(postgres.Migrate)

var backends = []backend{
	{"memory", conformance.PerTest(func(t *testing.T) (shards []*spi.Store) {
		for range shardCount {
			s, err := memory.New()
			if err != nil {
				t.Fatal(err)
			}
			shards = append(shards, s)
		}
		return initialised(t, shards)
	})},
	{"SQLite", conformance.PerTest(func(t *testing.T) (shards []*spi.Store) {
		for i := range shardCount {
			db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), fmt.Sprintf("%d.db", i)))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
			shards = append(shards, db.Store())
		}
		return initialised(t, shards)
	})},
	{"Postgres", conformance.PerTest(func(t *testing.T) (shards []*spi.Store) {
		for range shardCount {
			db, err := postgres.Open(t.Context(), migrated.Fresh(t, pgtest.ICU).DSN)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(db.Close)
			shards = append(shards, db.Store())
		}
		return initialised(t, shards)
	})},
}

// initialised makes stores the shards of one cluster.
func initialised(tb testing.TB, stores []*spi.Store) []*spi.Store {
	tb.Helper()
	if err := sharded.Init(tb.Context(), "test", sharded.ByExecution, named(stores)); err != nil {
		tb.Fatal(err)
	}
	return stores
}

func named(stores []*spi.Store) (shards []sharded.Shard) {
	for i, s := range stores {
		shards = append(shards, sharded.Shard{Name: fmt.Sprintf("shard-%d", i), Store: s})
	}
	return shards
}

// tenantOverShards is the stack of the design: what all tenants share below a view.
func tenantOverShards(tb testing.TB, shards []*spi.Store) *spi.Store {
	tb.Helper()
	return put(tb, sharedStack(tb, shards), "tenant")
}

func sharedStack(tb testing.TB, shards []*spi.Store) *spi.Store {
	tb.Helper()
	var each []*spi.Store
	for _, s := range shards {
		each = append(each, put(tb, s, "coalescing", "profiling"))
	}
	store, err := sharded.New(tb.Context(), named(each), sharded.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return put(tb, store, "crypto", "profiling")
}

// shardsUnderTenants is the other order: each shard has a view of its own.
func shardsUnderTenants(tb testing.TB, shards []*spi.Store) *spi.Store {
	tb.Helper()
	var each []*spi.Store
	for _, s := range shards {
		each = append(each, put(tb, s, "coalescing", "profiling", "tenant"))
	}
	store, err := sharded.New(tb.Context(), named(each), sharded.Options{Tenant: kitTenant})
	if err != nil {
		tb.Fatal(err)
	}
	return put(tb, store, "crypto", "profiling")
}

// impatient tries again at once: some cases of the kit last as long as the tries do.
var impatient = retry.Options{Jitter: func(time.Duration) time.Duration { return 0 }}
