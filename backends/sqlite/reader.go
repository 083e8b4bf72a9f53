package sqlite

import (
	"context"
	"sync"

	"github.com/loomgate/loomgate/spi"
)

// readers are connections that only read. They are opened when needed and kept.
type readers struct {
	dsn     string
	permits chan struct{} // holds a token for each call that may begin

	mu     sync.Mutex
	idle   []*session
	closed bool
}

func newReaders(n int, dsn string) *readers {
	r := &readers{dsn: dsn, permits: make(chan struct{}, n)}
	for range n {
		r.permits <- struct{}{}
	}
	return r
}

// take returns a connection for a call, or nil where one has to be opened.
func (r *readers) take(ctx context.Context) (*session, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-r.permits:
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		r.permits <- struct{}{}
		return nil, errClosed
	}
	if n := len(r.idle); n > 0 {
		c := r.idle[n-1]
		r.idle = r.idle[:n-1]
		return c, nil
	}
	return nil, nil
}

// give takes a connection back, or nil where it had to be closed.
func (r *readers) give(c *session) {
	r.mu.Lock()
	if c != nil {
		r.idle = append(r.idle, c)
	}
	r.mu.Unlock()
	r.permits <- struct{}{}
}

// close waits for the calls under way.
func (r *readers) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	for range cap(r.permits) {
		<-r.permits
	}
	for _, c := range r.idle {
		c.close()
	}
	for range cap(r.permits) {
		r.permits <- struct{}{} // for calls to come, which are refused
	}
}

// read does one transaction of a reader: do sees one snapshot of data and ownership.
func (s *store) read(ctx context.Context, _ spi.ExecutionID, do func(*tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c, err := s.readers.take(ctx)
	if err != nil {
		return err
	}
	defer func() { s.readers.give(c) }()

	var owned *ownership
	err = patiently(ctx, s.busyTimeout, func() (err error) {
		if c == nil {
			if c, err = connect(s.readers.dsn); err != nil {
				return err
			}
		}
		if _, err := c.exec(`BEGIN`); err != nil {
			return err
		}
		if owned, err = s.ownershipIn(c); err != nil { // the first read fixes the snapshot
			c = endSnapshot(c)
		}
		return err
	})
	if err != nil {
		return unchanged(err)
	}
	err = do(&tx{session: c, ctx: ctx, ownership: owned})
	c = endSnapshot(c)
	return unchanged(err)
}

// endSnapshot ends a reader's transaction. It returns nil if it had to close the
// connection.
func endSnapshot(c *session) *session {
	if _, err := c.exec(`ROLLBACK`); err != nil {
		c.close()
		return nil
	}
	return c
}
