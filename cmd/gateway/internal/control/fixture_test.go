package control

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/spi"
)

var admin = Actor{APIKey: "test", Address: "192.0.2.1:1234"}

func newStore(t testing.TB) *spi.Store {
	t.Helper()
	s, err := memory.New()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// gateway returns the records as another gateway over the store has them.
func gateway(t testing.TB, store *spi.Store) *Records {
	t.Helper()
	r := New(store, Options{})
	refresh(t, r)
	return r
}

func refresh(t testing.TB, r *Records) {
	t.Helper()
	must(t, r.Refresh(t.Context()))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// is reports whether an error of type E is in err.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// newKeyFor returns a key that reads one tenant's data, and what its text holds.
func newKeyFor(t testing.TB, r *Records, tenant spi.TenantName) (id, secret string) {
	t.Helper()
	_, text, err := r.CreateAPIKey(t.Context(), admin, Grant{Tenants: []spi.TenantName{tenant}, Scopes: ScopeRead})
	must(t, err)
	id, secret, ok := ParseKey(text)
	if !ok {
		t.Fatalf("no key: %q", text)
	}
	return id, secret
}

// usable reports whether a key lets anybody in through a gateway.
func usable(t testing.TB, r *Records, id, secret string) bool {
	t.Helper()
	key, proven, err := r.Verify(id, secret)
	must(t, err)
	return proven && key.Usable(time.Now())
}

// count returns how many records a log holds.
func count(t testing.TB, store *spi.Store) int64 {
	t.Helper()
	head, err := spi.Head(t.Context(), store, spi.HeadRequest{Execution: Execution})
	must(t, err)
	return head.Head
}

// write appends an event as another version of the gateway might.
func write(t testing.TB, store *spi.Store, kind, payload string) {
	t.Helper()
	_, err := spi.Append(t.Context(), store, spi.AppendRequest{
		Execution: Execution, ExpectedHead: spi.AnyHead, Events: []spi.Event{{ID: spi.NewEventID(), Kind: kind, Payload: []byte(payload)}},
	})
	must(t, err)
}

// faulty is a store whose calls go wrong when told to.
type faulty struct {
	inner *spi.Store

	mu     sync.Mutex
	read   func(context.Context) error                                             // before reads
	append func(do func() (spi.AppendResponse, error)) (spi.AppendResponse, error) // around appends
}

func newFaulty(t testing.TB, inner *spi.Store) (*faulty, *spi.Store) {
	t.Helper()
	f := &faulty{inner: inner}
	store, err := spi.Open(spi.Backend{Events: f})
	must(t, err)
	return f, store
}

// down is how a shard that cannot be reached answers.
func down(context.Context) error { return &spi.UnavailableError{Cause: errors.New("down")} }

// hang is how a shard answers that does not.
func hang(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

func (f *faulty) setRead(read func(context.Context) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.read = read
}

func (f *faulty) Read(ctx context.Context, req spi.ReadRequest) (spi.ReadResponse, error) {
	f.mu.Lock()
	read := f.read
	f.mu.Unlock()
	if read != nil {
		if err := read(ctx); err != nil {
			return spi.ReadResponse{}, err
		}
	}
	return spi.Read(ctx, f.inner, req)
}

func (f *faulty) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	do := func() (spi.AppendResponse, error) { return spi.Append(ctx, f.inner, req) }
	if f.append != nil {
		return f.append(do)
	}
	return do()
}

func (f *faulty) Head(ctx context.Context, req spi.HeadRequest) (spi.HeadResponse, error) {
	return spi.Head(ctx, f.inner, req)
}

func (f *faulty) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	return spi.ListExecutions(ctx, f.inner, req)
}

// newLog returns a logger, and what was logged.
func newLog() (*slog.Logger, func() string) {
	var mu sync.Mutex
	var b strings.Builder
	w := writerFunc(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return b.Write(p)
	})
	return slog.New(slog.NewTextHandler(w, nil)), func() string {
		mu.Lock()
		defer mu.Unlock()
		return b.String()
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
