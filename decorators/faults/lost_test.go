package faults_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/decorators/faults"
	"github.com/loomgate/loomgate/spi"
)

// What a lost answer of each method is: unavailable from a read, ambiguous from a
// write, for the execution if it writes to one.
const (
	unavailable = "unavailable"
	nowhere     = ""
)

// TestWhatIsLostOfEachMethod loses the answers of every method, in an order in which
// each call succeeds below.
func TestWhatIsLostOfEachMethod(t *testing.T) {
	under := open(t)
	s := over(t, always(faults.Fault{Lose: errPlanned, Whole: true}))
	tried := map[string]bool{}
	try := func(method, want string, err error) {
		t.Helper()
		tried[method] = true
		lost, ambiguous := errors.AsType[*spi.AmbiguousError](err)
		_, read := errors.AsType[*spi.UnavailableError](err)
		switch {
		case !errors.Is(err, errPlanned):
			t.Errorf("%s answers %v", method, err)
		case want == unavailable && !read, want != unavailable && (!ambiguous || string(lost.Execution) != want):
			t.Errorf("%s answers %T %v, not %q", method, errors.Unwrap(err), err, want)
		}
	}
	event := first("e").Events
	wake := spi.Timer{Execution: "e", WakeAt: time.Unix(1, 0)}
	key := spi.DataKey{Owner: "k", Version: 1, ID: spi.KeyID{1}, WrappedBy: "kms", Wrapped: []byte{1}}
	lease := spi.AcquireLeaseRequest{Name: "l", Holder: "h", TTL: time.Hour}

	try("Append", "e", call(t, s, spi.Append, spi.AppendRequest{Execution: "e", Events: event}))
	try("AppendBatch", nowhere, call(t, s, spi.AppendBatch, spi.AppendBatchRequest{Appends: []spi.AppendRequest{first("b")}}))
	try("AppendIfUnchanged", "u", call(t, s, spi.AppendIfUnchanged, spi.AppendIfUnchangedRequest{Execution: "u", Events: first("u").Events}))
	try("Read", unavailable, call(t, s, spi.Read, spi.ReadRequest{Execution: "e", Limit: 1}))
	try("Head", unavailable, call(t, s, spi.Head, spi.HeadRequest{Execution: "e"}))
	try("ListExecutions", unavailable, call(t, s, spi.ListExecutions, spi.ListExecutionsRequest{Limit: 1}))
	try("CopyPrefix", "copy", call(t, s, spi.CopyPrefix, spi.CopyPrefixRequest{From: "e", To: "copy", N: 1}))
	try("AcquireFence", "e", call(t, s, spi.AcquireFence, spi.AcquireFenceRequest{Execution: "e"}))
	try("AcquireFenceIf", "e", call(t, s, spi.AcquireFenceIf, spi.AcquireFenceIfRequest{Execution: "e", Fence: 1, ParkSeq: 1}))
	try("TruncatePrefixKeeping", "e", call(t, s, spi.TruncatePrefixKeeping, spi.TruncatePrefixKeepingRequest{Execution: "e", Incarnation: 1, Before: 1}))
	try("ScheduleTimer", "e", call(t, s, spi.ScheduleTimer, spi.ScheduleTimerRequest{Timer: wake}))
	try("DueTimers", unavailable, call(t, s, spi.DueTimers, spi.DueTimersRequest{Limit: 1}))
	try("CompleteTimer", "e", call(t, s, spi.CompleteTimer, spi.CompleteTimerRequest{Execution: "e", WakeAt: wake.WakeAt, Version: 1}))
	try("PutRef", nowhere, call(t, s, spi.PutRef, spi.PutRefRequest{Name: "r", Execution: "e"}))
	try("GetRef", unavailable, call(t, s, spi.GetRef, spi.GetRefRequest{Name: "r"}))
	try("ListRefs", unavailable, call(t, s, spi.ListRefs, spi.ListRefsRequest{Limit: 1}))
	try("RefLineage", unavailable, call(t, s, spi.RefLineage, spi.RefLineageRequest{Name: "r", Limit: 1}))
	ref, err := spi.GetRef(t.Context(), under, spi.GetRefRequest{Name: "r"})
	if err != nil {
		t.Fatal(err)
	}
	try("PromoteRef", nowhere, call(t, s, spi.PromoteRef, spi.PromoteRefRequest{Name: "r", Execution: "e", ExpectedVersion: ref.Ref.Version}))
	try("DeleteRef", nowhere, call(t, s, spi.DeleteRef, spi.DeleteRefRequest{Name: "r", ExpectedVersion: spi.AnyVersion}))
	try("AcquireLease", nowhere, call(t, s, spi.AcquireLease, lease))
	held, err := spi.AcquireLease(t.Context(), under, lease)
	if err != nil {
		t.Fatal(err)
	}
	try("RenewLease", nowhere, call(t, s, spi.RenewLease, spi.RenewLeaseRequest{Name: "l", Token: held.Token, TTL: time.Hour}))
	try("ReleaseLease", nowhere, call(t, s, spi.ReleaseLease, spi.ReleaseLeaseRequest{Name: "l", Token: held.Token}))
	try("CreateDataKey", nowhere, call(t, s, spi.CreateDataKey, spi.CreateDataKeyRequest{Key: key}))
	try("GetDataKey", unavailable, call(t, s, spi.GetDataKey, spi.GetDataKeyRequest{Owner: "k"}))
	try("ListDataKeys", unavailable, call(t, s, spi.ListDataKeys, spi.ListDataKeysRequest{Limit: 1}))
	try("RewrapDataKey", nowhere, call(t, s, spi.RewrapDataKey, spi.RewrapDataKeyRequest{Owner: "k", Version: 1, OldWrappedBy: "kms", WrappedBy: "kms-2", Wrapped: []byte{2}}))
	try("DestroyDataKey", nowhere, call(t, s, spi.DestroyDataKey, spi.DestroyDataKeyRequest{Owner: "k", Version: 1}))
	try("DeleteExecution", "e", call(t, s, spi.DeleteExecution, spi.DeleteExecutionRequest{Execution: "e", Incarnation: 1}))
	try("SweepTombstones", nowhere, call(t, s, spi.SweepTombstones, spi.SweepTombstonesRequest{Limit: 1}))
	try("GetOwnership", unavailable, call(t, s, spi.GetOwnership, spi.GetOwnershipRequest{}))
	empty, err := memory.New()
	if err != nil {
		t.Fatal(err)
	}
	if s, err = faults.New(empty, always(faults.Fault{Lose: errPlanned})); err != nil {
		t.Fatal(err)
	}
	try("ChangeOwnership", nowhere, call(t, s, spi.ChangeOwnership, spi.ChangeOwnershipRequest{Identity: spi.Identity{Cluster: "c", Shard: "s", Fingerprint: "f"}}))

	for m := range reflect.TypeFor[spi.Decorator]().Methods() {
		if m.Name != "Caps" && m.Name != "Layer" && !tried[m.Name] {
			t.Errorf("%s is not tried", m.Name)
		}
	}
}

func call[Q, R any](t *testing.T, s *spi.Store, do func(context.Context, *spi.Store, Q) (R, error), req Q) error {
	_, err := do(t.Context(), s, req)
	return err
}

func TestARefusalBelowIsNotLost(t *testing.T) {
	s := over(t, always(faults.Fault{Lose: errPlanned}))
	late := first("e")
	late.ExpectedHead = 7
	_, err := spi.Append(t.Context(), s, late)
	want[*spi.ConflictError](t, err)
	res, err := spi.AppendBatch(t.Context(), s, spi.AppendBatchRequest{Appends: []spi.AppendRequest{first("f"), late}})
	if err != nil {
		t.Fatal(err)
	}
	want[*spi.AmbiguousError](t, res.Results[0].Err)
	want[*spi.ConflictError](t, res.Results[1].Err)
}
