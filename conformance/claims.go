package conformance

import (
	"context"
	"errors"
	"strings"

	"github.com/loomgate/loomgate/spi"
)

var claims = topic{"claims", []testCase{
	{
		"a method that is not offered says that it is unsupported",
		0,
		func(f *fixture) {
			for _, m := range methods {
				if f.store.Offered().Has(m.need) {
					continue
				}
				if err := m.call(f.ctx, f.store); !errors.Is(err, errors.ErrUnsupported) {
					f.Errorf("%s is not offered and answers %v", m.name, err)
				}
			}
		},
	},
	{
		"a method that is offered never says that it is unsupported",
		0,
		func(f *fixture) {
			for _, m := range methods {
				if !f.store.Offered().Has(m.need) {
					continue
				}
				if err := m.call(f.ctx, f.store); errors.Is(err, errors.ErrUnsupported) {
					f.Errorf("%s is offered and answers %v", m.name, err)
				}
			}
		},
	},
	{
		"an error names the method and the execution as the caller knows it",
		0,
		func(f *fixture) {
			f.appendN("order-1", 0, 2)
			_, err := spi.Append(f.ctx, f.store, spi.AppendRequest{Execution: "order-1", ExpectedHead: 1, Events: events(1)})
			equal(f, "the method", wantError[*spi.OpError](f, err).Op, "Append")
			equal(f, "the execution", wantError[*spi.ConflictError](f, err).Execution, "order-1")
			if text := err.Error(); !strings.Contains(text, "Append") || !strings.Contains(text, `"order-1"`) {
				f.Errorf("the text %q leaves one of them out", text)
			}
		},
	},
}}

// A method is one of the interface, with a well-formed call of it.
type method struct {
	name string
	need spi.Caps
	call func(context.Context, *spi.Store) error
}

// methods is every method; a test holds it to that.
var methods = []method{
	calling("Append", spi.CapEvents, spi.Append, spi.AppendRequest{Execution: "e", Events: []spi.Event{event("Noted")}}),
	calling("Read", spi.CapEvents, spi.Read, spi.ReadRequest{Execution: "e", Limit: 1}),
	calling("Head", spi.CapEvents, spi.Head, spi.HeadRequest{Execution: "e"}),
	calling("ListExecutions", spi.CapEvents, spi.ListExecutions, spi.ListExecutionsRequest{Limit: 1}),
	calling("AppendBatch", spi.CapAppendBatch, spi.AppendBatch, spi.AppendBatchRequest{Appends: []spi.AppendRequest{{Execution: "f", Events: []spi.Event{event("Noted")}}}}),
	calling("AcquireFence", spi.CapAcquireFence, spi.AcquireFence, spi.AcquireFenceRequest{Execution: "e"}),
	calling("AcquireFenceIf", spi.CapAcquireFenceIf, spi.AcquireFenceIf, spi.AcquireFenceIfRequest{Execution: "e", ParkSeq: 1}),
	calling("AppendIfUnchanged", spi.CapAppendIfUnchanged, spi.AppendIfUnchanged, spi.AppendIfUnchangedRequest{Execution: "e", Events: []spi.Event{event("Noted")}}),
	calling("CopyPrefix", spi.CapCopyPrefix, spi.CopyPrefix, spi.CopyPrefixRequest{From: "e", To: "g", N: 1}),
	calling("TruncatePrefixKeeping", spi.CapTruncatePrefixKeeping, spi.TruncatePrefixKeeping, spi.TruncatePrefixKeepingRequest{Execution: "e", Incarnation: 1, Before: 1}),
	calling("DeleteExecution", spi.CapDeleteExecution, spi.DeleteExecution, spi.DeleteExecutionRequest{Execution: "e", Incarnation: 1}),
	calling("SweepTombstones", spi.CapSweepTombstones, spi.SweepTombstones, spi.SweepTombstonesRequest{Limit: 1}),
	calling("ScheduleTimer", spi.CapTimers, spi.ScheduleTimer, spi.ScheduleTimerRequest{Timer: spi.Timer{Execution: "e", WakeAt: longAgo}}),
	calling("DueTimers", spi.CapTimers, spi.DueTimers, spi.DueTimersRequest{Limit: 1}),
	calling("CompleteTimer", spi.CapTimers, spi.CompleteTimer, spi.CompleteTimerRequest{Execution: "e", WakeAt: longAgo, Version: 1}),
	calling("PutRef", spi.CapRefs, spi.PutRef, spi.PutRefRequest{Name: "r", Execution: "e", ExpectedVersion: spi.AnyVersion}),
	calling("GetRef", spi.CapRefs, spi.GetRef, spi.GetRefRequest{Name: "r"}),
	calling("DeleteRef", spi.CapRefs, spi.DeleteRef, spi.DeleteRefRequest{Name: "r", ExpectedVersion: spi.AnyVersion}),
	calling("ListRefs", spi.CapRefs, spi.ListRefs, spi.ListRefsRequest{Limit: 1}),
	calling("PromoteRef", spi.CapPromoteRef, spi.PromoteRef, spi.PromoteRefRequest{Name: "r", Execution: "e", ExpectedVersion: 1}),
	calling("RefLineage", spi.CapRefLineage, spi.RefLineage, spi.RefLineageRequest{Name: "r", Limit: 1}),
	calling("AcquireLease", spi.CapLeases, spi.AcquireLease, spi.AcquireLeaseRequest{Name: "l", Holder: "h", TTL: spi.MinLeaseTTL}),
	calling("RenewLease", spi.CapLeases, spi.RenewLease, spi.RenewLeaseRequest{Name: "l", Token: 1, TTL: spi.MinLeaseTTL}),
	calling("ReleaseLease", spi.CapLeases, spi.ReleaseLease, spi.ReleaseLeaseRequest{Name: "l", Token: 1}),
	calling("CreateDataKey", spi.CapDataKeys, spi.CreateDataKey, spi.CreateDataKeyRequest{Key: spi.DataKey{Owner: "k", Version: 1, ID: spi.KeyID(spi.NewEventID()), WrappedBy: "kms", Wrapped: []byte{1}}}),
	calling("GetDataKey", spi.CapDataKeys, spi.GetDataKey, spi.GetDataKeyRequest{Owner: "k"}),
	calling("DestroyDataKey", spi.CapDataKeys, spi.DestroyDataKey, spi.DestroyDataKeyRequest{Owner: "k", Version: 1}),
	calling("ListDataKeys", spi.CapDataKeys, spi.ListDataKeys, spi.ListDataKeysRequest{Limit: 1}),
	calling("RewrapDataKey", spi.CapRewrapDataKey, spi.RewrapDataKey, spi.RewrapDataKeyRequest{Owner: "k", Version: 1, OldWrappedBy: "kms", WrappedBy: "kms", Wrapped: []byte{1}}),
	calling("GetOwnership", spi.CapOwnership, spi.GetOwnership, spi.GetOwnershipRequest{}),
	calling("ChangeOwnership", spi.CapChangeOwnership, spi.ChangeOwnership, spi.ChangeOwnershipRequest{ExpectedVersion: 1}),
}

func calling[Q, R any](name string, need spi.Caps, call func(context.Context, *spi.Store, Q) (R, error), req Q) method {
	return method{name, need, func(ctx context.Context, s *spi.Store) error {
		_, err := call(ctx, s, req)
		return err
	}}
}
