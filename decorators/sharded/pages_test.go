package sharded_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loomgate/loomgate/decorators/sharded"
	"github.com/loomgate/loomgate/spi"
)

func (f *fixture) page(after string, limit int) (spi.ListExecutionsResponse, error) {
	return spi.ListExecutions(f.Context(), f.store, spi.ListExecutionsRequest{After: after, Limit: limit})
}

// wantFailedPage checks that there is no page, and that the error names a shard.
func (f *fixture) wantFailedPage(shard string) error {
	f.Helper()
	res, err := f.page("", 10)
	if err == nil {
		f.Fatalf("there is a page: %+v", res)
	}
	wantShard(f, err, shard)
	return err
}

// fill writes n executions and returns their ids in order.
func (f *fixture) fill(n int) (ids []spi.ExecutionID) {
	f.Helper()
	for i := range n {
		ids = append(ids, spi.ExecutionID(fmt.Sprintf("e-%05d", i)))
	}
	f.mustAppend(ids...)
	return ids
}

func TestAShardThatHangsFailsThePageWithinItsTimeAndNoOtherCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 3, sharded.Options{CallTimeout: 2 * time.Second})
		f.fill(20)
		f.doubles[1].on(hanging)
		took := elapsed(func() {
			err := f.wantFailedPage(shardName(1))
			if want[*spi.UnavailableError](t, err); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
		if took != 2*time.Second {
			t.Errorf("the page fails after %v", took)
		}
		if took := elapsed(func() { f.mustAppend(slices.Concat(f.ids(shardName(0), 5), f.ids(shardName(2), 5))...) }); took > 0 {
			t.Errorf("calls to other shards take %v", took)
		}
		var streamed error
		took = elapsed(func() {
			for _, err := range f.cluster.Executions(t.Context(), "", "") {
				streamed = err
			}
		})
		if wantShard(t, streamed, shardName(1)); took != 2*time.Second {
			t.Errorf("the iteration fails after %v", took)
		}
	})
}

func TestACallerWhoCancelsAPageBlamesNoShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 2, sharded.Options{})
		f.doubles[1].on(hanging)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err := spi.ListExecutions(ctx, f.store, spi.ListExecutionsRequest{Limit: 10})
		if _, blamed := errors.AsType[*spi.ShardError](err); blamed || !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// rewriting is the hook of a shard whose pages are changed before they are answered.
func rewriting(d *double, change func(*spi.ListExecutionsResponse)) hook {
	return func(ctx context.Context, _ string, req any) (any, error) {
		list, ok := req.(spi.ListExecutionsRequest)
		if !ok {
			return nil, nil
		}
		res, err := spi.ListExecutions(ctx, d.inner, list)
		change(&res)
		return res, err
	}
}

func TestAShardThatAnswersForSlotsOfAnotherFailsThePage(t *testing.T) {
	for what, c := range map[string]struct {
		change func(f *fixture) func(*spi.ListExecutionsResponse)
		check  func(t *testing.T, err error)
	}{
		"it claims the slots": {
			func(*fixture) func(*spi.ListExecutionsResponse) {
				return func(res *spi.ListExecutionsResponse) { res.Receipt[0].Slots = spi.HashSlotSet() }
			},
			func(t *testing.T, err error) {
				if e := want[*sharded.ForeignError](t, err); e.Slots.Contains(2000) || !e.Slots.Contains(0) {
					t.Error(e)
				}
			},
		},
		"it lists what is in the slots": {
			func(f *fixture) func(*spi.ListExecutionsResponse) {
				foreign := f.ids(shardName(0), 1)[0]
				return func(res *spi.ListExecutionsResponse) { res.Executions = []spi.ExecutionID{foreign} }
			},
			func(t *testing.T, err error) {
				if e := want[*sharded.ForeignError](t, err); e.Name == "" {
					t.Error(e)
				}
			},
		},
		"it signs as another": {
			func(*fixture) func(*spi.ListExecutionsResponse) {
				return func(res *spi.ListExecutionsResponse) { res.Receipt[0].Shard = shardName(0) }
			},
			func(t *testing.T, err error) { want[*sharded.IdentityError](t, err) },
		},
		"it does not sign": {
			func(*fixture) func(*spi.ListExecutionsResponse) {
				return func(res *spi.ListExecutionsResponse) { res.Receipt = nil }
			},
			func(t *testing.T, err error) { want[*sharded.IdentityError](t, err) },
		},
		"it goes backwards": {
			func(*fixture) func(*spi.ListExecutionsResponse) {
				return func(res *spi.ListExecutionsResponse) { slices.Reverse(res.Executions) }
			},
			func(*testing.T, error) {},
		},
	} {
		t.Run(what, func(t *testing.T) {
			f := newFixture(t, 3, sharded.Options{})
			f.fill(60)
			f.doubles[1].on(rewriting(f.doubles[1], c.change(f)))
			c.check(t, f.wantFailedPage(shardName(1)))
		})
	}
}

