package stack

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/backends/postgres"
	"github.com/loomgate/loomgate/decorators/faults"
	"github.com/loomgate/loomgate/spi"
)

// A patient is a shard whose answers a test decides.
type patient struct {
	*testing.T
	store  *spi.Store
	answer faults.Fault
	calls  int // that have reached the database
}

func newPatient(t *testing.T) *patient {
	t.Helper()
	p := &patient{T: t}
	inner, err := memory.New()
	if err != nil {
		t.Fatal(err)
	}
	ill, err := faults.New(inner, func(faults.Call) faults.Fault { p.calls++; return p.answer })
	if err != nil {
		t.Fatal(err)
	}
	pending, store, err := newPending("a", spi.AllCaps, time.Second, func(context.Context) (*spi.Store, func(), error) { return ill, func() {}, nil })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pending.close)
	p.store = store
	return p
}

// call makes a call, and reports whether it has reached the database.
func (p *patient) call(ctx context.Context) (reached bool, err error) {
	before := p.calls
	_, err = spi.Head(ctx, p.store, spi.HeadRequest{Execution: "e"})
	return p.calls > before, err
}

func TestAShardThatDoesNotAnswerIsLeftAloneAndTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPatient(t)
		gone := faults.Fault{Refuse: &spi.UnavailableError{Cause: errors.New("connection refused")}}
		p.answer = gone
		for range breakAfter {
			if reached, _ := p.call(t.Context()); !reached {
				t.Fatal("it is left alone too early")
			}
		}
		for range 3 { // three times it is still gone
			reached, err := p.call(t.Context())
			if _, ok := errors.AsType[*spi.UnavailableError](err); !ok || reached || !errors.Is(err, errBroken) {
				t.Fatalf("a call that should not be tried: reached %v, %v", reached, err)
			}
			time.Sleep(breakFor + 1)
			if reached, _ := p.call(t.Context()); !reached {
				t.Fatal("it is not tried again")
			}
		}
		time.Sleep(breakFor + 1)
		p.answer = faults.Fault{}
		for range 2 * breakAfter {
			if reached, err := p.call(t.Context()); !reached || err != nil {
				t.Fatalf("it is back: reached %v, %v", reached, err)
			}
		}
	})
}

func TestOnlySilenceBreaks(t *testing.T) {
	for name, refuse := range map[string]error{
		"a full disk":         &spi.UnavailableError{Cause: postgres.ErrDiskFull},
		"an old writer":       &spi.UnavailableError{Cause: postgres.ErrOldWriter},
		"a read-only shard":   &spi.UnavailableError{Cause: postgres.ErrReadOnly},
		"a conflict":          &spi.ConflictError{Execution: "e"},
		"a stale map":         &spi.MisroutedError{},
		"callers who gave up": context.Canceled,
		"callers in a hurry":  context.DeadlineExceeded,
	} {
		t.Run(name, func(t *testing.T) {
			p := newPatient(t)
			p.answer = faults.Fault{Refuse: refuse}
			for i := range 3 * breakAfter {
				if reached, err := p.call(t.Context()); !reached {
					t.Fatalf("call %d is not tried: %v", i, err)
				}
			}
		})
	}
}

func TestASuccessBetweenFailuresStartsTheCountAnew(t *testing.T) {
	p := newPatient(t)
	for i := range 5 * breakAfter {
		p.answer = faults.Fault{Refuse: &spi.UnavailableError{Cause: errors.New("refused")}}
		if i%breakAfter == 0 {
			p.answer = faults.Fault{}
		}
		if reached, err := p.call(t.Context()); !reached {
			t.Fatalf("call %d is not tried: %v", i, err)
		}
	}
}

func TestCallsThatHangBreakAsWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPatient(t)
		p.answer = faults.Fault{Hang: true}
		for range breakAfter {
			ctx, cancel := context.WithTimeout(t.Context(), slow)
			if reached, _ := p.call(ctx); !reached {
				t.Fatal("it is left alone too early")
			}
			cancel()
		}
		if reached, err := p.call(t.Context()); reached || !errors.Is(err, errBroken) {
			t.Errorf("reached %v, %v", reached, err)
		}
	})
}
