package tenant

import (
	"context"
	"errors"
	"slices"

	"github.com/loomgate/loomgate/spi"
)

// GetOwnership leaves out the pins of other tenants.
func (v *view) GetOwnership(ctx context.Context, req spi.GetOwnershipRequest) (res spi.GetOwnershipResponse, err error) {
	if res, err = spi.GetOwnership(ctx, v.shared, req); err != nil {
		return res, v.outError(err)
	}
	for i := range res.Shards {
		res.Shards[i].Slots = slices.DeleteFunc(res.Shards[i].Slots, func(r spi.SlotRecord) bool {
			return r.Slot >= spi.FirstPin && r.Tenant != v.tenant
		})
	}
	return res, nil
}

// ChangeOwnership is not offered: what shards own is not a tenant's to change.
func (v *view) ChangeOwnership(context.Context, spi.ChangeOwnershipRequest) (spi.ChangeOwnershipResponse, error) {
	return spi.ChangeOwnershipResponse{}, &spi.UnsupportedError{Cap: spi.CapChangeOwnership}
}

// outReceipt leaves the pins of other tenants out of what a page covers. Whose a pin
// is, a receipt does not say; the shard does, and a pin never changes its tenant.
//
// A layer that spreads one tenant over views of single shards has to see the tenant's
// own pins, to know that nothing is missing. Where the page is of several shards, the
// layer that put it together has seen to that, and all pins are left out.
func (v *view) outReceipt(ctx context.Context, r spi.Receipt) error {
	if !slices.ContainsFunc(r, func(s spi.ShardReceipt) bool { return hasPins(s.Slots) }) {
		return nil
	}
	var own []spi.Slot
	if len(r) == 1 && v.shared.Offered().Has(spi.CapOwnership) {
		res, err := v.GetOwnership(ctx, spi.GetOwnershipRequest{})
		if err != nil {
			return err
		}
		for _, shard := range res.Shards {
			for _, s := range shard.Slots {
				if s.Slot >= spi.FirstPin {
					own = append(own, s.Slot)
				}
			}
		}
	}
	for i := range r {
		r[i].Slots = onlyPins(r[i].Slots, own)
	}
	return nil
}

func hasPins(set spi.SlotSet) bool { return len(set) > 0 && set[len(set)-1].Last >= spi.FirstPin }

// onlyPins leaves of the pins in a set only these, in ascending order. A set that is
// not nil stays so: nil is what a receipt tells to whoever knows the slots.
func onlyPins(set spi.SlotSet, pins []spi.Slot) spi.SlotSet {
	if !hasPins(set) {
		return set
	}
	kept := spi.SlotSet{}
	for _, r := range set {
		if r.First < spi.FirstPin {
			kept = append(kept, spi.SlotRange{First: r.First, Last: min(r.Last, spi.FirstPin-1)})
		}
	}
	for _, pin := range pins {
		switch n := len(kept); {
		case !set.Contains(pin):
		case n > 0 && kept[n-1].Last+1 == pin:
			kept[n-1].Last = pin
		default:
			kept = append(kept, spi.SlotRange{First: pin, Last: pin})
		}
	}
	return kept
}

// withoutPins leaves pins, which may be other tenants', out of a [spi.CoverageError]
// in err. One that is about nothing else says only that the page may be asked for
// again.
func withoutPins(err error) error {
	if _, found := errors.AsType[*spi.CoverageError](err); !found {
		return err
	}
	switch e := err.(type) { //nolint:errorlint // RenameError has left no other wrappers
	case *spi.OpError:
		return &spi.OpError{Op: e.Op, Err: withoutPins(e.Err)}
	case *spi.ShardError:
		return &spi.ShardError{Shard: e.Shard, Err: withoutPins(e.Err)}
	case *spi.UnavailableError:
		return &spi.UnavailableError{Cause: withoutPins(e.Cause)}
	case *spi.AmbiguousError:
		return &spi.AmbiguousError{Execution: e.Execution, Cause: withoutPins(e.Cause)}
	case *spi.CoverageError:
		masked := &spi.CoverageError{Missing: onlyPins(e.Missing, nil), Twice: onlyPins(e.Twice, nil)}
		if len(masked.Missing)+len(masked.Twice) == 0 {
			return &spi.UnavailableError{Cause: &spi.InternalError{Cause: e}}
		}
		return masked
	}
	return err
}
