package coalescing_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/loomgate/loomgate/decorators/coalescing"
	"github.com/loomgate/loomgate/decorators/faults"
	"github.com/loomgate/loomgate/spi"
)

var oneWriter = coalescing.Options{Writers: 1}

// id returns a numbered execution.
func id(n int) spi.ExecutionID { return spi.ExecutionID(fmt.Sprintf("e%04d", n)) }

func TestAnAppendByItselfIsDoneAtOnceAndInItsCallersContext(t *testing.T) {
	play(t, oneWriter, func(s *stage) {
		ctx, cancel := context.WithCancel(s.Context())
		c := s.startIn(ctx, to("e"))
		if h := s.next(); h.Call.Method != "Append" {
			s.Errorf("it is done by %s", h.Call.Method)
		}
		cancel()
		if s.callers.Wait(); c.err == nil {
			s.Error("the store does not see the end of the caller's context")
		}
		s.wantHead("e", 0)
	})
}

func TestAppendsThatComeWhileTheWritersWorkBecomeOneBatch(t *testing.T) {
	for writers := 1; writers <= 3; writers++ {
		play(t, coalescing.Options{Writers: writers}, func(s *stage) {
			var atWork []*faults.Held
			for range writers {
				atWork = append(atWork, s.occupy())
			}
			var calls []*call
			var ids []spi.ExecutionID
			for n := range 10 {
				calls, ids = append(calls, s.start(to(id(n)))), append(ids, id(n))
			}
			if len(s.began) != writers {
				s.Fatalf("%d calls for %d writers", len(s.began), writers)
			}
			s.pass(atWork[0])
			h := s.next()
			if h.Call.Method != "AppendBatch" || !slices.Equal(executionsOf(h.Call), ids) {
				s.Errorf("%s to %q", h.Call.Method, executionsOf(h.Call))
			}
			s.pass(h)
			s.wantDone(calls...)
			for n := range 10 {
				s.wantHead(id(n), 1)
			}
		})
	}
}

func TestABatchIsWatchedUntilItsCallersHaveTheirAnswersAndDoneInTheContextOfWhoWatches(t *testing.T) {
	type name struct{}
	var stop context.CancelFunc
	var seen string
	var calls []*call
	ended := 0
	watch := func(ctx context.Context, callers []context.Context) (context.Context, func()) {
		for _, c := range callers {
			seen += c.Value(name{}).(string)
		}
		ctx, stop = context.WithCancel(ctx)
		return ctx, func() {
			ended++
			for _, c := range calls {
				if c.done {
					t.Error("a caller has its answer before the batch is done")
				}
			}
		}
	}
	play(t, coalescing.Options{Writers: 1, Watch: watch}, func(s *stage) {
		first := s.occupy() // by itself: that is no batch
		for _, of := range []string{"a", "b", "c"} {
			calls = append(calls, s.startIn(context.WithValue(s.Context(), name{}, of), to(spi.ExecutionID(of))))
		}
		s.pass(first)
		s.next()
		if seen != "abc" || ended != 0 {
			s.Errorf("seen are the callers %q, and %d batches have ended", seen, ended)
		}
		stop()
		synctest.Wait()
		for _, c := range calls {
			want[*spi.UnavailableError](s.T, c.err)
		}
		if ended != 1 {
			s.Errorf("%d batches have ended", ended)
		}
	})
}

func TestAnAppendThatFindsAWriterFreeIsDoneAtOnce(t *testing.T) {
	play(t, coalescing.Options{Writers: 2}, func(s *stage) {
		s.occupy()
		s.start(to("e"))
		if got := executionsOf(s.next().Call); !slices.Equal(got, []spi.ExecutionID{"e"}) {
			s.Errorf("under way is an append to %q", got)
		}
	})
}

func TestABatchHoldsNoMoreThan256Appends(t *testing.T) {
	play(t, oneWriter, func(s *stage) {
		first := s.occupy()
		for n := range 600 {
			s.start(to(id(n)))
		}
		s.pass(first)
		for _, size := range []int{256, 256, 88} {
			h := s.next()
			if got := len(executionsOf(h.Call)); got != size {
				s.Errorf("a batch of %d, not %d", got, size)
			}
			s.pass(h)
		}
	})
}

