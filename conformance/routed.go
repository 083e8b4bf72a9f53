package conformance

import (
	"context"
	"fmt"
	"time"

	"github.com/loomgate/loomgate/spi"
)

// A routedCall is a call of a method that has a route.
type routedCall struct {
	name    string
	call    func(spi.Route) error
	creates bool // what is not there yet and so has no slot
}

// routedCalls makes something of everything that the store can hold, at home, and
// returns a call of every method that has a route and that the store offers. One
// after the other, all are right at home.
func (f *fixture) routedCalls(home spi.Route) []routedCall {
	f.Helper()
	f.appendAt(home, "e")
	f.appendAt(home, "e", event(spi.KindExecutionSuspended))
	f.appendAt(home, "unchanged")
	f.appendAt(home, "truncated", events(3)...)
	f.appendAt(home, "deleted")
	calls := []routedCall{
		routed(f, "Read", spi.Read, func(r spi.Route) spi.ReadRequest { return spi.ReadRequest{Route: r, Execution: "e", Limit: 10} }),
		routed(f, "Head", spi.Head, func(r spi.Route) spi.HeadRequest { return spi.HeadRequest{Route: r, Execution: "e"} }),
		routed(f, "Append", spi.Append, func(r spi.Route) spi.AppendRequest {
			return spi.AppendRequest{Route: r, Execution: "e", ExpectedHead: spi.AnyHead, Events: events(1)}
		}),
		routed(f, "Append", spi.Append, func(r spi.Route) spi.AppendRequest {
			return spi.AppendRequest{Route: r, Execution: "e-first", Events: events(1)}
		}).creating(),
	}
	add := func(need spi.Caps, more ...routedCall) {
		if f.store.Offered().Has(need) {
			calls = append(calls, more...)
		}
	}
	add(spi.CapAppendBatch, routedCall{name: "AppendBatch", call: func(r spi.Route) error {
		res, err := spi.AppendBatch(f.ctx, f.store, spi.AppendBatchRequest{Appends: []spi.AppendRequest{{Route: r, Execution: "e", ExpectedHead: spi.AnyHead, Events: events(1)}}})
		if err != nil {
			return err
		}
		return only(res)
	}})
	add(spi.CapAppendIfUnchanged, routed(f, "AppendIfUnchanged", spi.AppendIfUnchanged, func(r spi.Route) spi.AppendIfUnchangedRequest {
		return spi.AppendIfUnchangedRequest{Route: r, Execution: "unchanged", Head: 1, Events: events(1)}
	}))
	add(spi.CapAcquireFenceIf, routed(f, "AcquireFenceIf", spi.AcquireFenceIf, func(r spi.Route) spi.AcquireFenceIfRequest {
		return spi.AcquireFenceIfRequest{Route: r, Execution: "e", ParkSeq: 2}
	}))
	add(spi.CapAcquireFence, routed(f, "AcquireFence", spi.AcquireFence, func(r spi.Route) spi.AcquireFenceRequest {
		return spi.AcquireFenceRequest{Route: r, Execution: "e"}
	}))
	add(spi.CapCopyPrefix, routed(f, "CopyPrefix (to)", spi.CopyPrefix, func(r spi.Route) spi.CopyPrefixRequest {
		return spi.CopyPrefixRequest{FromRoute: home, From: "e", Route: r, To: "e-copy", N: 1}
	}).creating(), routed(f, "CopyPrefix (from)", spi.CopyPrefix, func(r spi.Route) spi.CopyPrefixRequest {
		return spi.CopyPrefixRequest{FromRoute: r, From: "e", Route: home, To: "e-copy-2", N: 1}
	}))
	add(spi.CapTruncatePrefixKeeping, routed(f, "TruncatePrefixKeeping", spi.TruncatePrefixKeeping, func(r spi.Route) spi.TruncatePrefixKeepingRequest {
		return spi.TruncatePrefixKeepingRequest{Route: r, Execution: "truncated", Incarnation: 1, Before: 2}
	}))
	add(spi.CapDeleteExecution, routed(f, "DeleteExecution", spi.DeleteExecution, func(r spi.Route) spi.DeleteExecutionRequest {
		return spi.DeleteExecutionRequest{Route: r, Execution: "deleted", Incarnation: 1}
	}))
	if f.store.Offered().Has(spi.CapTimers) {
		add(0, f.routedTimers(home)...)
	}
	if f.store.Offered().Has(spi.CapRefs) {
		add(0, f.routedRefs(home)...)
	}
	if f.store.Offered().Has(spi.CapLeases) {
		add(0, f.routedLeases(home)...)
	}
	if f.store.Offered().Has(spi.CapDataKeys) {
		add(0, f.routedKeys(home)...)
	}
	return calls
}