// TestAPinBetweenTwoShardsFailsThePage has a pin of which the map has not heard given up
// by one shard and not taken by the other: its tenant's ids are on no page.
func TestAPinBetweenTwoShardsFailsThePage(t *testing.T) {
	f := newFixture(t, 3, sharded.Options{})
	acme := func(state spi.SlotState, epoch int64) spi.SlotRecord {
		return spi.SlotRecord{Slot: spi.FirstPin, State: state, Epoch: epoch, Peer: shardName(2), Tenant: "acme"}
	}
	f.change(1, acme(spi.SlotOwned, 1))
	f.change(1, acme(spi.SlotFrozen, 1))
	f.change(1, acme(spi.SlotReleased, 2))
	_, err := f.page("", 10)
	if e := want[*spi.CoverageError](t, err); !e.Missing.Contains(spi.FirstPin) {
		t.Error(e)
	}
	for _, err = range f.cluster.Executions(t.Context(), "", "") {
		want[*spi.CoverageError](t, err)
	}
	if err == nil {
		t.Error("the iteration ends as if it were complete")
	}
}

func TestAPinOfWhichTheMapHasNotHeardIsOnTheReceipt(t *testing.T) {
	f := newFixture(t, 3, sharded.Options{})
	f.pin(1, 3, "acme")
	res, err := f.page("", 10)
	if err != nil || !slices.ContainsFunc(res.Receipt, func(r spi.ShardReceipt) bool { return r.Slots.Contains(spi.FirstPin + 3) }) {
		t.Errorf("%+v, %v", res.Receipt, err)
	}
}

func TestThePageOfAPinThatTwoShardsOwnNamesThem(t *testing.T) {
	f := newFixture(t, 3, sharded.Options{})
	f.pin(1, 0, "acme")
	f.pin(2, 0, "acme")
	_, err := f.page("", 10)
	if e := want[*sharded.OverlapError](t, err); !slices.Equal(e.Shards, []string{shardName(1), shardName(2)}) {
		t.Errorf("it names %q", e.Shards)
	}
}

func TestWhatACallerDoesToAReceiptChangesNoOther(t *testing.T) {
	f := newFixture(t, 3, sharded.Options{})
	for range 2 {
		res, err := f.page("", 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range res.Receipt {
			if len(r.Slots) != 1 {
				t.Fatalf("the receipt is %+v", res.Receipt)
			}
			r.Slots[0] = spi.SlotRange{}
		}
	}
}

// TestAnIterationGivesEachOnceWhileSlotsMoveAndPinsAreMade changes the map at several
// places of the iteration.
func TestAnIterationGivesEachOnceWhileSlotsMoveAndPinsAreMade(t *testing.T) {
	f := newFixture(t, 3, sharded.Options{})
	ids := f.fill(6000) // two chunks a shard
	var got []spi.ExecutionID
	for id, err := range f.cluster.Executions(t.Context(), "e-", "") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, id)
		switch len(got) {
		case 100:
			f.pin(0, 0, "acme")
		case 1500:
			slot := f.placement.Slot(string(f.ids(shardName(1), 1)[0]))
			f.move(slot, 1, 2, "")
			for _, id := range ids {
				if f.placement.Slot(string(id)) == slot {
					f.write(2, 2, id, events(1))
				}
			}
		case 4000:
			f.pin(2, 1, "zeta")
		}
	}
	if !slices.Equal(got, ids) {
		t.Errorf("%d ids instead of %d", len(got), len(ids))
	}
}

