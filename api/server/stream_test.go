package server_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/loomgate/loomgate/api/server"
	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

type clientStream = grpc.BidiStreamingClient[pb.AppendStreamRequest, pb.AppendStreamResponse]

func openStream(t *testing.T, resolve server.Resolver) clientStream {
	t.Helper()
	conn := dial(t, server.New(resolve, slog.New(slog.DiscardHandler)))
	stream, err := pb.NewAppendStreamServiceClient(conn).AppendStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

func oneEvent(execution string, head int64) *pb.AppendRequest {
	return &pb.AppendRequest{Execution: execution, ExpectedHead: head, Events: []*pb.Event{{Id: spi.NewEventID().String(), Kind: "k"}}}
}

func send(t *testing.T, stream clientStream, tag uint64, req *pb.AppendRequest) {
	t.Helper()
	if err := stream.Send(&pb.AppendStreamRequest{Tag: tag, Append: req}); err != nil {
		t.Fatal(err)
	}
}

// rest closes the sending side and returns the results still due, by tag.
func rest(t *testing.T, stream clientStream) (map[uint64]*pb.AppendStreamResponse, error) {
	t.Helper()
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	results := map[uint64]*pb.AppendStreamResponse{}
	for {
		res, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return results, nil
		}
		if err != nil {
			return results, err
		}
		if results[res.GetTag()] != nil {
			t.Errorf("two results have the tag %d", res.GetTag())
		}
		results[res.GetTag()] = res
	}
}

func TestAppendsToOneExecutionLandInTheOrderInWhichTheyWereSent(t *testing.T) {
	stream := openStream(t, tenant(t, newMemory(t)))
	const executions, each = 5, 200
	for n := range each {
		for e := range executions {
			send(t, stream, uint64(n*executions+e), oneEvent("e"+strconv.Itoa(e), int64(n)))
		}
	}
	results, err := rest(t, stream)
	if err != nil {
		t.Fatal(err)
	}
	for n := range each {
		for e := range executions {
			if res := results[uint64(n*executions+e)]; res.GetAppended().GetHead() != int64(n)+1 {
				t.Fatalf("append %d to e%d: %v", n, e, res)
			}
		}
	}
}

func TestOneExecutionDoesNotHoldUpAnother(t *testing.T) {
	gate := make(chan struct{})
	stream := openStream(t, as(server.Caller{Store: appending(t, func(_ context.Context, req spi.AppendRequest) error {
		if req.Execution == "slow" {
			<-gate
		}
		return nil
	})}))
	send(t, stream, 1, oneEvent("slow", 0))
	send(t, stream, 2, oneEvent("slow", 1))
	send(t, stream, 3, oneEvent("fast", 0))
	first, err := stream.Recv()
	if err != nil || first.GetTag() != 3 {
		t.Errorf("the first result is %v, %v", first, err)
	}
	close(gate)
	if results, err := rest(t, stream); err != nil || len(results) != 2 {
		t.Errorf("%v, %v", results, err)
	}
}

func TestEachAppendOfAStreamHasItsOwnError(t *testing.T) {
	stream := openStream(t, as(server.Caller{Store: appending(t, func(_ context.Context, req spi.AppendRequest) error {
		switch req.Execution {
		case "conflict":
			return &spi.ConflictError{Execution: req.Execution, Head: 4}
		case "broken":
			return &spi.ShardError{Shard: "secret", Err: errors.New("secret")}
		}
		return nil
	})}))
	send(t, stream, 1, oneEvent("conflict", 0))
	send(t, stream, 2, oneEvent("broken", 0))
	send(t, stream, 3, &pb.AppendRequest{Execution: "e"})
	send(t, stream, 4, oneEvent("fine", 0))
	send(t, stream, 5, nil)
	results, err := rest(t, stream)
	if err != nil {
		t.Fatal(err)
	}
	if got := results[1].GetError().GetOp().GetError().GetConflict(); got.GetHead() != 4 {
		t.Errorf("a conflict is told as %v", results[1])
	}
	if told := results[2].GetError(); told.GetOp().GetError().GetUnavailable() == nil || strings.Contains(told.String(), "secret") {
		t.Errorf("a broken shard is told as %v", told)
	}
	for _, tag := range []uint64{3, 5} {
		if results[tag].GetError().GetOp().GetError().GetInvalidArgument() == nil {
			t.Errorf("a bad append is told as %v", results[tag])
		}
	}
	if results[4].GetAppended() == nil {
		t.Errorf("a good append is told as %v", results[4])
	}
}

