package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"

	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

// A fakeStream is a client that sends requests without end, of one size each, and
// takes results as long as taking allows.
type fakeStream struct {
	grpc.BidiStreamingServer[pb.AppendStreamRequest, pb.AppendStreamResponse]
	ctx     context.Context
	payload []byte
	most    int64        // how many are sent
	sent    atomic.Int64 // how many the server has read
	taking  chan struct{}
	taken   atomic.Int64
	broken  error // what taking one answers
}

func (f *fakeStream) Context() context.Context { return f.ctx }

func (f *fakeStream) Recv() (*pb.AppendStreamRequest, error) {
	n := f.sent.Load()
	if n == f.most {
		return nil, io.EOF
	}
	f.sent.Add(1)
	event := &pb.Event{Id: spi.NewEventID().String(), Kind: "k", Content: &pb.Event_Payload{Payload: f.payload}}
	return &pb.AppendStreamRequest{Tag: uint64(n), Append: &pb.AppendRequest{Execution: strconv.FormatInt(n, 10), Events: []*pb.Event{event}}}, nil
}

func (f *fakeStream) Send(*pb.AppendStreamResponse) error {
	select {
	case <-f.taking:
	case <-f.ctx.Done():
		return f.ctx.Err()
	}
	f.taken.Add(1)
	return f.broken
}

// gated is a store whose appends wait at a gate.
type gated struct {
	spi.EventBackend
	gate   chan struct{}
	active atomic.Int64
}

func (g *gated) Append(ctx context.Context, _ spi.AppendRequest) (spi.AppendResponse, error) {
	g.active.Add(1)
	defer g.active.Add(-1)
	select {
	case <-g.gate:
		return spi.AppendResponse{FirstSeq: 1, Head: 1}, nil
	case <-ctx.Done():
		return spi.AppendResponse{}, ctx.Err()
	}
}

func (g *gated) service(t *testing.T) service {
	t.Helper()
	store, err := spi.Open(spi.Backend{Events: g})
	if err != nil {
		t.Fatal(err)
	}
	return service{New(func(context.Context) (Caller, error) { return Caller{Store: store}, nil }, slog.New(slog.DiscardHandler))}
}

func TestNoMoreIsInFlightThanTheWindowHolds(t *testing.T) {
	for _, c := range []struct{ size, most int }{
		{0, windowAppends},
		{windowBytes / windowAppends, windowAppends},
		{spi.MaxPayload, windowBytes / spi.MaxPayload},
		{windowBytes/3 + 1, 2},
		{2 * windowBytes, 1}, // refused in the end, but let in alone
	} {
		synctest.Test(t, func(t *testing.T) {
			g := &gated{gate: make(chan struct{})}
			f := &fakeStream{ctx: t.Context(), payload: make([]byte, c.size), most: 3 * windowAppends, taking: make(chan struct{})}
			done := make(chan error)
			go func() { done <- g.service(t).AppendStream(f) }()
			synctest.Wait()
			if n := f.sent.Load(); n != int64(c.most)+1 {
				t.Errorf("of %d bytes each, %d were read, not one more than %d", c.size, n, c.most)
			}
			if c.size <= spi.MaxPayload && g.active.Load() != int64(c.most) {
				t.Errorf("of %d bytes each, %d are in flight", c.size, g.active.Load())
			}
			close(g.gate)
			synctest.Wait()
			if n := f.sent.Load(); n != int64(c.most)+1 {
				t.Errorf("of %d bytes each, %d were read from a client that takes no result", c.size, n)
			}
			close(f.taking)
			if err := <-done; err != nil || f.taken.Load() != f.most {
				t.Errorf("of %d bytes each, %d were answered, %v", c.size, f.taken.Load(), err)
			}
		})
	}
}

func TestAClientThatCannotBeAnsweredEndsTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gated{gate: make(chan struct{}, 1)}
		broken := errors.New("broken")
		f := &fakeStream{ctx: t.Context(), most: 3 * windowAppends, taking: make(chan struct{}), broken: broken}
		close(f.taking)
		done := make(chan error)
		go func() { done <- g.service(t).AppendStream(f) }()
		synctest.Wait()
		g.gate <- struct{}{} // one append comes to an end, and its result cannot be sent
		if err := <-done; !errors.Is(err, broken) {
			t.Error(err)
		}
		if n := g.active.Load(); n != 0 {
			t.Errorf("%d appends are under way after the stream", n)
		}
	})
}
