package crypto_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/backends/sqlite"
	"github.com/loomgate/loomgate/conformance"
	"github.com/loomgate/loomgate/conformance/small"
	"github.com/loomgate/loomgate/decorators/crypto"
	"github.com/loomgate/loomgate/internal/pgtest"
	"github.com/loomgate/loomgate/spi"
)

func TestConformance(t *testing.T) {
	kms := newKMS(t)
	open := conformance.PerTest(func(t *testing.T) *spi.Store { return must[*spi.Store](t)(memory.New()) })
	conformance.Decorator(t, open, func(inner ...*spi.Store) (*spi.Store, error) {
		return crypto.New(inner[0], kms, crypto.Options{})
	}, spi.CapDataKeys|spi.CapRewrapDataKey|spi.CapChangeOwnership)
}

func TestConformanceOverSQLite(t *testing.T) {
	kms := newKMS(t)
	file := conformance.PerTest(func(t *testing.T) string { return filepath.Join(t.TempDir(), "store.db") })
	conformance.Store(t, func(t *testing.T) *spi.Store {
		db := must[*sqlite.Database](t)(sqlite.Open(t.Context(), file(t)))
		t.Cleanup(func() { db.Close() })
		return must[*spi.Store](t)(crypto.New(db.Store(), kms, crypto.Options{}))
	})
}

func TestConformanceOverPostgres(t *testing.T) {
	kms := newKMS(t)
	database := conformance.PerTest(func(t *testing.T) pgtest.Database { return migrated.Fresh(t, pgtest.ICU) })
	conformance.Store(t, func(t *testing.T) *spi.Store {
		return must[*spi.Store](t)(crypto.New(openPostgres(t, database(t)), kms, crypto.Options{}))
	})
}

// TestTenantsAreIsolated runs the tenants' kit with the layer below the views and above.
func TestTenantsAreIsolated(t *testing.T) {
	kms := newKMS(t)
	open := conformance.PerTest(func(t *testing.T) *spi.Store { return must[*spi.Store](t)(memory.New()) })
	t.Run("below", func(t *testing.T) {
		conformance.Isolation(t, func(t *testing.T) *spi.Store {
			return must[*spi.Store](t)(crypto.New(open(t), kms, crypto.Options{}))
		}, small.Prefix)
	})
	t.Run("above", func(t *testing.T) {
		conformance.Isolation(t, open, func(tenant spi.TenantName, shared *spi.Store) (*spi.Store, error) {
			view, err := small.Prefix(tenant, shared)
			if err != nil {
				return nil, err
			}
			return crypto.New(view, kms, crypto.Options{})
		})
	})
}

func TestASecondLayerOnOneStoreIsRefused(t *testing.T) {
	r := newRig(t)
	s := r.node()
	for name, inner := range map[string]*spi.Store{
		"directly":                             s,
		"under a tenant":                       must[*spi.Store](t)(small.Prefix("acme", s)),
		"under two parts, one of them without": must[*spi.Store](t)(small.Split(t.Context(), r.inner, s)),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := crypto.New(inner, r.kms, r.opts)
			got := want[*spi.LayerOrderError](t, err)
			if got.Outer != "crypto" || got.Inner != "crypto" {
				t.Errorf("it answers %+v", got)
			}
		})
	}
}

func TestWhatCannotBeIsRefusedWhenItIsBuilt(t *testing.T) {
	r := newRig(t)
	build := func(inner *spi.Store, kms crypto.KMS, opts crypto.Options) []error {
		_, layer := crypto.New(inner, kms, opts)
		_, keys := crypto.NewKeys(inner, kms, opts)
		return []error{layer, keys}
	}
	for _, err := range build(spi.Only(r.inner, ^spi.CapDataKeys), r.kms, crypto.Options{}) {
		if got := want[*spi.UnsupportedError](t, err); got.Cap != spi.CapDataKeys {
			t.Errorf("it answers %+v", got)
		}
	}
	for _, errs := range [][]error{
		build(nil, r.kms, crypto.Options{}),
		build(r.inner, nil, crypto.Options{}),
		build(r.inner, r.kms, crypto.Options{CacheLife: -time.Second}),
		build(r.inner, r.kms, crypto.Options{CacheSize: -1}),
		build(r.inner, r.kms, crypto.Options{Tenant: "a\x00"}),
	} {
		for _, err := range errs {
			want[*spi.InvalidArgumentError](t, err)
		}
	}
}

// TestATenantsKeysOutliveADeletionOfTheirOwnersName above a view, where an application
// may name an execution like a bare scope: it has a key of its own there.
func TestATenantsKeysOutliveADeletionOfTheirOwnersName(t *testing.T) {
	r := newRig(t)
	r.inner = must[*spi.Store](t)(small.Prefix("kit", r.inner))
	s := r.node()
	const named = "7:default/"
	r.append(s, "e", 0, noted("secret"))
	r.append(s, named, 0, noted("mine"))
	_, err := spi.DeleteExecution(t.Context(), s, spi.DeleteExecutionRequest{Execution: named, Incarnation: 1})
	want[*spi.InvalidArgumentError](t, err)
	r.wantRead(r.node(), "e", "secret")
	r.wantRead(r.node(), named, "mine")
}
