package retry

import (
	"context"
	"errors"
	"time"

	"github.com/loomgate/loomgate/spi"
)

// A rule is what holds of a request once a try of it is lost: nobody knows whether it
// took effect, or will.
type rule[R any] struct {
	// again says that the request takes effect once, however often it is sent.
	again bool

	// settles reports whether an error says what has become of the lost try. Where it
	// is nil, none does.
	settles func(error) bool

	// settle makes the answer to a later try that of the call, or reports false if it
	// does not say what has become of the lost one. Where it is nil, every answer
	// does.
	settle func(*R) bool
}

// do sends a request until its outcome is known or the tries are spent.
func do[Q, R any](ctx context.Context, r *retry, req Q, call func(context.Context, *spi.Store, Q) (R, error), rule rule[R]) (R, error) {
	res, err := call(ctx, r.inner, req)
	if err == nil {
		return res, nil
	}
	var f fate
	tries := tries{Options: &r.options}
	for f.see(err, rule.again, rule.settles) {
		if err := tries.next(ctx, tooEarly(err)); err != nil {
			f.giveUp(err)
			break
		}
		if res, err = call(ctx, r.inner, req); err == nil {
			if f.lost == nil || rule.settle == nil || rule.settle(&res) {
				return res, nil
			}
			break
		}
	}
	var none R
	return none, f.err()
}

// A fate is what the failed tries of a request say about it.
type fate struct {
	lost error // a try that may have taken effect; nil if there is none
	last error
}

// see takes in a try's error and reports whether to send the request again.
func (f *fate) see(err error, again bool, settles func(error) bool) bool {
	f.last = err
	switch {
	case is[*spi.AmbiguousError](err):
		f.lost = err
		return again
	case passing(err):
		return true
	case settles != nil && settles(err):
		f.lost = nil
	}
	return false
}

// giveUp takes in why there is no further try: the context's error counts, for a try
// of its own would have had it.
func (f *fate) giveUp(err error) {
	if !errors.Is(err, errSpent) {
		f.last = err
	}
}

// err is what a caller is told. Once a try is lost, a later one that was refused says
// nothing about it.
func (f *fate) err() error {
	if f.lost != nil {
		return f.lost
	}
	return f.last
}

// passing reports whether an error says that nothing has changed and that the same
// request may be sent again.
func passing(err error) bool {
	return is[*spi.UnavailableError](err) || is[*spi.ThrottledError](err) || is[*spi.SlotMovingError](err) || is[*spi.CoverageError](err)
}

// tooEarly returns how long a request would be refused again for sure.
func tooEarly(err error) time.Duration {
	if throttled, ok := errors.AsType[*spi.ThrottledError](err); ok {
		return throttled.RetryAfter
	}
	return 0
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// tries counts those of one call.
type tries struct {
	*Options
	failed int
	end    time.Time // no try begins later
}

var errSpent = errors.New("the tries are spent")

// next waits for the next try's turn, which is no earlier than that. The error is errSpent
// if it has none, or the context's. A wait that the context would end does not begin.
func (t *tries) next(ctx context.Context, early time.Duration) error {
	now := time.Now()
	if t.failed++; t.failed == 1 {
		t.end = now.Add(t.Within)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if t.failed == t.Tries {
		return errSpent
	}
	if early > t.Within { // also keeps the sum below from overflowing
		return errSpent
	}
	wait := early + t.Jitter(t.longest())
	turn := now.Add(wait)
	if deadline, ok := ctx.Deadline(); turn.After(t.end) || ok && turn.After(deadline) {
		return errSpent
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// longest is the longest wait after as many tries as have failed.
func (t *tries) longest() time.Duration {
	longest := t.Base
	for n := 1; n < t.failed && longest < t.Cap; n++ {
		longest *= 2
	}
	return min(longest, t.Cap)
}
