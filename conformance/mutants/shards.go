package mutants

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/loomgate/loomgate/conformance"
	"github.com/loomgate/loomgate/conformance/small"
	"github.com/loomgate/loomgate/spi"
)

const everyMethod = "sharding/every method goes to the shard that owns the name"

var shards = []Mutant{
	{
		"receipt from configuration",
		"A page's receipt says what the shards owned when the process started.",
		"sharding/a page's receipt is what the snapshots of the shards said, and covers each slot once",
		sharding(func(s split) methods { return newConfiguredReceipt(s) }),
	},
	{
		"silently partial page",
		"A shard that fails is left out of the page.",
		"sharding/a shard that fails fails the page with an error that names it, and no other execution",
		sharding(func(s split) methods { return silentlyPartial{s} }),
	},
	{
		"silently partial refs",
		"A shard that fails is left out of a page of refs.",
		"sharding/a shard that fails fails the page with an error that names it, and no other execution",
		sharding(func(s split) methods { return silentlyPartialRefs{s} }),
	},
	{
		"silently partial sweep",
		"A shard that fails has nothing to sweep.",
		"sharding/a shard that fails fails the page with an error that names it, and no other execution",
		sharding(func(s split) methods { return silentlyPartialSweep{s} }),
	},
	{
		"nameless shard error",
		"The error of a page does not say which shard has failed.",
		"sharding/a shard that fails fails the page with an error that names it, and no other execution",
		sharding(func(s split) methods { return namelessError{s} }),
	},
	{
		"merge that trusts its shards",
		"A shard that goes backwards, repeats or holds another's id is merged all the same.",
		"sharding/a shard whose page goes backwards, repeats or holds another shard's id fails the page",
		sharding(func(s split) methods { return trustsShards{s} }),
	},
	{
		"page in shard order",
		"A page holds the first shard's ids, then the second's.",
		"sharding/the pages of all shards together are one listing in code point order",
		sharding(func(s split) methods { return shardOrder{s} }),
	},
	{
		"page of what is covered",
		"A page is given out though nobody owns a slot.",
		"sharding/no page is given out whose slots nobody covers",
		sharding(func(s split) methods { return trustsShards{s} }),
	},
	{
		"timers of all shards or none",
		"One shard that fails stops the timers of the others.",
		"sharding/due timers name the shards that are missing, and come from all others",
		sharding(func(s split) methods { return timersOfAllShards{s} }),
	},
	{
		"missing shards not named",
		"Timers of a shard that fails are left out without a word.",
		"sharding/due timers name the shards that are missing, and come from all others",
		sharding(func(s split) methods { return missingNotNamed{s} }),
	},
	{
		"batch of all shards or none",
		"One shard that fails fails the whole batch, though the others have written.",
		"sharding/a shard that fails fails only its own appends of a batch",
		sharding(func(s split) methods { return batchOfAllShards{s} }),
	},
	{
		"coverage not checked",
		"Shards that leave a slot to nobody, or to two of them, are put to work.",
		"sharding/shards that leave a slot to nobody, or to two of them, are refused",
		func(t *testing.T) {
			t.Run("sharding", func(t *testing.T) {
				conformance.Sharding(t, "kit", func(shards ...*spi.Store) (*spi.Store, error) {
					s, err := small.Split(t.Context(), shards...)
					if _, uncovered := errors.AsType[*spi.CoverageError](err); uncovered {
						return shards[0], nil
					}
					return s, err
				})
			})
		},
	},
	{
		"offers what one shard has",
		"A method is offered though a shard does not offer it.",
		"sharding/what one shard does not offer is not offered, or done without it",
		func(t *testing.T) {
			t.Run("sharding", func(t *testing.T) {
				conformance.Sharding(t, "kit", func(shards ...*spi.Store) (*spi.Store, error) {
					whole, err := small.Split(t.Context(), shards...)
					if err != nil {
						return nil, err
					}
					d := sound{Inner: whole}
					return spi.Open(spi.Backend{Events: d, Timers: d, Refs: d, Leases: d, DataKeys: d})
				})
			})
		},
	},
	{
		"copy on the wrong shard",
		"A copy is made where its source is, whatever its own id is.",
		"sharding/a copy goes from one shard to another, all or none",
		sharding(func(s split) methods { return copyOnWrongShard{s} }),
	},
	{
		"lease without a route",
		"One method goes to the first shard, whatever the name is.",
		everyMethod,
		sharding(func(s split) methods { return leaseWithoutRoute{s} }),
	},
	{
		"refs of one shard",
		"Refs are listed from one shard only.",
		everyMethod,
		sharding(func(s split) methods { return refsOfOneShard{s} }),
	},
}

// A split is a sound one that can reach past itself.
type split struct {
	sound
	shards []*spi.Store
}

// pages returns a page of each shard, and calls failed for those that fail.
func (s split) pages(ctx context.Context, req spi.ListExecutionsRequest, failed func(error)) (pages []spi.ListExecutionsResponse) {
	for _, shard := range s.shards {
		res, err := spi.ListExecutions(ctx, shard, req)
		if err != nil {
			failed(err)
			continue
		}
		pages = append(pages, res)
	}
	return pages
}

