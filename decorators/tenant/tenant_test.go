package tenant_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/backends/postgres"
	"github.com/loomgate/loomgate/backends/sqlite"
	"github.com/loomgate/loomgate/conformance"
	"github.com/loomgate/loomgate/decorators/tenant"
	"github.com/loomgate/loomgate/internal/pgtest"
	"github.com/loomgate/loomgate/spi"
)

func inMemory(tb testing.TB) *spi.Store {
	tb.Helper()
	s, err := memory.New()
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// view returns a tenant's view.
func view(tb testing.TB, name spi.TenantName, shared *spi.Store) *spi.Store {
	tb.Helper()
	s, err := tenant.New(name, shared)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func TestConformance(t *testing.T) {
	open := conformance.PerTest(func(t *testing.T) *spi.Store { return inMemory(t) })
	conformance.Decorator(t, open, func(inner ...*spi.Store) (*spi.Store, error) {
		return tenant.New("acme/𝄞", inner[0])
	}, spi.CapChangeOwnership)
}

func TestIsolation(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		conformance.Isolation(t, conformance.PerTest(func(t *testing.T) *spi.Store { return inMemory(t) }), tenant.New)
	})
	t.Run("sqlite", func(t *testing.T) {
		conformance.Isolation(t, conformance.PerTest(func(t *testing.T) *spi.Store {
			db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "store.db"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
			return db.Store()
		}), tenant.New)
	})
	t.Run("postgres", func(t *testing.T) {
		migrated := pgtest.NewTemplate(postgres.Migrate)
		conformance.Isolation(t, conformance.PerTest(func(t *testing.T) *spi.Store {
			db, err := postgres.Open(t.Context(), migrated.Fresh(t, pgtest.ICU).DSN)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(db.Close)
			return db.Store()
		}), tenant.New)
	})
}

func TestAViewNeedsATenantAndAStore(t *testing.T) {
	for what, make := range map[string]func() (*spi.Store, error){
		"no name":  func() (*spi.Store, error) { return tenant.New("", inMemory(t)) },
		"no store": func() (*spi.Store, error) { return tenant.New("acme", nil) },
	} {
		s, err := make()
		if _, ok := errors.AsType[*spi.InvalidArgumentError](err); !ok || s != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestNothingMayBatchOrCacheAboveAView(t *testing.T) {
	s := view(t, "acme", inMemory(t))
	for _, layer := range []spi.Layer{{Name: "above", Batches: true}, {Name: "above", Caches: true}} {
		_, err := spi.Wrap(&spy{inner: s, layer: layer}, s)
		if order, ok := errors.AsType[*spi.LayerOrderError](err); !ok || order.Outer != "above" || order.Inner != "tenant" {
			t.Errorf("%+v: %v", layer, err)
		}
	}
}
