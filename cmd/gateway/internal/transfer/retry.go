package transfer

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/loomgate/loomgate/spi"
)

// A Retry says how patient to be with a store that cannot answer, because a shard is
// being restarted, or whose answer was lost.
type Retry struct {
	// For is how long a request is sent again, from its first failure on. With 0 it
	// is sent once.
	For time.Duration

	// Notify, if there is one, is called before each pause with what went wrong, by
	// one goroutine at a time.
	Notify func(error)
}

// under returns r with Notify called while mu is held.
func (r Retry) under(mu *sync.Mutex) Retry {
	if notify := r.Notify; notify != nil {
		r.Notify = func(err error) {
			mu.Lock()
			defer mu.Unlock()
			notify(err)
		}
	}
	return r
}

// The pauses between two tries double from the first to the longest.
const (
	firstPause   = 20 * time.Millisecond
	longestPause = 2 * time.Second
)

// do calls f until it succeeds, fails for good, or Retry.For is over.
func (r Retry) do(ctx context.Context, f func() error) error {
	var end time.Time
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := f()
		if err == nil || !passing(err) || ctx.Err() != nil {
			return err
		}
		now := time.Now()
		if end.IsZero() {
			end = now.Add(r.For)
		}
		if !now.Before(end) {
			return err
		}
		if r.Notify != nil {
			r.Notify(err)
		}
		timer := time.NewTimer(min(pause, end.Sub(now)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// passing reports whether the same request may be answered later. Events have the same
// ids at the same place whenever they are sent, so that also an append whose answer was
// lost may be sent again.
func passing(err error) bool {
	return is[*spi.UnavailableError](err) || is[*spi.AmbiguousError](err) || is[*spi.SlotMovingError](err) ||
		is[*spi.ThrottledError](err) || is[*spi.CoverageError](err) || is[*spi.MisroutedError](err) || errors.Is(err, context.DeadlineExceeded)
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
