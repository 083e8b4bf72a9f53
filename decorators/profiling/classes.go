package profiling

import (
	"context"
	"errors"
	"reflect"

	"github.com/loomgate/loomgate/spi"
)

// A class is what became of a call: one of few, so that it can be a label.
type class int

// The classes that no error type of package spi has.
const (
	succeeded class = iota
	panicked
	canceled
	deadlineExceeded
	other // an error that is none of package spi
)

// errorClasses are the classes that one has. An error without a name only says where
// another comes from, and the class is that of the other.
var errorClasses = []struct {
	of   reflect.Type
	name string
}{
	{reflect.TypeFor[*spi.OpError](), ""},
	{reflect.TypeFor[*spi.ShardError](), ""},

	{reflect.TypeFor[*spi.AmbiguousError](), "ambiguous"},
	{reflect.TypeFor[*spi.CompatibilityError](), "compatibility"},
	{reflect.TypeFor[*spi.ConflictError](), "conflict"},
	{reflect.TypeFor[*spi.CoverageError](), "coverage"},
	{reflect.TypeFor[*spi.EmbeddingError](), "embedding"},
	{reflect.TypeFor[*spi.IncarnationError](), "incarnation"},
	{reflect.TypeFor[*spi.InternalError](), "internal"},
	{reflect.TypeFor[*spi.InvalidArgumentError](), "invalid_argument"},
	{reflect.TypeFor[*spi.KeyMismatchError](), "key_mismatch"},
	{reflect.TypeFor[*spi.LayerOrderError](), "layer_order"},
	{reflect.TypeFor[*spi.LeaseHeldError](), "lease_held"},
	{reflect.TypeFor[*spi.LeaseLostError](), "lease_lost"},
	{reflect.TypeFor[*spi.MisroutedError](), "misrouted"},
	{reflect.TypeFor[*spi.NotFoundError](), "not_found"},
	{reflect.TypeFor[*spi.OwnershipError](), "ownership"},
	{reflect.TypeFor[*spi.RangeError](), "range"},
	{reflect.TypeFor[*spi.RefVersionError](), "ref_version"},
	{reflect.TypeFor[*spi.ShreddedError](), "shredded"},
	{reflect.TypeFor[*spi.SlotMovingError](), "slot_moving"},
	{reflect.TypeFor[*spi.StaleFenceError](), "stale_fence"},
	{reflect.TypeFor[*spi.ThrottledError](), "throttled"},
	{reflect.TypeFor[*spi.TooLargeError](), "too_large"},
	{reflect.TypeFor[*spi.TruncatedError](), "truncated"},
	{reflect.TypeFor[*spi.UnavailableError](), "unavailable"},
	{reflect.TypeFor[*spi.UnsupportedError](), "unsupported"},
}

// classNames are the names of all classes, and classByType finds those of errorClasses.
var classNames, classByType = func() ([]string, map[reflect.Type]class) {
	names, byType := []string{"", "panic", "canceled", "deadline_exceeded", "other"}, map[reflect.Type]class{}
	for _, c := range errorClasses {
		if c.name != "" {
			byType[c.of] = class(len(names))
			names = append(names, c.name)
		}
	}
	return names, byType
}()

func (c class) String() string { return classNames[c] }

// internal hides an error that may be the context's.
var internal = classByType[reflect.TypeFor[*spi.InternalError]()]

// classOf returns the class of an error: that of the first in its chain that has one. An
// error that says nothing else may still be the context's.
func classOf(err error) class {
	if err == nil {
		return succeeded
	}
	c := other
	for e := err; e != nil && c == other; e = errors.Unwrap(e) {
		if known, ok := classByType[reflect.TypeOf(e)]; ok {
			c = known
		}
	}
	if c == other || c == internal {
		switch {
		case errors.Is(err, context.Canceled):
			return canceled
		case errors.Is(err, context.DeadlineExceeded):
			return deadlineExceeded
		}
	}
	return c
}
