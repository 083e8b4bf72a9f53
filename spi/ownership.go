package spi

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// OwnershipBackend is what a store can tell about the part of the whole that it
// holds. A shard keeps this itself, beside its data; whoever routes has a copy.
//
// What a call stores lies in the slot that the call states, and stays there: the
// same name under another slot is [MisroutedError], whoever owns that slot.
type OwnershipBackend interface {
	// GetOwnership returns what each shard below says of itself: nothing where no
	// store has an identity. Anyone may call it; through a tenant's view the pins
	// of other tenants are left out.
	GetOwnership(context.Context, GetOwnershipRequest) (GetOwnershipResponse, error)
}

// OwnershipChanger is optional, and never offered through a tenant's view.
type OwnershipChanger interface {
	// ChangeOwnership changes a shard's identity or slots, all or nothing, if the
	// ownership version is the one that the caller saw. It waits for the writes
	// under way, and no later write slips past it. A change that a slot's state
	// does not allow, see [SlotState], is [OwnershipError]. Operators' tools call
	// it.
	ChangeOwnership(context.Context, ChangeOwnershipRequest) (ChangeOwnershipResponse, error)
}

// OwnershipMethods is the whole group.
type OwnershipMethods interface {
	OwnershipBackend
	OwnershipChanger
}

// A SlotState says what a shard does with a slot.
//
// The states of a move are, at the source, owned(e), frozen(e), released(e+1), and
// at the target receiving(e), owned(e+1). The source's release is the point of no
// return; anyone may finish from there. A shard takes a slot that it never had as
// owned or receiving, unfreezes with frozen(e) to owned(e), gives a reception up
// with receiving(e) to released(e), takes a released slot back as receiving, and
// raises an epoch with owned(e) to owned(e+1). A pin's tenant never changes.
type SlotState uint8

// The states of a slot.
const (
	SlotOwned     SlotState = iota + 1 // serves all calls
	SlotFrozen                         // on its way out: lists, and refuses calls
	SlotReleased                       // gone to the peer: refuses calls
	SlotReceiving                      // on its way in: refuses calls
)

func (s SlotState) String() string {
	switch s {
	case SlotOwned:
		return "owned"
	case SlotFrozen:
		return "frozen"
	case SlotReleased:
		return "released"
	case SlotReceiving:
		return "receiving"
	}
	return fmt.Sprintf("slot state %d", uint8(s))
}

// Lists reports whether a slot in that state is part of a shard's pages.
func (s SlotState) Lists() bool { return s == SlotOwned || s == SlotFrozen }

// Follows returns "" if a slot may go from one record to another, or why not. A
// record without a state is of a slot that the shard never had.
func (next SlotRecord) Follows(now SlotRecord) string {
	switch {
	case now.State != 0 && next.Tenant != now.Tenant:
		return fmt.Sprintf("the tenant of slot %d never changes", next.Slot)
	case now.State == 0 && (next.State == SlotOwned || next.State == SlotReceiving),
		now.State == SlotOwned && next.State == SlotFrozen && next.Epoch == now.Epoch,
		now.State == SlotOwned && next.State == SlotOwned && next.Epoch == now.Epoch+1,
		now.State == SlotFrozen && next.State == SlotOwned && next.Epoch == now.Epoch,
		now.State == SlotFrozen && next.State == SlotReleased && next.Epoch == now.Epoch+1,
		now.State == SlotReceiving && next.State == SlotOwned && next.Epoch == now.Epoch+1,
		now.State == SlotReceiving && next.State == SlotReleased && next.Epoch == now.Epoch,
		now.State == SlotReleased && next.State == SlotReceiving && next.Epoch >= now.Epoch:
		return ""
	case now.State == 0:
		return fmt.Sprintf("slot %d cannot begin as %v", next.Slot, next.State)
	}
	return fmt.Sprintf("slot %d cannot go from %v at epoch %d to %v at epoch %d", next.Slot, now.State, now.Epoch, next.State, next.Epoch)
}

// Apply returns what a shard says of itself after a change, or an
// [OwnershipError]: the rules of [OwnershipChanger], for backends. holds is whether
// the store holds anything; the zero ShardOwnership is of one without an identity.
func (o ShardOwnership) Apply(req ChangeOwnershipRequest, holds bool) (ShardOwnership, error) {
	refuse := func(reason string) (ShardOwnership, error) {
		return ShardOwnership{}, &OwnershipError{o.Identity.Shard, o.Version, reason}
	}
	next := ShardOwnership{o.Identity, o.Version + 1, slices.Clone(o.Slots)}
	if req.Identity != (Identity{}) {
		next.Identity = req.Identity
	}
	switch {
	case req.ExpectedVersion != o.Version:
		return refuse("it is not at the version expected")
	case o.Version == 0 && holds:
		return refuse("a store that holds something takes no identity")
	case o.Version > 0 && (next.Identity.Cluster != o.Identity.Cluster || next.Identity.Shard != o.Identity.Shard):
		return refuse("a shard never changes its name or its cluster")
	}
	for _, record := range req.Slots {
		i, found := slices.BinarySearchFunc(next.Slots, record.Slot, func(r SlotRecord, s Slot) int { return int(r.Slot) - int(s) })
		if !found {
			next.Slots = slices.Insert(next.Slots, i, SlotRecord{Slot: record.Slot})
		}
		if reason := record.Follows(next.Slots[i]); reason != "" {
			return refuse(reason)
		}
		next.Slots[i] = record
	}
	return next, nil
}

