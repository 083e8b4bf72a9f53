package fair_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/conformance"
	"github.com/loomgate/loomgate/decorators/fair"
	"github.com/loomgate/loomgate/decorators/faults"
	"github.com/loomgate/loomgate/decorators/tenant"
	"github.com/loomgate/loomgate/spi"
)

func newMemory(tb testing.TB) *spi.Store {
	tb.Helper()
	s, err := memory.New()
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func TestConformance(t *testing.T) {
	open := conformance.PerTest(func(t *testing.T) *spi.Store { return newMemory(t) })
	conformance.Decorator(t, open, func(inner ...*spi.Store) (*spi.Store, error) {
		g, err := fair.New(inner[0], fair.Options{Slots: 2})
		if err != nil {
			return nil, err
		}
		return g.Store(), nil
	})
}

// A stage is a store behind a gate, whose calls it holds: nothing is timed.
type stage struct {
	*testing.T
	gate *fair.Gate
	hold *faults.Gate
	ctx  context.Context
}

func play(t *testing.T, o fair.Options, do func(*stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{T: t, hold: faults.NewGate()}
		inner, err := faults.New(newMemory(t), func(faults.Call) faults.Fault { return faults.Fault{Hold: s.hold} })
		if err != nil {
			t.Fatal(err)
		}
		if s.gate, err = fair.New(inner, o); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s.ctx = ctx
		do(s)
		s.hold.Open()
		synctest.Wait()
	})
}

func (s *stage) view(name spi.TenantName) *spi.Store {
	s.Helper()
	view, err := tenant.New(name, s.gate.Store())
	if err != nil {
		s.Fatal(err)
	}
	return view
}

// start begins a call of a tenant, and returns when it waits, or is under way.
func (s *stage) start(name spi.TenantName, call func(context.Context, *spi.Store) error) {
	view := s.view(name)
	go func() { _ = call(s.ctx, view) }()
	synctest.Wait()
}

// under returns the next call that is under way, and nil if no other is.
func (s *stage) under() *faults.Held {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, time.Millisecond) // of a clock that goes on when all wait
	defer cancel()
	h, err := s.hold.Next(ctx)
	if err != nil {
		return nil
	}
	return h
}

// all returns the calls that are under way and were not returned yet.
func (s *stage) all() (held []*faults.Held) {
	s.Helper()
	for h := s.under(); h != nil; h = s.under() {
		held = append(held, h)
	}
	return held
}

// pass lets a call end.
func pass(h *faults.Held) {
	h.Pass()
	synctest.Wait()
}

func appendTo(id spi.ExecutionID) func(context.Context, *spi.Store) error {
	return func(ctx context.Context, s *spi.Store) error {
		_, err := spi.Append(ctx, s, spi.AppendRequest{Execution: id, Events: []spi.Event{{ID: spi.NewEventID(), Kind: "k"}}})
		return err
	}
}

func head(ctx context.Context, s *spi.Store) error {
	_, err := spi.Head(ctx, s, spi.HeadRequest{Execution: "mine"})
	return err
}

func acquireFence(ctx context.Context, s *spi.Store) error {
	_, err := spi.AcquireFence(ctx, s, spi.AcquireFenceRequest{Execution: "mine"})
	return err
}

func TestAThousandAppendsOfOneTenantDelayAnotherUntilOneCallEnds(t *testing.T) {
	play(t, fair.Options{Slots: 8}, func(s *stage) {
		for i := range 1000 {
			s.start("flood", appendTo(spi.ExecutionID(fmt.Sprint(i))))
		}
		held := s.all()
		if len(held) != 6 { // of 8, a quarter is for fences, timers and leases
			s.Fatalf("%d appends are under way", len(held))
		}
		s.start("calm", head)
		if h := s.under(); h != nil {
			s.Fatalf("%+v is under way as well", h.Call)
		}
		pass(held[0])
		if h := s.under(); h == nil || h.Call.Method != "Head" {
			s.Errorf("the next call is %+v", h)
		}
	})
}

func TestTenantsTakeTurnsWhateverTheyHaveWaiting(t *testing.T) {
	play(t, fair.Options{Slots: 1}, func(s *stage) {
		s.start("first", head)
		held := s.under()
		for i := range 20 {
			s.start("a", appendTo(spi.ExecutionID(fmt.Sprint("a", i))))
		}
		for i := range 3 {
			s.start("b", appendTo(spi.ExecutionID(fmt.Sprint("b", i))))
		}
		s.start("c", appendTo("c0"))
		var order []string
		for range 8 {
			pass(held)
			if held = s.under(); held == nil {
				s.Fatal("nothing is under way")
			}
			order = append(order, held.Call.Name[len("1:a/"):])
		}
		if want := []string{"a0", "b0", "c0", "a1", "b1", "a2", "b2", "a3"}; !slices.Equal(order, want) {
			s.Errorf("in the order %q", order)
		}
	})
}

func TestNeitherClassKeepsTheOtherOut(t *testing.T) {
	for flood, c := range map[string]struct {
		flood, other func(context.Context, *spi.Store) error
	}{
		"of appends": {appendTo("e"), acquireFence},
		"of fences":  {acquireFence, head},
	} {
		play(t, fair.Options{Slots: 4}, func(s *stage) {
			for range 100 {
				s.start("one", c.flood)
			}
			if n := len(s.all()); n != 3 {
				s.Errorf("%s: %d calls are under way", flood, n)
			}
			s.start("one", c.other) // the same tenant's
			if h := s.under(); h == nil {
				s.Errorf("a flood %s keeps the other class out", flood)
			}
		})
	}
}

