package stack

import (
	"context"
	"errors"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/loomgate/loomgate/backends/postgres"
	"github.com/loomgate/loomgate/spi"
)

// A shard that has failed so often in a row is left alone for a while: its callers learn
// at once what they would otherwise wait for. Then a few calls try it.
const (
	breakAfter = 8
	breakFor   = 2 * time.Second
	probes     = 2

	// slow is how long a call has to have waited before its deadline says something
	// about the shard: clients choose their deadlines.
	slow = time.Second
)

// errBroken is the cause of a call that was not tried.
var errBroken = errors.New("it has not answered of late, and is tried again in a moment")

// A breaker keeps calls from a database that does not answer. It is safe for concurrent
// use.
type breaker struct {
	two *gobreaker.TwoStepCircuitBreaker[any]
}

func newBreaker(shard string) *breaker {
	return &breaker{gobreaker.NewTwoStepCircuitBreaker[any](gobreaker.Settings{
		Name: shard, MaxRequests: probes, Timeout: breakFor,
		ReadyToTrip:  func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= breakAfter },
		IsSuccessful: func(err error) bool { return !isSilent(err) },
		IsExcluded:   func(err error) bool { return errors.Is(err, context.Canceled) },
	})}
}

// begin asks to make a call. The error is an [spi.UnavailableError]: nothing was done.
// Whoever may make it tells end what came of it.
func (b *breaker) begin() (end func(error), err error) {
	done, err := b.two.Allow()
	if err != nil {
		return nil, &spi.UnavailableError{Cause: errBroken}
	}
	begun := time.Now()
	return func(err error) {
		if errors.Is(err, context.DeadlineExceeded) && time.Since(begun) < slow {
			err = context.Canceled
		}
		done(err)
	}, nil
}

// isSilent reports whether an error is that of a database which does not answer. One that
// says why it refuses does answer: a full disk still reads.
func isSilent(err error) bool {
	if err == nil || errors.Is(err, postgres.ErrDiskFull) || errors.Is(err, postgres.ErrReadOnly) || errors.Is(err, postgres.ErrOldWriter) {
		return false
	}
	return is[*spi.UnavailableError](err) || is[*spi.AmbiguousError](err) || errors.Is(err, context.DeadlineExceeded)
}
