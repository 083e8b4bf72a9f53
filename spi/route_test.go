package spi

import (
	"errors"
	"testing"

	"pgregory.net/rapid"
)

var slotLists = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Slot {
	return Slot(rapid.SampledFrom([]int{0, 1, 2, 3, 5, 8, 4094, 4095, 4096, 4097, 65534, 65535}).Draw(t, "slot"))
}), 0, 12)

func TestASlotSetHoldsItsSlots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slots := slotLists.Draw(t, "slots")
		set, in := NewSlotSet(slots...), map[Slot]bool{}
		for _, s := range slots {
			in[s] = true
		}
		for slot := range 1 << 16 {
			if set.Contains(Slot(slot)) != in[Slot(slot)] {
				t.Fatalf("%v of %v: %d", set, slots, slot)
			}
		}
		for i := 1; i < len(set); i++ {
			if int(set[i].First) <= int(set[i-1].Last)+1 {
				t.Errorf("%v meets itself", set)
			}
		}
	})
}

func TestCoverageIsEachSlotOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, want := slotLists.Draw(t, "a"), slotLists.Draw(t, "b"), slotLists.Draw(t, "want")
		inA, inB := NewSlotSet(a...), NewSlotSet(b...)
		err := CheckCoverage(NewSlotSet(want...), inA, inB)
		var missing, twice []Slot
		for _, s := range want {
			if !inA.Contains(s) && !inB.Contains(s) {
				missing = append(missing, s)
			}
		}
		for _, s := range a {
			if inB.Contains(s) {
				twice = append(twice, s)
			}
		}
		got, uncovered := errors.AsType[*CoverageError](err)
		if uncovered != (len(missing)+len(twice) > 0) {
			t.Fatalf("missing %v, twice %v: %v", missing, twice, err)
		}
		if !uncovered {
			return
		}
		if got.Missing.String() != NewSlotSet(missing...).String() || got.Twice.String() != NewSlotSet(twice...).String() {
			t.Errorf("missing %v, twice %v: %v", missing, twice, err)
		}
	})
}

func TestACoverageErrorSaysWhichSlots(t *testing.T) {
	err := CheckCoverage(HashSlotSet(), SlotSet{{0, 99}, {200, 4095}}, SlotSet{{90, 91}, {4095, 4096}})
	if err == nil || err.Error() != "slots covered by no shard: 100-199; by more than one: 90-91,4095" {
		t.Error(err)
	}
	if err := CheckCoverage(HashSlotSet(), SlotSet{{0, 99}}, SlotSet{{100, 5000}}); err != nil {
		t.Error(err)
	}
}

// TestSlotStatesFollowOneAnother walks every pair of states and epochs.
func TestSlotStatesFollowOneAnother(t *testing.T) {
	type step struct {
		from, to SlotState
		epoch    int64 // the next one, where the present one is 5
	}
	legal := map[step]bool{
		{0, SlotOwned, 1}: true, {0, SlotOwned, 6}: true, {0, SlotReceiving, 5}: true,
		{SlotOwned, SlotFrozen, 5}: true, {SlotOwned, SlotOwned, 6}: true,
		{SlotFrozen, SlotOwned, 5}: true, {SlotFrozen, SlotReleased, 6}: true,
		{SlotReceiving, SlotOwned, 6}: true, {SlotReceiving, SlotReleased, 5}: true,
		{SlotReleased, SlotReceiving, 5}: true, {SlotReleased, SlotReceiving, 6}: true,
	}
	for from := range SlotReceiving + 1 {
		for to := SlotOwned; to <= SlotReceiving; to++ {
			for epoch := int64(4); epoch <= 7; epoch++ {
				now, next := SlotRecord{Slot: 9, State: from, Epoch: 5}, SlotRecord{Slot: 9, State: to, Epoch: epoch}
				if from == 0 {
					now.Epoch = 0
				}
				want := legal[step{from, to, epoch}] || from == 0 && (to == SlotOwned || to == SlotReceiving) ||
					from == SlotReleased && to == SlotReceiving && epoch >= 5
				if reason := next.Follows(now); (reason == "") != want {
					t.Errorf("from %v to %v at %d: %q", from, to, epoch, reason)
				}
			}
		}
	}
	owned := SlotRecord{Slot: FirstPin, State: SlotOwned, Epoch: 1, Tenant: "a"}
	other := SlotRecord{Slot: FirstPin, State: SlotOwned, Epoch: 2, Tenant: "b"}
	if other.Follows(owned) == "" {
		t.Error("a pin changes its tenant")
	}
}
