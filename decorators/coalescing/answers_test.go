package coalescing_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loomgate/loomgate/decorators/coalescing"
	"github.com/loomgate/loomgate/decorators/faults"
	"github.com/loomgate/loomgate/spi"
)

var errPlanned = errors.New("planned")

// gather lets appends wait behind one that is held, and does them as one batch, with
// the faults of a plan.
func (s *stage) gather(plan faults.Plan, reqs ...spi.AppendRequest) (calls []*call) {
	s.Helper()
	s.occupy()
	for _, req := range reqs {
		calls = append(calls, s.start(req))
	}
	s.plan = plan
	s.gate.Open()
	synctest.Wait()
	if got := len(executionsOf(s.began[1])); got != len(reqs) {
		s.Fatalf("a batch of %d, not %d", got, len(reqs))
	}
	return calls
}

func always(f faults.Fault) faults.Plan { return func(faults.Call) faults.Fault { return f } }

func TestARefusedAppendOfABatchFailsAlone(t *testing.T) {
	play(t, oneWriter, func(s *stage) {
		late := to("late")
		late.ExpectedHead = 7
		calls := s.gather(nil, to("a"), late, to("b"))
		s.wantDone(calls[0], calls[2])
		if conflict := want[*spi.ConflictError](s.T, calls[1].err); conflict.Execution != "late" {
			s.Errorf("%+v", conflict)
		}
	})
}

func TestAnswersGoToTheirOwnCallers(t *testing.T) {
	play(t, oneWriter, func(s *stage) {
		var reqs []spi.AppendRequest
		for n := range 20 {
			req := to(id(n))
			for range n {
				req.Events = append(req.Events, to("").Events...)
			}
			reqs = append(reqs, req)
		}
		for n, c := range s.gather(nil, reqs...) {
			if c.err != nil || c.res.Head != int64(n+1) {
				s.Errorf("append %d: %+v, %v", n, c.res, c.err)
			}
		}
	})
}

func TestAnAmbiguousCommitIsAmbiguousForEachAppend(t *testing.T) {
	for _, whole := range []bool{false, true} {
		play(t, oneWriter, func(s *stage) {
			for i, c := range s.gather(always(faults.Fault{Lose: errPlanned, Whole: whole}), to("a"), to("b")) {
				own := []spi.ExecutionID{"a", "b"}[i]
				if lost := want[*spi.AmbiguousError](s.T, c.err); lost.Execution != own || !errors.Is(lost, errPlanned) {
					s.Errorf("%+v", lost)
				}
				s.wantHead(own, 1)
			}
		})
	}
}

func TestAStoreThatIsUnavailableIsSoForEachAppendOfABatch(t *testing.T) {
	play(t, oneWriter, func(s *stage) {
		for _, c := range s.gather(always(faults.Fault{Refuse: &spi.UnavailableError{Cause: errPlanned}}), to("a"), to("b")) {
			want[*spi.UnavailableError](s.T, c.err)
		}
		if len(s.began) != 2 {
			s.Errorf("the batch is tried again: %d calls", len(s.began))
		}
	})
}

// TestABatchThatIsRefusedAsAWholeIsDoneOneByOne is about a store that says of a batch
// what is so of one append: the others land, and nobody learns of another's.
func TestABatchThatIsRefusedAsAWholeIsDoneOneByOne(t *testing.T) {
	for _, refusal := range []error{
		&spi.InvalidArgumentError{Field: "appends[1].events[0].kind", Rule: "is unheard of"},
		&spi.ConflictError{Execution: "bad", Head: 1},
		&spi.MisroutedError{},
	} {
		play(t, oneWriter, func(s *stage) {
			bad := to("bad")
			bad.ExpectedHead = 7
			calls := s.gather(func(c faults.Call) (f faults.Fault) {
				if c.Method == "AppendBatch" {
					f.Refuse = refusal
				}
				return f
			}, to("a"), bad, to("b"))
			s.wantDone(calls[0], calls[2])
			if conflict := want[*spi.ConflictError](s.T, calls[1].err); conflict.Execution != "bad" || conflict.Head != 0 {
				s.Errorf("%+v", conflict)
			}
		})
	}
}