func (f *fixture) routedTimers(home spi.Route) []routedCall {
	f.Helper()
	res, err := spi.ScheduleTimer(f.ctx, f.store, spi.ScheduleTimerRequest{Route: home, Timer: spi.Timer{Execution: "e", WakeAt: longAgo}})
	if err != nil {
		f.Fatal(err)
	}
	return []routedCall{
		routed(f, "ScheduleTimer", spi.ScheduleTimer, func(r spi.Route) spi.ScheduleTimerRequest {
			return spi.ScheduleTimerRequest{Route: r, Timer: spi.Timer{Execution: "e", WakeAt: longAgo.Add(time.Second)}}
		}).creating(),
		routed(f, "CompleteTimer", spi.CompleteTimer, func(r spi.Route) spi.CompleteTimerRequest {
			return spi.CompleteTimerRequest{Route: r, Execution: "e", WakeAt: longAgo, Version: res.Timer.Version}
		}),
		routed(f, "ScheduleTimer", spi.ScheduleTimer, func(r spi.Route) spi.ScheduleTimerRequest {
			return spi.ScheduleTimerRequest{Route: r, Timer: spi.Timer{Execution: "e", WakeAt: longAgo}}
		}),
	}
}

func (f *fixture) routedRefs(home spi.Route) []routedCall {
	f.Helper()
	res, err := spi.PutRef(f.ctx, f.store, spi.PutRefRequest{Route: home, Name: "main", Execution: "e", Sequence: 1})
	if err != nil {
		f.Fatal(err)
	}
	calls := []routedCall{
		routed(f, "GetRef", spi.GetRef, func(r spi.Route) spi.GetRefRequest { return spi.GetRefRequest{Route: r, Name: "main"} }),
		routed(f, "PutRef", spi.PutRef, func(r spi.Route) spi.PutRefRequest {
			return spi.PutRefRequest{Route: r, Name: "new", Execution: "e"}
		}).creating(),
	}
	if f.store.Offered().Has(spi.CapPromoteRef) {
		calls = append(calls, routed(f, "PromoteRef", spi.PromoteRef, func(r spi.Route) spi.PromoteRefRequest {
			return spi.PromoteRefRequest{Route: r, Name: "main", Execution: "e", ExpectedVersion: res.Ref.Version}
		}))
	}
	calls = append(calls, routed(f, "PutRef", spi.PutRef, func(r spi.Route) spi.PutRefRequest {
		return spi.PutRefRequest{Route: r, Name: "main", Execution: "e", ExpectedVersion: spi.AnyVersion}
	}))
	if f.store.Offered().Has(spi.CapRefLineage) {
		calls = append(calls, routed(f, "RefLineage", spi.RefLineage, func(r spi.Route) spi.RefLineageRequest {
			return spi.RefLineageRequest{Route: r, Name: "main", Limit: 1}
		}))
	}
	return append(calls, routed(f, "DeleteRef", spi.DeleteRef, func(r spi.Route) spi.DeleteRefRequest {
		return spi.DeleteRefRequest{Route: r, Name: "main", ExpectedVersion: spi.AnyVersion}
	}))
}

