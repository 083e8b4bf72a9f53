package sharded_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/loomgate/loomgate/spi"
)

// A double is a store in front of another, in which a test sees each call and can
// answer in its place.
type double struct {
	inner *spi.Store
	hook  atomic.Pointer[hook]
}

// A hook is told each call. If it returns an error, that is the answer; if it
// returns an answer, that is, too.
type hook func(ctx context.Context, method string, req any) (res any, err error)

// on sets the hook; nil takes it away.
func (d *double) on(h hook) { d.hook.Store(&h) }

// newDouble returns a double and the store that leads to it.
func newDouble(tb testing.TB, inner *spi.Store) (*double, *spi.Store) {
	tb.Helper()
	d := &double{inner: inner}
	s, err := spi.Open(spi.Backend{Events: d, Timers: d, Refs: d, Leases: d, DataKeys: d, Ownership: d})
	if err != nil {
		tb.Fatal(err)
	}
	return d, spi.Only(s, inner.Offered())
}

func through[Q, R any](ctx context.Context, d *double, method string, do func(context.Context, *spi.Store, Q) (R, error), req Q) (R, error) {
	if h := d.hook.Load(); h != nil && *h != nil {
		switch res, err := (*h)(ctx, method, req); {
		case err != nil:
			var none R
			return none, err
		case res != nil:
			return res.(R), nil
		}
	}
	return do(ctx, d.inner, req)
}

func (d *double) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	return through(ctx, d, "Append", spi.Append, req)
}

func (d *double) Read(ctx context.Context, req spi.ReadRequest) (spi.ReadResponse, error) {
	return through(ctx, d, "Read", spi.Read, req)
}

func (d *double) Head(ctx context.Context, req spi.HeadRequest) (spi.HeadResponse, error) {
	return through(ctx, d, "Head", spi.Head, req)
}

func (d *double) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	return through(ctx, d, "ListExecutions", spi.ListExecutions, req)
}

func (d *double) AppendBatch(ctx context.Context, req spi.AppendBatchRequest) (spi.AppendBatchResponse, error) {
	return through(ctx, d, "AppendBatch", spi.AppendBatch, req)
}

func (d *double) AcquireFence(ctx context.Context, req spi.AcquireFenceRequest) (spi.AcquireFenceResponse, error) {
	return through(ctx, d, "AcquireFence", spi.AcquireFence, req)
}

func (d *double) AcquireFenceIf(ctx context.Context, req spi.AcquireFenceIfRequest) (spi.AcquireFenceIfResponse, error) {
	return through(ctx, d, "AcquireFenceIf", spi.AcquireFenceIf, req)
}

func (d *double) AppendIfUnchanged(ctx context.Context, req spi.AppendIfUnchangedRequest) (spi.AppendIfUnchangedResponse, error) {
	return through(ctx, d, "AppendIfUnchanged", spi.AppendIfUnchanged, req)
}

func (d *double) CopyPrefix(ctx context.Context, req spi.CopyPrefixRequest) (spi.CopyPrefixResponse, error) {
	return through(ctx, d, "CopyPrefix", spi.CopyPrefix, req)
}

func (d *double) TruncatePrefixKeeping(ctx context.Context, req spi.TruncatePrefixKeepingRequest) (spi.TruncatePrefixKeepingResponse, error) {
	return through(ctx, d, "TruncatePrefixKeeping", spi.TruncatePrefixKeeping, req)
}

func (d *double) DeleteExecution(ctx context.Context, req spi.DeleteExecutionRequest) (spi.DeleteExecutionResponse, error) {
	return through(ctx, d, "DeleteExecution", spi.DeleteExecution, req)
}

func (d *double) SweepTombstones(ctx context.Context, req spi.SweepTombstonesRequest) (spi.SweepTombstonesResponse, error) {
	return through(ctx, d, "SweepTombstones", spi.SweepTombstones, req)
}

func (d *double) ScheduleTimer(ctx context.Context, req spi.ScheduleTimerRequest) (spi.ScheduleTimerResponse, error) {
	return through(ctx, d, "ScheduleTimer", spi.ScheduleTimer, req)
}

