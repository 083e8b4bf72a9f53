package conformance_test

import (
	"testing"

	"github.com/loomgate/loomgate/conformance"
	"github.com/loomgate/loomgate/conformance/small"
)

func TestPrefixIsolates(t *testing.T) { conformance.Isolation(t, open, small.Prefix) }
