package remote_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/loomgate/loomgate/api"
	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

func event() spi.Event { return spi.Event{ID: spi.NewEventID(), Kind: "Noted"} }

func appendTo(id spi.ExecutionID, head int64) spi.AppendRequest {
	return spi.AppendRequest{Execution: id, ExpectedHead: head, Events: []spi.Event{event()}}
}

// losing is a store behind a gateway that does the calls of one method and loses their
// first answers; calls counts them.
func losing(t *testing.T, method string, answers int) (store *spi.Store, calls *atomic.Int64) {
	t.Helper()
	calls = new(atomic.Int64)
	return open(t, serve(t, newMemory(t), hooked(func(c hookedCall) (any, error) {
		res, err := c.do()
		if c.method == method {
			calls.Add(1)
			if c.n <= answers {
				return nil, errLost
			}
		}
		return res, err
	}))), calls
}

func TestAnAppendWhoseAnswerIsLostIsFoundOut(t *testing.T) {
	store, calls := losing(t, "Append", 2)
	req := appendTo("e", 0)
	res, err := spi.Append(t.Context(), store, req)
	if err != nil || res.Head != 1 || calls.Load() != 3 {
		t.Errorf("%+v, %v, after %d calls", res, err, calls.Load())
	}
}

func TestWhatCannotBeRepeatedIsSentOnceAndAmbiguous(t *testing.T) {
	anywhere := appendTo("e", spi.AnyHead)
	for name, call := range map[string]func(*spi.Store) error{
		"AcquireFence": func(s *spi.Store) error {
			_, err := spi.AcquireFence(t.Context(), s, spi.AcquireFenceRequest{Execution: "e"})
			return err
		},
		"Append": func(s *spi.Store) error {
			_, err := spi.Append(t.Context(), s, anywhere)
			return err
		},
		"DeleteExecution": func(s *spi.Store) error {
			_, err := spi.DeleteExecution(t.Context(), s, spi.DeleteExecutionRequest{Execution: "e", Incarnation: 1})
			return err
		},
	} {
		store, calls := losing(t, name, 1)
		ambiguous, ok := errors.AsType[*spi.AmbiguousError](call(store))
		if !ok || ambiguous.Execution != "e" || calls.Load() != 1 {
			t.Errorf("%s answers %v, after %d calls", name, ambiguous, calls.Load())
		}
	}
	store, calls := losing(t, "Append", 1)
	anywhere.SinceSeq = 1
	if res, err := spi.Append(t.Context(), store, anywhere); err != nil || res.Head != 1 || calls.Load() != 2 {
		t.Errorf("an append since a sequence answers %+v, %v, after %d calls", res, err, calls.Load())
	}
}

func TestAnAnswerThatProvesNothingLeavesALostAppendAmbiguous(t *testing.T) {
	for _, c := range []struct {
		answer   error
		resolves bool
	}{
		{&spi.ConflictError{Execution: "e", Head: 7}, true},
		{&spi.StaleFenceError{Execution: "e", Current: 2}, true},
		{&spi.ShreddedError{Owner: "e"}, true},
		{&spi.KeyMismatchError{Execution: "e"}, true},
		{&spi.IncarnationError{Execution: "e", Current: 2}, false},
		{&spi.TruncatedError{Execution: "e", Floor: 2}, false},
		{&spi.UnavailableError{Cause: context.DeadlineExceeded}, false},
		{&spi.UnsupportedError{Cap: spi.CapEvents}, false},
		{&spi.ThrottledError{Limit: "requests a second", RetryAfter: time.Second}, false},
	} {
		answer := api.ErrorStatus(&spi.OpError{Op: "Append", Err: c.answer}, api.Audience{Operator: true}).Err()
		store := open(t, serve(t, newMemory(t), hooked(func(call hookedCall) (any, error) {
			switch {
			case call.method != "Append":
				return call.do()
			case call.n == 1:
				return nil, errLost
			}
			return nil, answer
		})))
		_, err := spi.Append(t.Context(), store, appendTo("e", 0))
		_, ambiguous := errors.AsType[*spi.AmbiguousError](err)
		if ambiguous == c.resolves {
			t.Errorf("after a lost answer, %v becomes %v", c.answer, err)
		}
	}
}

