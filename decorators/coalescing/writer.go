package coalescing

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/loomgate/loomgate/spi"
)

// yields is how often a writer lets the goroutines go first that could run as well:
// callers that have just had their answers come back with their next appends. It waits
// for nobody.
const yields = 2

// begin lets a free writer take what is ready. It is called under the lock.
func (c *coalescer) begin() {
	if c.writers < c.options.Writers && len(c.queue.turns) > 0 {
		c.writers++
		c.work.Go(c.write)
	}
}

// write does one batch.
func (c *coalescer) write() {
	for range yields {
		runtime.Gosched()
	}
	c.mu.Lock()
	batch := c.queue.take()
	c.begin() // with what there is no room for
	c.mu.Unlock()

	defer c.end(batch)
	c.do(batch)
}

// end answers the appends of a batch and lets the next writer begin.
func (c *coalescer) end(batch []*waiter) {
	for _, w := range batch {
		if !w.answered { // the store below has ended the goroutine
			w.answer(spi.AppendResponse{}, &spi.AmbiguousError{Execution: w.req.Execution, Cause: errEnded})
		}
		close(w.done)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range batch {
		c.queue.end(w.req.Execution)
	}
	c.writers--
	c.begin()
}

var errEnded = errors.New("coalescing: the goroutine was ended before the answer")

// appendAlone does an append in its caller's goroutine and context.
func (c *coalescer) appendAlone(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.queue.end(req.Execution)
		c.writers--
		c.begin()
		c.work.Done()
	}()
	return guarded(ctx, c.inner, req.Execution, req, spi.Append)
}

// do does a batch and sets its answers.
func (c *coalescer) do(batch []*waiter) {
	if len(batch) == 0 {
		return // the callers have given up
	}
	// The context is no caller's: neither its end nor its values are the others'.
	ctx, cancel := context.WithDeadline(context.Background(), c.deadline(batch))
	defer cancel()
	ctx, done := c.watch(ctx, batch)
	defer done()
	if len(batch) == 1 {
		c.doOne(ctx, batch[0])
		return
	}
	req := spi.AppendBatchRequest{Appends: make([]spi.AppendRequest, len(batch))}
	for i, w := range batch {
		req.Appends[i] = w.req
	}
	res, err := guarded(ctx, c.inner, "", req, spi.AppendBatch)
	if err == nil && len(res.Results) != len(batch) {
		err = &spi.AmbiguousError{Cause: fmt.Errorf("coalescing: %d appends have %d results", len(batch), len(res.Results))}
	}
	lost, ambiguous := errors.AsType[*spi.AmbiguousError](err)
	_, unavailable := errors.AsType[*spi.UnavailableError](err)
	for i, w := range batch {
		switch {
		case err == nil:
			w.answer(res.Results[i].AppendResponse, ofCaller(ctx, res.Results[i].Err))
		case ambiguous:
			w.answer(spi.AppendResponse{}, &spi.AmbiguousError{Execution: w.req.Execution, Cause: lost.Cause})
		case unavailable || ctx.Err() != nil:
			w.answer(spi.AppendResponse{}, ofCaller(ctx, err))
		default: // one of them may be at fault: each finds out by itself
			c.doOne(ctx, w)
		}
	}
}

// watch lets who watches see a batch.
func (c *coalescer) watch(ctx context.Context, batch []*waiter) (_ context.Context, end func()) {
	if c.options.Watch == nil {
		return ctx, func() {}
	}
	callers := make([]context.Context, len(batch))
	for i, w := range batch {
		callers[i] = w.caller
	}
	return c.options.Watch(ctx, callers)
}

// doOne does one append by itself and sets its answer.
func (c *coalescer) doOne(ctx context.Context, w *waiter) {
	res, err := guarded(ctx, c.inner, w.req.Execution, w.req, spi.Append)
	w.answer(res, ofCaller(ctx, err))
}

// deadline returns when a batch has to be done.
func (c *coalescer) deadline(batch []*waiter) time.Time {
	end := time.Now().Add(c.options.Timeout)
	var last time.Time
	for _, w := range batch {
		if w.deadline.IsZero() {
			return end
		}
		if w.deadline.After(last) {
			last = w.deadline
		}
	}
	if last.Before(end) {
		return last
	}
	return end
}

var errTimeout = errors.New("coalescing: the batch has run out of time")

// ofCaller returns the error that a caller gets. That a batch's context has ended does
// not mean that the caller's has.
func ofCaller(ctx context.Context, err error) error {
	if ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
		return err
	}
	if _, ambiguous := errors.AsType[*spi.AmbiguousError](err); ambiguous {
		return err
	}
	return &spi.UnavailableError{Cause: errTimeout}
}

// guarded makes a call. If it panics, nobody knows what it has done: the error is
// ambiguous, with the panic as its cause.
func guarded[Q, R any](ctx context.Context, s *spi.Store, id spi.ExecutionID, req Q, call func(context.Context, *spi.Store, Q) (R, error)) (res R, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &spi.AmbiguousError{Execution: id, Cause: fmt.Errorf("panic: %v\n\n%s", p, debug.Stack())}
		}
	}()
	return call(ctx, s, req)
}
