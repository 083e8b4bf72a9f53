package sim

import (
	"context"
	"errors"

	"github.com/loomgate/loomgate/spi"
)

// A network is between a node and the store. Before each call the schedule may let
// somebody else go on, or the node crash: after a call is before the next one.
type network struct {
	inner *spi.Store
	task  func() *task
	fault func(write bool) fault
	early func(request any)                     // just before it arrives
	later func(func())                          // for a request that arrives once more
	seen  func(by *task, request, response any) // what took effect
	calls
	told func(response any, err error) // what the node knows of it
}

// A fault is what becomes of a call.
type fault uint8

const (
	none         fault = iota
	refused            // it did not arrive, and the caller knows
	lostReply          // it took effect, and the caller does not know
	arrivesLater       // it takes effect later, and the caller does not know
	twice              // it arrives once more later
)

var errLost = errors.New("the answer is lost")

// pass is one call. A write may arrive later than its caller gave up.
func pass[Q, R any](n *network, ctx context.Context, write bool, id spi.ExecutionID, req Q,
	method func(context.Context, *spi.Store, Q) (R, error),
) (res R, err error) {
	by := n.task()
	if !by.turn() {
		return res, errCrashed
	}
	if n.early != nil {
		n.early(req)
	}
	do := func() (R, error) {
		res, err := method(ctx, n.inner, req)
		if err == nil && n.seen != nil {
			n.seen(by, req, res)
		}
		return res, err
	}
	f := none
	if n.fault != nil {
		f = n.fault(write)
	}
	switch f {
	case refused:
		return res, &spi.UnavailableError{Cause: errLost}
	case arrivesLater:
		n.later(func() { _, _ = do() })
		err = &spi.AmbiguousError{Execution: id, Cause: errLost}
	case lostReply:
		_, _ = do()
		err = &spi.AmbiguousError{Execution: id, Cause: errLost}
	case twice:
		n.later(func() { _, _ = do() })
		res, err = do()
	case none:
		res, err = do()
	}
	if n.told != nil {
		n.told(res, err)
	}
	return res, err
}

// calls are what a store answers in place of its methods, where it is broken.
type calls struct {
	acquireFenceIf func(context.Context, *spi.Store, spi.AcquireFenceIfRequest) (spi.AcquireFenceIfResponse, error)
	dueTimers      func(context.Context, *spi.Store, spi.DueTimersRequest) (spi.DueTimersResponse, error)

	retireFirst bool // a redrive row that is scheduled waits until one is retired
	held        *spi.ScheduleTimerRequest
}

// orElse returns the broken call, if there is one.
func orElse[F func(context.Context, *spi.Store, Q) (R, error), Q, R any](broken, method F) F {
	if broken != nil {
		return broken
	}
	return method
}

func read[Q, R any](n *network, ctx context.Context, req Q, method func(context.Context, *spi.Store, Q) (R, error)) (R, error) {
	return pass(n, ctx, false, "", req, method)
}

func write[Q, R any](n *network, ctx context.Context, id spi.ExecutionID, req Q, method func(context.Context, *spi.Store, Q) (R, error)) (R, error) {
	return pass(n, ctx, true, id, req, method)
}
