package conformance

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loomgate/loomgate/spi"
)

// Isolation runs the kit's cases about tenants over a decorator that gives each
// tenant a view of a store that they share.
//
// open is as for [Store] and makes the shared store; view puts the decorator over
// it for one tenant.
func Isolation(t *testing.T, open func(t *testing.T) *spi.Store, view func(tenant spi.TenantName, shared *spi.Store) (*spi.Store, error)) {
	for _, c := range []struct {
		sentence string
		prove    func(*fixture, *tenants)
	}{
		{"tenants of any names that write the same ids each read and list their own", proveOwnNames},
		{"a page stays inside its tenant, whatever its prefix and cursor", provePagesInside},
		{"refs, timers, leases and keys of the same names are each tenant's own", proveOtherGroups},
		{"a tenant's answers and errors are the same whatever the others do (invariant 15)", proveIndependence},
		{"no name that a tenant can choose reaches what is another's", proveUnreachable},
		{"no answer and no error tells a name that the tenant did not choose", proveNothingTold},
		{"a tenant may use ids of 512 bytes, and none of 513", proveLengths},
		{"ownership cannot be changed through a view, and other tenants' pins are not seen", proveOwnershipMasked},
		{"a tenant whose name is no name has no view", proveTenantNames},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			f := newFixture(t, open)
			c.prove(f, &tenants{f, open(t), view})
		})
	}
}

// tenants makes views of one shared store.
type tenants struct {
	*fixture
	shared *spi.Store
	view   func(spi.TenantName, *spi.Store) (*spi.Store, error)
}

// as returns a fixture whose store is a tenant's view.
func (ts *tenants) as(tenant spi.TenantName) *fixture {
	ts.Helper()
	f := *ts.fixture
	f.store = must(ts.T)(ts.view(tenant, ts.shared))
	return &f
}

// hostileTenants are names that contain, begin and continue one another, and that
// look like what a careless scope would make of another.
var hostileTenants = []spi.TenantName{
	"a", "a/", "a_", "aa", "a/a", "A", "/", "_", "%", "1", "1:a", "1:a/", "1:a/a", ":", "a:", "2:a/", "\\", "a\u0001",
	"𝄞", "\U0010ffff", "a\U0010ffff", "\ue000", "é", "e\u0301", "ﬀ", "tenant", "tenant/e", " ",
	spi.TenantName(strings.Repeat("t", spi.MaxTenantName)), spi.TenantName(strings.Repeat("t", spi.MaxTenantName-1)),
}

// hostileIDs are ids that look like another tenant's.
var hostileIDs = []string{
	" ", "%", "/", "/a", "1", "1:a/", "1:a/a", "1:a/e", "2:aa/e", ":", "A", "_", "a", "a/", "a/a", "a/e", "a_", "aa", "e", "\U0010ffff",
}

func proveOwnNames(_ *fixture, ts *tenants) {
	for _, tenant := range hostileTenants {
		f := ts.as(tenant)
		f.wantNames(fmt.Sprintf("before %q has written", tenant), f.list("", 100), nil)
		for _, name := range hostileIDs {
			e := event("Noted")
			e.Payload = []byte(tenant)
			f.mustAppend(spi.AppendRequest{Execution: spi.ExecutionID(name), Events: []spi.Event{e}})
		}
	}
	for _, tenant := range hostileTenants {
		f := ts.as(tenant)
		f.wantNames(fmt.Sprintf("the executions of %q", tenant), f.list("", 3), hostileIDs)
		for _, name := range hostileIDs {
			log := f.read(spi.ExecutionID(name))
			if len(log) != 1 || string(log[0].Payload) != string(tenant) {
				f.Errorf("%q of %q is not its own", name, tenant)
			}
		}
	}
}

func provePagesInside(_ *fixture, ts *tenants) {
	owners := []spi.TenantName{"a", "a/", "aa", "1:a", "A", "\U0010ffff"}
	for _, tenant := range owners {
		ts.as(tenant).fill(hostileIDs)
	}
	for _, tenant := range owners {
		f := ts.as(tenant)
		for _, prefix := range append([]string{"", "absent", "1:", "a\U0010ffff"}, hostileIDs...) {
			for _, cursor := range append([]string{"", "\x00", "a\x00", "0", "\U0010ffff\U0010ffff", strings.Repeat("a", 3000)}, hostileIDs...) {
				var got []string
				f.pages(prefix, cursor, 4, func(page []string) { got = append(got, page...) })
				f.wantNames(fmt.Sprintf("of %q with prefix %q after %.40q", tenant, prefix, cursor), got, matching(hostileIDs, prefix, cursor))
			}
		}
	}
}

