package audit_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/conformance"
	"github.com/loomgate/loomgate/examples/audit"
	"github.com/loomgate/loomgate/spi"
)

// open gives each test a store in memory of its own.
var open = conformance.PerTest(func(t *testing.T) *spi.Store {
	s, err := memory.New()
	if err != nil {
		t.Fatal(err)
	}
	return s
})

func TestConformance(t *testing.T) {
	conformance.Decorator(t, open, func(inner ...*spi.Store) (*spi.Store, error) {
		return audit.New(inner[0], slog.New(slog.DiscardHandler))
	})
}

func TestADeletionIsNoted(t *testing.T) {
	var out bytes.Buffer
	s, err := audit.New(open(t), slog.New(slog.NewTextHandler(&out, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := spi.DeleteExecution(t.Context(), s, spi.DeleteExecutionRequest{Execution: "order-1", Incarnation: 1}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "msg=delete execution=order-1") {
		t.Error(out.String())
	}
}