// joined returns the pages of several shards as one, in the order of ids.
func joined(pages []spi.ListExecutionsResponse, limit int) (all spi.ListExecutionsResponse) {
	for _, p := range pages {
		all.Executions, all.Receipt = append(all.Executions, p.Executions...), append(all.Receipt, p.Receipt...)
	}
	all.Executions, all.Next = page(all.Executions, func(id spi.ExecutionID) string { return string(id) }, "", limit, func(a, b string) int { return cmp.Compare(a, b) })
	return all
}

// configuredReceipt has the receipt that an empty page had at first.
type configuredReceipt struct {
	split
	receipt spi.Receipt
}

func newConfiguredReceipt(s split) configuredReceipt {
	first, _ := s.ListExecutions(context.Background(), spi.ListExecutionsRequest{Limit: 1})
	return configuredReceipt{s, first.Receipt}
}

func (m configuredReceipt) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	res, err := m.sound.ListExecutions(ctx, req)
	res.Receipt = slices.Clone(m.receipt)
	return res, err
}

type silentlyPartial struct{ split }

func (m silentlyPartial) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	return joined(m.pages(ctx, req, func(error) {}), req.Limit), ctx.Err()
}

type silentlyPartialRefs struct{ split }

func (m silentlyPartialRefs) ListRefs(ctx context.Context, req spi.ListRefsRequest) (spi.ListRefsResponse, error) {
	res, err := m.sound.ListRefs(ctx, req)
	if err != nil && ctx.Err() == nil {
		return spi.ListRefsResponse{}, nil
	}
	return res, err
}

type silentlyPartialSweep struct{ split }

func (m silentlyPartialSweep) SweepTombstones(ctx context.Context, req spi.SweepTombstonesRequest) (spi.SweepTombstonesResponse, error) {
	res, err := m.sound.SweepTombstones(ctx, req)
	if err != nil && ctx.Err() == nil {
		return spi.SweepTombstonesResponse{}, nil
	}
	return res, err
}

type namelessError struct{ split }

func (m namelessError) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	res, err := m.sound.ListExecutions(ctx, req)
	if shard, ok := errors.AsType[*spi.ShardError](err); ok {
		return res, shard.Err
	}
	return res, err
}

type trustsShards struct{ split }

func (m trustsShards) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (res spi.ListExecutionsResponse, err error) {
	pages := m.pages(ctx, req, func(e error) { err = e })
	return joined(pages, req.Limit), err
}

type shardOrder struct{ split }

func (m shardOrder) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (all spi.ListExecutionsResponse, err error) {
	for _, p := range m.pages(ctx, req, func(e error) { err = e }) {
		all.Executions, all.Receipt = append(all.Executions, p.Executions...), append(all.Receipt, p.Receipt...)
	}
	if len(all.Executions) > req.Limit {
		all.Executions = all.Executions[:req.Limit]
		all.Next = string(all.Executions[req.Limit-1])
	}
	return all, err
}

type timersOfAllShards struct{ split }

func (m timersOfAllShards) DueTimers(ctx context.Context, req spi.DueTimersRequest) (spi.DueTimersResponse, error) {
	for _, shard := range m.shards {
		if _, err := spi.DueTimers(ctx, shard, req); err != nil {
			return spi.DueTimersResponse{}, err
		}
	}
	return m.sound.DueTimers(ctx, req)
}

type missingNotNamed struct{ split }

func (m missingNotNamed) DueTimers(ctx context.Context, req spi.DueTimersRequest) (spi.DueTimersResponse, error) {
	res, err := m.sound.DueTimers(ctx, req)
	res.Missing = nil
	return res, err
}

type batchOfAllShards struct{ split }

func (m batchOfAllShards) AppendBatch(ctx context.Context, req spi.AppendBatchRequest) (spi.AppendBatchResponse, error) {
	res, err := m.sound.AppendBatch(ctx, req)
	for _, r := range res.Results {
		if shard, failed := errors.AsType[*spi.ShardError](r.Err); failed {
			return spi.AppendBatchResponse{}, shard
		}
	}
	return res, err
}

// copyOnWrongShard asks each shard to copy, as if all had the same slots.
type copyOnWrongShard struct{ split }

func (m copyOnWrongShard) CopyPrefix(ctx context.Context, req spi.CopyPrefixRequest) (res spi.CopyPrefixResponse, err error) {
	owned, err := m.GetOwnership(ctx, spi.GetOwnershipRequest{})
	if err != nil {
		return res, err
	}
	for i, shard := range m.shards {
		for _, slot := range owned.Shards[i].Slots {
			req.FromRoute = spi.Route{Slot: slot.Slot, Epoch: slot.Epoch}
			req.Route = req.FromRoute
			if res, err = spi.CopyPrefix(ctx, shard, req); err == nil {
				return res, nil
			}
		}
	}
	return res, err
}

type leaseWithoutRoute struct{ split }

func (m leaseWithoutRoute) AcquireLease(ctx context.Context, req spi.AcquireLeaseRequest) (spi.AcquireLeaseResponse, error) {
	return spi.AcquireLease(ctx, m.shards[0], req)
}

type refsOfOneShard struct{ split }

func (m refsOfOneShard) ListRefs(ctx context.Context, req spi.ListRefsRequest) (spi.ListRefsResponse, error) {
	return spi.ListRefs(ctx, m.shards[0], req)
}
