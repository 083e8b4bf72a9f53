package faults

import (
	"context"
	"sync"
)

// A Gate holds calls, in the order in which they come, until somebody lets them pass.
// With one a test plays a schedule: it decides which call is done before which.
type Gate struct {
	held   chan *Held
	opened chan struct{}
	open   func()
}

// NewGate returns a gate that is shut.
func NewGate() *Gate {
	g := &Gate{held: make(chan *Held), opened: make(chan struct{})}
	g.open = sync.OnceFunc(func() { close(g.opened) })
	return g
}

// A Held is a call that a gate holds.
type Held struct {
	Call Call

	pass func()
}

// Next waits for the next call to be held, and returns each once. The error is the
// context's.
func (g *Gate) Next(ctx context.Context) (*Held, error) {
	select {
	case h := <-g.held:
		return h, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Pass lets the call go on. To let it again is nothing.
func (h *Held) Pass() { h.pass() }

// Open lets all calls pass, those that are held and those to come.
func (g *Gate) Open() { g.open() }

// hold returns when the call may pass, or the context's error.
func (g *Gate) hold(ctx context.Context, c Call) error {
	passed := make(chan struct{})
	h := &Held{c, sync.OnceFunc(func() { close(passed) })}
	select {
	case g.held <- h:
	case <-g.opened:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-passed:
		return nil
	case <-g.opened:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
