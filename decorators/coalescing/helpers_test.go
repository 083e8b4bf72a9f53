package coalescing_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/decorators/coalescing"
	"github.com/loomgate/loomgate/decorators/faults"
	"github.com/loomgate/loomgate/spi"
)

// A stage is a coalescer over a store in memory whose appends are held at a gate. It
// plays in a bubble: start and pass return when everybody has come as far as he can.
type stage struct {
	*testing.T
	coalescer *coalescing.Coalescer
	store     *spi.Store
	inner     *spi.Store
	gate      *faults.Gate
	plan      faults.Plan // of appends and batches, beside the gate; nil: no faults

	began   []faults.Call // appends and batches that came as far as the gate
	callers sync.WaitGroup
}

// play runs a test on a stage. At its end no goroutine of the layer may be left: the
// bubble would not end.
func play(t *testing.T, o coalescing.Options, test func(s *stage)) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{T: t, gate: faults.NewGate()}
		var err error
		if s.inner, err = memory.New(); err != nil {
			t.Fatal(err)
		}
		below, err := faults.New(s.inner, func(c faults.Call) faults.Fault {
			if c.Method != "Append" && c.Method != "AppendBatch" {
				return faults.Fault{}
			}
			s.began = append(s.began, c)
			var f faults.Fault
			if s.plan != nil {
				f = s.plan(c)
			}
			f.Hold = s.gate
			return f
		})
		if err != nil {
			t.Fatal(err)
		}
		if s.coalescer, err = coalescing.New(below, o); err != nil {
			t.Fatal(err)
		}
		s.store = s.coalescer.Store()
		test(s)
		s.gate.Open()
		s.callers.Wait()
	})
}

// A call is an append that somebody waits for.
type call struct {
	res  spi.AppendResponse
	err  error
	done bool
}

// start begins an append.
func (s *stage) start(req spi.AppendRequest) *call { return s.startIn(s.Context(), req) }

func (s *stage) startIn(ctx context.Context, req spi.AppendRequest) *call {
	c := &call{}
	s.callers.Go(func() {
		c.res, c.err = spi.Append(ctx, s.store, req)
		c.done = true
	})
	synctest.Wait()
	return c
}

// next returns the next call that the gate holds, when nothing else is under way. There
// has to be one.
func (s *stage) next() *faults.Held {
	s.Helper()
	h, err := s.gate.Next(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	synctest.Wait()
	return h
}

// pass lets a held call go.
func (s *stage) pass(h *faults.Held) {
	h.Pass()
	synctest.Wait()
}

// occupy lets a writer be at work on an append that the gate holds.
func (s *stage) occupy() *faults.Held {
	s.Helper()
	s.start(to(spi.ExecutionID(fmt.Sprint("occupied-", len(s.began)))))
	return s.next()
}

func (s *stage) wantHead(id spi.ExecutionID, want int64) {
	s.Helper()
	res, err := spi.Head(s.Context(), s.inner, spi.HeadRequest{Execution: id})
	if err != nil || res.Head != want {
		s.Errorf("the head of %q is %d, not %d (%v)", id, res.Head, want, err)
	}
}

// wantDone checks that calls have succeeded.
func (s *stage) wantDone(calls ...*call) {
	s.Helper()
	for i, c := range calls {
		if !c.done || c.err != nil {
			s.Errorf("call %d: ended %v, %v", i, c.done, c.err)
		}
	}
}

// to returns a first append to an execution, of one event.
func to(id spi.ExecutionID) spi.AppendRequest {
	return spi.AppendRequest{Execution: id, Events: []spi.Event{{ID: spi.NewEventID(), Kind: "Noted"}}}
}

// executionsOf returns what a call appends to.
func executionsOf(c faults.Call) (ids []spi.ExecutionID) {
	switch req := c.Request.(type) {
	case spi.AppendRequest:
		ids = append(ids, req.Execution)
	case spi.AppendBatchRequest:
		for _, a := range req.Appends {
			ids = append(ids, a.Execution)
		}
	}
	return ids
}

func want[E error](t *testing.T, err error) E {
	t.Helper()
	e, ok := errors.AsType[E](err)
	if !ok {
		t.Fatalf("the error is %v, not a %T", err, e)
	}
	return e
}
