package spi

import (
	"math/bits"
	"strings"
)

// Caps is a set of what a store offers: groups, by their required methods, and
// optional methods.
type Caps uint64

// What a store can offer.
const (
	CapEvents    Caps = 1 << iota // Append, Read, Head, ListExecutions
	CapTimers                     // ScheduleTimer, DueTimers, CompleteTimer
	CapRefs                       // PutRef, GetRef, DeleteRef, ListRefs
	CapLeases                     // AcquireLease, RenewLease, ReleaseLease
	CapDataKeys                   // CreateDataKey, GetDataKey, DestroyDataKey, ListDataKeys
	CapOwnership                  // GetOwnership

	CapAppendBatch
	CapAcquireFence
	CapAcquireFenceIf
	CapAppendIfUnchanged
	CapCopyPrefix
	CapTruncatePrefixKeeping
	CapDeleteExecution
	CapSweepTombstones

	CapPromoteRef
	CapRefLineage

	CapRewrapDataKey

	CapChangeOwnership

	capEnd
)

// AllCaps is everything that this package knows of.
const AllCaps = capEnd - 1

// capNames are the names on the wire, in the order of the constants.
var capNames = [...]string{
	"Events", "Timers", "Refs", "Leases", "DataKeys", "Ownership",
	"AppendBatch", "AcquireFence", "AcquireFenceIf", "AppendIfUnchanged",
	"CopyPrefix", "TruncatePrefixKeeping", "DeleteExecution", "SweepTombstones",
	"PromoteRef", "RefLineage",
	"RewrapDataKey",
	"ChangeOwnership",
}

// Names returns the name of each member.
func (c Caps) Names() []string {
	var names []string
	for c &= AllCaps; c != 0; c &= c - 1 {
		names = append(names, capNames[bits.TrailingZeros64(uint64(c))])
	}
	return names
}

func (c Caps) String() string { return strings.Join(c.Names(), ", ") }

// Has reports whether c has every member of others.
func (c Caps) Has(others Caps) bool { return c&others == others }

// ParseCaps returns the set with those names. It leaves out names that it does
// not know: a newer peer may offer what this build cannot call.
func ParseCaps(names []string) Caps {
	var c Caps
	for _, name := range names {
		for i, known := range capNames {
			if name == known {
				c |= 1 << i
			}
		}
	}
	return c
}

// optionalOf lists each group's optional methods, which no store offers without
// the group's required ones.
var optionalOf = [...]struct{ group, optional Caps }{
	{CapEvents, CapAppendBatch | CapAcquireFence | CapAcquireFenceIf | CapAppendIfUnchanged | CapCopyPrefix | CapTruncatePrefixKeeping | CapDeleteExecution | CapSweepTombstones},
	{CapTimers, 0},
	{CapRefs, CapPromoteRef | CapRefLineage},
	{CapLeases, 0},
	{CapDataKeys, CapRewrapDataKey},
	{CapOwnership, CapChangeOwnership},
}
