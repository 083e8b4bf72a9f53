package sharded

import (
	"fmt"

	"github.com/loomgate/loomgate/spi"
)

// The errors of this package name shards, tenants and stored names. They are none
// of package spi, so that [spi.RenameError] hides them from tenants.

// An IdentityError refuses a shard for what it says of itself.
type IdentityError struct {
	Shard   string
	Missing bool // it has none: Init gives it one
	Reason  string
}

func (e *IdentityError) Error() string { return fmt.Sprintf("shard %q %s", e.Shard, e.Reason) }

// An OverlapError says which shards hold slots that only one may hold.
type OverlapError struct {
	Shards   []string
	Coverage *spi.CoverageError
}

func (e *OverlapError) Error() string { return fmt.Sprintf("shards %q: %v", e.Shards, e.Coverage) }

// Unwrap returns the slots.
func (e *OverlapError) Unwrap() error { return e.Coverage }

// A PinError says that a tenant is pinned twice.
type PinError struct {
	Tenant spi.TenantName
	Slots  [2]spi.Slot
}

func (e *PinError) Error() string {
	return fmt.Sprintf("tenant %q is pinned by slot %d and by slot %d", e.Tenant, e.Slots[0], e.Slots[1])
}

// An UnreadError says that nobody knows who owns a slot, since the map was not read
// from these shards. It comes in a [spi.UnavailableError].
type UnreadError struct {
	Shards []string
	Cause  error // of the first
}

func (e *UnreadError) Error() string {
	return fmt.Sprintf("shards %q have not said what they own: %v", e.Shards, e.Cause)
}

// Unwrap returns the cause.
func (e *UnreadError) Unwrap() error { return e.Cause }

// A ForeignError says that a shard answers for slots that are not its own. It comes
// in a [spi.ShardError].
type ForeignError struct {
	Slots spi.SlotSet
	Name  string // what it lists of the slot; "" if its receipt claims the slots
}

func (e *ForeignError) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("claims slots that it does not own: %v", e.Slots)
	}
	return fmt.Sprintf("lists %q of slot %v, which it does not own", e.Name, e.Slots)
}
