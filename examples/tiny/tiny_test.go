package tiny_test

import (
	"testing"

	"github.com/loomgate/loomgate/conformance"
	"github.com/loomgate/loomgate/examples/tiny"
	"github.com/loomgate/loomgate/spi"
)

func TestConformance(t *testing.T) {
	conformance.Store(t, conformance.PerTest(func(t *testing.T) *spi.Store {
		s, err := tiny.New()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}))
}
