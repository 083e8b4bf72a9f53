package remote_test

import (
	"context"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/loomgate/loomgate/api"
	"github.com/loomgate/loomgate/backends/remote"
	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

// workers is how many appends are under way at once.
const workers = 64

// BenchmarkAppend compares what an append costs over the wire, in CPU of client and
// server together, with a bare call of grpc-go that carries as many bytes. The store
// behind does nothing.
func BenchmarkAppend(b *testing.B) {
	addr := serve(b, idle(b))
	client, err := remote.Open(b.Context(), addr, remote.Options{Plaintext: true, Connections: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	bare := dialEcho(b)
	b.Run("remote", func(b *testing.B) {
		compare(b, bare.call, func(n int) error {
			_, err := spi.Append(b.Context(), client.Store(), oneKiB(n))
			return err
		})
	})
	events := pb.NewEventServiceClient(dial(b, addr))
	b.Run("generated", func(b *testing.B) {
		compare(b, bare.call, func(n int) error {
			_, err := events.Append(b.Context(), api.Append.EncodeRequest(oneKiB(n)))
			return err
		})
	})
	b.Run("stream", func(b *testing.B) {
		stream, err := pb.NewAppendStreamServiceClient(dial(b, addr)).AppendStream(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		echo, err := bare.conn.NewStream(b.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/bench.Echo/Stream")
		if err != nil {
			b.Fatal(err)
		}
		compareStreams(b, streamer{
			send: func(int) error { return echo.SendMsg(bare.message) },
			recv: func() error { return echo.RecvMsg(&wrapperspb.BytesValue{}) },
		}, streamer{
			send: func(n int) error {
				return stream.Send(&pb.AppendStreamRequest{Tag: uint64(n), Append: api.Append.EncodeRequest(oneKiB(n))})
			},
			recv: func() error {
				_, err := stream.Recv()
				return err
			},
		})
	})
}

// BenchmarkConnections is how much faster many appends at once are over several
// connections than over one.
func BenchmarkConnections(b *testing.B) {
	addr := serve(b, idle(b))
	for _, n := range []int{2, 4, 8} {
		one, err := remote.Open(b.Context(), addr, remote.Options{Plaintext: true, Connections: 1})
		if err != nil {
			b.Fatal(err)
		}
		many, err := remote.Open(b.Context(), addr, remote.Options{Plaintext: true, Connections: n})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			var took [2]time.Duration
			for i, client := range []*remote.Client{one, many} {
				start := time.Now()
				spread(b, func(n int) error {
					_, err := spi.Append(b.Context(), client.Store(), oneKiB(n))
					return err
				})
				took[i] = time.Since(start)
			}
			b.ReportMetric(took[0].Seconds()/took[1].Seconds(), "×one")
		})
		one.Close()
		many.Close()
	}
}

// compare reports the CPU of a call and how many times that of the bare one it is.
func compare(b *testing.B, bare, call func(n int) error) {
	spread(b, bare) // warm up
	before := cpu()
	spread(b, bare)
	between := cpu()
	spread(b, call)
	after := cpu()
	b.ReportMetric(float64((after-between).Nanoseconds())/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(after-between)/float64(between-before), "×bare")
}

// spread does b.N calls on the workers.
func spread(b *testing.B, call func(n int) error) {
	var next atomic.Int64
	var done sync.WaitGroup
	for range workers {
		done.Go(func() {
			for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
				if err := call(int(n)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	done.Wait()
}

type streamer struct {
	send func(n int) error
	recv func() error
}

func compareStreams(b *testing.B, bare, stream streamer) {
	pump(b, bare) // warm up
	before := cpu()
	pump(b, bare)
	between := cpu()
	pump(b, stream)
	after := cpu()
	b.ReportMetric(float64((after-between).Nanoseconds())/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(after-between)/float64(between-before), "×bare")
}

// pump sends b.N messages with at most as many unanswered as there are workers.
func pump(b *testing.B, s streamer) {
	room := make(chan struct{}, workers)
	var done sync.WaitGroup
	done.Go(func() {
		for range b.N {
			if err := s.recv(); err != nil {
				b.Error(err)
				return
			}
			<-room
		}
	})
	for n := range b.N {
		room <- struct{}{}
		if err := s.send(n); err != nil {
			b.Error(err)
			break
		}
	}
	done.Wait()
}

// cpu returns the CPU time that the process has used.
func cpu() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

var payload = make([]byte, 1<<10)

func oneKiB(n int) spi.AppendRequest {
	return spi.AppendRequest{
		Execution: spi.ExecutionID("order-" + strconv.Itoa(n%workers)),
		Events:    []spi.Event{{ID: spi.EventID{byte(n), byte(n >> 8), byte(n >> 16), 1}, Kind: "OrderPlaced", Payload: payload}},
	}
}

// idle is a store whose appends do nothing.
func idle(t testing.TB) *spi.Store {
	t.Helper()
	store, err := spi.Open(spi.Backend{Events: idleEvents{}})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

type idleEvents struct{ spi.EventBackend }

func (idleEvents) Append(context.Context, spi.AppendRequest) (spi.AppendResponse, error) {
	return spi.AppendResponse{FirstSeq: 1, Head: 1, Incarnation: 1, Floor: 1}, nil
}

// An echo is a bare service of grpc-go that is sent as many bytes as an append has and
// answers with as many as a response has.
type echo struct {
	conn    *grpc.ClientConn
	message *wrapperspb.BytesValue
}

func (e echo) call(int) error {
	var out wrapperspb.BytesValue
	return e.conn.Invoke(context.Background(), "/bench.Echo/Call", e.message, &out)
}

func dialEcho(b *testing.B) echo {
	b.Helper()
	answer := wrapperspb.Bytes(make([]byte, proto.Size(api.Append.EncodeResponse(spi.AppendResponse{FirstSeq: 1, Head: 1, Incarnation: 1, Floor: 1}))))
	g := grpc.NewServer()
	g.RegisterService(&grpc.ServiceDesc{
		ServiceName: "bench.Echo",
		HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Call", Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			return answer, decode(&wrapperspb.BytesValue{})
		}}},
		Streams: []grpc.StreamDesc{{StreamName: "Stream", ClientStreams: true, ServerStreams: true, Handler: func(_ any, stream grpc.ServerStream) error {
			for {
				if err := stream.RecvMsg(&wrapperspb.BytesValue{}); err != nil {
					return nil
				}
				if err := stream.SendMsg(answer); err != nil {
					return err
				}
			}
		}}},
	}, nil)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := g.Serve(listener); err != nil {
			b.Error(err)
		}
	})
	b.Cleanup(func() {
		g.Stop()
		serving.Wait()
	})
	return echo{dial(b, listener.Addr().String()), wrapperspb.Bytes(make([]byte, proto.Size(api.Append.EncodeRequest(oneKiB(1)))))}
}

func dial(b *testing.B, addr string) *grpc.ClientConn {
	b.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	return conn
}
