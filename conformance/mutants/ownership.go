package mutants

import (
	"context"
	"testing"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/conformance"
	"github.com/loomgate/loomgate/spi"
)

const receiptOfPage = "ownership/pages hold the names of slots that list, and the receipt says which"

var ownership = []Mutant{
	{
		"ownership checked before the write",
		"Whether the shard owns the slot is looked up, and then the events are written.",
		"ownership/no append slips past a change of ownership (invariant 1)",
		func(t *testing.T) { conformance.Store(t, conformance.PerTest(openCheckedBefore)) },
	},
	{
		"epoch not compared",
		"A call that states the epoch before a move is done.",
		"ownership/whoever states the epoch before it was raised is refused",
		store(func(s sound) methods { return epochNotCompared{s} }),
	},
	{
		"receipt of all slots",
		"The receipt holds every slot that the shard ever had.",
		receiptOfPage,
		store(func(s sound) methods { return receiptOfAllSlots{s} }),
	},
	{
		"receipt without slots",
		"A caller that knows an older version is told no slots either.",
		receiptOfPage,
		store(func(s sound) methods { return receiptWithoutSlots{s} }),
	},
	{
		"receipt of another moment",
		"The receipt is not read in the snapshot of the page.",
		"ownership/a page and its receipt are of one moment",
		store(func(s sound) methods { return receiptOfAnotherMoment{s} }),
	},
	{
		"ownership changed by whoever comes last",
		"A change does not compare the version that its maker saw.",
		"ownership/a change is refused unless the version is the one that was seen",
		store(func(s sound) methods { return changedByLast{s} }),
	},
}

// checkedBefore keeps the log where nothing is owned, and asks another store first.
type checkedBefore struct {
	sound
	rules *spi.Store
}

func openCheckedBefore(t *testing.T) *spi.Store {
	rules, err := memory.New()
	if err != nil {
		t.Fatal(err)
	}
	return opener(func(s sound) methods { return checkedBefore{s, rules} })(t)
}

func (m checkedBefore) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	if _, err := spi.Head(ctx, m.rules, spi.HeadRequest{Route: req.Route, Execution: req.Execution}); err != nil {
		return spi.AppendResponse{}, err
	}
	pause()
	req.Route = spi.Route{}
	return m.sound.Append(ctx, req)
}

func (m checkedBefore) GetOwnership(ctx context.Context, req spi.GetOwnershipRequest) (spi.GetOwnershipResponse, error) {
	return spi.GetOwnership(ctx, m.rules, req)
}

func (m checkedBefore) ChangeOwnership(ctx context.Context, req spi.ChangeOwnershipRequest) (spi.ChangeOwnershipResponse, error) {
	return spi.ChangeOwnership(ctx, m.rules, req)
}

type epochNotCompared struct{ sound }

func (m epochNotCompared) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	owned, _ := m.GetOwnership(ctx, spi.GetOwnershipRequest{})
	for _, shard := range owned.Shards {
		for _, slot := range shard.Slots {
			if slot.Slot == req.Route.Slot {
				req.Route.Epoch = slot.Epoch
			}
		}
	}
	return m.sound.Append(ctx, req)
}

type receiptOfAllSlots struct{ sound }

func (m receiptOfAllSlots) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	res, err := m.sound.ListExecutions(ctx, req)
	owned, _ := m.GetOwnership(ctx, spi.GetOwnershipRequest{})
	for i := range res.Receipt {
		var all []spi.Slot
		for _, slot := range owned.Shards[i].Slots {
			all = append(all, slot.Slot)
		}
		res.Receipt[i].Slots = spi.NewSlotSet(all...)
	}
	return res, err
}

type receiptWithoutSlots struct{ sound }

func (m receiptWithoutSlots) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	res, err := m.sound.ListExecutions(ctx, req)
	if req.KnownOwnership > 0 {
		for i := range res.Receipt {
			res.Receipt[i].Slots = nil
		}
	}
	return res, err
}

type receiptOfAnotherMoment struct{ sound }

func (m receiptOfAnotherMoment) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	res, err := m.sound.ListExecutions(ctx, req)
	if len(res.Receipt) > 0 {
		pause()
		later, _ := m.sound.ListExecutions(ctx, req)
		res.Receipt = later.Receipt
	}
	return res, err
}

type changedByLast struct{ sound }

func (m changedByLast) ChangeOwnership(ctx context.Context, req spi.ChangeOwnershipRequest) (spi.ChangeOwnershipResponse, error) {
	owned, _ := m.GetOwnership(ctx, spi.GetOwnershipRequest{})
	if len(owned.Shards) > 0 && req.ExpectedVersion > 0 {
		req.ExpectedVersion = owned.Shards[0].Version
	}
	return m.sound.ChangeOwnership(ctx, req)
}