// TestAPageFetchesLittleMoreThanItReturns counts ids by the shards' answers.
func TestAPageFetchesLittleMoreThanItReturns(t *testing.T) {
	f := newFixture(t, 4, sharded.Options{})
	f.fill(8000)
	var fetched atomic.Int64
	for _, d := range f.doubles {
		d.on(rewriting(d, func(res *spi.ListExecutionsResponse) { fetched.Add(int64(len(res.Executions))) }))
	}
	returned := 0
	for after := ""; ; {
		res, err := f.page(after, 1000)
		if err != nil {
			t.Fatal(err)
		}
		returned += len(res.Executions)
		if after = res.Next; after == "" {
			break
		}
	}
	if ratio := float64(fetched.Load()) / float64(returned); returned != 8000 || ratio > 1.3 {
		t.Errorf("%d ids are returned and %.2f times as many fetched", returned, ratio)
	}
	fetched.Store(0)
	streamed := 0
	for _, err := range f.cluster.Executions(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		streamed++
	}
	if n := fetched.Load(); streamed != 8000 || n != 8000 {
		t.Errorf("an iteration over %d ids fetches %d", streamed, n)
	}
}

func TestAnIterationGoesThroughRefsAndDataKeysToo(t *testing.T) {
	f := newFixture(t, 3, sharded.Options{})
	var names, owners []string
	for i := range 30 {
		name := fmt.Sprintf("n-%02d", i)
		names, owners = append(names, name), append(owners, name)
		if _, err := spi.PutRef(t.Context(), f.store, spi.PutRefRequest{Name: spi.RefName(name), Execution: "e"}); err != nil {
			t.Fatal(err)
		}
		key := spi.DataKey{Owner: spi.KeyOwner(name), Version: 1, ID: spi.KeyID(spi.NewEventID()), WrappedBy: "kms", Wrapped: []byte{1}}
		if _, err := spi.CreateDataKey(t.Context(), f.store, spi.CreateDataKeyRequest{Key: key}); err != nil {
			t.Fatal(err)
		}
	}
	var gotRefs, gotOwners []string
	for ref, err := range f.cluster.Refs(t.Context(), "n-", "n-04") {
		if err != nil {
			t.Fatal(err)
		}
		gotRefs = append(gotRefs, string(ref.Name))
	}
	for keys, err := range f.cluster.DataKeys(t.Context(), "n-", "n-04") {
		if err != nil {
			t.Fatal(err)
		}
		gotOwners = append(gotOwners, string(keys[0].Owner))
	}
	if !slices.Equal(gotRefs, names[5:]) || !slices.Equal(gotOwners, owners[5:]) {
		t.Errorf("%q and %q", gotRefs, gotOwners)
	}
}

func TestABadPrefixOrCursorIsNoShardsFault(t *testing.T) {
	f := newFixture(t, 2, sharded.Options{})
	for field, bad := range map[string][2]string{"prefix": {"\x00", ""}, "cursor": {"", "\xff"}} {
		var errs []error
		for _, err := range f.cluster.Executions(t.Context(), bad[0], bad[1]) {
			errs = append(errs, err)
		}
		if len(errs) != 1 {
			t.Fatalf("a bad %s is answered by %v", field, errs)
		}
		if e := want[*spi.InvalidArgumentError](t, errs[0]); e.Field != field || errors.As(errs[0], new(*spi.ShardError)) {
			t.Error(errs[0])
		}
	}
}

