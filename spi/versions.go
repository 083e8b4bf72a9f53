package spi

import "fmt"

// A Group is a set of methods that belong together and carry one version.
type Group string

// The groups.
const (
	Events    Group = "events"
	Timers    Group = "timers"
	Refs      Group = "refs"
	Leases    Group = "leases"
	DataKeys  Group = "data keys"
	Ownership Group = "ownership"
)

// A Version is a semantic version without a patch. Another major cannot be worked
// with; a higher minor offers more.
type Version struct{ Major, Minor int }

func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// Versions returns the version of each group in this package. Events and refs
// begin at 2: in version 1 a store chose its own order and cursors, so pages of
// several stores could not be merged.
func Versions() map[Group]Version {
	return map[Group]Version{
		Events:    {2, 1},
		Refs:      {2, 1},
		Timers:    {1, 0},
		Leases:    {1, 0},
		DataKeys:  {1, 0},
		Ownership: {1, 0},
	}
}

// CheckCompatibility returns a [CompatibilityError] if a group that a peer or a
// database has is of another major version than here. A group that is missing is
// not offered, and one that is unknown here is not used.
func CheckCompatibility(have map[Group]Version) error {
	for _, group := range [...]Group{Events, Timers, Refs, Leases, DataKeys, Ownership} {
		want := Versions()[group]
		if v, ok := have[group]; ok && v.Major != want.Major {
			return &CompatibilityError{group, v, want}
		}
	}
	return nil
}
