// Package coalescing makes one batch of the appends that many callers have for one
// store at the same time: one transaction instead of many.
//
//	coalescer, err := coalescing.New(inner, coalescing.Options{})
//	…
//	defer coalescer.Close()
//	store := coalescer.Store()
//
// No append waits for company. One that has the layer to itself is done at once. Of
// many, those that come while all writers are at work gather, and the next free writer
// takes them. A batch has at most [MaxAppends] appends and [MaxBytes] bytes; a larger
// append goes alone. No two appends to one execution are under way at once, and they
// keep their order. Tenants take turns, so that a flood of one delays another by little
// more than the batches that are under way.
//
// What becomes of an append is its caller's own: its result, its error, its context. A
// caller that gives up while its append waits has changed nothing; one that gives up
// while it is under way gets an [spi.AmbiguousError].
//
// No goroutine is there while there is nothing to do. What waits is bounded by the
// callers, each of which waits for one append; what callers have given up on is part of
// the batches under way.
package coalescing

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loomgate/loomgate/spi"
)

// Limits of one batch.
const (
	MaxAppends = 256
	MaxBytes   = 1 << 20 // by [spi.Event.Size]
)

// Options are how a store is written to. A zero field has its default.
type Options struct {
	// Writers is how many batches may be under way at once. It is 2: one is prepared
	// and sent while the other is being committed.
	Writers int

	// Timeout is how long a batch may take, a minute. If none of its callers would
	// wait that long, it has until the last of them gives up.
	Timeout time.Duration

	// Watch is told of each batch when it begins: its context, which is nobody's, and
	// those of its callers, which may end meanwhile. The batch is done in the context
	// that it returns; end is called when that is done, before the callers have their
	// answers. It is there for traces, which would end here otherwise. Nil: nobody
	// watches. An append by itself is done in its caller's context, and is none.
	Watch func(batch context.Context, callers []context.Context) (_ context.Context, end func())
}

// A Coalescer gathers the appends to a store.
type Coalescer struct {
	layer *coalescer
	store *spi.Store
}

// New returns a coalescer over a store, which stays the caller's. One that offers no
// batches is refused with an [spi.UnsupportedError], a negative option with an
// [spi.InvalidArgumentError].
func New(inner *spi.Store, o Options) (*Coalescer, error) {
	if inner != nil && !inner.Offered().Has(spi.CapAppendBatch) {
		return nil, &spi.UnsupportedError{Cap: spi.CapAppendBatch}
	}
	if o.Writers < 0 || o.Timeout < 0 {
		return nil, &spi.InvalidArgumentError{Field: "options", Rule: "has a negative bound"}
	}
	if o.Writers == 0 {
		o.Writers = 2
	}
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	layer := &coalescer{inner: inner, options: o, queue: newQueue()}
	store, err := spi.Wrap(layer, inner)
	if err != nil {
		return nil, err
	}
	return &Coalescer{layer, store}, nil
}

// Store returns the store. After Close it refuses appends.
func (c *Coalescer) Store() *spi.Store { return c.store }

// Close refuses appends from now on, with an [spi.UnavailableError], and returns when
// every append that was accepted has its answer. To close again is no error.
func (c *Coalescer) Close() error {
	c.layer.close()
	return nil
}

type coalescer struct {
	inner   *spi.Store
	options Options

	callers atomic.Int64 // that are in Append

	mu      sync.Mutex
	queue   queue
	writers int // at work, or about to; while one is free, nothing in the queue is ready
	closed  bool

	work sync.WaitGroup // the writers
}

// Caps offers what inner does.
func (c *coalescer) Caps(inner spi.Caps) spi.Caps { return inner }

func (c *coalescer) Layer() spi.Layer { return spi.Layer{Name: "coalescing", Batches: true} }

var errClosed = &spi.UnavailableError{Cause: errors.New("coalescing: closed")}

func (c *coalescer) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.work.Wait()
}
