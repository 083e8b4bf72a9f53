package sharded

import (
	"cmp"
	"context"
	"fmt"

	"github.com/loomgate/loomgate/spi"
)

// A WriterError says that a shard takes writes only from later versions than the
// caller's. It comes in a [spi.UnavailableError]: nothing was done, and a newer program
// over the same shards can do it. Reads go on.
type WriterError struct {
	Shard       string
	Needs, Have spi.Version // of the events group
}

func (e *WriterError) Error() string {
	return fmt.Sprintf("shard %q takes writes from version %v of the events group on, and this is %v", e.Shard, e.Needs, e.Have)
}

// Refuses returns why a shard takes no writes from a version, or nil.
func Refuses(own spi.ShardOwnership, have spi.Version) *WriterError {
	if id := own.Identity; compare(have, id.MinWriter) < 0 {
		return &WriterError{id.Shard, id.MinWriter, have}
	}
	return nil
}

func compare(a, b spi.Version) int {
	return cmp.Or(cmp.Compare(a.Major, b.Major), cmp.Compare(a.Minor, b.Minor))
}

// refused returns the error of a write to a shard that does not take it, or nil.
func (t *table) refused(i int) error {
	if refused := t.shards[i].refuses; refused != nil {
		return &spi.UnavailableError{Cause: refused}
	}
	return nil
}

// Refused returns the shards that take no writes from here, as they were last read.
func (c *Cluster) Refused() (all []*WriterError) {
	for _, said := range c.sharded.table.Load().shards {
		if said.refuses != nil {
			all = append(all, said.refuses)
		}
	}
	return all
}

// RequireWriter lets all shards take writes only from a version on, and returns the
// shards that did not ask for it yet. It raises the epoch of every slot with it, so
// that whoever has an earlier map is refused by the shards, reads the map again and
// finds itself refused, or not. No write of an older writer lands after it returns.
//
// It is an [spi.InvalidArgumentError] for a version that is later than the caller's own,
// or earlier than what a shard asks for; [spi.OwnershipError] while slots move. Then, and
// where a shard does not answer, nothing has changed. Where a shard fails later, some ask
// for the version and some do not: call it again.
func (c *Cluster) RequireWriter(ctx context.Context, v spi.Version) (raised []string, err error) {
	s := c.sharded
	if compare(s.writer, v) < 0 {
		return nil, &spi.InvalidArgumentError{Field: "version", Rule: fmt.Sprintf("is later than %v, which this is", s.writer)}
	}
	outcomes := scatter(s, func(i int) ([]spi.ShardOwnership, error) { return s.ask(ctx, i) })
	changes := make([]*spi.ChangeOwnershipRequest, len(outcomes))
	for i, o := range outcomes {
		if err := s.learn(i, o.res, o.err); err != nil {
			return nil, s.failed(ctx, i, err)
		}
		for _, own := range o.res {
			if changes[i], err = requireWriter(own, v); err != nil {
				return nil, err
			}
		}
	}
	for i, change := range changes {
		if change == nil {
			continue
		}
		res, err := spi.ChangeOwnership(ctx, s.shards[i].store, *change)
		if err != nil {
			return raised, s.failed(ctx, i, err)
		}
		if err := s.learn(i, []spi.ShardOwnership{res.Ownership}, nil); err != nil {
			return raised, s.failed(ctx, i, err)
		}
		raised = append(raised, res.Ownership.Identity.Shard)
	}
	return raised, nil
}

// requireWriter returns the change that lets a shard ask for a version; nil if it does.
func requireWriter(own spi.ShardOwnership, v spi.Version) (*spi.ChangeOwnershipRequest, error) {
	switch order := compare(v, own.Identity.MinWriter); {
	case order == 0:
		return nil, nil
	case order < 0:
		return nil, &spi.InvalidArgumentError{
			Field: "version", Rule: fmt.Sprintf("is earlier than %v, which shard %q asks for", own.Identity.MinWriter, own.Identity.Shard),
		}
	}
	change := &spi.ChangeOwnershipRequest{ExpectedVersion: own.Version, Identity: own.Identity}
	change.Identity.MinWriter = v
	for _, slot := range own.Slots {
		switch slot.State {
		case spi.SlotOwned:
			slot.Epoch++
			change.Slots = append(change.Slots, slot)
		case spi.SlotFrozen, spi.SlotReceiving: // its epoch cannot change; it would come back with the one that old maps have
			return nil, &spi.OwnershipError{Shard: own.Identity.Shard, Version: own.Version, Reason: fmt.Sprintf("slot %d moves: try again when it has", slot.Slot)}
		}
	}
	return change, nil
}
