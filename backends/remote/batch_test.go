package remote_test

import (
	"context"
	"errors"
	"reflect"
	"sync/atomic"
	"testing"

	"github.com/loomgate/loomgate/api"
	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

func TestABatchWhoseAnswerIsLostIsFoundOut(t *testing.T) {
	store, calls := losing(t, "AppendBatch", 2)
	res, err := spi.AppendBatch(t.Context(), store, spi.AppendBatchRequest{Appends: []spi.AppendRequest{appendTo("e", 0), appendTo("f", 7)}})
	if err != nil || calls.Load() != 3 {
		t.Fatalf("%v after %d calls", err, calls.Load())
	}
	if res.Results[0].Err != nil || res.Results[0].Head != 1 {
		t.Errorf("%+v", res.Results[0])
	}
	if want := error(&spi.ConflictError{Execution: "f"}); !reflect.DeepEqual(res.Results[1].Err, want) {
		t.Errorf("%+v", res.Results[1])
	}
}

func TestABatchWithAnAppendThatCannotBeRepeatedIsSentOnceAndAmbiguous(t *testing.T) {
	store, calls := losing(t, "AppendBatch", 1)
	res, err := spi.AppendBatch(t.Context(), store, spi.AppendBatchRequest{Appends: []spi.AppendRequest{appendTo("e", 0), appendTo("f", spi.AnyHead)}})
	if err != nil || calls.Load() != 1 {
		t.Fatalf("%v after %d calls", err, calls.Load())
	}
	for i, id := range []spi.ExecutionID{"e", "f"} {
		if ambiguous, ok := errors.AsType[*spi.AmbiguousError](res.Results[i].Err); !ok || ambiguous.Execution != id {
			t.Errorf("%+v", res.Results[i])
		}
	}
}

// TestTheAppendsOfABatchThatAreOpenAreFoundOutOneByOne is about a gateway whose own
// store has lost a commit: here it has stored the first append and not the second.
func TestTheAppendsOfABatchThatAreOpenAreFoundOutOneByOne(t *testing.T) {
	stored := newMemory(t)
	open1 := func(id spi.ExecutionID) *pb.AppendResult {
		return &pb.AppendResult{Result: &pb.AppendResult_Error{Error: api.EncodeError(&spi.AmbiguousError{Execution: id, Cause: context.DeadlineExceeded})}}
	}
	store := open(t, serve(t, stored, hooked(func(c hookedCall) (any, error) {
		if c.method != "AppendBatch" {
			return c.do()
		}
		req, err := api.AppendBatch.DecodeRequest(c.req.(*pb.AppendBatchRequest))
		if err != nil {
			return nil, err
		}
		if _, err := spi.Append(t.Context(), stored, req.Appends[0]); err != nil {
			return nil, err
		}
		conflict := &pb.AppendResult{Result: &pb.AppendResult_Error{Error: api.EncodeError(&spi.ConflictError{Execution: "g", Head: 4})}}
		return &pb.AppendBatchResponse{Results: []*pb.AppendResult{open1("e"), open1("f"), conflict, open1("h")}}, nil
	})))
	res, err := spi.AppendBatch(t.Context(), store, spi.AppendBatchRequest{Appends: []spi.AppendRequest{appendTo("e", 0), appendTo("f", 0), appendTo("g", 0), appendTo("h", 7)}})
	if err != nil {
		t.Fatal(err)
	}
	for i, duplicate := range []bool{true, false} {
		if r := res.Results[i]; r.Err != nil || r.Head != 1 || r.Duplicate != duplicate {
			t.Errorf("append %d: %+v", i, r)
		}
	}
	for i, want := range map[int]error{2: &spi.ConflictError{Execution: "g", Head: 4}, 3: &spi.ConflictError{Execution: "h"}} {
		if !reflect.DeepEqual(res.Results[i].Err, want) {
			t.Errorf("append %d: %v", i, res.Results[i].Err)
		}
	}
}

func TestOnceAnAppendOfABatchStaysOpenTheNextOnesAreNotTried(t *testing.T) {
	var appends atomic.Int64
	lost := api.EncodeError(&spi.AmbiguousError{Cause: context.DeadlineExceeded})
	store := open(t, serve(t, newMemory(t), hooked(func(c hookedCall) (any, error) {
		switch c.method {
		case "AppendBatch":
			r := &pb.AppendResult{Result: &pb.AppendResult_Error{Error: lost}}
			return &pb.AppendBatchResponse{Results: []*pb.AppendResult{r, r, r}}, nil
		case "Append":
			appends.Add(1)
			return nil, errLost
		}
		return c.do()
	})))
	res, err := spi.AppendBatch(t.Context(), store, spi.AppendBatchRequest{Appends: []spi.AppendRequest{appendTo("e", 0), appendTo("f", 0), appendTo("g", 0)}})
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range []spi.ExecutionID{"e", "f", "g"} {
		if ambiguous, ok := errors.AsType[*spi.AmbiguousError](res.Results[i].Err); !ok || ambiguous.Execution != id {
			t.Errorf("append %d: %v", i, res.Results[i].Err)
		}
	}
	if appends.Load() != 8 {
		t.Errorf("%d appends were sent", appends.Load())
	}
}
