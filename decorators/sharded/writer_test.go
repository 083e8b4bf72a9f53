package sharded_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/loomgate/loomgate/decorators/sharded"
	"github.com/loomgate/loomgate/spi"
)

var (
	before = spi.Versions()[spi.Events]
	after  = spi.Version{Major: before.Major, Minor: before.Minor + 1}
)

// newer opens the same shards as a later writer.
func (f *fixture) newer() *fixture {
	f.Helper()
	n := &fixture{TB: f.TB, placement: f.placement, shards: f.shards, doubles: f.doubles}
	n.open(sharded.Options{Writer: after})
	return n
}

func (f *fixture) requireWriter(v spi.Version, raises ...string) {
	f.Helper()
	raised, err := f.cluster.RequireWriter(f.Context(), v)
	if err != nil || !slices.Equal(raised, raises) {
		f.Fatalf("raised %q (%v), not %q", raised, err, raises)
	}
}

// minima are what the shards ask of their writers, by their own word.
func (f *fixture) minima() (all []spi.Version) {
	f.Helper()
	for _, d := range f.doubles {
		now, err := spi.GetOwnership(f.Context(), d.inner, spi.GetOwnershipRequest{})
		if err != nil {
			f.Fatal(err)
		}
		all = append(all, now.Shards[0].Identity.MinWriter)
	}
	return all
}

func wantRefused(t *testing.T, what string, err error, shard string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s is not refused", what)
		return
	}
	wantShard(t, err, shard)
	want[*spi.UnavailableError](t, err)
	if got := *want[*sharded.WriterError](t, err); got != (sharded.WriterError{Shard: shard, Needs: after, Have: before}) {
		t.Errorf("%s: %+v", what, got)
	}
}

