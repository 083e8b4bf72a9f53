package conformance_test

import (
	"testing"

	"github.com/loomgate/loomgate/conformance"
	"github.com/loomgate/loomgate/conformance/small"
	"github.com/loomgate/loomgate/spi"
)

func TestSplitShards(t *testing.T) {
	conformance.Sharding(t, "kit", func(shards ...*spi.Store) (*spi.Store, error) { return small.Split(t.Context(), shards...) })
}
