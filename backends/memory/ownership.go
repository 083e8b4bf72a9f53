package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/loomgate/loomgate/spi"
)

// ownership is what the store says of itself. Version 0 is a store without an
// identity: what it holds was never routed. Rows that were and rows that were not
// never meet, since only an empty store takes an identity.
type ownership struct {
	identity spi.Identity
	version  int64
	slots    map[spi.Slot]spi.SlotRecord
	listed   spi.SlotSet // computed once a version, never nil from version 1 on
}

// admit returns an error unless a call with that route may work on a row of slot.
func (o *ownership) admit(route spi.Route, slot spi.Slot) error {
	if o.version == 0 && route.Epoch == 0 {
		return nil
	}
	record := o.slots[route.Slot]
	switch {
	case route.Epoch == 0 || record.State == 0:
	case record.State != spi.SlotOwned:
		return &spi.SlotMovingError{Shard: o.identity.Shard, Slot: route.Slot, State: record.State}
	case record.Epoch == route.Epoch && slot == route.Slot:
		return nil
	}
	return &spi.MisroutedError{Shard: o.identity.Shard, Route: route, Epoch: record.Epoch}
}

// lists reports whether a row is on the store's pages.
func (o *ownership) lists(r row) bool {
	return o.version == 0 || o.slots[r.place()].State.Lists()
}

// owns reports whether calls may change a row.
func (o *ownership) owns(r row) bool {
	return o.version == 0 || o.slots[r.place()].State == spi.SlotOwned
}

// receipt is a page's, for a caller that knows the slots of a version.
func (o *ownership) receipt(known int64) spi.Receipt {
	if o.version == 0 {
		return nil
	}
	r := spi.ShardReceipt{Shard: o.identity.Shard, Version: o.version}
	if known != o.version {
		r.Slots = slices.Clone(o.listed)
	}
	return spi.Receipt{r}
}

func (o *ownership) describe() spi.ShardOwnership {
	slots := slices.SortedFunc(maps.Values(o.slots), func(a, b spi.SlotRecord) int { return cmp.Compare(a.Slot, b.Slot) })
	return spi.ShardOwnership{Identity: o.identity, Version: o.version, Slots: slots}
}

func (s *store) GetOwnership(ctx context.Context, _ spi.GetOwnershipRequest) (res spi.GetOwnershipResponse, err error) {
	if err := begin(ctx, s.mu.RLocker()); err != nil {
		return res, err
	}
	defer s.mu.RUnlock()
	if s.ownership.version > 0 {
		res.Shards = []spi.ShardOwnership{s.ownership.describe()}
	}
	return res, nil
}

func (s *store) ChangeOwnership(ctx context.Context, req spi.ChangeOwnershipRequest) (res spi.ChangeOwnershipResponse, err error) {
	if err := begin(ctx, &s.mu); err != nil {
		return res, err
	}
	defer s.mu.Unlock()
	o := &s.ownership
	next, err := o.describe().Apply(req, !s.empty())
	if err != nil {
		return res, err
	}
	o.identity, o.version = next.Identity, next.Version
	for _, record := range req.Slots {
		o.slots[record.Slot] = record
	}
	var listed []spi.Slot
	for slot, record := range o.slots {
		if record.State.Lists() {
			listed = append(listed, slot)
		}
	}
	o.listed = append(spi.SlotSet{}, spi.NewSlotSet(listed...)...)
	return spi.ChangeOwnershipResponse{Ownership: o.describe()}, nil
}