func TestWithOneSlotTheClassesTakeTurns(t *testing.T) {
	play(t, fair.Options{Slots: 1}, func(s *stage) {
		s.start("one", head)
		held := s.under()
		for range 5 {
			s.start("one", head)
			s.start("one", acquireFence)
		}
		var order []string
		for range 4 {
			pass(held)
			held = s.under()
			order = append(order, held.Call.Method)
		}
		if want := []string{"AcquireFence", "Head", "AcquireFence", "Head"}; !slices.Equal(order, want) {
			s.Errorf("in the order %q", order)
		}
	})
}

func TestWhoeverGivesUpHasChangedNothingAndKeepsNoSlot(t *testing.T) {
	play(t, fair.Options{Slots: 1}, func(s *stage) {
		s.start("one", head)
		held := s.under()
		ctx, cancel := context.WithCancel(s.ctx)
		gave := make(chan error, 1)
		view := s.view("two")
		go func() { gave <- appendTo("e")(ctx, view) }()
		synctest.Wait()
		cancel()
		if err := <-gave; !errors.Is(err, context.Canceled) {
			s.Error(err)
		}
		s.start("three", head)
		pass(held)
		if h := s.under(); h == nil || h.Call.Method != "Head" {
			s.Errorf("the next call is %+v", h)
		}
		if err := appendTo("e")(ctx, view); !errors.Is(err, context.Canceled) {
			s.Error(err)
		}
	})
}

func TestAppendsThatAreGatheredBelowAndOwnershipDoNotWait(t *testing.T) {
	play(t, fair.Options{Slots: 1, Gathered: true}, func(s *stage) {
		s.start("one", head)
		s.start("one", appendTo("e"))
		s.start("one", func(ctx context.Context, v *spi.Store) error {
			_, err := spi.GetOwnership(ctx, v, spi.GetOwnershipRequest{})
			return err
		})
		var methods []string
		for _, h := range s.all() {
			methods = append(methods, h.Call.Method)
		}
		if want := []string{"Head", "Append", "GetOwnership"}; !slices.Equal(methods, want) {
			s.Errorf("under way are %q", methods)
		}
	})
}

func TestMoreSlotsLetInWhoWaitsAndFewerLetGoOnWhatIsUnderWay(t *testing.T) {
	play(t, fair.Options{Slots: 1}, func(s *stage) {
		for range 9 {
			s.start("one", head)
		}
		held := s.all()
		s.gate.Resize(4)
		synctest.Wait()
		held = append(held, s.all()...)
		if len(held) != 3 {
			s.Errorf("%d calls are under way", len(held))
		}
		s.gate.Resize(0) // 1
		for i, h := range held {
			if i > 0 && s.under() != nil {
				s.Errorf("after %d calls have ended, another begins", i)
			}
			pass(h)
		}
		if s.under() == nil {
			s.Error("nothing is under way")
		}
	})
}

func TestAPanicGivesItsSlotBack(t *testing.T) {
	inner, err := faults.New(newMemory(t), func(c faults.Call) faults.Fault {
		if c.N == 1 {
			panic("broken")
		}
		return faults.Fault{}
	})
	if err != nil {
		t.Fatal(err)
	}
	gate, err := fair.New(inner, fair.Options{Slots: 1})
	if err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() { _ = recover() }()
		_ = head(t.Context(), gate.Store())
	}()
	if err := head(t.Context(), gate.Store()); err != nil {
		t.Error(err)
	}
}

// TestNoMoreIsUnderWayThanThereAreSlotsAndEveryCallComesToItsEnd plays calls of several
// tenants that end, and give up, in any order.
func TestNoMoreIsUnderWayThanThereAreSlotsAndEveryCallComesToItsEnd(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		slots := rapid.IntRange(1, 5).Draw(rt, "slots")
		steps := rapid.SliceOfN(rapid.IntRange(0, 9), 1, 60).Draw(rt, "steps")
		play(t, fair.Options{Slots: slots}, func(s *stage) {
			var held []*faults.Held
			var cancels []context.CancelFunc
			begun, ended := 0, make(chan struct{}, len(steps))
			for _, step := range steps {
				switch {
				case step < 6:
					view, call := s.view(spi.TenantName('a'+rune(step%3))), head
					if step%2 == 0 {
						call = acquireFence
					}
					ctx, cancel := context.WithCancel(s.ctx)
					cancels = append(cancels, cancel)
					begun++
					go func() {
						_ = call(ctx, view)
						ended <- struct{}{}
					}()
				case step < 8 && len(held) > 0:
					held[0].Pass()
					held = held[1:]
				case len(cancels) > 0:
					cancels[0]()
					cancels = cancels[1:]
				}
				synctest.Wait()
				held = append(held, s.all()...)
				if n := begun - len(ended); len(held) > 0 && n < 0 {
					rt.Fatalf("%d calls are left", n)
				}
			}
			s.hold.Open()
			for range begun {
				<-ended
			}
			for range slots { // every slot is free again
				s.start("z", head)
			}
		})
	})
}

func TestThereIsASlot(t *testing.T) {
	for _, slots := range []int{0, -1} {
		if _, err := fair.New(newMemory(t), fair.Options{Slots: slots}); err == nil {
			t.Errorf("%d slots are taken", slots)
		}
	}
	if _, err := fair.New(nil, fair.Options{Slots: 1}); err == nil {
		t.Error("no store is taken")
	}
}
