package sqlite

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/loomgate/loomgate/spi"
)

// ownership is what the store says of itself at a version, and never changes.
// Version 0 is a store without an identity: what it holds was never routed. Rows
// that were and rows that were not never meet, since only an empty store takes an
// identity.
type ownership struct {
	identity spi.Identity
	version  int64
	slots    map[spi.Slot]spi.SlotRecord
	listed   spi.SlotSet // never nil from version 1 on
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

// lists reports whether a row of slot is on the store's pages.
func (o *ownership) lists(slot spi.Slot) bool {
	return o.version == 0 || o.slots[slot].State.Lists()
}

// owns reports whether calls may change a row of slot.
func (o *ownership) owns(slot spi.Slot) bool {
	return o.version == 0 || o.slots[slot].State == spi.SlotOwned
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

func newOwnership(said spi.ShardOwnership) *ownership {
	o := &ownership{identity: said.Identity, version: said.Version, slots: make(map[spi.Slot]spi.SlotRecord, len(said.Slots))}
	var listed []spi.Slot
	for _, record := range said.Slots {
		o.slots[record.Slot] = record
		if record.State.Lists() {
			listed = append(listed, record.Slot)
		}
	}
	o.listed = append(spi.SlotSet{}, spi.NewSlotSet(listed...)...)
	return o
}

// ownershipIn returns what holds in a connection's transaction. The version is read
// each time, the slots only when it is another than last time.
func (s *store) ownershipIn(c *session) (*ownership, error) {
	var said spi.ShardOwnership
	identity := &said.Identity
	_, err := c.get(`SELECT version, cluster, shard, fingerprint, writer_major, writer_minor FROM ownership`, nil,
		&said.Version, &identity.Cluster, &identity.Shard, &identity.Fingerprint, &identity.MinWriter.Major, &identity.MinWriter.Minor)
	if err != nil {
		return nil, err
	}
	if last := s.ownership.Load(); last != nil && last.version == said.Version {
		return last, nil
	}
	err = c.each(`SELECT slot, state, epoch, peer, tenant FROM slots ORDER BY slot`, nil, func(scan scan) (bool, error) {
		var r spi.SlotRecord
		err := scan(&r.Slot, &r.State, &r.Epoch, &r.Peer, &r.Tenant)
		said.Slots = append(said.Slots, r)
		return true, err
	})
	if err != nil {
		return nil, err
	}
	o := newOwnership(said)
	s.ownership.Store(o)
	return o, nil
}

func (s *store) GetOwnership(ctx context.Context, _ spi.GetOwnershipRequest) (res spi.GetOwnershipResponse, err error) {
	err = s.read(ctx, "", func(t *tx) error {
		if t.ownership.version > 0 {
			res.Shards = []spi.ShardOwnership{t.ownership.describe()}
		}
		return nil
	})
	return res, err
}

// ChangeOwnership is one writing transaction as every write is, in this process and
// in others: those before it are committed, and those after it see it.
func (s *store) ChangeOwnership(ctx context.Context, req spi.ChangeOwnershipRequest) (res spi.ChangeOwnershipResponse, err error) {
	err = s.write(ctx, "", func(t *tx) error {
		empty, err := t.empty()
		if err != nil {
			return err
		}
		next, err := t.ownership.describe().Apply(req, !empty)
		if err != nil {
			return err
		}
		if err := t.saveOwnership(next, req.Slots); err != nil {
			return err
		}
		t.ownership = newOwnership(next)
		res.Ownership = next
		return nil
	})
	return res, err
}

func (t *tx) saveOwnership(next spi.ShardOwnership, changed []spi.SlotRecord) error {
	if _, err := t.exec(`DELETE FROM ownership`); err != nil {
		return err
	}
	identity := next.Identity
	_, err := t.exec(`INSERT INTO ownership (version, cluster, shard, fingerprint, writer_major, writer_minor) VALUES (?, ?, ?, ?, ?, ?)`,
		next.Version, identity.Cluster, identity.Shard, identity.Fingerprint, identity.MinWriter.Major, identity.MinWriter.Minor)
	if err != nil {
		return err
	}
	for _, r := range changed {
		_, err := t.exec(`INSERT OR REPLACE INTO slots (slot, state, epoch, peer, tenant) VALUES (?, ?, ?, ?, ?)`,
			r.Slot, r.State, r.Epoch, r.Peer, string(r.Tenant))
		if err != nil {
			return err
		}
	}
	return nil
}

// empty reports whether the store holds nothing.
func (t *tx) empty() (empty bool, err error) {
	_, err = t.get(`SELECT NOT (
		EXISTS (SELECT 1 FROM executions) OR
		EXISTS (SELECT 1 FROM timers) OR
		EXISTS (SELECT 1 FROM refs) OR
		EXISTS (SELECT 1 FROM leases) OR
		EXISTS (SELECT 1 FROM data_keys))`, nil, &empty)
	return empty, err
}