func proveOtherGroups(_ *fixture, ts *tenants) {
	owners := []spi.TenantName{"a", "a/", "aa", "1:a", "A"}
	offered := ts.as("a").store.Offered()
	for i, tenant := range owners {
		f := ts.as(tenant)
		if offered.Has(spi.CapRefs) {
			res, err := spi.PutRef(f.ctx, f.store, spi.PutRefRequest{Name: "main", Execution: "e", Sequence: int64(i)})
			if err != nil || res.Ref.Name != "main" || res.Ref.Execution != "e" {
				f.Errorf("the ref of %q is put as %+v (%v)", tenant, res.Ref, err)
			}
		}
		if offered.Has(spi.CapTimers) {
			res, err := spi.ScheduleTimer(f.ctx, f.store, spi.ScheduleTimerRequest{Timer: spi.Timer{Execution: "e", WakeAt: longAgo.Add(time.Duration(i) * time.Hour)}})
			if err != nil || res.Timer.Execution != "e" {
				f.Errorf("the timer of %q is scheduled as %+v (%v)", tenant, res.Timer, err)
			}
		}
		if offered.Has(spi.CapLeases) {
			if _, err := spi.AcquireLease(f.ctx, f.store, spi.AcquireLeaseRequest{Name: "l", Holder: string(tenant), TTL: time.Hour}); err != nil {
				f.Errorf("the lease of %q: %v", tenant, err)
			}
		}
		if offered.Has(spi.CapDataKeys) {
			key := spi.DataKey{Owner: "e", Version: 1, ID: spi.KeyID(spi.NewEventID()), WrappedBy: "kms", Wrapped: []byte(tenant)}
			res, err := spi.CreateDataKey(f.ctx, f.store, spi.CreateDataKeyRequest{Key: key})
			if err != nil || !res.Created || res.Key.Owner != "e" {
				f.Errorf("the key of %q is created as %+v (%v)", tenant, res, err)
			}
		}
	}
	for i, tenant := range owners {
		f := ts.as(tenant)
		if offered.Has(spi.CapRefs) {
			res, err := spi.ListRefs(f.ctx, f.store, spi.ListRefsRequest{Limit: 10})
			if err != nil || len(res.Refs) != 1 || res.Refs[0].Name != "main" || res.Refs[0].Execution != "e" || res.Refs[0].Sequence != int64(i) {
				f.Errorf("the refs of %q are %+v (%v)", tenant, res.Refs, err)
			}
		}
		if offered.Has(spi.CapTimers) {
			res, err := spi.DueTimers(f.ctx, f.store, spi.DueTimersRequest{Limit: 1})
			if err != nil || len(res.Timers) != 1 || res.Timers[0].Execution != "e" || !res.Timers[0].WakeAt.Equal(longAgo.Add(time.Duration(i)*time.Hour)) {
				f.Errorf("the timers of %q are %+v (%v)", tenant, res.Timers, err)
			}
		}
		if offered.Has(spi.CapLeases) {
			_, err := spi.AcquireLease(f.ctx, f.store, spi.AcquireLeaseRequest{Name: "l", Holder: "someone else", TTL: time.Hour})
			held := wantError[*spi.LeaseHeldError](f, err)
			if held.Holder != string(tenant) || held.Name != "l" {
				f.Errorf("the lease of %q is held as %+v", tenant, held)
			}
		}
		if offered.Has(spi.CapDataKeys) {
			res, err := spi.ListDataKeys(f.ctx, f.store, spi.ListDataKeysRequest{Limit: 10})
			if err != nil || len(res.Keys) != 1 || res.Keys[0].Owner != "e" || string(res.Keys[0].Wrapped) != string(tenant) {
				f.Errorf("the keys of %q are %+v (%v)", tenant, res.Keys, err)
			}
		}
	}
}

// proveIndependence runs one script through a view that is alone in its store and
// through one among busy neighbours.
func proveIndependence(_ *fixture, ts *tenants) {
	neighbours := []*fixture{ts.as("b"), ts.as("quiet/"), ts.as("quie")}
	ts.wantSame("quiet", "", func(step int) {
		neighbours[step%len(neighbours)].script(uint64(step), "", nil)
	})
}

// proveUnreachable lets a tenant use the names that another's have in the shared
// store: it finds nothing by them, and changes nothing.
func proveUnreachable(_ *fixture, ts *tenants) {
	for i, victim := range []spi.TenantName{"victim", "a"} {
		scope, err := spi.ScopeOf(victim)
		if err != nil {
			ts.Fatal(err)
		}
		attacker := "attacker-" + victim
		ts.as(victim).script(uint64(i), "", nil)
		ts.wantSame(attacker, scope.Prefix(), func(step int) { ts.as(victim).script(uint64(step), "", nil) })
		ts.wantSame(victim+"-2", "", func(step int) {
			mine, err := spi.ScopeOf(victim + "-2")
			if err != nil {
				ts.Fatal(err)
			}
			ts.as(attacker).script(uint64(step), mine.Prefix(), nil)
		})
	}
}

