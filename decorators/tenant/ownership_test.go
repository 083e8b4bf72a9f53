package tenant_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/loomgate/loomgate/spi"
)

// pinned returns acme's view of a shard that owns slots 0 to 9 and 4095, two pins of
// acme's and one of another, and is being given a third of acme's.
func pinned(t *testing.T) (*spy, *spi.Store) {
	t.Helper()
	shared := inMemory(t)
	slots := []spi.SlotRecord{{Slot: 4095}, {Slot: 4096, Tenant: "acme"}, {Slot: 4097, Tenant: "acm"}, {Slot: 65535, Tenant: "acme"}}
	for slot := range spi.Slot(10) {
		slots = append(slots, spi.SlotRecord{Slot: slot})
	}
	for i := range slots {
		slots[i].State, slots[i].Epoch = spi.SlotOwned, 1
	}
	slots = append(slots, spi.SlotRecord{Slot: 5000, State: spi.SlotReceiving, Epoch: 1, Tenant: "acme"})
	_, err := spi.ChangeOwnership(t.Context(), shared, spi.ChangeOwnershipRequest{
		Identity: spi.Identity{Cluster: "c", Shard: "s1", Fingerprint: "f"}, Slots: slots,
	})
	if err != nil {
		t.Fatal(err)
	}
	between, watched := spyOn(t, shared)
	return between, view(t, "acme", watched)
}

// receipts returns the receipt of each listing.
func receipts(t *testing.T, s *spi.Store, known int64) (all []spi.Receipt, errs error) {
	t.Helper()
	executions, err1 := spi.ListExecutions(t.Context(), s, spi.ListExecutionsRequest{Limit: 1, KnownOwnership: known})
	refs, err2 := spi.ListRefs(t.Context(), s, spi.ListRefsRequest{Limit: 1, KnownOwnership: known})
	keys, err3 := spi.ListDataKeys(t.Context(), s, spi.ListDataKeysRequest{Limit: 1, KnownOwnership: known})
	return []spi.Receipt{executions.Receipt, refs.Receipt, keys.Receipt}, errors.Join(err1, err2, err3)
}

func TestOwnershipShowsHashSlotsAndTheTenantsOwnPins(t *testing.T) {
	_, s := pinned(t)
	res, err := spi.GetOwnership(t.Context(), s, spi.GetOwnershipRequest{})
	if err != nil || len(res.Shards) != 1 || res.Shards[0].Identity.Shard != "s1" || res.Shards[0].Version != 1 {
		t.Fatal(res, err)
	}
	var slots []spi.Slot
	for _, r := range res.Shards[0].Slots {
		slots = append(slots, r.Slot)
	}
	if want := []spi.Slot{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 4095, 4096, 5000, 65535}; !slices.Equal(slots, want) {
		t.Errorf("slots are %v, not %v", slots, want)
	}
}

func TestTheReceiptOfOneShardShowsTheTenantsOwnPins(t *testing.T) {
	_, s := pinned(t)
	all, err := receipts(t, s, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if len(r) != 1 || r[0].Shard != "s1" || r[0].Version != 1 || r[0].Slots.String() != "0-9,4095-4096,65535" {
			t.Errorf("it is %v", r)
		}
	}
}

func TestTheReceiptOfWhoeverKnowsTheSlotsLeavesThemOutAndCostsNothing(t *testing.T) {
	between, s := pinned(t)
	asked := 0
	between.sees = func(any) { asked++ }
	all, err := receipts(t, s, 1)
	if err != nil || asked != 3 {
		t.Errorf("%d calls (%v)", asked, err)
	}
	for _, r := range all {
		if len(r) != 1 || r[0].Slots != nil {
			t.Errorf("it is %v", r)
		}
	}
}

func TestTheReceiptOfSeveralShardsShowsNoPin(t *testing.T) {
	between, s := pinned(t)
	between.tells = func(res any, err error) error {
		second := spi.ShardReceipt{Shard: "s2", Version: 1, Slots: spi.SlotSet{{First: 10, Last: 4094}, {First: 5000, Last: 5001}}}
		pinsOnly := spi.ShardReceipt{Shard: "s3", Version: 1, Slots: spi.NewSlotSet(5002)}
		switch res := res.(type) {
		case *spi.ListExecutionsResponse:
			res.Receipt = append(res.Receipt, second, pinsOnly)
		case *spi.ListRefsResponse:
			res.Receipt = append(res.Receipt, second, pinsOnly)
		case *spi.ListDataKeysResponse:
			res.Receipt = append(res.Receipt, second, pinsOnly)
		}
		return err
	}
	all, err := receipts(t, s, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if len(r) != 3 || r[0].Slots.String() != "0-9,4095" || r[1].Slots.String() != "10-4094" || r[2].Slots == nil || len(r[2].Slots) > 0 {
			t.Errorf("it is %v", r)
		}
	}
}