func TestAnOlderWriterIsRefusedByTheFirstCallAfterTheMinimumIsRaisedAndStillReads(t *testing.T) {
	f := newFixture(t, 2, sharded.Options{})
	id, other := f.ids(shardName(0), 1)[0], f.ids(shardName(1), 1)[0]
	name, key := spi.RefName(id), spi.KeyOwner(id)
	f.mustAppend(id, other)
	f.schedule(longAgo, id)
	n := f.newer()
	n.mustAppend(id)
	n.requireWriter(after, shardName(0), shardName(1))
	do := func(what string, err error) { t.Helper(); wantRefused(t, what, err, shardName(0)) }
	ctx := t.Context()
	writes := f.counting("Append")
	do("an append", f.append(ctx, id))
	if got := writes[0].Load(); got != 1 {
		t.Errorf("the shard refuses %d tries", got)
	}
	for what, call := range map[string]func() error{
		"an append": func() error { return f.append(ctx, id) },
		"a batch": func() error {
			res, err := spi.AppendBatch(ctx, f.store, spi.AppendBatchRequest{Appends: []spi.AppendRequest{{Execution: id, Events: events(1)}}})
			if err != nil {
				t.Error(err)
			}
			return res.Results[0].Err
		},
		"an append if unchanged": errorOf(ctx, f, spi.AppendIfUnchanged, spi.AppendIfUnchangedRequest{Execution: id, Events: events(1)}),
		"a copy":                 errorOf(ctx, f, spi.CopyPrefix, spi.CopyPrefixRequest{From: other, To: id, N: 1}),
		"a copy within a shard":  errorOf(ctx, f, spi.CopyPrefix, spi.CopyPrefixRequest{From: id, To: f.ids(shardName(0), 2)[1], N: 1}),
		"a fence":                errorOf(ctx, f, spi.AcquireFence, spi.AcquireFenceRequest{Execution: id}),
		"a conditional fence":    errorOf(ctx, f, spi.AcquireFenceIf, spi.AcquireFenceIfRequest{Execution: id, ParkSeq: 1}),
		"a truncation":           errorOf(ctx, f, spi.TruncatePrefixKeeping, spi.TruncatePrefixKeepingRequest{Execution: id, Incarnation: 1, Before: 2}),
		"a deletion":             errorOf(ctx, f, spi.DeleteExecution, spi.DeleteExecutionRequest{Execution: id, Incarnation: 1}),
		"a sweep":                errorOf(ctx, f, spi.SweepTombstones, spi.SweepTombstonesRequest{Limit: 1}),
		"a timer":                errorOf(ctx, f, spi.ScheduleTimer, spi.ScheduleTimerRequest{Timer: spi.Timer{Execution: id, WakeAt: longAgo}}),
		"an end of a timer":      errorOf(ctx, f, spi.CompleteTimer, spi.CompleteTimerRequest{Execution: id, WakeAt: longAgo, Version: 1}),
		"a ref":                  errorOf(ctx, f, spi.PutRef, spi.PutRefRequest{Name: name, Execution: id, Sequence: 1}),
		"a ref's end":            errorOf(ctx, f, spi.DeleteRef, spi.DeleteRefRequest{Name: name, ExpectedVersion: 1}),
		"a lease":                errorOf(ctx, f, spi.AcquireLease, spi.AcquireLeaseRequest{Name: spi.LeaseName(id), Holder: "h", TTL: time.Second}),
		"a lease's renewal":      errorOf(ctx, f, spi.RenewLease, spi.RenewLeaseRequest{Name: spi.LeaseName(id), Token: 1, TTL: time.Second}),
		"a lease's end":          errorOf(ctx, f, spi.ReleaseLease, spi.ReleaseLeaseRequest{Name: spi.LeaseName(id), Token: 1}),
		"a key":                  errorOf(ctx, f, spi.CreateDataKey, spi.CreateDataKeyRequest{Key: spi.DataKey{Owner: key, Version: 1, ID: spi.KeyID(spi.NewEventID()), WrappedBy: "k", Wrapped: []byte("w")}}),
		"a key's end":            errorOf(ctx, f, spi.DestroyDataKey, spi.DestroyDataKeyRequest{Owner: key, Version: 1}),
		"a key wrapped anew":     errorOf(ctx, f, spi.RewrapDataKey, spi.RewrapDataKeyRequest{Owner: key, Version: 1, OldWrappedBy: "k", WrappedBy: "l", Wrapped: []byte("w")}),
		"a ref's promotion":      errorOf(ctx, f, spi.PromoteRef, spi.PromoteRefRequest{Name: name, Execution: id, Sequence: 1, ExpectedVersion: 1}),
	} {
		do(what, call())
	}
	if got := f.cluster.Refused(); len(got) == 0 || *got[0] != (sharded.WriterError{Shard: shardName(0), Needs: after, Have: before}) {
		t.Errorf("the refused shards: %v", got)
	}
	f.wantHead(id, 2)
	if res, err := spi.Read(ctx, f.store, spi.ReadRequest{Execution: id, Limit: 10}); err != nil || len(res.Events) != 2 {
		t.Errorf("a read: %d events, %v", len(res.Events), err)
	}
	if res, err := spi.ListExecutions(ctx, f.store, spi.ListExecutionsRequest{Limit: 10}); err != nil || len(res.Executions) != 2 {
		t.Errorf("a page: %q, %v", res.Executions, err)
	}
	if res, err := f.due(10); err != nil || len(res.Timers) != 1 {
		t.Errorf("due timers: %+v, %v", res, err)
	}
	n.mustAppend(id)
	if refused := n.cluster.Refused(); len(refused) > 0 {
		t.Errorf("the newer writer is refused: %v", refused)
	}
}

// errorOf makes a call for its error.
func errorOf[Q, R any](ctx context.Context, f *fixture, do func(context.Context, *spi.Store, Q) (R, error), req Q) func() error {
	return func() error {
		_, err := do(ctx, f.store, req)
		return err
	}
}

func TestAnOlderWriterStartsOverShardsThatRefuseItAndReads(t *testing.T) {
	f := newFixture(t, 2, sharded.Options{})
	id := f.ids(shardName(1), 1)[0]
	f.mustAppend(id)
	f.newer().requireWriter(after, shardName(0), shardName(1))
	f.open(sharded.Options{})
	if got := f.cluster.Refused(); len(got) != 2 {
		t.Errorf("it sees %v", got)
	}
	f.wantHead(id, 1)
	wantRefused(t, "an append", f.append(t.Context(), id), shardName(1))
}

