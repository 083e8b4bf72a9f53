package sim

import (
	"context"

	"github.com/loomgate/loomgate/spi"
)

func (n *network) Caps(inner spi.Caps) spi.Caps { return inner }
func (n *network) Layer() spi.Layer             { return spi.Layer{Name: "network"} }

func (n *network) CreateDataKey(ctx context.Context, req spi.CreateDataKeyRequest) (spi.CreateDataKeyResponse, error) {
	return write(n, ctx, "", req, spi.CreateDataKey)
}

func (n *network) GetDataKey(ctx context.Context, req spi.GetDataKeyRequest) (spi.GetDataKeyResponse, error) {
	return read(n, ctx, req, spi.GetDataKey)
}

func (n *network) DestroyDataKey(ctx context.Context, req spi.DestroyDataKeyRequest) (spi.DestroyDataKeyResponse, error) {
	return write(n, ctx, "", req, spi.DestroyDataKey)
}

func (n *network) ListDataKeys(ctx context.Context, req spi.ListDataKeysRequest) (spi.ListDataKeysResponse, error) {
	return read(n, ctx, req, spi.ListDataKeys)
}

func (n *network) RewrapDataKey(ctx context.Context, req spi.RewrapDataKeyRequest) (spi.RewrapDataKeyResponse, error) {
	return write(n, ctx, "", req, spi.RewrapDataKey)
}

func (n *network) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	return write(n, ctx, req.Execution, req, spi.Append)
}

func (n *network) AppendBatch(ctx context.Context, req spi.AppendBatchRequest) (spi.AppendBatchResponse, error) {
	return write(n, ctx, "", req, spi.AppendBatch)
}

func (n *network) AppendIfUnchanged(ctx context.Context, req spi.AppendIfUnchangedRequest) (spi.AppendIfUnchangedResponse, error) {
	return write(n, ctx, req.Execution, req, spi.AppendIfUnchanged)
}

func (n *network) PutRef(ctx context.Context, req spi.PutRefRequest) (spi.PutRefResponse, error) {
	return write(n, ctx, "", req, spi.PutRef)
}

func (n *network) GetRef(ctx context.Context, req spi.GetRefRequest) (spi.GetRefResponse, error) {
	return read(n, ctx, req, spi.GetRef)
}

func (n *network) DeleteRef(ctx context.Context, req spi.DeleteRefRequest) (spi.DeleteRefResponse, error) {
	return write(n, ctx, "", req, spi.DeleteRef)
}

func (n *network) ListRefs(ctx context.Context, req spi.ListRefsRequest) (spi.ListRefsResponse, error) {
	return read(n, ctx, req, spi.ListRefs)
}

func (n *network) PromoteRef(ctx context.Context, req spi.PromoteRefRequest) (spi.PromoteRefResponse, error) {
	return write(n, ctx, "", req, spi.PromoteRef)
}

func (n *network) RefLineage(ctx context.Context, req spi.RefLineageRequest) (spi.RefLineageResponse, error) {
	return read(n, ctx, req, spi.RefLineage)
}

func (n *network) AcquireLease(ctx context.Context, req spi.AcquireLeaseRequest) (spi.AcquireLeaseResponse, error) {
	return write(n, ctx, "", req, spi.AcquireLease)
}

func (n *network) RenewLease(ctx context.Context, req spi.RenewLeaseRequest) (spi.RenewLeaseResponse, error) {
	return write(n, ctx, "", req, spi.RenewLease)
}

func (n *network) ReleaseLease(ctx context.Context, req spi.ReleaseLeaseRequest) (spi.ReleaseLeaseResponse, error) {
	return write(n, ctx, "", req, spi.ReleaseLease)
}

func (n *network) GetOwnership(ctx context.Context, req spi.GetOwnershipRequest) (spi.GetOwnershipResponse, error) {
	return read(n, ctx, req, spi.GetOwnership)
}

func (n *network) ChangeOwnership(ctx context.Context, req spi.ChangeOwnershipRequest) (spi.ChangeOwnershipResponse, error) {
	return write(n, ctx, "", req, spi.ChangeOwnership)
}

func (n *network) ScheduleTimer(ctx context.Context, req spi.ScheduleTimerRequest) (spi.ScheduleTimerResponse, error) {
	if n.retireFirst && req.Timer.Attempt > 0 {
		n.held = &req
		return spi.ScheduleTimerResponse{Timer: req.Timer}, nil
	}
	return write(n, ctx, "", req, spi.ScheduleTimer)
}

func (n *network) DueTimers(ctx context.Context, req spi.DueTimersRequest) (spi.DueTimersResponse, error) {
	return read(n, ctx, req, orElse(n.dueTimers, spi.DueTimers))
}

func (n *network) CompleteTimer(ctx context.Context, req spi.CompleteTimerRequest) (spi.CompleteTimerResponse, error) {
	res, err := write(n, ctx, req.Execution, req, spi.CompleteTimer)
	if held := n.held; held != nil {
		n.held = nil
		_, err = write(n, ctx, "", *held, spi.ScheduleTimer)
	}
	return res, err
}

func (n *network) Read(ctx context.Context, req spi.ReadRequest) (spi.ReadResponse, error) {
	return read(n, ctx, req, spi.Read)
}

func (n *network) Head(ctx context.Context, req spi.HeadRequest) (spi.HeadResponse, error) {
	return read(n, ctx, req, spi.Head)
}

func (n *network) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	return read(n, ctx, req, spi.ListExecutions)
}

func (n *network) AcquireFence(ctx context.Context, req spi.AcquireFenceRequest) (spi.AcquireFenceResponse, error) {
	return write(n, ctx, req.Execution, req, spi.AcquireFence)
}

func (n *network) AcquireFenceIf(ctx context.Context, req spi.AcquireFenceIfRequest) (spi.AcquireFenceIfResponse, error) {
	return write(n, ctx, req.Execution, req, orElse(n.acquireFenceIf, spi.AcquireFenceIf))
}

func (n *network) CopyPrefix(ctx context.Context, req spi.CopyPrefixRequest) (spi.CopyPrefixResponse, error) {
	return write(n, ctx, "", req, spi.CopyPrefix)
}

func (n *network) TruncatePrefixKeeping(ctx context.Context, req spi.TruncatePrefixKeepingRequest) (spi.TruncatePrefixKeepingResponse, error) {
	return write(n, ctx, req.Execution, req, spi.TruncatePrefixKeeping)
}

func (n *network) DeleteExecution(ctx context.Context, req spi.DeleteExecutionRequest) (spi.DeleteExecutionResponse, error) {
	return write(n, ctx, req.Execution, req, spi.DeleteExecution)
}

func (n *network) SweepTombstones(ctx context.Context, req spi.SweepTombstonesRequest) (spi.SweepTombstonesResponse, error) {
	return write(n, ctx, "", req, spi.SweepTombstones)
}
