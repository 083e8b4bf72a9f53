// Package faults makes a store fail as its user plans: to test what an application,
// or a layer, does then.
//
//	store, err := faults.New(inner, func(c faults.Call) faults.Fault {
//		if c.Method == "Append" && c.N == 3 {
//			return faults.Fault{Lose: errors.New("the connection broke")}
//		}
//		return faults.Fault{}
//	})
//
// A [Plan] decides about each call. [Script] and [Random] make one; a [Gate] holds
// calls, so that a test can play a schedule.
package faults

import (
	"context"
	"sync"
	"time"

	"github.com/loomgate/loomgate/spi"
)

type faults struct {
	inner *spi.Store

	mu    sync.Mutex // held while the plan is asked
	plan  Plan
	calls map[string]int // by method
}

// New returns inner with the faults of a plan. Without a plan there are none.
func New(inner *spi.Store, plan Plan) (*spi.Store, error) {
	if plan == nil {
		plan = func(Call) Fault { return Fault{} }
	}
	return spi.Wrap(&faults{inner: inner, plan: plan, calls: map[string]int{}}, inner)
}

// Caps offers what inner does.
func (f *faults) Caps(inner spi.Caps) spi.Caps { return inner }
func (f *faults) Layer() spi.Layer             { return spi.Layer{Name: "faults"} }

// next asks the plan about a call.
func (f *faults) next(method, name string, req any) (Call, Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[method]++
	c := Call{method, name, f.calls[method], req}
	return c, f.plan(c)
}

// A target is what a call is about.
type target struct {
	method string
	name   string

	// lost is the answer of a call whose own was lost.
	lost func(cause error) error
}

// reading is a call that changes nothing.
func reading[N ~string](method string, name N) target {
	return target{method, string(name), func(cause error) error { return &spi.UnavailableError{Cause: cause} }}
}

// writing is a call that writes, but not to an execution.
func writing[N ~string](method string, name N) target {
	return target{method, string(name), func(cause error) error { return &spi.AmbiguousError{Cause: cause} }}
}

// writingTo is a call that writes to an execution.
func writingTo(method string, id spi.ExecutionID) target {
	return target{method, string(id), func(cause error) error { return &spi.AmbiguousError{Execution: id, Cause: cause} }}
}

// do does a call with what the plan has for it. A call whose context has ended is
// none: the plan does not hear of it.
func do[Q, R any](
	ctx context.Context, f *faults, t target, req Q, call func(context.Context, *spi.Store, Q) (R, error),
) (res R, _ Fault, err error) {
	if err := ctx.Err(); err != nil {
		return res, Fault{}, err
	}
	c, fault := f.next(t.method, t.name, req)
	if err := fault.before(ctx, c); err != nil {
		return res, fault, err
	}
	answer, err := call(ctx, f.inner, req)
	if cause := fault.after(ctx, c); cause != nil && err == nil {
		return res, fault, t.lost(cause)
	}
	return answer, fault, err
}

// before returns the answer to a call that is not done.
func (f Fault) before(ctx context.Context, c Call) error {
	if f.Delay > 0 {
		timer := time.NewTimer(f.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if f.Hold != nil {
		if err := f.Hold.hold(ctx, c); err != nil {
			return err
		}
	}
	if f.Hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return f.Refuse
}

// after returns why the answer to a call that is done is lost.
func (f Fault) after(ctx context.Context, c Call) error {
	if f.HoldAnswer != nil {
		if err := f.HoldAnswer.hold(ctx, c); err != nil {
			return err
		}
	}
	return f.Lose
}