func (f *fixture) routedLeases(home spi.Route) []routedCall {
	f.Helper()
	acquire := func(r spi.Route) spi.AcquireLeaseRequest {
		return spi.AcquireLeaseRequest{Route: r, Name: "poller", Holder: "ann", TTL: aLongLease}
	}
	res, err := spi.AcquireLease(f.ctx, f.store, acquire(home))
	if err != nil {
		f.Fatal(err)
	}
	return []routedCall{
		routed(f, "AcquireLease", spi.AcquireLease, acquire),
		routed(f, "RenewLease", spi.RenewLease, func(r spi.Route) spi.RenewLeaseRequest {
			return spi.RenewLeaseRequest{Route: r, Name: "poller", Token: res.Token, TTL: 2 * aLongLease}
		}),
		routed(f, "ReleaseLease", spi.ReleaseLease, func(r spi.Route) spi.ReleaseLeaseRequest {
			return spi.ReleaseLeaseRequest{Route: r, Name: "poller", Token: res.Token}
		}),
	}
}

func (f *fixture) routedKeys(home spi.Route) []routedCall {
	f.Helper()
	key := newKey("keyed", 1)
	if _, err := spi.CreateDataKey(f.ctx, f.store, spi.CreateDataKeyRequest{Route: home, Key: key}); err != nil {
		f.Fatal(err)
	}
	calls := []routedCall{
		routed(f, "CreateDataKey", spi.CreateDataKey, func(r spi.Route) spi.CreateDataKeyRequest {
			return spi.CreateDataKeyRequest{Route: r, Key: newKey("keyed", 1)}
		}),
		routed(f, "CreateDataKey", spi.CreateDataKey, func(r spi.Route) spi.CreateDataKeyRequest {
			return spi.CreateDataKeyRequest{Route: r, Key: newKey("newly keyed", 1)}
		}).creating(),
		routed(f, "GetDataKey", spi.GetDataKey, func(r spi.Route) spi.GetDataKeyRequest { return spi.GetDataKeyRequest{Route: r, Owner: "keyed"} }),
	}
	if f.store.Offered().Has(spi.CapRewrapDataKey) {
		calls = append(calls, routed(f, "RewrapDataKey", spi.RewrapDataKey, func(r spi.Route) spi.RewrapDataKeyRequest {
			return spi.RewrapDataKeyRequest{Route: r, Owner: "keyed", Version: 1, OldWrappedBy: key.WrappedBy, WrappedBy: "kms/2", Wrapped: []byte{2}}
		}))
	}
	return append(calls, routed(f, "DestroyDataKey", spi.DestroyDataKey, func(r spi.Route) spi.DestroyDataKeyRequest {
		return spi.DestroyDataKeyRequest{Route: r, Owner: "keyed", Version: 1}
	}))
}

func routed[Q, R any](f *fixture, name string, call func(context.Context, *spi.Store, Q) (R, error), request func(spi.Route) Q) routedCall {
	return routedCall{name: name, call: func(r spi.Route) error {
		_, err := call(f.ctx, f.store, request(r))
		return err
	}}
}

func (c routedCall) creating() routedCall {
	c.creates = true
	return c
}

// wantAllAccepted makes the calls, one after the other.
func (f *fixture) wantAllAccepted(calls []routedCall, route spi.Route) {
	f.Helper()
	for _, c := range calls {
		if err := c.call(route); err != nil {
			f.Errorf("%s is refused: %v", c.name, err)
		}
	}
}

func (f *fixture) wantMisrouted(c routedCall, route spi.Route, want spi.MisroutedError) {
	f.Helper()
	err := c.call(route)
	if err == nil {
		f.Errorf("%s is accepted at %+v", c.name, route)
		return
	}
	equal(f, c.name+"'s error", *wantError[*spi.MisroutedError](f, err), want)
}

func (f *fixture) wantMoving(c routedCall, route spi.Route, state spi.SlotState) {
	f.Helper()
	err := c.call(route)
	if err == nil {
		f.Errorf("%s is accepted at %+v, which is %v", c.name, route, state)
		return
	}
	equal(f, c.name+"'s error", *wantError[*spi.SlotMovingError](f, err), spi.SlotMovingError{Shard: shardOne.Shard, Slot: route.Slot, State: state})
}

