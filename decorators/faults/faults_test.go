package faults_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/conformance"
	"github.com/loomgate/loomgate/decorators/faults"
	"github.com/loomgate/loomgate/spi"
)

// open gives each test a store in memory of its own.
var open = conformance.PerTest(func(t *testing.T) *spi.Store {
	s, err := memory.New()
	if err != nil {
		t.Fatal(err)
	}
	return s
})

// over returns the test's store with the faults of a plan.
func over(t *testing.T, plan faults.Plan) *spi.Store {
	t.Helper()
	s, err := faults.New(open(t), plan)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// always plans one fault for every call.
func always(f faults.Fault) faults.Plan { return func(faults.Call) faults.Fault { return f } }

var errPlanned = errors.New("planned")

func first(id spi.ExecutionID) spi.AppendRequest {
	return spi.AppendRequest{Execution: id, Events: []spi.Event{{ID: spi.NewEventID(), Kind: "Noted"}}}
}

// wantHead checks how many events an execution has, below the faults.
func wantHead(t *testing.T, id spi.ExecutionID, want int64) {
	t.Helper()
	res, err := spi.Head(context.WithoutCancel(t.Context()), open(t), spi.HeadRequest{Execution: id})
	if err != nil || res.Head != want {
		t.Errorf("the head of %q is %d, not %d (%v)", id, res.Head, want, err)
	}
}

func want[E error](t *testing.T, err error) E {
	t.Helper()
	e, ok := errors.AsType[E](err)
	if !ok {
		t.Fatalf("the error is %v, not a %T", err, e)
	}
	return e
}

func TestConformanceWithoutFaults(t *testing.T) {
	conformance.Decorator(t, open, func(inner ...*spi.Store) (*spi.Store, error) { return faults.New(inner[0], nil) })
}

func TestARefusedCallIsNotDone(t *testing.T) {
	_, err := spi.Append(t.Context(), over(t, always(faults.Fault{Refuse: errPlanned})), first("e"))
	if !errors.Is(err, errPlanned) {
		t.Error(err)
	}
	wantHead(t, "e", 0)
}

func TestALostAppendIsDoneAndAmbiguousForItsExecution(t *testing.T) {
	_, err := spi.Append(t.Context(), over(t, always(faults.Fault{Lose: errPlanned})), first("e"))
	if lost := want[*spi.AmbiguousError](t, err); lost.Execution != "e" || !errors.Is(lost, errPlanned) {
		t.Errorf("%+v", lost)
	}
	wantHead(t, "e", 1)
}

func TestACallThatHangsEndsWithItsContextAndIsNotDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		begin := time.Now()
		_, err := spi.Append(ctx, over(t, always(faults.Fault{Hang: true})), first("e"))
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != time.Hour {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		wantHead(t, "e", 0)
	})
}

func TestADelayComesBeforeTheCallAndEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := over(t, always(faults.Fault{Delay: time.Minute}))
		begin := time.Now()
		if _, err := spi.Append(t.Context(), s, first("e")); err != nil || time.Since(begin) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := spi.Append(ctx, s, first("f")); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		wantHead(t, "e", 1)
		wantHead(t, "f", 0)
	})
}

func TestThePlanDoesNotHearOfACallWhoseContextHasEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := over(t, func(c faults.Call) faults.Fault {
		t.Errorf("the plan is asked about %s", c.Method)
		return faults.Fault{Lose: errPlanned}
	})
	batch := spi.AppendBatchRequest{Appends: []spi.AppendRequest{first("e")}}
	_, single := spi.Append(ctx, s, first("e"))
	_, batched := spi.AppendBatch(ctx, s, batch)
	if !errors.Is(single, context.Canceled) || !errors.Is(batched, context.Canceled) {
		t.Errorf("%v, %v", single, batched)
	}
}

func TestALostBatchIsAmbiguousForEachOfItsAppends(t *testing.T) {
	s := over(t, always(faults.Fault{Lose: errPlanned}))
	res, err := spi.AppendBatch(t.Context(), s, spi.AppendBatchRequest{Appends: []spi.AppendRequest{first("e"), first("f")}})
	if err != nil || len(res.Results) != 2 {
		t.Fatal(res, err)
	}
	for i, id := range []spi.ExecutionID{"e", "f"} {
		if lost := want[*spi.AmbiguousError](t, res.Results[i].Err); lost.Execution != id {
			t.Errorf("%+v", lost)
		}
		wantHead(t, id, 1)
	}
}

func TestALostBatchIsAmbiguousAsAWholeIfThePlanSaysSo(t *testing.T) {
	s := over(t, always(faults.Fault{Lose: errPlanned, Whole: true}))
	_, err := spi.AppendBatch(t.Context(), s, spi.AppendBatchRequest{Appends: []spi.AppendRequest{first("e")}})
	if lost := want[*spi.AmbiguousError](t, err); !errors.Is(lost, errPlanned) {
		t.Errorf("%+v", lost)
	}
	wantHead(t, "e", 1)
}

func TestAFaultHitsSomeAppendsOfABatchAndTheOthersAreDone(t *testing.T) {
	hit := func(id spi.ExecutionID) bool { return id == "refused" || id == "lost" }
	s := over(t, faults.Script(
		faults.Step{Method: "AppendBatch", N: 1, Fault: faults.Fault{Refuse: errPlanned, Only: hit}},
		faults.Step{Method: "AppendBatch", N: 2, Fault: faults.Fault{Lose: errPlanned, Only: hit}},
	))
	for _, c := range []struct {
		hit  spi.ExecutionID
		head int64
	}{{"refused", 0}, {"lost", 1}} {
		before, after := "before-"+c.hit, "past-"+c.hit
		res, err := spi.AppendBatch(t.Context(), s, spi.AppendBatchRequest{Appends: []spi.AppendRequest{first(before), first(c.hit), first(after)}})
		if err != nil {
			t.Fatal(err)
		}
		if res.Results[0].Err != nil || !errors.Is(res.Results[1].Err, errPlanned) || res.Results[2].Err != nil {
			t.Errorf("%+v", res.Results)
		}
		wantHead(t, before, 1)
		wantHead(t, c.hit, c.head)
		wantHead(t, after, 1)
	}
}