// Requests and responses of the group.
type (
	// An Identity says which shard of which cluster a store is.
	Identity struct {
		Cluster string // 1 to MaxDescription bytes
		Shard   string // 1 to MaxDescription bytes

		// Fingerprint names the placement: rule, hash and number of slots. Shards
		// of one cluster have the same.
		Fingerprint string

		// MinWriter is the lowest version of the events group that may write here.
		// Writers read it and refuse themselves.
		MinWriter Version
	}

	// A SlotRecord is what a shard knows about a slot.
	SlotRecord struct {
		Slot   Slot
		State  SlotState
		Epoch  int64      // from 1
		Peer   string     // the other shard of a move
		Tenant TenantName // whom a pin binds; "" for hash slots
	}

	// A ShardOwnership is what one shard says of itself.
	ShardOwnership struct {
		Identity Identity
		Version  int64        // raised by each change
		Slots    []SlotRecord // ascending
	}

	// A GetOwnershipRequest asks what is owned.
	GetOwnershipRequest struct{}

	// A GetOwnershipResponse holds one entry a shard.
	GetOwnershipResponse struct{ Shards []ShardOwnership }

	// A ChangeOwnershipRequest says what to change.
	ChangeOwnershipRequest struct {
		// ExpectedVersion is the ownership version that the caller saw; 0 gives an
		// identity to a store that has none and holds nothing.
		ExpectedVersion int64

		// Identity is required with ExpectedVersion 0. Later, the zero Identity
		// leaves it as it is; only Fingerprint and MinWriter can change.
		Identity Identity

		// Slots replace the records of those slots.
		Slots []SlotRecord
	}

	// A ChangeOwnershipResponse holds what is owned now.
	ChangeOwnershipResponse struct{ Ownership ShardOwnership }
)

// Validate implements the rules of [GetOwnershipRequest].
func (r GetOwnershipRequest) Validate() error { return nil }

// Validate implements the rules of [ChangeOwnershipRequest].
func (r ChangeOwnershipRequest) Validate() error {
	if err := notNegative("expected version", r.ExpectedVersion); err != nil {
		return err
	}
	if id := r.Identity; r.ExpectedVersion == 0 || id != (Identity{}) {
		if err := first(validName("cluster", id.Cluster, 1, MaxDescription), validName("shard", id.Shard, 1, MaxDescription),
			validName("fingerprint", id.Fingerprint, 1, MaxDescription)); err != nil {
			return err
		}
		if v := id.MinWriter; min(v.Major, v.Minor) < 0 || max(v.Major, v.Minor) > math.MaxInt32 {
			return &InvalidArgumentError{"min writer", "is no version"}
		}
	}
	seen := make(map[Slot]bool, len(r.Slots))
	for i, s := range r.Slots {
		if rule := s.fault(seen[s.Slot]); rule != "" {
			return &InvalidArgumentError{fmt.Sprintf("slots[%d]", i), rule}
		}
		seen[s.Slot] = true
	}
	return nil
}

// fault returns the rule that a record breaks, or "".
func (r SlotRecord) fault(seen bool) string {
	switch {
	case seen:
		return "repeats a slot"
	case r.State < SlotOwned || r.State > SlotReceiving:
		return "has no state"
	case r.Epoch < 1:
		return "has an epoch below 1"
	case r.Slot < FirstPin && r.Tenant != "":
		return "is a hash slot with a tenant"
	case r.Slot >= FirstPin && r.Tenant.Validate() != nil:
		return "is a pin without a tenant"
	case validName("peer", r.Peer, 0, MaxDescription) != nil:
		return "has a peer that is no name"
	}
	return ""
}

// GetOwnership returns what each shard says of itself; see [OwnershipBackend.GetOwnership].
func GetOwnership(ctx context.Context, s *Store, req GetOwnershipRequest) (GetOwnershipResponse, error) {
	return call(ctx, s, CapOwnership, "GetOwnership", req, methods.GetOwnership)
}

// ChangeOwnership changes what a shard owns; see [OwnershipChanger.ChangeOwnership].
func ChangeOwnership(ctx context.Context, s *Store, req ChangeOwnershipRequest) (ChangeOwnershipResponse, error) {
	return call(ctx, s, CapChangeOwnership, "ChangeOwnership", req, methods.ChangeOwnership)
}
