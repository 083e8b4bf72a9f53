package conformance_test

import (
	"testing"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/conformance"
	"github.com/loomgate/loomgate/conformance/small"
	"github.com/loomgate/loomgate/spi"
)

// open is memory's storage: it lasts as long as a test.
var open = conformance.PerTest(func(t *testing.T) *spi.Store {
	s, err := memory.New()
	if err != nil {
		t.Fatal(err)
	}
	return s
})

func TestMemory(t *testing.T) { conformance.Store(t, open) }

func TestPrefix(t *testing.T) {
	conformance.Decorator(t, open, func(inner ...*spi.Store) (*spi.Store, error) {
		return small.Prefix("tenant", inner[0])
	}, spi.CapChangeOwnership)
}

func TestSplit(t *testing.T) {
	second := conformance.PerTest(func(t *testing.T) *spi.Store {
		s, err := memory.New()
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
	conformance.Store(t, func(t *testing.T) *spi.Store {
		s, err := small.Split(t.Context(), open(t), second(t))
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}
