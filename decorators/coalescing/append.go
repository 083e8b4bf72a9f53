package coalescing

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/loomgate/loomgate/spi"
)

func (c *coalescer) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	if err := ctx.Err(); err != nil {
		return spi.AppendResponse{}, err
	}
	defer c.callers.Add(-1)
	if c.callers.Add(1) == 1 && c.claim(req.Execution) { // nobody is there to gather with
		return c.appendAlone(ctx, req)
	}
	w := newWaiter(ctx, req)
	if !c.put(w) {
		return spi.AppendResponse{}, errClosed
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		if err := c.leave(ctx, w); err != nil {
			return spi.AppendResponse{}, err
		}
	}
	return w.res, w.err
}

// claim makes the caller a writer of its own append, if one is free.
func (c *coalescer) claim(id spi.ExecutionID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.writers == c.options.Writers || !c.queue.claim(id) {
		return false
	}
	c.writers++
	c.work.Add(1)
	return true
}

// put makes an append wait, unless the layer is closed.
func (c *coalescer) put(w *waiter) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.queue.put(w)
	c.begin()
	return true
}

// leave is what becomes of an append whose caller gives up. There is no error if its
// answer has come meanwhile.
func (c *coalescer) leave(ctx context.Context, w *waiter) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !w.taken {
		c.queue.remove(w)
		return ctx.Err()
	}
	select {
	case <-w.done:
		return nil
	default:
		return &spi.AmbiguousError{Execution: w.req.Execution, Cause: ctx.Err()}
	}
}

// A waiter is an append that waits for a writer, and its caller for the answer.
type waiter struct {
	caller   context.Context
	req      spi.AppendRequest
	size     int
	deadline time.Time // the caller's; zero if it has none

	ready bool // no other append to its execution comes before it
	taken bool // a writer has it

	res      spi.AppendResponse
	err      error
	answered bool
	done     chan struct{} // closed when the answer is there
}

func newWaiter(ctx context.Context, req spi.AppendRequest) *waiter {
	w := &waiter{caller: ctx, req: req, done: make(chan struct{})}
	w.deadline, _ = ctx.Deadline()
	for i := range req.Events {
		w.size += req.Events[i].Size()
	}
	if ctx.Done() != nil { // the caller may leave while a writer reads what it brought
		w.req.Events = cloneEvents(req.Events)
	}
	return w
}

func cloneEvents(events []spi.Event) []spi.Event {
	events = slices.Clone(events)
	for i := range events {
		events[i].Payload = bytes.Clone(events[i].Payload)
		events[i].Metadata = maps.Clone(events[i].Metadata)
	}
	return events
}

func (w *waiter) answer(res spi.AppendResponse, err error) {
	w.res, w.err, w.answered = res, err, true
}