func TestAMinimumIsNeverLoweredNorRaisedAboveWhoRaisesIt(t *testing.T) {
	f := newFixture(t, 2, sharded.Options{})
	n := f.newer()
	unchanged := f.minima()
	if _, err := f.cluster.RequireWriter(t.Context(), after); err == nil {
		t.Error("an older writer asks for a later one")
	} else {
		wantText(t, want[*spi.InvalidArgumentError](t, err), before.String())
	}
	n.requireWriter(after, shardName(0), shardName(1))
	if _, err := n.cluster.RequireWriter(t.Context(), before); err == nil {
		t.Error("the minimum is lowered")
	} else {
		wantText(t, want[*spi.InvalidArgumentError](t, err), after.String(), shardName(0))
	}
	if now := f.minima(); !slices.Equal(now, []spi.Version{after, after}) || slices.Equal(now, unchanged) {
		t.Errorf("the shards ask for %v", now)
	}
	n.requireWriter(after)
}

func TestAMinimumIsRaisedOnAllShardsOrOnNoneUnlessOneFailsMeanwhile(t *testing.T) {
	f := newFixture(t, 3, sharded.Options{}).newer()
	unchanged := f.minima()
	f.doubles[1].on(failing)
	if raised, err := f.cluster.RequireWriter(t.Context(), after); err == nil || len(raised) > 0 {
		t.Errorf("with a shard that does not answer: %q, %v", raised, err)
	} else {
		wantShard(t, err, shardName(1))
	}
	f.doubles[1].on(nil)
	f.change(2, record(spi.Slot(spi.HashSlots-1), spi.SlotFrozen, 1, shardName(0)))
	if raised, err := f.cluster.RequireWriter(t.Context(), after); err == nil || len(raised) > 0 {
		t.Errorf("while a slot moves: %q, %v", raised, err)
	} else if e := want[*spi.OwnershipError](t, err); e.Shard != shardName(2) {
		t.Error(e)
	}
	if now := f.minima(); !slices.Equal(now, unchanged) {
		t.Errorf("it has changed: %v", now)
	}
	f.change(2, record(spi.Slot(spi.HashSlots-1), spi.SlotOwned, 1, ""))
	f.doubles[1].on(func(_ context.Context, method string, _ any) (any, error) {
		if method == "ChangeOwnership" {
			return nil, errBroken
		}
		return nil, nil
	})
	if raised, err := f.cluster.RequireWriter(t.Context(), after); err == nil || !slices.Equal(raised, []string{shardName(0)}) {
		t.Errorf("with a shard that fails meanwhile: %q, %v", raised, err)
	}
	f.doubles[1].on(nil)
	f.requireWriter(after, shardName(1), shardName(2))
}

// TestNoWriteOfAnOlderWriterLandsAfterTheMinimumIsRaised raises it under appends.
func TestNoWriteOfAnOlderWriterLandsAfterTheMinimumIsRaised(t *testing.T) {
	f := newFixture(t, 2, sharded.Options{})
	n := f.newer()
	ids := slices.Concat(f.ids(shardName(0), 2), f.ids(shardName(1), 2))
	landed := make([]int64, len(ids))
	var writing sync.WaitGroup
	started := make(chan struct{}, len(ids))
	for i, id := range ids {
		writing.Go(func() {
			for f.append(t.Context(), id) == nil {
				if landed[i]++; landed[i] == 1 {
					started <- struct{}{}
				}
			}
		})
	}
	for range ids {
		<-started
	}
	n.requireWriter(after, shardName(0), shardName(1))
	heads := make([]int64, len(ids))
	for i, id := range ids {
		res, err := spi.Head(t.Context(), n.store, spi.HeadRequest{Execution: id})
		if err != nil {
			t.Fatal(err)
		}
		heads[i] = res.Head
	}
	writing.Wait()
	if !slices.Equal(heads, landed) {
		t.Errorf("heads were %v, and %v were acknowledged", heads, landed)
	}
}
