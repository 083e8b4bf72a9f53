package sharded_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/decorators/sharded"
	"github.com/loomgate/loomgate/spi"
)

// A fixture is a cluster of shards in memory, each behind a double.
type fixture struct {
	testing.TB
	placement sharded.Placement
	shards    []sharded.Shard
	doubles   []*double
	cluster   *sharded.Cluster
	store     *spi.Store
}

// newShards makes n shards that begin as a cluster does; nothing is opened over them.
func newShards(tb testing.TB, placement sharded.Placement, n int) *fixture {
	tb.Helper()
	f := &fixture{TB: tb, placement: placement}
	for i := range n {
		store, err := memory.New()
		if err != nil {
			tb.Fatal(err)
		}
		d, s := newDouble(tb, store)
		f.doubles = append(f.doubles, d)
		f.shards = append(f.shards, sharded.Shard{Name: shardName(i), Store: s})
	}
	if err := sharded.Init(tb.Context(), "cluster", placement, f.shards); err != nil {
		tb.Fatal(err)
	}
	return f
}

// open opens the cluster.
func (f *fixture) open(opts sharded.Options) {
	f.Helper()
	opts.Placement = f.placement
	cluster, err := sharded.Open(f.Context(), f.shards, opts)
	if err != nil {
		f.Fatal(err)
	}
	f.cluster, f.store = cluster, cluster.Store()
}

// newFixture makes n shards and opens them.
func newFixture(tb testing.TB, n int, opts sharded.Options) *fixture {
	tb.Helper()
	f := newShards(tb, opts.Placement, n)
	f.open(opts)
	return f
}

func events(n int) (all []spi.Event) {
	for range n {
		all = append(all, spi.Event{ID: spi.NewEventID(), Kind: "Noted"})
	}
	return all
}

// append appends one event, wherever the log ends.
func (f *fixture) append(ctx context.Context, id spi.ExecutionID) error {
	_, err := spi.Append(ctx, f.store, spi.AppendRequest{Execution: id, ExpectedHead: spi.AnyHead, Events: events(1)})
	return err
}

// ids returns n ids whose slots are a shard's.
func (f *fixture) ids(shard string, n int) (all []spi.ExecutionID) {
	f.Helper()
	for i := 0; len(all) < n; i++ {
		id := spi.ExecutionID(fmt.Sprintf("e-%05d", i))
		at, err := f.cluster.Where(string(id))
		if err != nil {
			f.Fatal(err)
		}
		if at.Shard == shard {
			all = append(all, id)
		}
	}
	return all
}

// want returns the error of a type that is in err.
func want[E error](tb testing.TB, err error) (e E) {
	tb.Helper()
	e, ok := errors.AsType[E](err)
	if !ok {
		tb.Fatalf("the error is %T (%v), not %T", err, err, e)
	}
	return e
}

// wantShard checks that an error names a shard.
func wantShard(tb testing.TB, err error, name string) {
	tb.Helper()
	if e := want[*spi.ShardError](tb, err); e.Shard != name {
		tb.Errorf("the error names %q, not %q: %v", e.Shard, name, err)
	}
}

var longAgo = time.Date(1999, 2, 3, 4, 5, 6, 0, time.UTC)

// change changes what a shard owns, behind the cluster's back.
func (f *fixture) change(i int, slots ...spi.SlotRecord) {
	f.Helper()
	inner := f.doubles[i].inner
	now, err := spi.GetOwnership(f.Context(), inner, spi.GetOwnershipRequest{})
	if err == nil {
		_, err = spi.ChangeOwnership(f.Context(), inner, spi.ChangeOwnershipRequest{ExpectedVersion: now.Shards[0].Version, Slots: slots})
	}
	if err != nil {
		f.Fatal(err)
	}
}

// pin gives a shard the n-th pin.
func (f *fixture) pin(i int, n spi.Slot, tenant spi.TenantName) {
	f.Helper()
	f.change(i, spi.SlotRecord{Slot: spi.FirstPin + n, State: spi.SlotOwned, Epoch: 1, Tenant: tenant})
}

// move moves a slot, without what is in it.
func (f *fixture) move(slot spi.Slot, from, to int, tenant spi.TenantName) {
	f.Helper()
	epoch := f.epoch(from, slot)
	for _, step := range []struct {
		shard  int
		record spi.SlotRecord
	}{
		{to, spi.SlotRecord{State: spi.SlotReceiving, Epoch: epoch, Peer: shardName(from)}},
		{from, spi.SlotRecord{State: spi.SlotFrozen, Epoch: epoch, Peer: shardName(to)}},
		{from, spi.SlotRecord{State: spi.SlotReleased, Epoch: epoch + 1, Peer: shardName(to)}},
		{to, spi.SlotRecord{State: spi.SlotOwned, Epoch: epoch + 1}},
	} {
		step.record.Slot, step.record.Tenant = slot, tenant
		f.change(step.shard, step.record)
	}
}

// epoch returns the epoch of a slot at a shard.
func (f *fixture) epoch(i int, slot spi.Slot) int64 {
	f.Helper()
	now, err := spi.GetOwnership(f.Context(), f.doubles[i].inner, spi.GetOwnershipRequest{})
	if err != nil {
		f.Fatal(err)
	}
	for _, r := range now.Shards[0].Slots {
		if r.Slot == slot {
			return r.Epoch
		}
	}
	f.Fatalf("shard %d never had slot %d", i, slot)
	return 0
}

var errBroken = errors.New("the disk is on fire")

// failing is the hook of a shard that is broken.
func failing(context.Context, string, any) (any, error) { return nil, errBroken }

// hanging is the hook of a shard that does not answer.
func hanging(ctx context.Context, _ string, _ any) (any, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