func TestACallerThatGivesUpWhileItsAppendWaitsHasChangedNothing(t *testing.T) {
	play(t, oneWriter, func(s *stage) {
		ctx, cancel := context.WithCancel(s.Context())
		first := s.occupy()
		before := s.start(to("before"))
		given := s.startIn(ctx, to("given-up"))
		again := to("given-up") // behind it
		behind := s.start(again)
		after := s.start(to("after"))
		cancel()
		synctest.Wait()
		if !given.done || !errors.Is(given.err, context.Canceled) || isAmbiguous(given.err) {
			s.Errorf("ended %v, %v", given.done, given.err)
		}
		s.pass(first)
		h := s.next()
		if got := executionsOf(h.Call); !slices.Equal(got, []spi.ExecutionID{"before", "after", "given-up"}) {
			s.Errorf("the batch holds %q", got)
		}
		s.pass(h)
		s.wantDone(before, behind, after)
		s.wantHead("given-up", 1)
	})
}

func TestACallerThatGivesUpBehindAnotherAppendToItsExecutionHasChangedNothing(t *testing.T) {
	play(t, oneWriter, func(s *stage) {
		ctx, cancel := context.WithCancel(s.Context())
		first := s.start(to("e"))
		held := s.next()
		given := s.startIn(ctx, to("e"))
		next := to("e")
		next.ExpectedHead = 1
		last := s.start(next)
		cancel()
		synctest.Wait()
		if !errors.Is(given.err, context.Canceled) || isAmbiguous(given.err) {
			s.Error(given.err)
		}
		s.pass(held)
		s.pass(s.next())
		s.wantDone(first, last)
		s.wantHead("e", 2)
	})
}

func TestACallerThatGivesUpWhileItsAppendIsUnderWayGetsAnAmbiguousErrorAtOnce(t *testing.T) {
	play(t, oneWriter, func(s *stage) {
		ctx, cancel := context.WithCancel(s.Context())
		first := s.occupy()
		req := to("given-up")
		req.Events[0].Payload = []byte("as it was")
		req.Events[0].Metadata = map[string]string{"it": "was"}
		given, other := s.startIn(ctx, req), s.start(to("other"))
		s.pass(first)
		h := s.next()
		cancel()
		synctest.Wait()
		if lost := want[*spi.AmbiguousError](s.T, given.err); lost.Execution != "given-up" || !errors.Is(lost, context.Canceled) {
			s.Errorf("%+v", lost)
		}
		// What the caller brought is its own again.
		copy(req.Events[0].Payload, "scribbled")
		req.Events[0].Metadata["it"] = "scribbled"
		req.Events[0].Kind = "Scribbled"
		s.pass(h)
		s.wantDone(other)
		log, err := spi.Read(s.Context(), s.inner, spi.ReadRequest{Execution: "given-up", Limit: 9})
		if err != nil || len(log.Events) != 1 {
			s.Fatal(log, err)
		}
		if e := log.Events[0]; string(e.Payload) != "as it was" || e.Metadata["it"] != "was" || e.Kind != "Noted" {
			s.Errorf("stored is %+v", e)
		}
	})
}

func isAmbiguous(err error) bool {
	_, ok := errors.AsType[*spi.AmbiguousError](err)
	return ok
}

func TestABatchOutlivesACallerAndEndsWithTheLastOfThem(t *testing.T) {
	play(t, coalescing.Options{Writers: 1, Timeout: time.Hour}, func(s *stage) {
		begin := time.Now()
		short, cancel := context.WithTimeout(s.Context(), time.Second)
		defer cancel()
		long, cancel := context.WithTimeout(s.Context(), time.Minute)
		defer cancel()
		first := s.occupy()
		a, b := s.startIn(short, to("a")), s.startIn(long, to("b"))
		s.pass(first)
		s.next() // the batch, which is never let go
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !a.done || !isAmbiguous(a.err) || b.done {
			s.Errorf("%v, %v", a.err, b.err)
		}
		s.start(to("c"))
		s.next() // the writer is free again
		if passed := time.Since(begin); passed != time.Minute || !b.done {
			s.Errorf("the batch ends after %v", passed)
		}
	})
}

