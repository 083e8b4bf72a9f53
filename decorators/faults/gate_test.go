package faults_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/loomgate/loomgate/decorators/faults"
	"github.com/loomgate/loomgate/spi"
)

// next returns the next call that a gate holds.
func next(t *testing.T, g *faults.Gate) *faults.Held {
	t.Helper()
	h, err := g.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// appendHeld begins an append, and returns when the gate holds it. Wait waits for its
// answer, which has to be a success.
func appendHeld(t *testing.T, s *spi.Store, g *faults.Gate, id spi.ExecutionID) (h *faults.Held, wait func()) {
	t.Helper()
	var call sync.WaitGroup
	call.Go(func() {
		if _, err := spi.Append(t.Context(), s, first(id)); err != nil {
			t.Error(err)
		}
	})
	return next(t, g), call.Wait
}

func TestAGateHoldsCallsBeforeTheyAreDone(t *testing.T) {
	gate := faults.NewGate()
	s := over(t, always(faults.Fault{Hold: gate}))
	e, eDone := appendHeld(t, s, gate, "e")
	f, fDone := appendHeld(t, s, gate, "f")
	if e.Call.Name != "e" || f.Call.Name != "f" {
		t.Errorf("held are %+v and %+v", e.Call, f.Call)
	}
	wantHead(t, "e", 0)
	wantHead(t, "f", 0)
	f.Pass()
	f.Pass() // to let it again is nothing
	fDone()
	wantHead(t, "e", 0)
	wantHead(t, "f", 1)
	e.Pass()
	eDone()
	wantHead(t, "e", 1)
}

func TestAnOpenGateHoldsNothing(t *testing.T) {
	gate := faults.NewGate()
	s := over(t, always(faults.Fault{Hold: gate}))
	_, done := appendHeld(t, s, gate, "e")
	gate.Open()
	gate.Open() // to open it again is nothing
	done()
	if _, err := spi.Append(t.Context(), s, first("f")); err != nil {
		t.Error(err)
	}
}

func TestAHeldCallWhoseContextEndsIsNotDone(t *testing.T) {
	gate := faults.NewGate()
	s := over(t, always(faults.Fault{Hold: gate}))
	for _, seen := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		var call sync.WaitGroup
		call.Go(func() {
			if _, err := spi.Append(ctx, s, first("e")); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		if seen {
			next(t, gate)
		}
		cancel()
		call.Wait()
		wantHead(t, "e", 0)
	}
}

func TestAHeldAnswerIsThatOfACallThatIsDone(t *testing.T) {
	gate := faults.NewGate()
	s := over(t, always(faults.Fault{HoldAnswer: gate}))
	ctx, cancel := context.WithCancel(t.Context())
	var call sync.WaitGroup
	call.Go(func() {
		_, err := spi.Append(ctx, s, first("e"))
		if lost := want[*spi.AmbiguousError](t, err); !errors.Is(lost, context.Canceled) {
			t.Error(lost)
		}
	})
	next(t, gate)
	wantHead(t, "e", 1)
	cancel() // the answer is lost
	call.Wait()

	call.Go(func() {
		if _, err := spi.Append(t.Context(), s, first("f")); err != nil {
			t.Error(err)
		}
	})
	next(t, gate).Pass()
	call.Wait()
}
