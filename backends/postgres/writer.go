package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/loomgate/loomgate/spi"
)

// ErrOldWriter is the cause of a [spi.UnavailableError] of a write to a shard that takes
// writes only from later versions.
var ErrOldWriter = errors.New("this version may not write to the shard")

// WritesAs states the version of the events group that the caller writes as, which is
// that of package spi unless set.
func WritesAs(v spi.Version) Option { return func(o *options) { o.writer = v } }

// An asked is what a shard asks of its writers.
type asked struct {
	shard   string
	least   spi.Version
	version int64 // of the ownership that says so
}

// learn keeps what the shard asks of its writers, by the latest ownership read. Whoever
// raises that raises the epochs with it: no call has a route that counts before somebody
// has read the ownership again.
func (s *store) learn(o spi.ShardOwnership) {
	next := &asked{o.Identity.Shard, o.Identity.MinWriter, o.Version}
	for {
		now := s.asks.Load()
		if now != nil && now.version >= next.version || s.asks.CompareAndSwap(now, next) {
			return
		}
	}
}

// mayWrite returns why this version may not write here, or nil.
func (s *store) mayWrite() error {
	a := s.asks.Load()
	if a == nil || cmp.Or(cmp.Compare(s.writer.Major, a.least.Major), cmp.Compare(s.writer.Minor, a.least.Minor)) >= 0 {
		return nil
	}
	return &spi.UnavailableError{Cause: fmt.Errorf("%w: shard %q takes writes from version %v of the events group on, and this is %v", ErrOldWriter, a.shard, a.least, s.writer)}
}

// readAsked reads what the shard asks of its writers.
func (s *store) readAsked(ctx context.Context) error {
	_, err := s.GetOwnership(ctx, spi.GetOwnershipRequest{})
	if err != nil {
		return fmt.Errorf("postgres: read the shard's identity: %w", err)
	}
	return nil
}