// partial asks for a page that may be missing shards.
func (f *fixture) partial(after string, limit int) (spi.ListExecutionsResponse, error) {
	return spi.ListExecutions(f.Context(), f.store, spi.ListExecutionsRequest{After: after, Limit: limit, AllowPartial: true})
}

// of returns those of some ids whose slots are of some shards.
func (f *fixture) of(ids []spi.ExecutionID, shards ...string) (some []spi.ExecutionID) {
	f.Helper()
	for _, id := range ids {
		at, err := f.cluster.Where(string(id))
		if err != nil {
			f.Fatal(err)
		}
		if slices.Contains(shards, at.Shard) {
			some = append(some, id)
		}
	}
	return some
}

func TestAPartialPageIsAskedForAndNamesWhatIsMissing(t *testing.T) {
	f := newFixture(t, 4, sharded.Options{})
	ids := f.fill(200)
	if res, err := f.partial("", 1000); err != nil || !slices.Equal(res.Executions, ids) || len(res.Missing) > 0 {
		t.Errorf("of shards that all answer: %d ids, missing %q, %v", len(res.Executions), res.Missing, err)
	}
	down := func(context.Context, string, any) (any, error) { return nil, &spi.UnavailableError{Cause: errBroken} }
	f.doubles[1].on(down)
	want[*spi.UnavailableError](t, f.wantFailedPage(shardName(1)))
	f.doubles[3].on(down)
	there := f.of(ids, shardName(0), shardName(2))
	var got []spi.ExecutionID
	for after := ""; ; {
		res, err := f.partial(after, 30)
		if err != nil || !slices.Equal(res.Missing, []string{shardName(1), shardName(3)}) || len(res.Receipt) != 2 {
			t.Fatalf("missing are %q, receipts %d, %v", res.Missing, len(res.Receipt), err)
		}
		got = append(got, res.Executions...)
		if after = res.Next; after == "" {
			break
		}
	}
	if !slices.Equal(got, there) {
		t.Errorf("%d ids, not %d", len(got), len(there))
	}
	refs, err := spi.ListRefs(t.Context(), f.store, spi.ListRefsRequest{Limit: 10, AllowPartial: true})
	if err != nil || len(refs.Missing) != 2 {
		t.Errorf("of refs are missing %q, %v", refs.Missing, err)
	}
	f.doubles[0].on(down)
	f.doubles[2].on(down)
	_, err = f.partial("", 30)
	want[*spi.UnavailableError](t, err)
}

func TestAPartialPageHidesNoFailureButSilence(t *testing.T) {
	f := newFixture(t, 3, sharded.Options{})
	f.fill(30)
	f.doubles[1].on(failing)
	_, err := f.partial("", 30)
	wantShard(t, err, shardName(1))
	f.doubles[1].on(rewriting(f.doubles[1], func(res *spi.ListExecutionsResponse) { slices.Reverse(res.Executions) }))
	_, err = f.partial("", 30)
	wantShard(t, err, shardName(1))
}

func TestAShardThatHangsIsMissingFromAPartialPageWithinItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 3, sharded.Options{CallTimeout: 2 * time.Second})
		f.fill(30)
		f.doubles[2].on(hanging)
		took := elapsed(func() {
			if res, err := f.partial("", 30); err != nil || !slices.Equal(res.Missing, []string{shardName(2)}) {
				t.Errorf("missing are %q, %v", res.Missing, err)
			}
		})
		if took != 2*time.Second {
			t.Errorf("it takes %v", took)
		}
		hurried, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := spi.ListExecutions(hurried, f.store, spi.ListExecutionsRequest{Limit: 30, AllowPartial: true})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("of a caller without time: %v", err)
		}
	})
}
