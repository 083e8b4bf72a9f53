package coalescing

import (
	"context"

	"github.com/loomgate/loomgate/spi"
)

// All other methods pass through: each line is a decision.

func (c *coalescer) Read(ctx context.Context, req spi.ReadRequest) (spi.ReadResponse, error) {
	return spi.Read(ctx, c.inner, req)
}

func (c *coalescer) Head(ctx context.Context, req spi.HeadRequest) (spi.HeadResponse, error) {
	return spi.Head(ctx, c.inner, req)
}

func (c *coalescer) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	return spi.ListExecutions(ctx, c.inner, req)
}

func (c *coalescer) AppendBatch(ctx context.Context, req spi.AppendBatchRequest) (spi.AppendBatchResponse, error) {
	return spi.AppendBatch(ctx, c.inner, req)
}

func (c *coalescer) AppendIfUnchanged(ctx context.Context, req spi.AppendIfUnchangedRequest) (spi.AppendIfUnchangedResponse, error) {
	return spi.AppendIfUnchanged(ctx, c.inner, req)
}

func (c *coalescer) AcquireFence(ctx context.Context, req spi.AcquireFenceRequest) (spi.AcquireFenceResponse, error) {
	return spi.AcquireFence(ctx, c.inner, req)
}

func (c *coalescer) AcquireFenceIf(ctx context.Context, req spi.AcquireFenceIfRequest) (spi.AcquireFenceIfResponse, error) {
	return spi.AcquireFenceIf(ctx, c.inner, req)
}

func (c *coalescer) CopyPrefix(ctx context.Context, req spi.CopyPrefixRequest) (spi.CopyPrefixResponse, error) {
	return spi.CopyPrefix(ctx, c.inner, req)
}

func (c *coalescer) TruncatePrefixKeeping(ctx context.Context, req spi.TruncatePrefixKeepingRequest) (spi.TruncatePrefixKeepingResponse, error) {
	return spi.TruncatePrefixKeeping(ctx, c.inner, req)
}

func (c *coalescer) DeleteExecution(ctx context.Context, req spi.DeleteExecutionRequest) (spi.DeleteExecutionResponse, error) {
	return spi.DeleteExecution(ctx, c.inner, req)
}

func (c *coalescer) SweepTombstones(ctx context.Context, req spi.SweepTombstonesRequest) (spi.SweepTombstonesResponse, error) {
	return spi.SweepTombstones(ctx, c.inner, req)
}

func (c *coalescer) ScheduleTimer(ctx context.Context, req spi.ScheduleTimerRequest) (spi.ScheduleTimerResponse, error) {
	return spi.ScheduleTimer(ctx, c.inner, req)
}

func (c *coalescer) DueTimers(ctx context.Context, req spi.DueTimersRequest) (spi.DueTimersResponse, error) {
	return spi.DueTimers(ctx, c.inner, req)
}

func (c *coalescer) CompleteTimer(ctx context.Context, req spi.CompleteTimerRequest) (spi.CompleteTimerResponse, error) {
	return spi.CompleteTimer(ctx, c.inner, req)
}

func (c *coalescer) PutRef(ctx context.Context, req spi.PutRefRequest) (spi.PutRefResponse, error) {
	return spi.PutRef(ctx, c.inner, req)
}

func (c *coalescer) GetRef(ctx context.Context, req spi.GetRefRequest) (spi.GetRefResponse, error) {
	return spi.GetRef(ctx, c.inner, req)
}

func (c *coalescer) DeleteRef(ctx context.Context, req spi.DeleteRefRequest) (spi.DeleteRefResponse, error) {
	return spi.DeleteRef(ctx, c.inner, req)
}

func (c *coalescer) ListRefs(ctx context.Context, req spi.ListRefsRequest) (spi.ListRefsResponse, error) {
	return spi.ListRefs(ctx, c.inner, req)
}

func (c *coalescer) PromoteRef(ctx context.Context, req spi.PromoteRefRequest) (spi.PromoteRefResponse, error) {
	return spi.PromoteRef(ctx, c.inner, req)
}

func (c *coalescer) RefLineage(ctx context.Context, req spi.RefLineageRequest) (spi.RefLineageResponse, error) {
	return spi.RefLineage(ctx, c.inner, req)
}

func (c *coalescer) AcquireLease(ctx context.Context, req spi.AcquireLeaseRequest) (spi.AcquireLeaseResponse, error) {
	return spi.AcquireLease(ctx, c.inner, req)
}

func (c *coalescer) RenewLease(ctx context.Context, req spi.RenewLeaseRequest) (spi.RenewLeaseResponse, error) {
	return spi.RenewLease(ctx, c.inner, req)
}

func (c *coalescer) ReleaseLease(ctx context.Context, req spi.ReleaseLeaseRequest) (spi.ReleaseLeaseResponse, error) {
	return spi.ReleaseLease(ctx, c.inner, req)
}

func (c *coalescer) CreateDataKey(ctx context.Context, req spi.CreateDataKeyRequest) (spi.CreateDataKeyResponse, error) {
	return spi.CreateDataKey(ctx, c.inner, req)
}

func (c *coalescer) GetDataKey(ctx context.Context, req spi.GetDataKeyRequest) (spi.GetDataKeyResponse, error) {
	return spi.GetDataKey(ctx, c.inner, req)
}

func (c *coalescer) DestroyDataKey(ctx context.Context, req spi.DestroyDataKeyRequest) (spi.DestroyDataKeyResponse, error) {
	return spi.DestroyDataKey(ctx, c.inner, req)
}

func (c *coalescer) ListDataKeys(ctx context.Context, req spi.ListDataKeysRequest) (spi.ListDataKeysResponse, error) {
	return spi.ListDataKeys(ctx, c.inner, req)
}

func (c *coalescer) RewrapDataKey(ctx context.Context, req spi.RewrapDataKeyRequest) (spi.RewrapDataKeyResponse, error) {
	return spi.RewrapDataKey(ctx, c.inner, req)
}

func (c *coalescer) GetOwnership(ctx context.Context, req spi.GetOwnershipRequest) (spi.GetOwnershipResponse, error) {
	return spi.GetOwnership(ctx, c.inner, req)
}

func (c *coalescer) ChangeOwnership(ctx context.Context, req spi.ChangeOwnershipRequest) (spi.ChangeOwnershipResponse, error) {
	return spi.ChangeOwnership(ctx, c.inner, req)
}