func (d *double) DueTimers(ctx context.Context, req spi.DueTimersRequest) (spi.DueTimersResponse, error) {
	return through(ctx, d, "DueTimers", spi.DueTimers, req)
}

func (d *double) CompleteTimer(ctx context.Context, req spi.CompleteTimerRequest) (spi.CompleteTimerResponse, error) {
	return through(ctx, d, "CompleteTimer", spi.CompleteTimer, req)
}

func (d *double) PutRef(ctx context.Context, req spi.PutRefRequest) (spi.PutRefResponse, error) {
	return through(ctx, d, "PutRef", spi.PutRef, req)
}

func (d *double) GetRef(ctx context.Context, req spi.GetRefRequest) (spi.GetRefResponse, error) {
	return through(ctx, d, "GetRef", spi.GetRef, req)
}

func (d *double) DeleteRef(ctx context.Context, req spi.DeleteRefRequest) (spi.DeleteRefResponse, error) {
	return through(ctx, d, "DeleteRef", spi.DeleteRef, req)
}

func (d *double) ListRefs(ctx context.Context, req spi.ListRefsRequest) (spi.ListRefsResponse, error) {
	return through(ctx, d, "ListRefs", spi.ListRefs, req)
}

func (d *double) PromoteRef(ctx context.Context, req spi.PromoteRefRequest) (spi.PromoteRefResponse, error) {
	return through(ctx, d, "PromoteRef", spi.PromoteRef, req)
}

func (d *double) RefLineage(ctx context.Context, req spi.RefLineageRequest) (spi.RefLineageResponse, error) {
	return through(ctx, d, "RefLineage", spi.RefLineage, req)
}

func (d *double) AcquireLease(ctx context.Context, req spi.AcquireLeaseRequest) (spi.AcquireLeaseResponse, error) {
	return through(ctx, d, "AcquireLease", spi.AcquireLease, req)
}

func (d *double) RenewLease(ctx context.Context, req spi.RenewLeaseRequest) (spi.RenewLeaseResponse, error) {
	return through(ctx, d, "RenewLease", spi.RenewLease, req)
}

func (d *double) ReleaseLease(ctx context.Context, req spi.ReleaseLeaseRequest) (spi.ReleaseLeaseResponse, error) {
	return through(ctx, d, "ReleaseLease", spi.ReleaseLease, req)
}

func (d *double) CreateDataKey(ctx context.Context, req spi.CreateDataKeyRequest) (spi.CreateDataKeyResponse, error) {
	return through(ctx, d, "CreateDataKey", spi.CreateDataKey, req)
}

func (d *double) GetDataKey(ctx context.Context, req spi.GetDataKeyRequest) (spi.GetDataKeyResponse, error) {
	return through(ctx, d, "GetDataKey", spi.GetDataKey, req)
}

func (d *double) DestroyDataKey(ctx context.Context, req spi.DestroyDataKeyRequest) (spi.DestroyDataKeyResponse, error) {
	return through(ctx, d, "DestroyDataKey", spi.DestroyDataKey, req)
}

func (d *double) ListDataKeys(ctx context.Context, req spi.ListDataKeysRequest) (spi.ListDataKeysResponse, error) {
	return through(ctx, d, "ListDataKeys", spi.ListDataKeys, req)
}

func (d *double) RewrapDataKey(ctx context.Context, req spi.RewrapDataKeyRequest) (spi.RewrapDataKeyResponse, error) {
	return through(ctx, d, "RewrapDataKey", spi.RewrapDataKey, req)
}

func (d *double) GetOwnership(ctx context.Context, req spi.GetOwnershipRequest) (spi.GetOwnershipResponse, error) {
	return through(ctx, d, "GetOwnership", spi.GetOwnership, req)
}

func (d *double) ChangeOwnership(ctx context.Context, req spi.ChangeOwnershipRequest) (spi.ChangeOwnershipResponse, error) {
	return through(ctx, d, "ChangeOwnership", spi.ChangeOwnership, req)
}