// wantSame checks that a tenant's script over names with a prefix is answered among
// others as it is in a store of its own. between lets the others work.
func (ts *tenants) wantSame(tenant spi.TenantName, prefix string, between func(step int)) {
	ts.Helper()
	var alone []string
	ts.Run("alone", func(t *testing.T) {
		own := tenants{newFixture(t, ts.open), ts.open(t), ts.view}
		alone = own.as(tenant).script(1, prefix, nil)
	})
	among := ts.as(tenant).script(1, prefix, between)
	for i := range alone {
		if alone[i] != among[i] {
			ts.Fatalf("step %d of %q\nalone:            %s\namong neighbours: %s", i, tenant, alone[i], among[i])
		}
	}
}

func proveNothingTold(_ *fixture, ts *tenants) {
	const tenant, neighbour = "zebra-tenant", "yak-tenant"
	answers := ts.as(tenant).script(2, "", func(step int) { ts.as(neighbour).script(uint64(step), "", nil) })
	scope, err := spi.ScopeOf(tenant)
	if err != nil {
		ts.Fatal(err)
	}
	for i, answer := range answers {
		for _, told := range []string{tenant, neighbour, scope.Prefix()} {
			if strings.Contains(answer, told) {
				ts.Errorf("step %d tells %q: %s", i, told, answer)
			}
		}
	}
}

func proveLengths(_ *fixture, ts *tenants) {
	f := ts.as(spi.TenantName(strings.Repeat("t", spi.MaxTenantName)))
	longest := strings.Repeat("i", spi.MaxOuterID)
	f.appendN(spi.ExecutionID(longest), 0, 1)
	f.wantNames("the executions", f.list("", 10), []string{longest})
	tooLong := longest + "i"
	e := spi.ExecutionID(tooLong)
	refuse(f, "513 bytes", "execution id", spi.CapEvents, spi.Append, spi.AppendRequest{Execution: e, Events: events(1)})
	refuse(f, "513 bytes", "execution id", spi.CapEvents, spi.Read, spi.ReadRequest{Execution: e, Limit: 1})
	refuse(f, "513 bytes", "execution id", spi.CapEvents, spi.Head, spi.HeadRequest{Execution: e})
	refuse(f, "513 bytes", "execution id", spi.CapAcquireFence, spi.AcquireFence, spi.AcquireFenceRequest{Execution: e})
	refuse(f, "513 bytes", "execution id", spi.CapCopyPrefix, spi.CopyPrefix, spi.CopyPrefixRequest{From: "e", To: e, N: 1})
	refuse(f, "513 bytes", "execution id", spi.CapTimers, spi.ScheduleTimer, spi.ScheduleTimerRequest{Timer: spi.Timer{Execution: e, WakeAt: longAgo}})
	refuse(f, "513 bytes", "ref name", spi.CapRefs, spi.PutRef, spi.PutRefRequest{Name: spi.RefName(tooLong), Execution: "e"})
	refuse(f, "513 bytes", "execution id", spi.CapRefs, spi.PutRef, spi.PutRefRequest{Name: "r", Execution: e})
	refuse(f, "513 bytes", "lease name", spi.CapLeases, spi.AcquireLease, spi.AcquireLeaseRequest{Name: spi.LeaseName(tooLong), Holder: "h", TTL: time.Hour})
	refuse(f, "513 bytes", "execution id", spi.CapAppendBatch, spi.AppendBatch, spi.AppendBatchRequest{Appends: []spi.AppendRequest{{Execution: e, Events: events(1)}}})
	refuse(f, "513 bytes", "execution id", spi.CapAppendIfUnchanged, spi.AppendIfUnchanged, spi.AppendIfUnchangedRequest{Execution: e, Events: events(1)})
	refuse(f, "513 bytes", "execution id", spi.CapAcquireFenceIf, spi.AcquireFenceIf, spi.AcquireFenceIfRequest{Execution: e, ParkSeq: 1})
	refuse(f, "513 bytes", "execution id", spi.CapCopyPrefix, spi.CopyPrefix, spi.CopyPrefixRequest{From: e, To: "e", N: 1})
	refuse(f, "513 bytes", "execution id", spi.CapTruncatePrefixKeeping, spi.TruncatePrefixKeeping, spi.TruncatePrefixKeepingRequest{Execution: e, Incarnation: 1, Before: 1})
	refuse(f, "513 bytes", "execution id", spi.CapDeleteExecution, spi.DeleteExecution, spi.DeleteExecutionRequest{Execution: e, Incarnation: 1})
	refuse(f, "513 bytes", "execution id", spi.CapTimers, spi.CompleteTimer, spi.CompleteTimerRequest{Execution: e, WakeAt: longAgo, Version: 1})
	refuse(f, "513 bytes", "execution id", spi.CapPromoteRef, spi.PromoteRef, spi.PromoteRefRequest{Name: "r", Execution: e, ExpectedVersion: 1})
	ref := spi.RefName(tooLong)
	refuse(f, "513 bytes", "ref name", spi.CapRefs, spi.GetRef, spi.GetRefRequest{Name: ref})
	refuse(f, "513 bytes", "ref name", spi.CapRefs, spi.DeleteRef, spi.DeleteRefRequest{Name: ref, ExpectedVersion: 1})
	refuse(f, "513 bytes", "ref name", spi.CapPromoteRef, spi.PromoteRef, spi.PromoteRefRequest{Name: ref, Execution: "e", ExpectedVersion: 1})
	refuse(f, "513 bytes", "ref name", spi.CapRefLineage, spi.RefLineage, spi.RefLineageRequest{Name: ref, Limit: 1})
	refuse(f, "513 bytes", "lease name", spi.CapLeases, spi.RenewLease, spi.RenewLeaseRequest{Name: spi.LeaseName(tooLong), Token: 1, TTL: time.Hour})
	refuse(f, "513 bytes", "lease name", spi.CapLeases, spi.ReleaseLease, spi.ReleaseLeaseRequest{Name: spi.LeaseName(tooLong), Token: 1})
	owner := spi.KeyOwner(tooLong)
	refuse(f, "513 bytes", "key owner", spi.CapDataKeys, spi.CreateDataKey, spi.CreateDataKeyRequest{Key: spi.DataKey{Owner: owner, Version: 1, ID: spi.KeyID{1}, WrappedBy: "kms", Wrapped: []byte{1}}})
	refuse(f, "513 bytes", "key owner", spi.CapDataKeys, spi.GetDataKey, spi.GetDataKeyRequest{Owner: owner})
	refuse(f, "513 bytes", "key owner", spi.CapDataKeys, spi.DestroyDataKey, spi.DestroyDataKeyRequest{Owner: owner, Version: 1})
	refuse(f, "513 bytes", "key owner", spi.CapRewrapDataKey, spi.RewrapDataKey, spi.RewrapDataKeyRequest{Owner: owner, Version: 1, OldWrappedBy: "kms", WrappedBy: "kms", Wrapped: []byte{1}})
	f.wantNames("the executions", f.list("", 10), []string{longest})
}