func TestAnAmbiguousAnswerOfTheGatewayIsFoundOut(t *testing.T) {
	ambiguous := api.ErrorStatus(&spi.AmbiguousError{Execution: "e", Cause: context.DeadlineExceeded}, api.Audience{}).Err()
	store := open(t, serve(t, newMemory(t), hooked(func(c hookedCall) (any, error) {
		res, err := c.do()
		if c.method == "Append" && c.n == 1 {
			return nil, ambiguous
		}
		return res, err
	})))
	if res, err := spi.Append(t.Context(), store, appendTo("e", 0)); err != nil || res.Head != 1 {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestAReadIsSentAgainUntilItIsAnswered(t *testing.T) {
	store, calls := losing(t, "Head", 3)
	if _, err := spi.Head(t.Context(), store, spi.HeadRequest{Execution: "e"}); err != nil || calls.Load() != 4 {
		t.Errorf("%v, after %d calls", err, calls.Load())
	}
	store, calls = losing(t, "Head", 1<<30)
	_, err := spi.Head(t.Context(), store, spi.HeadRequest{Execution: "e"})
	if _, unavailable := errors.AsType[*spi.UnavailableError](err); !unavailable || calls.Load() != 8 {
		t.Errorf("%v, after %d calls", err, calls.Load())
	}
}

func TestAContextThatEndsEndsTheTries(t *testing.T) {
	for method, call := range map[string]func(context.Context, *spi.Store) error{
		"Head": func(ctx context.Context, s *spi.Store) error {
			_, err := spi.Head(ctx, s, spi.HeadRequest{Execution: "e"})
			return err
		},
		"Append": func(ctx context.Context, s *spi.Store) error {
			_, err := spi.Append(ctx, s, appendTo("e", 0))
			return err
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var calls atomic.Int64
		store := open(t, serve(t, newMemory(t), hooked(func(c hookedCall) (any, error) {
			if c.method != method {
				return c.do()
			}
			calls.Add(1)
			cancel()
			return nil, errLost
		})))
		err := call(ctx, store)
		_, ambiguous := errors.AsType[*spi.AmbiguousError](err)
		if ambiguous != (method == "Append") || !ambiguous && !errors.Is(err, context.Canceled) || calls.Load() != 1 {
			t.Errorf("%s answers %v after %d calls", method, err, calls.Load())
		}
	}
}

func TestAContextOfTheGatewaysIsNotTheCallers(t *testing.T) {
	store := open(t, serve(t, newMemory(t), hooked(func(c hookedCall) (any, error) {
		if c.method != "Head" {
			return c.do()
		}
		return nil, api.ErrorStatus(&spi.OpError{Op: "Head", Err: context.Canceled}, api.Audience{}).Err()
	})))
	_, err := spi.Head(t.Context(), store, spi.HeadRequest{Execution: "e"})
	if _, unavailable := errors.AsType[*spi.UnavailableError](err); !unavailable {
		t.Error(err)
	}
}

func TestACallThatIsRefusedIsNotTriedAgain(t *testing.T) {
	for _, code := range []codes.Code{codes.Unauthenticated, codes.PermissionDenied, codes.InvalidArgument, codes.Unimplemented} {
		var calls atomic.Int64
		store := open(t, serve(t, newMemory(t), hooked(func(c hookedCall) (any, error) {
			if c.method != "Append" {
				return c.do()
			}
			calls.Add(1)
			return nil, status.Error(code, "refused")
		})))
		_, err := spi.Append(t.Context(), store, appendTo("e", 0))
		if status.Code(errors.Unwrap(err)) != code || calls.Load() != 1 {
			t.Errorf("%v becomes %v after %d calls", code, err, calls.Load())
		}
	}
}

func TestAMalformedAnswerToAWriteIsAmbiguous(t *testing.T) {
	store := open(t, serve(t, newMemory(t), hooked(func(c hookedCall) (any, error) {
		switch c.method {
		case "AcquireLease":
			return &pb.AcquireLeaseResponse{ExpiresAt: malformedTime}, nil
		case "AppendBatch":
			return &pb.AppendBatchResponse{Results: []*pb.AppendResult{{Result: &pb.AppendResult_Appended{}}, {Result: &pb.AppendResult_Appended{}}}}, nil
		}
		return c.do()
	})))
	_, err := spi.AcquireLease(t.Context(), store, spi.AcquireLeaseRequest{Name: "l", Holder: "h", TTL: time.Second})
	if _, ambiguous := errors.AsType[*spi.AmbiguousError](err); !ambiguous {
		t.Error(err)
	}
	res, err := spi.AppendBatch(t.Context(), store, spi.AppendBatchRequest{Appends: []spi.AppendRequest{appendTo("e", 0)}})
	if err != nil || len(res.Results) != 1 {
		t.Fatalf("%+v, %v", res, err)
	}
	if ambiguous, ok := errors.AsType[*spi.AmbiguousError](res.Results[0].Err); !ok || ambiguous.Execution != "e" {
		t.Errorf("a batch with a result too many: %v", res.Results[0].Err)
	}
}
