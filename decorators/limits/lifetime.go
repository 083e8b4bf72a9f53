package limits

import (
	"context"
	"sync"
)

// A lifetime is how long a call counts as in flight.
type lifetime struct {
	mu    sync.Mutex
	ended bool
	then  []func()
}

type lifetimeKey struct{}

// Extend returns a context under which calls stay in flight until end is called, and not
// only until the store has answered. A server whose clients may take their time to take an
// answer uses it: an answer that nobody takes is memory.
func Extend(ctx context.Context) (_ context.Context, end func()) {
	l := &lifetime{}
	return context.WithValue(ctx, lifetimeKey{}, l), l.end
}

func (l *lifetime) end() {
	l.mu.Lock()
	then := l.then
	l.ended, l.then = true, nil
	l.mu.Unlock()
	for _, f := range then {
		f()
	}
}

// atEnd calls f at the end of a context's lifetime, or now if it has none, or has ended.
func atEnd(ctx context.Context, f func()) {
	l, ok := ctx.Value(lifetimeKey{}).(*lifetime)
	if ok && l.add(f) {
		return
	}
	f()
}

func (l *lifetime) add(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return false
	}
	l.then = append(l.then, f)
	return true
}
