package limits_test

import (
	"testing"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/conformance"
	"github.com/loomgate/loomgate/decorators/limits"
	"github.com/loomgate/loomgate/spi"
)

func newMemory(tb testing.TB) *spi.Store {
	tb.Helper()
	s, err := memory.New()
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// TestConformance has limits of every sort, the largest that there are: nothing but being
// over one changes what a store does.
func TestConformance(t *testing.T) {
	open := conformance.PerTest(func(t *testing.T) *spi.Store { return newMemory(t) })
	const ample = limits.Unlimited - 1
	conformance.Decorator(t, open, func(inner ...*spi.Store) (*spi.Store, error) {
		return limits.New(inner[0], limits.NewAccount(limits.Limits{
			RequestsPerSecond: ample, BytesPerSecond: ample, EventsPerSecond: ample, InFlight: ample, Executions: ample,
		}))
	})
}
