package decorators_test

import (
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/conformance"
	"github.com/loomgate/loomgate/spi"
)

// tempDir holds what all tests share.
var tempDir string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "decorators-")
	if err != nil {
		panic(err)
	}
	tempDir = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

func TestTheWholeStackKeepsTheContractInBothOrders(t *testing.T) {
	for _, b := range backends {
		t.Run("tenant over shards over "+b.name, func(t *testing.T) {
			conformance.Store(t, func(t *testing.T) *spi.Store { return tenantOverShards(t, b.open(t)) })
		})
		t.Run("shards over tenants' views over "+b.name, func(t *testing.T) {
			conformance.Store(t, func(t *testing.T) *spi.Store { return shardsUnderTenants(t, b.open(t)) })
		})
	}
}

func TestTheWholeStackIsHonestAboutWhatIsMissing(t *testing.T) {
	open := conformance.PerTest(func(t *testing.T) *spi.Store { return newMemory(t) })
	conformance.Decorator(t, open, func(inner ...*spi.Store) (*spi.Store, error) {
		return over(t, inner[0], "coalescing", "profiling", "sharded", "crypto", "tenant", "retry")
	}, spi.CapDataKeys, spi.CapRewrapDataKey, spi.CapChangeOwnership)
}

// over is put for layers that may refuse to be built.
func over(tb testing.TB, s *spi.Store, names ...string) (_ *spi.Store, err error) {
	tb.Helper()
	for _, name := range names {
		i := slices.IndexFunc(layers, func(l layer) bool { return l.name == name })
		if i < 0 {
			tb.Fatalf("there is no layer %q", name)
		}
		if s, err = layers[i].over(tb, s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func newMemory(tb testing.TB) *spi.Store {
	tb.Helper()
	s, err := memory.New()
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// unsafeOrders are the pairs, outer over inner, that must not be built.
var unsafeOrders = map[[2]string]bool{
	{"coalescing", "tenant"}: true,
	{"crypto", "crypto"}:     true,
}

func TestEachLayerOverEachOther(t *testing.T) {
	for _, outer := range layers {
		for _, inner := range layers {
			pair := [2]string{outer.name, inner.name}
			t.Run(outer.name+" over "+inner.name, func(t *testing.T) {
				if unsafeOrders[pair] {
					_, err := over(t, newMemory(t), inner.name, outer.name)
					order, ok := errors.AsType[*spi.LayerOrderError](err)
					if !ok || order.Outer != outer.name || order.Inner != inner.name || order.Reason == "" {
						t.Errorf("the order is answered by %v", err)
					}
					return
				}
				open := conformance.PerTest(func(t *testing.T) *spi.Store { return newMemory(t) })
				conformance.Store(t, func(t *testing.T) *spi.Store { return put(t, open(t), inner.name, outer.name) })
			})
		}
	}
}
