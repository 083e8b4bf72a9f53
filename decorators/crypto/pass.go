package crypto

import (
	"context"

	"github.com/loomgate/loomgate/spi"
)

// DeleteExecution passes: the store drops the data key with the log. Above a tenant's
// view there can be an execution by the name of a bare scope; a deletion would take the
// tenant's keys, which have the same owner.
func (l *layer) DeleteExecution(ctx context.Context, req spi.DeleteExecutionRequest) (spi.DeleteExecutionResponse, error) {
	if _, named := spi.KeyOwner(req.Execution).Execution(); !named {
		return spi.DeleteExecutionResponse{}, &spi.InvalidArgumentError{Field: "execution id", Rule: "is a tenant's bare scope, where the tenant's keys are"}
	}
	res, err := spi.DeleteExecution(ctx, l.inner, req)
	l.keys.data.forget(req.Execution)
	return res, err
}

// Data keys are not offered: this layer lives by them.

func (l *layer) CreateDataKey(context.Context, spi.CreateDataKeyRequest) (spi.CreateDataKeyResponse, error) {
	return spi.CreateDataKeyResponse{}, &spi.UnsupportedError{Cap: spi.CapDataKeys}
}

func (l *layer) GetDataKey(context.Context, spi.GetDataKeyRequest) (spi.GetDataKeyResponse, error) {
	return spi.GetDataKeyResponse{}, &spi.UnsupportedError{Cap: spi.CapDataKeys}
}

func (l *layer) DestroyDataKey(context.Context, spi.DestroyDataKeyRequest) (spi.DestroyDataKeyResponse, error) {
	return spi.DestroyDataKeyResponse{}, &spi.UnsupportedError{Cap: spi.CapDataKeys}
}

func (l *layer) ListDataKeys(context.Context, spi.ListDataKeysRequest) (spi.ListDataKeysResponse, error) {
	return spi.ListDataKeysResponse{}, &spi.UnsupportedError{Cap: spi.CapDataKeys}
}

func (l *layer) RewrapDataKey(context.Context, spi.RewrapDataKeyRequest) (spi.RewrapDataKeyResponse, error) {
	return spi.RewrapDataKeyResponse{}, &spi.UnsupportedError{Cap: spi.CapRewrapDataKey}
}

// ChangeOwnership is not offered.
func (l *layer) ChangeOwnership(context.Context, spi.ChangeOwnershipRequest) (spi.ChangeOwnershipResponse, error) {
	return spi.ChangeOwnershipResponse{}, &spi.UnsupportedError{Cap: spi.CapChangeOwnership}
}

// What follows passes: it holds nothing that is encrypted.

func (l *layer) Head(ctx context.Context, req spi.HeadRequest) (spi.HeadResponse, error) {
	return spi.Head(ctx, l.inner, req)
}

func (l *layer) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	return spi.ListExecutions(ctx, l.inner, req)
}

func (l *layer) AcquireFence(ctx context.Context, req spi.AcquireFenceRequest) (spi.AcquireFenceResponse, error) {
	return spi.AcquireFence(ctx, l.inner, req)
}

func (l *layer) AcquireFenceIf(ctx context.Context, req spi.AcquireFenceIfRequest) (spi.AcquireFenceIfResponse, error) {
	return spi.AcquireFenceIf(ctx, l.inner, req)
}

func (l *layer) TruncatePrefixKeeping(ctx context.Context, req spi.TruncatePrefixKeepingRequest) (spi.TruncatePrefixKeepingResponse, error) {
	return spi.TruncatePrefixKeeping(ctx, l.inner, req)
}

func (l *layer) SweepTombstones(ctx context.Context, req spi.SweepTombstonesRequest) (spi.SweepTombstonesResponse, error) {
	return spi.SweepTombstones(ctx, l.inner, req)
}

func (l *layer) ScheduleTimer(ctx context.Context, req spi.ScheduleTimerRequest) (spi.ScheduleTimerResponse, error) {
	return spi.ScheduleTimer(ctx, l.inner, req)
}

func (l *layer) DueTimers(ctx context.Context, req spi.DueTimersRequest) (spi.DueTimersResponse, error) {
	return spi.DueTimers(ctx, l.inner, req)
}

func (l *layer) CompleteTimer(ctx context.Context, req spi.CompleteTimerRequest) (spi.CompleteTimerResponse, error) {
	return spi.CompleteTimer(ctx, l.inner, req)
}

func (l *layer) PutRef(ctx context.Context, req spi.PutRefRequest) (spi.PutRefResponse, error) {
	return spi.PutRef(ctx, l.inner, req)
}

func (l *layer) GetRef(ctx context.Context, req spi.GetRefRequest) (spi.GetRefResponse, error) {
	return spi.GetRef(ctx, l.inner, req)
}

func (l *layer) DeleteRef(ctx context.Context, req spi.DeleteRefRequest) (spi.DeleteRefResponse, error) {
	return spi.DeleteRef(ctx, l.inner, req)
}

func (l *layer) ListRefs(ctx context.Context, req spi.ListRefsRequest) (spi.ListRefsResponse, error) {
	return spi.ListRefs(ctx, l.inner, req)
}

func (l *layer) PromoteRef(ctx context.Context, req spi.PromoteRefRequest) (spi.PromoteRefResponse, error) {
	return spi.PromoteRef(ctx, l.inner, req)
}

func (l *layer) RefLineage(ctx context.Context, req spi.RefLineageRequest) (spi.RefLineageResponse, error) {
	return spi.RefLineage(ctx, l.inner, req)
}

func (l *layer) AcquireLease(ctx context.Context, req spi.AcquireLeaseRequest) (spi.AcquireLeaseResponse, error) {
	return spi.AcquireLease(ctx, l.inner, req)
}

func (l *layer) RenewLease(ctx context.Context, req spi.RenewLeaseRequest) (spi.RenewLeaseResponse, error) {
	return spi.RenewLease(ctx, l.inner, req)
}

func (l *layer) ReleaseLease(ctx context.Context, req spi.ReleaseLeaseRequest) (spi.ReleaseLeaseResponse, error) {
	return spi.ReleaseLease(ctx, l.inner, req)
}

func (l *layer) GetOwnership(ctx context.Context, req spi.GetOwnershipRequest) (spi.GetOwnershipResponse, error) {
	return spi.GetOwnership(ctx, l.inner, req)
}
