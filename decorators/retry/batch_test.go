package retry_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/loomgate/loomgate/decorators/retry"
	"github.com/loomgate/loomgate/spi"
)

// to returns an append to an execution, at a head.
func to(id spi.ExecutionID) spi.AppendRequest {
	return spi.AppendRequest{Execution: id, Events: []spi.Event{{ID: spi.NewEventID(), Kind: "Noted"}}}
}

func executionsOf(b spi.AppendBatchRequest) (ids []spi.ExecutionID) {
	for _, a := range b.Appends {
		ids = append(ids, a.Execution)
	}
	return ids
}

func TestOnlyWhatIsNotSettledOfABatchIsSentAgain(t *testing.T) {
	conflict := &spi.ConflictError{Execution: "conflict", Head: 7}
	blind := to("blind")
	blind.ExpectedHead = spi.AnyHead
	s := &scripted{script: []error{
		nil, ambiguous, conflict, unavailable, ambiguous, nil, // the first try
		&spi.TruncatedError{}, ambiguous, // the second: lost, busy
		nil, // the third: busy
	}}
	res, err := spi.AppendBatch(t.Context(), over(t, s, retry.Options{Jitter: noWait}), spi.AppendBatchRequest{
		Appends: []spi.AppendRequest{to("first"), to("lost"), to("conflict"), to("busy"), blind, to("last")},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []error{nil, ambiguous, conflict, nil, ambiguous, nil} {
		if !errors.Is(res.Results[i].Err, want) {
			t.Errorf("result %d is %v, not %v", i, res.Results[i].Err, want)
		}
	}
	sent := [][]spi.ExecutionID{{"first", "lost", "conflict", "busy", "blind", "last"}, {"lost", "busy"}, {"busy"}}
	for i := range max(len(sent), len(s.batches)) {
		if len(s.batches) != len(sent) || !slices.Equal(executionsOf(s.batches[i]), sent[i]) {
			t.Fatalf("batch %d holds %q", i, executionsOf(s.batches[min(i, len(s.batches)-1)]))
		}
	}
}

func TestABatchThatIsLostAsAWholeIsLostForEachOfItsAppends(t *testing.T) {
	blind := to("blind")
	blind.ExpectedHead = spi.AnyHead
	s := &scripted{whole: []error{&spi.AmbiguousError{Cause: errLost}}}
	res, err := spi.AppendBatch(t.Context(), over(t, s, retry.Options{Jitter: noWait}), spi.AppendBatchRequest{Appends: []spi.AppendRequest{to("e"), blind}})
	if err != nil || res.Results[0].Err != nil {
		t.Fatal(res, err)
	}
	if lost := want[*spi.AmbiguousError](t, res.Results[1].Err); lost.Execution != "blind" || !errors.Is(lost, errLost) {
		t.Errorf("%+v", lost)
	}
	if last := s.batches[len(s.batches)-1]; len(s.batches) != 2 || !slices.Equal(executionsOf(last), []spi.ExecutionID{"e"}) {
		t.Errorf("sent again: %q", executionsOf(last))
	}
}

func TestABatchThatIsRefusedAsAWholeAnswersAsAWhole(t *testing.T) {
	invalid := &spi.InvalidArgumentError{Field: "appends", Rule: "is too much"}
	for _, c := range []struct {
		whole []error
		calls int
		want  error
	}{
		{[]error{invalid}, 1, invalid},
		{[]error{unavailable, invalid}, 2, invalid},
		{repeat(9, unavailable), 3, unavailable},
	} {
		s := &scripted{whole: c.whole}
		_, err := spi.AppendBatch(t.Context(), over(t, s, retry.Options{Tries: 3, Jitter: noWait}), spi.AppendBatchRequest{Appends: []spi.AppendRequest{to("e"), to("f")}})
		if !errors.Is(err, c.want) || s.calls != c.calls {
			t.Errorf("%d calls, %v", s.calls, err)
		}
	}
}

func TestARefusalOfTheRestOfABatchIsThatOfItsAppends(t *testing.T) {
	// The second append succeeds before the store is gone.
	s := &scripted{script: []error{unavailable, nil}, whole: []error{nil, unavailable, unavailable}}
	res, err := spi.AppendBatch(t.Context(), over(t, s, retry.Options{Tries: 3, Jitter: noWait}), spi.AppendBatchRequest{Appends: []spi.AppendRequest{to("e"), to("f")}})
	if err != nil || res.Results[1].Err != nil {
		t.Fatal(res, err)
	}
	if _, wrapped := res.Results[0].Err.(*spi.UnavailableError); !wrapped { //nolint:errorlint // a result has no OpError
		t.Errorf("%v", res.Results[0].Err)
	}
}

func TestABatchThatWaitsEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{script: []error{unavailable, ambiguous, nil}}
		store := over(t, s, retry.Options{Base: time.Hour, Cap: time.Hour, Within: 2 * time.Hour, Jitter: longest})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		res, err := spi.AppendBatch(ctx, store, spi.AppendBatchRequest{Appends: []spi.AppendRequest{to("busy"), to("lost"), to("done")}})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []error{context.Canceled, ambiguous, nil} {
			if !errors.Is(res.Results[i].Err, want) {
				t.Errorf("result %d is %v", i, res.Results[i].Err)
			}
		}
	})
}

// TestABatchComesToWhatItsAppendsWouldAlone compares a batch, whatever its appends meet,
// with each of them alone.
func TestABatchComesToWhatItsAppendsWouldAlone(t *testing.T) {
	outcomes := []error{nil, unavailable, ambiguous, &spi.ConflictError{}, &spi.TruncatedError{}, &spi.SlotMovingError{}}
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(rt, "appends")
		var req spi.AppendBatchRequest
		scripts := make(map[spi.ExecutionID][]error)
		for i := range n {
			a := to(spi.ExecutionID(fmt.Sprint("e", i)))
			a.ExpectedHead = rapid.SampledFrom([]int64{0, spi.AnyHead}).Draw(rt, "head")
			req.Appends = append(req.Appends, a)
			for _, k := range rapid.SliceOfN(rapid.IntRange(0, len(outcomes)-1), 5, 5).Draw(rt, "outcomes") {
				scripts[a.Execution] = append(scripts[a.Execution], outcomes[k])
			}
		}
		options := retry.Options{Tries: 5, Jitter: noWait}
		batched, err := spi.AppendBatch(t.Context(), over(t, &scripted{each: maps.Clone(scripts)}, options), req)
		if err != nil {
			rt.Fatal(err)
		}
		for i, a := range req.Appends {
			_, alone := spi.Append(t.Context(), over(t, &scripted{script: scripts[a.Execution]}, options), a)
			if got := batched.Results[i].Err; !errors.Is(alone, got) || (got == nil) != (alone == nil) {
				rt.Errorf("append %d: %v in the batch, %v alone", i, got, alone)
			}
		}
	})
}