func TestEachAppendOfAStreamIsWatchedInAContextOfItsOwn(t *testing.T) {
	type ctxKey struct{}
	var mu sync.Mutex
	begun, done, ended := 0, map[int]string{}, map[int]error{}
	s := server.New(as(server.Caller{Store: appending(t, func(ctx context.Context, req spi.AppendRequest) error {
		n, _ := ctx.Value(ctxKey{}).(int)
		mu.Lock()
		defer mu.Unlock()
		done[n] = string(req.Execution)
		if req.Execution == "conflict" {
			return &spi.ConflictError{Execution: req.Execution, Head: 4}
		}
		return nil
	})}), slog.New(slog.DiscardHandler))
	s.WatchAppends(func(ctx context.Context) (context.Context, func(error)) {
		mu.Lock()
		defer mu.Unlock()
		begun++
		n := begun
		return context.WithValue(ctx, ctxKey{}, n), func(err error) {
			mu.Lock()
			defer mu.Unlock()
			ended[n] = err
		}
	})
	stream, err := pb.NewAppendStreamServiceClient(dial(t, s)).AppendStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, execution := range []string{"a", "conflict", "a", "b"} {
		send(t, stream, uint64(i), oneEvent(execution, 0))
	}
	if _, err := rest(t, stream); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if want := map[int]string{1: "a", 2: "conflict", 3: "a", 4: "b"}; !reflect.DeepEqual(done, want) {
		t.Errorf("in the contexts is done %v", done)
	}
	if _, conflict := errors.AsType[*spi.ConflictError](ended[2]); len(ended) != 4 || !conflict || ended[1] != nil || ended[3] != nil || ended[4] != nil {
		t.Errorf("they end with %v", ended)
	}
}

func TestARevokedCredentialEndsTheStreamOnceWhatWasBegunIsAnswered(t *testing.T) {
	revoked := make(chan struct{})
	caller := server.Caller{Store: appending(t, func(ctx context.Context, _ spi.AppendRequest) error {
		select {
		case <-revoked:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})}
	calls := 0
	stream := openStream(t, func(context.Context) (server.Caller, error) {
		if calls++; calls > 2 {
			close(revoked)
			return server.Caller{}, status.Error(codes.Unauthenticated, "revoked")
		}
		return caller, nil
	})
	for tag := range uint64(3) {
		send(t, stream, tag, oneEvent("e"+strconv.Itoa(int(tag)), 0))
	}
	results, err := rest(t, stream)
	if status.Code(err) != codes.Unauthenticated || len(results) != 2 {
		t.Errorf("%v, %v", results, err)
	}
	for tag := range uint64(2) {
		if results[tag].GetAppended() == nil {
			t.Errorf("append %d is told %v", tag, results[tag])
		}
	}
}

func TestAStreamThatIsGivenUpCancelsItsAppends(t *testing.T) {
	began, ended := make(chan struct{}), make(chan error)
	conn := dial(t, server.New(as(server.Caller{Store: appending(t, func(ctx context.Context, _ spi.AppendRequest) error {
		close(began)
		<-ctx.Done()
		ended <- ctx.Err()
		return ctx.Err()
	})}), slog.New(slog.DiscardHandler)))
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := pb.NewAppendStreamServiceClient(conn).AppendStream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	send(t, stream, 1, oneEvent("e", 0))
	<-began
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// appending is a store whose appends do nothing but call do.
func appending(t testing.TB, do func(context.Context, spi.AppendRequest) error) *spi.Store {
	t.Helper()
	store, err := spi.Open(spi.Backend{Events: appendOnly{do: do}})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

type appendOnly struct {
	spi.EventBackend
	do func(context.Context, spi.AppendRequest) error
}

func (a appendOnly) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	if err := a.do(ctx, req); err != nil {
		return spi.AppendResponse{}, err
	}
	return spi.AppendResponse{FirstSeq: 1, Head: 1, Incarnation: 1, Floor: 1}, nil
}
