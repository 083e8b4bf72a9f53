package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"testing"

	"github.com/loomgate/loomgate/api/server"
	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/backends/remote"
)

const want = `3 children sleep, and their parent waits for them
node A crashes before it can tell the parent of the last child
flight: "booked"
hotel: "booked"
car: "booked"
node B resumed the parent, which is done
`

func TestAnotherNodeDoesWhatTheCrashedOneLeftUndone(t *testing.T) {
	store, err := memory.New()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	resolve := func(context.Context) (server.Caller, error) { return server.Caller{Store: store}, nil }
	gateway, _ := server.New(resolve, slog.New(slog.DiscardHandler)).GRPC()
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := gateway.Serve(listener); err != nil {
			t.Error(err)
		}
	})
	defer serving.Wait()
	defer gateway.Stop()

	client, err := remote.Open(t.Context(), listener.Addr().String(), remote.Options{Plaintext: true})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := errors.Join(run(t.Context(), client.Store(), "trip-1", &out), client.Close()); err != nil {
		t.Error(err)
	}
	if out.String() != want {
		t.Errorf("it says\n%s", out.String())
	}
}
