package postgres_test

import (
	"testing"

	"github.com/loomgate/loomgate/backends/postgres"
	"github.com/loomgate/loomgate/conformance"
	"github.com/loomgate/loomgate/internal/pgtest"
	"github.com/loomgate/loomgate/spi"
)

var migrated = pgtest.NewTemplate(postgres.Migrate)

// TestConformance runs the kit on each kind of database.
func TestConformance(t *testing.T) {
	for _, kind := range pgtest.Kinds {
		t.Run(kind.String(), func(t *testing.T) {
			database := conformance.PerTest(func(t *testing.T) pgtest.Database { return migrated.Fresh(t, kind) })
			conformance.Store(t, func(t *testing.T) *spi.Store { return open(t, database(t)).Store() })
		})
	}
}

// open connects to a database as a program does that starts.
func open(tb testing.TB, db pgtest.Database, opts ...postgres.Option) *postgres.Database {
	tb.Helper()
	if db.DSN != db.Direct {
		opts = append(opts, postgres.BehindPooler())
	}
	d, err := postgres.Open(tb.Context(), db.DSN, opts...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(d.Close)
	return d
}
