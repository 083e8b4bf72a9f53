package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/backends/sqlite"
	"github.com/loomgate/loomgate/cmd/gateway/internal/transfer"
	"github.com/loomgate/loomgate/cmd/gateway/internal/transfer/samplelog"
	"github.com/loomgate/loomgate/conformance/small"
	"github.com/loomgate/loomgate/spi"
)

const tenant = "acme"

// fatal is what a test, a benchmark, a fuzz target and a property have in common.
type fatal interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// must is for what cannot fail, and ends the test binary where it does.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// view returns a tenant's view of a store.
func view(name spi.TenantName, shared *spi.Store) *spi.Store {
	return must(small.Prefix(name, shared))
}

func inMemory() *spi.Store {
	return view(tenant, must(memory.New()))
}

// backends are the stores that tests of whole files run over.
var backends = map[string]func(*testing.T) *spi.Store{
	"memory": func(t *testing.T) *spi.Store { return inMemory() },
	"sqlite": func(t *testing.T) *spi.Store {
		db := must(sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "store.db"), sqlite.WithNormalSync()))
		t.Cleanup(func() { db.Close() })
		return view(tenant, db.Store())
	},
}

// onEach runs a test over each backend.
func onEach(t *testing.T, test func(*testing.T, *spi.Store)) {
	for _, name := range slices.Sorted(maps.Keys(backends)) {
		t.Run(name, func(t *testing.T) { test(t, backends[name](t)) })
	}
}

var ctx = context.Background()

func options() transfer.ImportOptions { return transfer.ImportOptions{Tenant: tenant} }

// file returns lines as a file.
func file(lines ...string) io.Reader { return strings.NewReader(strings.Join(lines, "\n") + "\n") }

func line(id, rest string) string {
	return `{"executionId":"` + id + `","kind":"K","recordedAt":"2024-05-01T09:30:00Z",` + rest + `}`
}

func importAll(t fatal, store *spi.Store, r io.Reader) transfer.ImportReport {
	t.Helper()
	return must(transfer.Import(ctx, store, r, options()))
}

func export(t fatal, store *spi.Store, opts transfer.ExportOptions) string {
	t.Helper()
	var out bytes.Buffer
	if _, err := transfer.Export(ctx, store, &out, opts); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// payloads returns the payloads of an execution, in order.
func payloads(t fatal, store *spi.Store, id spi.ExecutionID) []string {
	t.Helper()
	var all []string
	for e, err := range transfer.Events(ctx, store, id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(e.Payload))
	}
	return all
}

func wantPayloads(t fatal, store *spi.Store, id spi.ExecutionID, want ...string) {
	t.Helper()
	if got := payloads(t, store, id); !slices.Equal(got, want) {
		t.Errorf("execution %q holds %q, not %q", id, got, want)
	}
}

func wantIDs(t fatal, store *spi.Store, want ...spi.ExecutionID) {
	t.Helper()
	var got []spi.ExecutionID
	for id, err := range transfer.Executions(ctx, store, "", "") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, id)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the executions are %q, not %q", got, want)
	}
}

func want[E error](t fatal, err error) E {
	t.Helper()
	e, ok := errors.AsType[E](err)
	if !ok {
		t.Fatalf("the error is %v, not a %T", err, e)
	}
	return e
}

// sample returns a small log.
func sample(seed uint64, executions, events int) []byte {
	shape := samplelog.Tenants(seed)[int(seed)%4]
	shape.Executions, shape.Events = executions, events
	var out bytes.Buffer
	if err := shape.Write(&out); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// wantSame checks that two files say the same of each execution.
func wantSame(t fatal, got, want io.Reader) {
	t.Helper()
	g, w := must(samplelog.Fingerprints(got)), must(samplelog.Fingerprints(want))
	if !maps.Equal(g, w) {
		t.Errorf("%d executions are not as the %d that ought to be there", len(g), len(w))
	}
}