func TestAStoreThatDoesNotSayWhoseAPinIsShowsNone(t *testing.T) {
	between, _ := pinned(t)
	all, err := receipts(t, view(t, "acme", spi.Only(between.inner, ^spi.CapOwnership)), 0)
	if err != nil || all[0][0].Slots.String() != "0-9,4095" {
		t.Errorf("it is %v (%v)", all, err)
	}
}

func TestAPageWhosePinsCannotBeToldApartFails(t *testing.T) {
	between, s := pinned(t)
	between.tells = func(res any, err error) error {
		if _, ok := res.(*spi.GetOwnershipResponse); ok {
			return &spi.UnavailableError{Cause: errBroken}
		}
		return err
	}
	res, err := spi.ListExecutions(t.Context(), s, spi.ListExecutionsRequest{Limit: 1})
	if _, ok := errors.AsType[*spi.UnavailableError](err); !ok || res.Receipt != nil {
		t.Errorf("it answers %v (%v)", res, err)
	}
}

func TestACoverageErrorTellsNoPin(t *testing.T) {
	pins := &spi.CoverageError{Missing: spi.NewSlotSet(4096, 5000), Twice: spi.NewSlotSet(6000)}
	some := &spi.CoverageError{Missing: spi.NewSlotSet(7, 4095, 4096), Twice: spi.NewSlotSet(3, 6000)}
	none := &spi.CoverageError{Missing: spi.NewSlotSet(7)}
	for _, c := range []struct {
		inner error
		text  string
	}{
		{pins, "unavailable: internal error"},
		{some, "slots covered by no shard: 7,4095; by more than one: 3"},
		{none, "slots covered by no shard: 7; by more than one: none"},
		{&spi.ShardError{Shard: "s1", Err: &spi.OpError{Op: "ListExecutions", Err: some}}, `shard "s1": ListExecutions: ` + "slots covered by no shard: 7,4095; by more than one: 3"},
		{&spi.UnavailableError{Cause: some}, "unavailable: slots covered by no shard: 7,4095; by more than one: 3"},
		{&spi.AmbiguousError{Cause: pins}, "the outcome is unknown: unavailable: internal error"},
	} {
		eachMethod(t, func(between *spy) { between.tells = func(any, error) error { return c.inner } }, func(method string, _ any, err error) {
			if text := errors.Unwrap(err).Error(); text != c.text {
				t.Errorf("%s tells %q of %q", method, text, c.inner)
			}
		})
	}
	between, s := acme(t)
	between.tells = func(any, error) error { return pins }
	_, err := spi.ListExecutions(t.Context(), s, spi.ListExecutionsRequest{Limit: 1})
	if hidden, ok := errors.AsType[*spi.InternalError](err); !ok || !errors.Is(hidden.Cause, pins) {
		t.Errorf("an operator's log does not find the pins in %v", err)
	}
}

func TestShardsAreNamedToWhoeverHoldsAView(t *testing.T) {
	between, s := acme(t)
	between.tells = func(res any, err error) error {
		if due, ok := res.(*spi.DueTimersResponse); ok {
			due.Missing = []string{"s1"}
			return nil
		}
		return &spi.ShardError{Shard: "s1", Err: &spi.UnavailableError{Cause: errBroken}}
	}
	due, err := spi.DueTimers(t.Context(), s, spi.DueTimersRequest{Limit: 1})
	if err != nil || !slices.Equal(due.Missing, []string{"s1"}) {
		t.Errorf("missing are %q (%v)", due.Missing, err)
	}
	_, err = spi.Head(t.Context(), s, spi.HeadRequest{Execution: "e"})
	if shard, ok := errors.AsType[*spi.ShardError](err); !ok || shard.Shard != "s1" {
		t.Errorf("the error is %v", err)
	}
}
