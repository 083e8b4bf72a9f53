package spi

import (
	"fmt"
	"slices"
	"strings"
)

// A Slot is a part of the whole that one shard owns at a time: 0 to 4095 are
// ranges of the placement hash, the rest are pins.
type Slot uint16

const (
	// HashSlots is the number of slots that the placement hash chooses from.
	HashSlots = 4096

	// FirstPin is the lowest slot that binds a tenant to a shard.
	FirstPin Slot = HashSlots
)

// A Route says which slot a call is for and the epoch at which the caller believes
// the shard to own it. The shard checks both in the transaction that does the work.
//
// Only a layer that routes sets one. The zero Route is of a call that nothing has
// routed: a store with an identity refuses it, and one without refuses any other.
type Route struct {
	Slot  Slot
	Epoch int64 // from 1
}

func (r Route) validate() error {
	if r.Epoch < 0 || r.Epoch == 0 && r.Slot != 0 {
		return &InvalidArgumentError{"route", fmt.Sprintf("has epoch %d for slot %d", r.Epoch, r.Slot)}
	}
	return nil
}

// A SlotRange is the slots from First to Last, both included.
type SlotRange struct{ First, Last Slot }

// A SlotSet is a set of slots: ranges in ascending order that neither meet nor
// touch. The zero SlotSet is empty.
type SlotSet []SlotRange

// NewSlotSet returns the set of slots, given in any order.
func NewSlotSet(slots ...Slot) SlotSet {
	slots = slices.Clone(slots)
	slices.Sort(slots)
	var set SlotSet
	for _, s := range slots {
		set = set.add(SlotRange{s, s})
	}
	return set
}

// HashSlotSet returns the set of all hash slots.
func HashSlotSet() SlotSet { return SlotSet{{0, HashSlots - 1}} }

// Contains reports whether slot is in the set.
func (s SlotSet) Contains(slot Slot) bool {
	_, found := slices.BinarySearchFunc(s, slot, func(r SlotRange, slot Slot) int {
		switch {
		case r.Last < slot:
			return -1
		case r.First > slot:
			return 1
		}
		return 0
	})
	return found
}

func (s SlotSet) String() string {
	if len(s) == 0 {
		return "none"
	}
	var b strings.Builder
	for i, r := range s {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprint(&b, r.First)
		if r.Last > r.First {
			fmt.Fprintf(&b, "-%d", r.Last)
		}
	}
	return b.String()
}

// add appends a range that begins no earlier than the set's last one.
func (s SlotSet) add(r SlotRange) SlotSet {
	if n := len(s); n > 0 && int(r.First) <= int(s[n-1].Last)+1 {
		s[n-1].Last = max(s[n-1].Last, r.Last)
		return s
	}
	return append(s, r)
}

// CheckCoverage returns a [CoverageError] unless the covered sets hold every slot
// of want, and no two of them one slot.
func CheckCoverage(want SlotSet, covered ...SlotSet) error {
	var ranges []SlotRange
	for _, set := range covered {
		ranges = append(ranges, set...)
	}
	slices.SortFunc(ranges, func(a, b SlotRange) int { return int(a.First) - int(b.First) })
	var all, twice SlotSet
	for _, r := range ranges {
		if n := len(all); n > 0 && r.First <= all[n-1].Last {
			twice = twice.add(SlotRange{r.First, min(r.Last, all[n-1].Last)})
		}
		all = all.add(r)
	}
	missing := want.without(all)
	if len(missing)+len(twice) > 0 {
		return &CoverageError{missing, twice}
	}
	return nil
}

// without returns the slots of s that are not in other.
func (s SlotSet) without(other SlotSet) SlotSet {
	var rest SlotSet
	for _, r := range s {
		next := int(r.First)
		for _, o := range other {
			if int(o.Last) < next {
				continue
			}
			if o.First > r.Last {
				break
			}
			if int(o.First) > next {
				rest = append(rest, SlotRange{Slot(next), o.First - 1})
			}
			next = int(o.Last) + 1
		}
		if next <= int(r.Last) {
			rest = append(rest, SlotRange{Slot(next), r.Last})
		}
	}
	return rest
}

// A Receipt says what a page covers, one entry a shard, from the snapshots that
// the page was read in. It is empty where no store below has an identity.
type Receipt []ShardReceipt

// A ShardReceipt is one shard's part of a page.
type ShardReceipt struct {
	Shard   string
	Version int64   // the ownership version of the snapshot
	Slots   SlotSet // the slots whose names the page holds; nil where the caller knows Version
}
