package sharded_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/backends/postgres"
	"github.com/loomgate/loomgate/backends/sqlite"
	"github.com/loomgate/loomgate/conformance"
	"github.com/loomgate/loomgate/decorators/sharded"
	"github.com/loomgate/loomgate/internal/pgtest"
	"github.com/loomgate/loomgate/spi"
)

var placements = []sharded.Placement{sharded.ByExecution, sharded.ByTenant}

func TestConformanceAsShards(t *testing.T) {
	for _, p := range placements {
		t.Run(p.String(), func(t *testing.T) {
			conformance.Sharding(t, p.Fingerprint(), func(stores ...*spi.Store) (*spi.Store, error) {
				return sharded.New(t.Context(), shardsOf(stores...), sharded.Options{Placement: p})
			})
		})
	}
}

func TestConformanceAsADecorator(t *testing.T) {
	open := conformance.PerTest(func(t *testing.T) *spi.Store { return must(t)(memory.New()) })
	conformance.Decorator(t, open, func(inner ...*spi.Store) (*spi.Store, error) {
		return sharded.New(t.Context(), shardsOf(inner...), sharded.Options{Exclusive: true})
	}, spi.CapChangeOwnership)
}

// TestConformanceOverMemory runs the kit by tenant, over shards as a cluster begins:
// those of the kit share the slots out otherwise.
func TestConformanceOverMemory(t *testing.T) {
	shards := conformance.PerTest(func(t *testing.T) *fixture { return newShards(t, sharded.ByTenant, 3) })
	conformance.Store(t, func(t *testing.T) *spi.Store {
		return must(t)(sharded.New(t.Context(), shards(t).shards, sharded.Options{Placement: sharded.ByTenant}))
	})
}

func TestConformanceOverSQLite(t *testing.T) {
	names := []string{"left", "right"}
	empty := t.TempDir()
	if err := sharded.Init(t.Context(), "cluster", sharded.ByExecution, openFiles(t, empty, names)); err != nil {
		t.Fatal(err)
	}
	folder := conformance.PerTest(func(t *testing.T) string {
		folder := t.TempDir()
		if err := os.CopyFS(folder, os.DirFS(empty)); err != nil {
			t.Fatal(err)
		}
		return folder
	})
	conformance.Store(t, func(t *testing.T) *spi.Store {
		return must(t)(sharded.New(t.Context(), openFiles(t, folder(t), names), sharded.Options{}))
	})
}

// openFiles opens a file a shard for as long as the test lasts.
func openFiles(t *testing.T, folder string, names []string) (shards []sharded.Shard) {
	t.Helper()
	for _, name := range names {
		db, err := sqlite.Open(t.Context(), filepath.Join(folder, name+".db"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		shards = append(shards, sharded.Shard{Name: name, Store: db.Store()})
	}
	return shards
}

// TestConformanceOverPostgres uses the same two databases for all cases, and empties
// them for each: to copy two would take most of the time.
func TestConformanceOverPostgres(t *testing.T) {
	var databases []pgtest.Database
	var conns []*pgx.Conn
	for _, template := range postgresShards {
		db := template.Fresh(t, pgtest.ICU)
		conn, err := pgx.Connect(t.Context(), db.DSN)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		databases, conns = append(databases, db), append(conns, conn)
	}
	shards := openDatabases(t, databases...)
	emptied := conformance.PerTest(func(t *testing.T) []sharded.Shard {
		for _, conn := range conns {
			if _, err := conn.Exec(t.Context(), emptySQL); err != nil {
				t.Fatal(err)
			}
		}
		return shards
	})
	conformance.Store(t, func(t *testing.T) *spi.Store {
		return must(t)(sharded.New(t.Context(), emptied(t), sharded.Options{}))
	})
}

// emptySQL removes all but what a shard says of itself.
const emptySQL = `DO $$ DECLARE name text; BEGIN
	FOR name IN SELECT tablename FROM pg_tables
		WHERE schemaname = 'loomgate' AND tablename NOT IN ('schema_version', 'identity', 'slots') LOOP
		EXECUTE format('DELETE FROM loomgate.%I', name);
	END LOOP;
END $$`

// postgresShards are the shards of an empty cluster of two, to be copied.
var postgresShards = []*pgtest.Template{postgresShard(0, 2), postgresShard(1, 2)}

func postgresShard(i, n int) *pgtest.Template {
	return pgtest.NewTemplate(func(ctx context.Context, dsn string) error {
		if err := postgres.Migrate(ctx, dsn); err != nil {
			return err
		}
		db, err := postgres.Open(ctx, dsn)
		if err != nil {
			return err
		}
		defer db.Close()
		_, err = spi.ChangeOwnership(ctx, db.Store(), spi.ChangeOwnershipRequest{
			Identity: spi.Identity{Cluster: "cluster", Shard: shardName(i), Fingerprint: sharded.ByExecution.Fingerprint()},
			Slots:    sharded.Share(n)[i],
		})
		return err
	})
}

func openDatabases(tb testing.TB, databases ...pgtest.Database) (shards []sharded.Shard) {
	tb.Helper()
	for i, database := range databases {
		db, err := postgres.Open(tb.Context(), database.DSN)
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(db.Close)
		shards = append(shards, sharded.Shard{Name: shardName(i), Store: db.Store()})
	}
	return shards
}

func shardName(i int) string { return fmt.Sprintf("shard-%c", 'a'+i) }

func shardsOf(stores ...*spi.Store) (shards []sharded.Shard) {
	for _, s := range stores {
		shards = append(shards, sharded.Shard{Store: s})
	}
	return shards
}

// must returns a store, or ends the test.
func must(tb testing.TB) func(*spi.Store, error) *spi.Store {
	return func(s *spi.Store, err error) *spi.Store {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return s
	}
}