func TestABatchOfCallersThatWaitForEverEndsWithItsTimeout(t *testing.T) {
	play(t, coalescing.Options{Writers: 1, Timeout: time.Minute}, func(s *stage) {
		first := s.occupy()
		a, b := s.start(to("a")), s.start(to("b"))
		s.pass(first)
		s.next() // the batch, which is never let go
		begin := time.Now()
		s.start(to("c"))
		s.next()
		if passed := time.Since(begin); passed != time.Minute {
			s.Errorf("the batch ends after %v", passed)
		}
		for _, c := range []*call{a, b} {
			want[*spi.UnavailableError](s.T, c.err)
			if errors.Is(c.err, context.DeadlineExceeded) {
				s.Errorf("the caller's context has not ended: %v", c.err)
			}
		}
	})
}

func TestAPanicBelowIsAmbiguousForEveryAppendUnderWayAndTheLayerGoesOn(t *testing.T) {
	play(t, oneWriter, func(s *stage) {
		calls := s.gather(func(faults.Call) faults.Fault { panic("planned") }, to("a"), to("b"))
		calls = append(calls, s.start(to("c"))) // by itself
		for i, c := range calls {
			if lost := want[*spi.AmbiguousError](s.T, c.err); lost.Execution != []spi.ExecutionID{"a", "b", "c"}[i] || !strings.Contains(lost.Error(), "panic: planned") {
				s.Errorf("%+v", lost)
			}
		}
		s.plan = nil
		s.wantDone(s.start(to("d")))
	})
}

func TestAGoroutineThatIsEndedBelowIsAmbiguousForEveryAppendUnderWayAndTheLayerGoesOn(t *testing.T) {
	play(t, oneWriter, func(s *stage) {
		for i, c := range s.gather(func(faults.Call) faults.Fault { runtime.Goexit(); return faults.Fault{} }, to("a"), to("b")) {
			if lost := want[*spi.AmbiguousError](s.T, c.err); lost.Execution != []spi.ExecutionID{"a", "b"}[i] {
				s.Errorf("%+v", lost)
			}
		}
		s.start(to("c")) // by itself: it is its caller's goroutine that ends
		s.plan = nil
		s.wantDone(s.start(to("d")))
	})
}

// miscounting is a store that forgets results.
type miscounting struct{ spi.EventBackend }

func (miscounting) AppendBatch(context.Context, spi.AppendBatchRequest) (spi.AppendBatchResponse, error) {
	return spi.AppendBatchResponse{Results: make([]spi.AppendResult, 1)}, nil
}

func (miscounting) Append(ctx context.Context, _ spi.AppendRequest) (res spi.AppendResponse, _ error) {
	<-ctx.Done()
	return res, ctx.Err()
}

func TestABatchWithoutAResultForEachAppendIsAmbiguousForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, err := spi.Open(spi.Backend{Events: miscounting{}})
		if err != nil {
			t.Fatal(err)
		}
		c, err := coalescing.New(inner, oneWriter)
		if err != nil {
			t.Fatal(err)
		}
		s := &stage{T: t, store: c.Store()}
		ctx, cancel := context.WithCancel(t.Context())
		s.startIn(ctx, to("first")) // holds the writer until it is canceled
		calls := []*call{s.start(to("a")), s.start(to("b"))}
		cancel()
		synctest.Wait()
		for i, c := range calls {
			if lost := want[*spi.AmbiguousError](t, c.err); lost.Execution != []spi.ExecutionID{"a", "b"}[i] {
				t.Errorf("%+v", lost)
			}
		}
	})
}
