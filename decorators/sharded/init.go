package sharded

import (
	"context"
	"errors"
	"slices"

	"github.com/loomgate/loomgate/spi"
)

// Share shares the hash slots out evenly over n shards, 1 to 4,096: what each of
// them owns when a cluster begins.
func Share(n int) [][]spi.SlotRecord {
	shares := make([][]spi.SlotRecord, n)
	for slot := range spi.HashSlots {
		i := slot * n / spi.HashSlots
		shares[i] = append(shares[i], spi.SlotRecord{Slot: spi.Slot(slot), State: spi.SlotOwned, Epoch: 1})
	}
	return shares
}

// Init makes a cluster of empty shards. Each gets its name, which is required here,
// and its [Share] by its place in the list. Where all have an identity already,
// Init does nothing; where an earlier one was interrupted, it goes on.
//
// Some shards with an identity among others without is otherwise [IdentityError],
// and nothing is changed: a shard joins a cluster by an identity without slots, and
// is then given some.
func Init(ctx context.Context, cluster string, placement Placement, shards []Shard) error {
	s, err := newSharded(shards, Options{Placement: placement})
	if err != nil {
		return err
	}
	outcomes := scatter(s, func(i int) ([]spi.ShardOwnership, error) { return s.ask(ctx, i) })
	begin := make([]spi.ChangeOwnershipRequest, len(shards))
	var empty []int
	for i, share := range Share(len(shards)) {
		if outcomes[i].err != nil {
			return s.failed(ctx, i, outcomes[i].err)
		}
		begin[i] = spi.ChangeOwnershipRequest{Slots: share, Identity: spi.Identity{
			Cluster: cluster, Shard: shards[i].Name, Fingerprint: placement.Fingerprint(),
			MinWriter: spi.Version{Major: spi.Versions()[spi.Events].Major},
		}}
		if err := begin[i].Validate(); err != nil {
			return err
		}
		if len(outcomes[i].res) == 0 {
			empty = append(empty, i)
		}
	}
	for i, o := range outcomes {
		for _, own := range o.res {
			if len(empty) > 0 && (own.Identity != begin[i].Identity || !slices.Equal(own.Slots, begin[i].Slots)) {
				return &IdentityError{Shard: shards[i].Name, Reason: "is in use, while others are empty"}
			}
		}
	}
	for _, i := range empty {
		if err := s.begin(ctx, i, begin[i]); err != nil {
			return err
		}
	}
	return nil
}

// begin gives a shard its identity and slots, unless somebody else has given it the same
// meanwhile.
func (s *sharded) begin(ctx context.Context, i int, with spi.ChangeOwnershipRequest) error {
	_, err := spi.ChangeOwnership(ctx, s.shards[i].store, with)
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*spi.OwnershipError](err); !ok || e.Version == 0 {
		return s.failed(ctx, i, err)
	}
	given, err := s.ask(ctx, i)
	if err != nil {
		return s.failed(ctx, i, err)
	}
	if len(given) != 1 || given[0].Identity != with.Identity || !slices.Equal(given[0].Slots, with.Slots) {
		return &IdentityError{Shard: with.Identity.Shard, Reason: "was given another identity meanwhile"}
	}
	return nil
}
