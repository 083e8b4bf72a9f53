package stack

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loomgate/loomgate/backends/postgres"
	"github.com/loomgate/loomgate/cmd/gateway/internal/config"
	"github.com/loomgate/loomgate/spi"
)

// lookFor is how long a new address may take to say whose it is. One that does not
// answer is taken over all the same: a shard may be down.
const lookFor = 5 * time.Second

// A Readdressing is new addresses of shards that have been looked at, and are used from
// Commit on. Exactly one of its methods is called.
type Readdressing struct{ commits, abandons []func() }

// Commit uses the new addresses. Calls under way end on the old ones.
func (r *Readdressing) Commit() {
	for _, commit := range r.commits {
		commit()
	}
}

// Abandon leaves all as it was.
func (r *Readdressing) Abandon() {
	for _, abandon := range r.abandons {
		abandon()
	}
}

// Readdress looks at the addresses that shards have in another configuration. The error
// says which one leads to a database that cannot be used, or that is another shard.
func (s *Stack) Readdress(ctx context.Context, next *config.Config) (_ *Readdressing, err error) {
	r := &Readdressing{}
	defer func() {
		if err != nil {
			r.Abandon()
		}
	}()
	for i, cfg := range next.Shards {
		old := s.options.Config.Shards[i]
		if cfg.DSN.Reveal() == old.DSN.Reveal() && cfg.PoolSize == old.PoolSize {
			continue
		}
		if err := s.Shards[i].readdress(ctx, cfg, s.options, r); err != nil {
			return nil, err
		}
	}
	r.commits = append(r.commits, func() {
		s.options.Config = next
		for i, cfg := range next.Shards {
			s.Shards[i].gate.Resize(s.Shards[i].slots(cfg.PoolSize))
		}
	})
	return r, nil
}

func (s *Shard) readdress(ctx context.Context, cfg config.Shard, o Options, r *Readdressing) error {
	ctx, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	before := s.postgres.Load()
	open := s.database(cfg, o)
	store, release, err := open(ctx)
	switch {
	case is[*postgres.UnfitError](err):
		return err
	case err != nil: // it is down: it is opened when it can be
		r.commits = append(r.commits, func() { s.pending.replace(open, nil, nil) })
		return nil
	}
	now := s.postgres.Swap(before) // until Commit
	r.abandons = append(r.abandons, release)
	own, err := spi.GetOwnership(ctx, store, spi.GetOwnershipRequest{})
	switch {
	case err != nil:
		return fmt.Errorf("shard %q: %w", s.Name, err)
	case len(own.Shards) != 1 || own.Shards[0].Identity.Shard != s.Name:
		return fmt.Errorf("shard %q: %w", s.Name, errOther)
	}
	r.commits = append(r.commits, func() {
		s.postgres.Store(now)
		s.pending.replace(open, store, release)
	})
	return nil
}

var errOther = errors.New("the new address leads to another database, which is not this shard")