func proveOwnershipMasked(_ *fixture, ts *tenants) {
	if ts.as("a").store.Offered()&spi.CapChangeOwnership != 0 {
		ts.Error("a view offers to change ownership")
	}
	if !ts.shared.Offered().Has(spi.CapChangeOwnership) {
		return
	}
	_, err := spi.ChangeOwnership(ts.ctx, ts.shared, spi.ChangeOwnershipRequest{
		Identity: spi.Identity{Cluster: "c", Shard: "s", Fingerprint: "f"},
		Slots: []spi.SlotRecord{
			{Slot: 7, State: spi.SlotOwned, Epoch: 1},
			{Slot: spi.FirstPin, State: spi.SlotOwned, Epoch: 1, Tenant: "a"},
			{Slot: spi.FirstPin + 1, State: spi.SlotOwned, Epoch: 1, Tenant: "b"},
		},
	})
	if err != nil {
		ts.Fatal(err)
	}
	f := ts.as("a")
	if !f.store.Offered().Has(spi.CapOwnership) {
		return
	}
	res, err := spi.GetOwnership(f.ctx, f.store, spi.GetOwnershipRequest{})
	if err != nil {
		f.Fatal(err)
	}
	var slots []spi.Slot
	for _, s := range res.Shards {
		for _, r := range s.Slots {
			slots = append(slots, r.Slot)
		}
	}
	if !slices.Equal(slots, []spi.Slot{7, spi.FirstPin}) {
		f.Errorf("the view of a shows the slots %v", slots)
	}
	page, err := spi.ListExecutions(f.ctx, f.store, spi.ListExecutionsRequest{Limit: 1})
	if err != nil {
		f.Fatal(err)
	}
	for _, r := range page.Receipt {
		if r.Slots.Contains(spi.FirstPin + 1) {
			f.Errorf("the receipt of a shows the slots %v", r.Slots)
		}
	}
}

func proveTenantNames(_ *fixture, ts *tenants) {
	for _, name := range []spi.TenantName{"", "a\xff", "\xed\xa0\x80", "a\x00", spi.TenantName(strings.Repeat("t", spi.MaxTenantName+1))} {
		_, err := ts.view(name, ts.shared)
		if _, ok := errors.AsType[*spi.InvalidArgumentError](err); !ok {
			ts.Errorf("a view of %.20q: %v", name, err)
		}
	}
}
