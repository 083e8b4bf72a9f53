package profiling

import (
	"context"

	"github.com/loomgate/loomgate/spi"
)

func (l *layer) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	return observe(ctx, l, "Append", req, spi.Append)
}

func (l *layer) Read(ctx context.Context, req spi.ReadRequest) (spi.ReadResponse, error) {
	return observe(ctx, l, "Read", req, spi.Read)
}

func (l *layer) Head(ctx context.Context, req spi.HeadRequest) (spi.HeadResponse, error) {
	return observe(ctx, l, "Head", req, spi.Head)
}

func (l *layer) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	return observe(ctx, l, "ListExecutions", req, spi.ListExecutions)
}

func (l *layer) AppendBatch(ctx context.Context, req spi.AppendBatchRequest) (spi.AppendBatchResponse, error) {
	return observe(ctx, l, "AppendBatch", req, spi.AppendBatch)
}

func (l *layer) AcquireFence(ctx context.Context, req spi.AcquireFenceRequest) (spi.AcquireFenceResponse, error) {
	return observe(ctx, l, "AcquireFence", req, spi.AcquireFence)
}

func (l *layer) AcquireFenceIf(ctx context.Context, req spi.AcquireFenceIfRequest) (spi.AcquireFenceIfResponse, error) {
	return observe(ctx, l, "AcquireFenceIf", req, spi.AcquireFenceIf)
}

func (l *layer) AppendIfUnchanged(ctx context.Context, req spi.AppendIfUnchangedRequest) (spi.AppendIfUnchangedResponse, error) {
	return observe(ctx, l, "AppendIfUnchanged", req, spi.AppendIfUnchanged)
}

func (l *layer) CopyPrefix(ctx context.Context, req spi.CopyPrefixRequest) (spi.CopyPrefixResponse, error) {
	return observe(ctx, l, "CopyPrefix", req, spi.CopyPrefix)
}

func (l *layer) TruncatePrefixKeeping(ctx context.Context, req spi.TruncatePrefixKeepingRequest) (spi.TruncatePrefixKeepingResponse, error) {
	return observe(ctx, l, "TruncatePrefixKeeping", req, spi.TruncatePrefixKeeping)
}

func (l *layer) DeleteExecution(ctx context.Context, req spi.DeleteExecutionRequest) (spi.DeleteExecutionResponse, error) {
	return observe(ctx, l, "DeleteExecution", req, spi.DeleteExecution)
}

func (l *layer) SweepTombstones(ctx context.Context, req spi.SweepTombstonesRequest) (spi.SweepTombstonesResponse, error) {
	return observe(ctx, l, "SweepTombstones", req, spi.SweepTombstones)
}

func (l *layer) ScheduleTimer(ctx context.Context, req spi.ScheduleTimerRequest) (spi.ScheduleTimerResponse, error) {
	return observe(ctx, l, "ScheduleTimer", req, spi.ScheduleTimer)
}

func (l *layer) DueTimers(ctx context.Context, req spi.DueTimersRequest) (spi.DueTimersResponse, error) {
	return observe(ctx, l, "DueTimers", req, spi.DueTimers)
}

func (l *layer) CompleteTimer(ctx context.Context, req spi.CompleteTimerRequest) (spi.CompleteTimerResponse, error) {
	return observe(ctx, l, "CompleteTimer", req, spi.CompleteTimer)
}

func (l *layer) PutRef(ctx context.Context, req spi.PutRefRequest) (spi.PutRefResponse, error) {
	return observe(ctx, l, "PutRef", req, spi.PutRef)
}

func (l *layer) GetRef(ctx context.Context, req spi.GetRefRequest) (spi.GetRefResponse, error) {
	return observe(ctx, l, "GetRef", req, spi.GetRef)
}

func (l *layer) DeleteRef(ctx context.Context, req spi.DeleteRefRequest) (spi.DeleteRefResponse, error) {
	return observe(ctx, l, "DeleteRef", req, spi.DeleteRef)
}

func (l *layer) ListRefs(ctx context.Context, req spi.ListRefsRequest) (spi.ListRefsResponse, error) {
	return observe(ctx, l, "ListRefs", req, spi.ListRefs)
}

func (l *layer) PromoteRef(ctx context.Context, req spi.PromoteRefRequest) (spi.PromoteRefResponse, error) {
	return observe(ctx, l, "PromoteRef", req, spi.PromoteRef)
}

func (l *layer) RefLineage(ctx context.Context, req spi.RefLineageRequest) (spi.RefLineageResponse, error) {
	return observe(ctx, l, "RefLineage", req, spi.RefLineage)
}

func (l *layer) AcquireLease(ctx context.Context, req spi.AcquireLeaseRequest) (spi.AcquireLeaseResponse, error) {
	return observe(ctx, l, "AcquireLease", req, spi.AcquireLease)
}

func (l *layer) RenewLease(ctx context.Context, req spi.RenewLeaseRequest) (spi.RenewLeaseResponse, error) {
	return observe(ctx, l, "RenewLease", req, spi.RenewLease)
}

func (l *layer) ReleaseLease(ctx context.Context, req spi.ReleaseLeaseRequest) (spi.ReleaseLeaseResponse, error) {
	return observe(ctx, l, "ReleaseLease", req, spi.ReleaseLease)
}

func (l *layer) CreateDataKey(ctx context.Context, req spi.CreateDataKeyRequest) (spi.CreateDataKeyResponse, error) {
	return observe(ctx, l, "CreateDataKey", req, spi.CreateDataKey)
}

func (l *layer) GetDataKey(ctx context.Context, req spi.GetDataKeyRequest) (spi.GetDataKeyResponse, error) {
	return observe(ctx, l, "GetDataKey", req, spi.GetDataKey)
}

func (l *layer) DestroyDataKey(ctx context.Context, req spi.DestroyDataKeyRequest) (spi.DestroyDataKeyResponse, error) {
	return observe(ctx, l, "DestroyDataKey", req, spi.DestroyDataKey)
}

func (l *layer) ListDataKeys(ctx context.Context, req spi.ListDataKeysRequest) (spi.ListDataKeysResponse, error) {
	return observe(ctx, l, "ListDataKeys", req, spi.ListDataKeys)
}

func (l *layer) RewrapDataKey(ctx context.Context, req spi.RewrapDataKeyRequest) (spi.RewrapDataKeyResponse, error) {
	return observe(ctx, l, "RewrapDataKey", req, spi.RewrapDataKey)
}

func (l *layer) GetOwnership(ctx context.Context, req spi.GetOwnershipRequest) (spi.GetOwnershipResponse, error) {
	return observe(ctx, l, "GetOwnership", req, spi.GetOwnership)
}

func (l *layer) ChangeOwnership(ctx context.Context, req spi.ChangeOwnershipRequest) (spi.ChangeOwnershipResponse, error) {
	return observe(ctx, l, "ChangeOwnership", req, spi.ChangeOwnership)
}
