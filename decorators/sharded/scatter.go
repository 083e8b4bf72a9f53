package sharded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/loomgate/loomgate/spi"
)

// An outcome is what one shard has answered.
type outcome[R any] struct {
	res R
	err error
}

// scatter calls all shards at once and waits for all.
func scatter[R any](s *sharded, call func(i int) (R, error)) []outcome[R] {
	outcomes := make([]outcome[R], len(s.shards))
	var calls sync.WaitGroup
	for i := range s.shards {
		calls.Go(func() { outcomes[i].res, outcomes[i].err = call(i) })
	}
	calls.Wait()
	return outcomes
}

// onShard calls a shard that is known, and has to answer in time.
func onShard[Q, R any](ctx context.Context, s *sharded, i int, call func(context.Context, *spi.Store, Q) (R, error), req Q) (R, error) {
	return within(ctx, s.timeout, func(ctx context.Context) (res R, err error) {
		if _, err := s.reach(ctx, i); err != nil {
			return res, err
		}
		return call(ctx, s.shards[i].store, req)
	})
}

// within gives a call its time. Its errors are without the method's name.
func within[R any](ctx context.Context, limit time.Duration, call func(context.Context) (R, error)) (R, error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	res, err := call(limited)
	if err == nil {
		return res, nil
	}
	err = spi.WithoutOp(err)
	_, ambiguous := errors.AsType[*spi.AmbiguousError](err)
	if !ambiguous && errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = &spi.UnavailableError{Cause: fmt.Errorf("no answer within %v: %w", limit, err)}
	}
	return res, err
}

// DueTimers returns the earliest rows of all shards together, so that no row of one
// waits for later ones of another. Where no shard answers it is an error.
func (s *sharded) DueTimers(ctx context.Context, req spi.DueTimersRequest) (all spi.DueTimersResponse, err error) {
	outcomes := scatter(s, func(i int) (spi.DueTimersResponse, error) { return onShard(ctx, s, i, spi.DueTimers, req) })
	if err := ctx.Err(); err != nil {
		return all, err
	}
	failed := 0
	for i, o := range outcomes {
		if o.err != nil {
			failed++
			err = s.failed(ctx, i, o.err)
			all.Missing = append(all.Missing, s.table.Load().shards[i].name)
			continue
		}
		if all.Now.IsZero() || o.res.Now.Before(all.Now) {
			all.Now = o.res.Now
		}
		all.Timers = append(all.Timers, o.res.Timers...)
		all.Missing = append(all.Missing, o.res.Missing...)
	}
	if failed == len(outcomes) {
		return all, err
	}
	slices.SortFunc(all.Timers, func(a, b spi.Timer) int {
		return cmp.Or(a.WakeAt.Compare(b.WakeAt), spi.CompareIDs(a.Execution, b.Execution))
	})
	all.Timers = all.Timers[:min(len(all.Timers), req.Limit)]
	return all, nil
}

// SweepTombstones sweeps one shard after the other until the limit is reached. A
// shard that fails keeps no other from being swept.
func (s *sharded) SweepTombstones(ctx context.Context, req spi.SweepTombstonesRequest) (all spi.SweepTombstonesResponse, err error) {
	limit := req.Limit
	for i := range s.shards {
		if req.Limit = limit - all.Swept; req.Limit <= 0 {
			break
		}
		failure := s.table.Load().refused(i)
		var res spi.SweepTombstonesResponse
		if failure == nil {
			res, failure = onShard(ctx, s, i, spi.SweepTombstones, req)
		}
		if failure != nil && err == nil {
			err = s.failed(ctx, i, failure)
		}
		all.Swept += res.Swept
	}
	return all, err
}

// GetOwnership asks the shards themselves, not the copy of the map.
func (s *sharded) GetOwnership(ctx context.Context, req spi.GetOwnershipRequest) (all spi.GetOwnershipResponse, err error) {
	outcomes := scatter(s, func(i int) (spi.GetOwnershipResponse, error) { return onShard(ctx, s, i, spi.GetOwnership, req) })
	for i, o := range outcomes {
		if o.err != nil {
			return all, s.failed(ctx, i, o.err)
		}
		all.Shards = append(all.Shards, o.res.Shards...)
	}
	return all, nil
}

// ChangeOwnership is not offered: it is for one shard, and for an operator.
func (s *sharded) ChangeOwnership(context.Context, spi.ChangeOwnershipRequest) (spi.ChangeOwnershipResponse, error) {
	return spi.ChangeOwnershipResponse{}, &spi.UnsupportedError{Cap: spi.CapChangeOwnership}
}
