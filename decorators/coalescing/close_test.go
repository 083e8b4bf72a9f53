package coalescing_test

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/loomgate/loomgate/decorators/coalescing"
	"github.com/loomgate/loomgate/spi"
)

func TestCloseRefusesAppendsAndWaitsForEveryOneThatWasAccepted(t *testing.T) {
	play(t, coalescing.Options{Writers: 2}, func(s *stage) {
		first, second := s.occupy(), s.occupy()
		var calls []*call
		for n := range 300 { // more than one batch
			calls = append(calls, s.start(to(id(n))))
		}
		hot := to(id(0)) // one that has to wait for another
		hot.ExpectedHead = spi.AnyHead
		calls = append(calls, s.start(hot))

		closed := [2]bool{}
		for i := range closed {
			s.callers.Go(func() {
				if err := s.coalescer.Close(); err != nil {
					s.Error(err)
				}
				closed[i] = true
			})
		}
		synctest.Wait()
		refused := s.start(to("refused"))
		want[*spi.UnavailableError](s.T, refused.err)
		for s.pass(first); !calls[len(calls)-1].done; s.pass(s.next()) {
			if closed[0] || closed[1] {
				s.Fatal("closed before all appends are done")
			}
		}
		if closed[0] || closed[1] {
			s.Error("closed while the second writer is at work")
		}
		s.pass(second)
		if !closed[0] || !closed[1] {
			s.Error("not closed when all is done")
		}
		s.wantDone(calls...)
		s.wantHead(id(0), 2)
		s.wantHead(id(299), 1)
		s.wantHead("refused", 0)
		if err := s.coalescer.Close(); err != nil {
			s.Errorf("to close again: %v", err)
		}
	})
}

func TestAClosedLayerStillPassesOtherCalls(t *testing.T) {
	play(t, coalescing.Options{}, func(s *stage) {
		s.gate.Open()
		s.coalescer.Close()
		if _, err := spi.AppendIfUnchanged(s.Context(), s.store, spi.AppendIfUnchangedRequest{Execution: "e", Events: to("e").Events}); err != nil {
			s.Error(err)
		}
		if _, err := spi.AppendBatch(s.Context(), s.store, spi.AppendBatchRequest{Appends: []spi.AppendRequest{to("f")}}); err != nil {
			s.Error(err)
		}
		s.wantHead("e", 1)
		s.wantHead("f", 1)
	})
}

// TestCloseAmongAppendsLosesNone closes while many append: each is either refused with
// nothing changed or acknowledged and stored.
func TestCloseAmongAppendsLosesNone(t *testing.T) {
	inner := open(t)
	for round := range 200 {
		c, err := coalescing.New(inner, coalescing.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var callers sync.WaitGroup
		for n := range 8 {
			callers.Go(func() {
				e := id(round*8 + n)
				for head := int64(0); ; head++ {
					req := to(e)
					req.ExpectedHead = head
					if _, err := spi.Append(t.Context(), c.Store(), req); err != nil {
						want[*spi.UnavailableError](t, err)
						if res, err := spi.Head(t.Context(), inner, spi.HeadRequest{Execution: e}); err != nil || res.Head != head {
							t.Errorf("%d are acknowledged, %d stored (%v)", head, res.Head, err)
						}
						return
					}
				}
			})
		}
		c.Close()
		callers.Wait()
	}
}
