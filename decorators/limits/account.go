package limits

import (
	"sync"
	"time"

	"github.com/loomgate/loomgate/spi"
)

// What a [spi.ThrottledError] names.
const (
	requestsPerSecond = "requests a second"
	bytesPerSecond    = "bytes a second"
	eventsPerSecond   = "events a second"
	callsInFlight     = "calls in flight"
	executionsStored  = "executions stored"
)

// How long whoever is refused is told to wait where no clock tells.
const (
	busy   = 50 * time.Millisecond // until a call under way may have ended
	closed = time.Minute           // until somebody may have changed a limit, or deleted executions
)

// A class is a sort of calls that has its own requests a second and calls in flight.
type class int

const (
	data         class = iota
	coordination       // fences, timers, leases
	classes
)

// An Account is what somebody may use, and uses. It is safe for concurrent use.
type Account struct {
	mu       sync.Mutex
	limits   Limits
	requests [classes]bucket
	inFlight [classes]int64
	bytes    bucket
	events   bucket

	stored struct {
		known bool
		count int64     // at the last count
		since int64     // that have come since, less those that have gone, through this account
		at    time.Time // of the count
	}
}

// A Usage is what an account uses.
type Usage struct {
	InFlight int64 // calls under way, and streams that are open

	// Executions is how many executions were counted last, at CountedAt, with what this
	// account has started and deleted since. CountedAt is zero before the first count.
	Executions int64
	CountedAt  time.Time
}

// NewAccount returns an account that has used nothing. Limits below zero are zero.
func NewAccount(l Limits) *Account {
	a := &Account{}
	now := time.Now()
	for c := range classes {
		a.requests[c] = newBucket(l.RequestsPerSecond, now)
	}
	a.bytes, a.events = newBucket(l.BytesPerSecond, now), newBucket(l.EventsPerSecond, now)
	a.limits = l
	return a
}

// Set changes the limits. A rate that changes begins anew: what was used beyond the one
// before is forgotten.
func (a *Account) Set(l Limits) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	if l.RequestsPerSecond != a.limits.RequestsPerSecond {
		for c := range classes {
			a.requests[c] = newBucket(l.RequestsPerSecond, now)
		}
	}
	if l.BytesPerSecond != a.limits.BytesPerSecond {
		a.bytes = newBucket(l.BytesPerSecond, now)
	}
	if l.EventsPerSecond != a.limits.EventsPerSecond {
		a.events = newBucket(l.EventsPerSecond, now)
	}
	a.limits = l
}

// Limits returns what the account may use.
func (a *Account) Limits() Limits {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.limits
}

// Usage returns what the account uses.
func (a *Account) Usage() Usage {
	a.mu.Lock()
	defer a.mu.Unlock()
	u := Usage{CountedAt: a.stored.at, Executions: max(0, a.stored.count+a.stored.since)}
	for _, n := range a.inFlight {
		u.InFlight += n
	}
	return u
}

// Counted takes in how many executions there are. What was started while they were
// counted may be missing until the next count.
func (a *Account) Counted(n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stored.known, a.stored.count, a.stored.since, a.stored.at = true, n, 0, time.Now()
}

// Enter takes a place in flight for what lasts longer than a call, such as a stream.
// leave gives it back; to call it again is nothing.
func (a *Account) Enter() (leave func(), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.inFlight[data] >= a.limits.InFlight {
		return nil, a.full()
	}
	a.inFlight[data]++
	return sync.OnceFunc(func() { a.leave(data) }), nil
}

func (a *Account) full() error {
	after := busy
	if a.limits.InFlight == 0 {
		after = closed
	}
	return &spi.ThrottledError{Limit: callsInFlight, RetryAfter: after}
}

func (a *Account) leave(c class) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.inFlight[c]--
}

// A cost is what a call is known to use before it is done.
type cost struct {
	events, bytes int64

	reads bool // it will use bytes that nobody knows yet
}

// begin lets a call in, or refuses it and takes nothing. Whoever was let in leaves.
func (a *Account) begin(c class, use cost) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	if a.inFlight[c] >= a.limits.InFlight {
		return a.full()
	}
	if wait := a.requests[c].wait(now); wait > 0 {
		return &spi.ThrottledError{Limit: requestsPerSecond, RetryAfter: wait}
	}
	if wait := a.events.wait(now); wait > 0 && use.events > 0 {
		return &spi.ThrottledError{Limit: eventsPerSecond, RetryAfter: wait}
	}
	if wait := a.bytes.wait(now); wait > 0 && (use.bytes > 0 || use.reads) {
		return &spi.ThrottledError{Limit: bytesPerSecond, RetryAfter: wait}
	}
	a.inFlight[c]++
	a.requests[c].take(1, now)
	a.events.take(use.events, now)
	a.bytes.take(use.bytes, now)
	return nil
}

// used takes what turns out to have been read.
func (a *Account) used(bytes int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.bytes.take(bytes, time.Now())
}

// mayStart reports whether there may be another execution.
func (a *Account) mayStart() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.limits.Executions == Unlimited:
		return true
	case a.limits.Executions <= 0:
		return false
	}
	return !a.stored.known || a.stored.count+a.stored.since < a.limits.Executions
}

// began takes in that there are n more executions.
func (a *Account) began(n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stored.since += n
}