func TestABatchHoldsNoMoreThanOneMebibyteAndALargerAppendGoesAlone(t *testing.T) {
	sized := func(id spi.ExecutionID, bytes int) spi.AppendRequest {
		req := to(id)
		req.Events[0].Payload = make([]byte, bytes-len(req.Events[0].Kind))
		return req
	}
	play(t, oneWriter, func(s *stage) {
		first := s.occupy()
		half := coalescing.MaxBytes / 2
		for _, req := range []spi.AppendRequest{
			sized("a", half), sized("b", half), sized("c", 100), // "a" and "b" are a full batch
			sized("large", 2*coalescing.MaxBytes), sized("d", half), sized("e", half+1), sized("f", 100),
		} {
			s.start(req)
		}
		s.pass(first)
		for _, want := range [][]spi.ExecutionID{{"a", "b"}, {"c"}, {"large"}, {"d"}, {"e", "f"}} {
			h := s.next()
			if got := executionsOf(h.Call); !slices.Equal(got, want) {
				s.Errorf("a batch of %q, not %q", got, want)
			}
			s.pass(h)
		}
	})
}

func TestAppendsToOneExecutionGoOneAtATimeInTheirOrder(t *testing.T) {
	play(t, coalescing.Options{Writers: 2}, func(s *stage) {
		first, second := s.occupy(), s.occupy()
		var calls []*call
		for range 3 {
			req := to("hot")
			req.ExpectedHead = spi.AnyHead
			calls = append(calls, s.start(req))
			s.start(to(id(len(calls))))
		}
		s.pass(first)
		h := s.next()
		if got := executionsOf(h.Call); !slices.Equal(got, []spi.ExecutionID{"hot", id(1), id(2), id(3)}) {
			s.Errorf("the first batch holds %q", got)
		}
		s.pass(second)
		if len(s.began) != 3 {
			s.Errorf("%d calls: an append to an execution began beside another one", len(s.began))
		}
		s.pass(h)
		for range 2 {
			h := s.next()
			if got := executionsOf(h.Call); !slices.Equal(got, []spi.ExecutionID{"hot"}) {
				s.Errorf("then %q", got)
			}
			s.pass(h)
		}
		s.wantDone(calls...)
		for i, c := range calls {
			if c.res.FirstSeq != int64(i+1) {
				s.Errorf("append %d is event %d", i, c.res.FirstSeq)
			}
		}
	})
}

// TestAFloodOfOneTenantDelaysAnotherByOneBatch counts batches: no clock is in it.
func TestAFloodOfOneTenantDelaysAnotherByOneBatch(t *testing.T) {
	play(t, coalescing.Options{Writers: 2}, func(s *stage) {
		s.occupy()
		held := s.occupy()
		flood, err := spi.ScopeOf("flood")
		if err != nil {
			s.Fatal(err)
		}
		for n := range 1500 {
			s.start(to(spi.ExecutionID(flood.Prefix()) + id(n)))
		}
		calm, err := spi.ScopeOf("calm")
		if err != nil {
			s.Fatal(err)
		}
		mine := spi.ExecutionID(calm.Prefix() + "mine")
		c := s.start(to(mine))
		s.pass(held)
		if h := s.next(); !slices.Contains(executionsOf(h.Call), mine) {
			s.Errorf("the next batch of %d leaves it out", len(executionsOf(h.Call)))
		} else {
			s.pass(h)
		}
		s.wantDone(c)
	})
}

// TestTenantsTakeTurns draws what each of several tenants has waiting, and checks that
// no batch gives one of them two appends more than another one that waits.
func TestTenantsTakeTurns(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		waiting := rapid.SliceOfN(rapid.IntRange(0, 300), 1, 6).Draw(rt, "waiting")
		play(t, oneWriter, func(s *stage) {
			first := s.occupy()
			scopes := make([]spi.Scope, len(waiting))
			for k, n := range waiting {
				scopes[k], _ = spi.ScopeOf(spi.TenantName(fmt.Sprint("tenant-", k)))
				for i := range n {
					s.start(to(spi.ExecutionID(scopes[k].Prefix()) + id(i)))
				}
			}
			s.pass(first)
			for left := slices.Clone(waiting); slices.Max(left) > 0; {
				h := s.next()
				got := make([]int, len(left))
				for _, e := range executionsOf(h.Call) {
					for k, scope := range scopes {
						if _, ours := spi.Unscoped(scope, e); ours {
							got[k]++
						}
					}
				}
				for k := range left {
					for other := range left {
						if got[k] < left[k] && got[other] > got[k]+1 {
							rt.Fatalf("%v wait, and a batch takes %v", left, got)
						}
					}
				}
				for k := range left {
					left[k] -= got[k]
				}
				s.pass(h)
			}
		})
	})
}