// appendAt appends at a route, wherever the log ends; one event unless some are
// given.
func (f *fixture) appendAt(route spi.Route, name string, all ...spi.Event) {
	f.Helper()
	if len(all) == 0 {
		all = events(1)
	}
	f.mustAppend(spi.AppendRequest{Route: route, Execution: spi.ExecutionID(name), ExpectedHead: spi.AnyHead, Events: all})
}

// refuseAppendAt checks that an append at a route is refused for the route.
func (f *fixture) refuseAppendAt(route spi.Route, name string) {
	f.Helper()
	_, err := spi.Append(f.ctx, f.store, spi.AppendRequest{Route: route, Execution: spi.ExecutionID(name), ExpectedHead: spi.AnyHead, Events: events(1)})
	if s := f.slotAt(route.Slot); s.Epoch == route.Epoch && s.Epoch > 0 {
		wantError[*spi.SlotMovingError](f, err)
		return
	}
	wantError[*spi.MisroutedError](f, err)
}

func (f *fixture) slotAt(n spi.Slot) spi.SlotRecord {
	f.Helper()
	for _, s := range f.shard().Slots {
		if s.Slot == n {
			return s
		}
	}
	return spi.SlotRecord{}
}

func (f *fixture) headAt(route spi.Route, name spi.ExecutionID) spi.HeadResponse {
	f.Helper()
	res, err := spi.Head(f.ctx, f.store, spi.HeadRequest{Route: route, Execution: name})
	if err != nil {
		f.Fatal(err)
	}
	return res
}

// everything tells, in one text, all that the calls of routedCalls could change.
func (f *fixture) everything(home spi.Route) string {
	f.Helper()
	var all []any
	for _, name := range []spi.ExecutionID{"e", "e-first", "unchanged", "truncated", "deleted", "e-copy", "e-copy-2"} {
		res, err := spi.Read(f.ctx, f.store, spi.ReadRequest{Route: home, Execution: name, Limit: spi.MaxLimit})
		all = append(all, name, f.headAt(home, name), res, err)
	}
	all = append(all, f.list("", spi.MaxLimit))
	offered := f.store.Offered()
	if offered.Has(spi.CapTimers) {
		all = append(all, timerTexts(f.due(spi.DueTimersRequest{}).Timers))
	}
	if offered.Has(spi.CapRefs) {
		res, err := spi.ListRefs(f.ctx, f.store, spi.ListRefsRequest{Limit: spi.MaxLimit})
		all = append(all, res.Refs, err)
	}
	if offered.Has(spi.CapRefLineage) {
		res, err := spi.RefLineage(f.ctx, f.store, spi.RefLineageRequest{Route: home, Name: "main", Limit: 10})
		all = append(all, res, err)
	}
	if offered.Has(spi.CapLeases) {
		_, err := spi.AcquireLease(f.ctx, f.store, spi.AcquireLeaseRequest{Route: home, Name: "poller", Holder: "bob", TTL: aLongLease})
		all = append(all, err)
	}
	if offered.Has(spi.CapDataKeys) {
		res, err := spi.ListDataKeys(f.ctx, f.store, spi.ListDataKeysRequest{Limit: spi.MaxLimit})
		all = append(all, res.Keys, err)
	}
	return fmt.Sprintf("%+v", all)
}

// slotNames are names in slots of every state, and slotsListed those of the slots
// that list, in the order of both pages and this list.
var (
	slotNames = []struct {
		name  string
		route spi.Route
	}{
		{"a released", spi.Route{Slot: 23, Epoch: 1}},
		{"b released", spi.Route{Slot: 23, Epoch: 1}},
		{"c owned", spi.Route{Slot: 21, Epoch: 1}},
		{"d frozen", spi.Route{Slot: 22, Epoch: 1}},
		{"e released", spi.Route{Slot: 23, Epoch: 1}},
		{"f pinned", spi.Route{Slot: spi.FirstPin, Epoch: 1}},
		{"g owned", spi.Route{Slot: 20, Epoch: 1}},
		{"h released", spi.Route{Slot: 23, Epoch: 1}},
	}
	slotsListed = []string{"c owned", "d frozen", "f pinned", "g owned"}
	listingSet  = spi.NewSlotSet(20, 21, 22, spi.FirstPin)
)
