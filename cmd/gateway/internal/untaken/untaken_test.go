package untaken_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/cmd/gateway/internal/untaken"
	"github.com/loomgate/loomgate/decorators/limits"
	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

const (
	answerSize = 256 << 10
	limit      = 4 << 20
)

// A service answers reads with large pages.
type service struct {
	pb.UnimplementedEventServiceServer
	store *spi.Store // that is asked first
}

func (s *service) Read(ctx context.Context, in *pb.ReadRequest) (*pb.ReadResponse, error) {
	if _, err := spi.Head(ctx, s.store, spi.HeadRequest{Execution: "e"}); err != nil {
		return nil, err
	}
	return &pb.ReadResponse{Events: []*pb.Event{{Kind: strings.Repeat("x", int(in.GetLimit()))}}}, nil
}

type fixture struct {
	*testing.T
	answers *untaken.Answers
	gone    atomic.Int64 // clients that were disconnected
	account *limits.Account
	grpc    string
	http    string
}

// A counter counts the lines of a log.
type counter struct {
	slog.Handler
	lines *atomic.Int64
}

func (counter) Enabled(context.Context, slog.Level) bool { return true }

func (c counter) Handle(context.Context, slog.Record) error {
	c.lines.Add(1)
	return nil
}

func start(t *testing.T) *fixture {
	t.Helper()
	account := limits.NewAccount(limits.None)
	store, err := memory.New()
	if err != nil {
		t.Fatal(err)
	}
	store, err = limits.New(store, account)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{T: t, account: account}
	f.answers = untaken.New(limit, slog.New(counter{slog.DiscardHandler, &f.gone}))
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return f.answers.Listener(l)
	}
	overGRPC := grpc.NewServer(f.answers.ServerOptions()...)
	pb.RegisterEventServiceServer(overGRPC, &service{store: store})
	overHTTP := &http.Server{ConnContext: untaken.ConnContext, Handler: f.answers.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := spi.Head(r.Context(), store, spi.HeadRequest{Execution: "e"}); err != nil {
			t.Error(err)
		}
		for range 64 {
			if _, err := w.Write(make([]byte, answerSize)); err != nil {
				return
			}
		}
	}))}
	l, lh := listen(), listen()
	f.grpc, f.http = l.Addr().String(), lh.Addr().String()
	served := make(chan struct{}, 2)
	go func() { _ = overGRPC.Serve(l); served <- struct{}{} }()
	go func() { _ = overHTTP.Serve(lh); served <- struct{}{} }()
	t.Cleanup(func() {
		overGRPC.Stop()
		overHTTP.Close()
		<-served
		<-served
		f.until("nothing is left of connections that are closed", func() bool { return f.answers.Bytes() == 0 && account.Usage().InFlight == 0 })
	})
	return f
}

func (f *fixture) dial() *grpc.ClientConn {
	f.Helper()
	conn, err := grpc.NewClient(f.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithStaticStreamWindowSize(64<<10), grpc.WithStaticConnWindowSize(64<<10))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { conn.Close() })
	return conn
}

// ask sends a read whose answer nobody takes.
func (f *fixture) ask(conn *grpc.ClientConn, size int64) grpc.ClientStream {
	f.Helper()
	stream, err := conn.NewStream(f.Context(), &grpc.StreamDesc{ServerStreams: true}, pb.EventService_Read_FullMethodName)
	if err != nil {
		f.Fatal(err)
	}
	if err := stream.SendMsg(&pb.ReadRequest{Limit: int32(size)}); err != nil {
		f.Fatal(err)
	}
	if err := stream.CloseSend(); err != nil {
		f.Fatal(err)
	}
	return stream
}

// until waits until something is so.
func (f *fixture) until(what string, yes func() bool) {
	f.Helper()
	for end := time.Now().Add(time.Minute); !yes(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			f.Fatalf("%s never: %d bytes wait, %+v", what, f.answers.Bytes(), f.account.Usage())
		}
	}
}

func TestAnAnswerIsInFlightUntilItIsTaken(t *testing.T) {
	f := start(t)
	conn := f.dial()
	stream := f.ask(conn, answerSize)
	f.until("the answer waits", func() bool { return f.answers.Bytes() >= answerSize })
	if n := f.account.Usage().InFlight; n != 1 {
		t.Errorf("%d calls are in flight, want 1", n)
	}
	var res pb.ReadResponse
	if err := stream.RecvMsg(&res); err != nil {
		t.Fatal(err)
	}
	f.until("the answer is taken", func() bool { return f.answers.Bytes() == 0 && f.account.Usage().InFlight == 0 })

	if err := f.ask(conn, 10).RecvMsg(&res); err != nil { // too small to be counted
		t.Fatal(err)
	}
	if n := f.answers.Bytes(); n != 0 || f.account.Usage().InFlight != 0 {
		t.Errorf("%d bytes wait after a small answer, %+v", n, f.account.Usage())
	}
}

func TestTheClientThatLeavesTheMostIsDisconnectedAndNobodyElse(t *testing.T) {
	f := start(t)
	modest, hostile := f.dial(), f.dial()
	kept := f.ask(modest, answerSize)
	f.until("the modest one's answer waits", func() bool { return f.answers.Bytes() >= answerSize })
	var left []grpc.ClientStream
	for range 2 * limit / answerSize {
		stream, err := hostile.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true}, pb.EventService_Read_FullMethodName)
		if err != nil {
			break // disconnected, and connecting again
		}
		_ = stream.SendMsg(&pb.ReadRequest{Limit: answerSize})
		_ = stream.CloseSend()
		left = append(left, stream)
	}
	f.until("somebody is disconnected", func() bool { return f.gone.Load() > 0 })
	f.until("no more waits than may", func() bool { return f.answers.Bytes() <= limit })
	lost := 0
	for _, stream := range left {
		if stream.RecvMsg(&pb.ReadResponse{}) != nil {
			lost++
		}
	}
	if lost == 0 {
		t.Error("nobody was disconnected")
	}
	if err := kept.RecvMsg(&pb.ReadResponse{}); err != nil {
		t.Errorf("the modest one: %v", err)
	}
}

func TestWhatIsWrittenOverHTTPCountsWhileItIs(t *testing.T) {
	f := start(t)
	conn, err := net.Dial("tcp", f.http)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	f.until("a write waits", func() bool { return f.answers.Bytes() == answerSize })
	if n := f.account.Usage().InFlight; n != 1 {
		t.Errorf("%d calls are in flight, want 1", n)
	}
	go io.Copy(io.Discard, conn) //nolint:errcheck // it ends with the connection
	f.until("it is taken", func() bool { return f.answers.Bytes() == 0 && f.account.Usage().InFlight == 0 })
}
