package remote_test

import (
	"context"
	"log/slog"
	"net"
	"path"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/loomgate/loomgate/api/server"
	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/backends/remote"
	"github.com/loomgate/loomgate/conformance/small"
	"github.com/loomgate/loomgate/spi"
)

// serve answers with the API of a store, on a port of its own, until the test ends.
func serve(t testing.TB, store *spi.Store, options ...grpc.ServerOption) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(serveOn(t, listener, store, options...))
	return listener.Addr().String()
}

// serveOn does it on a listener, until stop.
func serveOn(t testing.TB, listener net.Listener, store *spi.Store, options ...grpc.ServerOption) (stop func()) {
	t.Helper()
	resolve := func(context.Context) (server.Caller, error) { return server.Caller{Store: store}, nil }
	g, _ := server.New(resolve, slog.New(slog.DiscardHandler)).GRPC(options...)
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := g.Serve(listener); err != nil {
			t.Error(err)
		}
	})
	return func() {
		g.Stop()
		serving.Wait()
	}
}

// open connects to a gateway that speaks plaintext.
func open(t testing.TB, addr string) *spi.Store {
	t.Helper()
	client, err := remote.Open(t.Context(), addr, remote.Options{Plaintext: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client.Store()
}

// tenant is a tenant's view of a store.
func tenant(t testing.TB, store *spi.Store) *spi.Store {
	t.Helper()
	view, err := small.Prefix("acme", store)
	if err != nil {
		t.Fatal(err)
	}
	return view
}

func newMemory(t testing.TB) *spi.Store {
	t.Helper()
	store, err := memory.New()
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// A hook is asked about each call that reaches a gateway, which is the n-th of its
// method. It does the call or not, and says what the client is told.
type hook func(c hookedCall) (any, error)

type hookedCall struct {
	method string
	n      int
	req    any
	do     func() (any, error)
}

// hooked asks h about each call.
func hooked(h hook) grpc.ServerOption {
	var mu sync.Mutex
	counts := map[string]int{}
	return grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		mu.Lock()
		method := path.Base(info.FullMethod)
		counts[method]++
		n := counts[method]
		mu.Unlock()
		return h(hookedCall{method, n, req, func() (any, error) { return handler(ctx, req) }})
	})
}

// errLost is what a client is told of a call whose answer got lost on the way.
var errLost = status.Error(codes.Unavailable, "the connection is gone")
