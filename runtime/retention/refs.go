package retention

import (
	"context"
	"errors"

	"github.com/loomgate/loomgate/spi"
)

// refs prunes page by page. Each page looks once at each execution that its refs
// point at, so the cost is that of the refs.
func (r *run) refs(ctx context.Context) error {
	if !r.PruneRefs {
		return nil
	}
	var after string
	for {
		listed, err := spi.ListRefs(ctx, r.store, spi.ListRefsRequest{Prefix: r.Prefix, After: after, Limit: page})
		if err != nil {
			return err
		}
		heads := make(map[spi.ExecutionID]int64)
		for _, ref := range listed.Refs {
			r.report.Refs++
			if err := r.ref(ctx, ref, heads); err != nil {
				return &Error{ActionPrune, ref.Execution, err}
			}
		}
		if after = listed.Next; after == "" {
			return nil
		}
	}
}

func (r *run) ref(ctx context.Context, ref spi.Ref, heads map[spi.ExecutionID]int64) error {
	head, known := heads[ref.Execution]
	if !known {
		res, err := spi.Head(ctx, r.store, spi.HeadRequest{Execution: ref.Execution})
		if err != nil {
			return err
		}
		head = res.Head
		heads[ref.Execution] = head
	}
	if head > 0 && ref.Sequence <= head {
		return nil
	}
	r.Decided(Decision{Action: ActionPrune, Execution: ref.Execution, Ref: ref.Name})
	if r.DryRun {
		r.report.Pruned++
		return nil
	}
	res, err := spi.DeleteRef(ctx, r.store, spi.DeleteRefRequest{Name: ref.Name, ExpectedVersion: ref.Version})
	if _, moved := errors.AsType[*spi.RefVersionError](err); moved {
		return nil // it points elsewhere by now, or is gone
	}
	if res.Existed {
		r.report.Pruned++
	}
	return err
}

// tombstones forgets old deletions.
func (r *run) tombstones(ctx context.Context) error {
	if r.SweepAfter == 0 || r.DryRun {
		return nil
	}
	for {
		res, err := spi.SweepTombstones(ctx, r.store, spi.SweepTombstonesRequest{Prefix: r.Prefix, OlderThan: r.SweepAfter, Limit: page})
		r.report.Swept += res.Swept
		if err != nil || res.Swept < page {
			return err
		}
	}
}
