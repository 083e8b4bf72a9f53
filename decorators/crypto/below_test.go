package crypto_test

import (
	"context"

	"github.com/loomgate/loomgate/spi"
)

// below is a layer under the one that is tested. It passes everything, unless before
// returns an error, and may change what is read: what somebody who can write to the
// database does, or a replica that lags.
type below struct {
	inner  *spi.Store
	before func(op string, req any) error
	after  func(op string)
	read   func(*spi.ReadResponse)
}

func (b *below) Caps(inner spi.Caps) spi.Caps { return inner }
func (b *below) Layer() spi.Layer             { return spi.Layer{Name: "below"} }

// passing calls a method of the inner store.
func passing[Q, R any](ctx context.Context, b *below, op string, call func(context.Context, *spi.Store, Q) (R, error), req Q) (R, error) {
	if b.before != nil {
		if err := b.before(op, req); err != nil {
			var none R
			return none, err
		}
	}
	res, err := call(ctx, b.inner, req)
	if b.after != nil {
		b.after(op)
	}
	return res, err
}

func (b *below) Read(ctx context.Context, req spi.ReadRequest) (spi.ReadResponse, error) {
	res, err := passing(ctx, b, "Read", spi.Read, req)
	if b.read != nil && err == nil {
		b.read(&res)
	}
	return res, err
}

func (b *below) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	return passing(ctx, b, "Append", spi.Append, req)
}

func (b *below) Head(ctx context.Context, req spi.HeadRequest) (spi.HeadResponse, error) {
	return passing(ctx, b, "Head", spi.Head, req)
}

func (b *below) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	return passing(ctx, b, "ListExecutions", spi.ListExecutions, req)
}

func (b *below) AppendBatch(ctx context.Context, req spi.AppendBatchRequest) (spi.AppendBatchResponse, error) {
	return passing(ctx, b, "AppendBatch", spi.AppendBatch, req)
}

func (b *below) AcquireFence(ctx context.Context, req spi.AcquireFenceRequest) (spi.AcquireFenceResponse, error) {
	return passing(ctx, b, "AcquireFence", spi.AcquireFence, req)
}

func (b *below) AcquireFenceIf(ctx context.Context, req spi.AcquireFenceIfRequest) (spi.AcquireFenceIfResponse, error) {
	return passing(ctx, b, "AcquireFenceIf", spi.AcquireFenceIf, req)
}

func (b *below) AppendIfUnchanged(ctx context.Context, req spi.AppendIfUnchangedRequest) (spi.AppendIfUnchangedResponse, error) {
	return passing(ctx, b, "AppendIfUnchanged", spi.AppendIfUnchanged, req)
}

func (b *below) CopyPrefix(ctx context.Context, req spi.CopyPrefixRequest) (spi.CopyPrefixResponse, error) {
	return passing(ctx, b, "CopyPrefix", spi.CopyPrefix, req)
}

func (b *below) TruncatePrefixKeeping(ctx context.Context, req spi.TruncatePrefixKeepingRequest) (spi.TruncatePrefixKeepingResponse, error) {
	return passing(ctx, b, "TruncatePrefixKeeping", spi.TruncatePrefixKeeping, req)
}

func (b *below) DeleteExecution(ctx context.Context, req spi.DeleteExecutionRequest) (spi.DeleteExecutionResponse, error) {
	return passing(ctx, b, "DeleteExecution", spi.DeleteExecution, req)
}

func (b *below) SweepTombstones(ctx context.Context, req spi.SweepTombstonesRequest) (spi.SweepTombstonesResponse, error) {
	return passing(ctx, b, "SweepTombstones", spi.SweepTombstones, req)
}

func (b *below) ScheduleTimer(ctx context.Context, req spi.ScheduleTimerRequest) (spi.ScheduleTimerResponse, error) {
	return passing(ctx, b, "ScheduleTimer", spi.ScheduleTimer, req)
}

func (b *below) DueTimers(ctx context.Context, req spi.DueTimersRequest) (spi.DueTimersResponse, error) {
	return passing(ctx, b, "DueTimers", spi.DueTimers, req)
}

func (b *below) CompleteTimer(ctx context.Context, req spi.CompleteTimerRequest) (spi.CompleteTimerResponse, error) {
	return passing(ctx, b, "CompleteTimer", spi.CompleteTimer, req)
}

func (b *below) PutRef(ctx context.Context, req spi.PutRefRequest) (spi.PutRefResponse, error) {
	return passing(ctx, b, "PutRef", spi.PutRef, req)
}

func (b *below) GetRef(ctx context.Context, req spi.GetRefRequest) (spi.GetRefResponse, error) {
	return passing(ctx, b, "GetRef", spi.GetRef, req)
}

func (b *below) DeleteRef(ctx context.Context, req spi.DeleteRefRequest) (spi.DeleteRefResponse, error) {
	return passing(ctx, b, "DeleteRef", spi.DeleteRef, req)
}

func (b *below) ListRefs(ctx context.Context, req spi.ListRefsRequest) (spi.ListRefsResponse, error) {
	return passing(ctx, b, "ListRefs", spi.ListRefs, req)
}

func (b *below) PromoteRef(ctx context.Context, req spi.PromoteRefRequest) (spi.PromoteRefResponse, error) {
	return passing(ctx, b, "PromoteRef", spi.PromoteRef, req)
}

func (b *below) RefLineage(ctx context.Context, req spi.RefLineageRequest) (spi.RefLineageResponse, error) {
	return passing(ctx, b, "RefLineage", spi.RefLineage, req)
}

func (b *below) AcquireLease(ctx context.Context, req spi.AcquireLeaseRequest) (spi.AcquireLeaseResponse, error) {
	return passing(ctx, b, "AcquireLease", spi.AcquireLease, req)
}

func (b *below) RenewLease(ctx context.Context, req spi.RenewLeaseRequest) (spi.RenewLeaseResponse, error) {
	return passing(ctx, b, "RenewLease", spi.RenewLease, req)
}

func (b *below) ReleaseLease(ctx context.Context, req spi.ReleaseLeaseRequest) (spi.ReleaseLeaseResponse, error) {
	return passing(ctx, b, "ReleaseLease", spi.ReleaseLease, req)
}

func (b *below) CreateDataKey(ctx context.Context, req spi.CreateDataKeyRequest) (spi.CreateDataKeyResponse, error) {
	return passing(ctx, b, "CreateDataKey", spi.CreateDataKey, req)
}

func (b *below) GetDataKey(ctx context.Context, req spi.GetDataKeyRequest) (spi.GetDataKeyResponse, error) {
	return passing(ctx, b, "GetDataKey", spi.GetDataKey, req)
}

func (b *below) DestroyDataKey(ctx context.Context, req spi.DestroyDataKeyRequest) (spi.DestroyDataKeyResponse, error) {
	return passing(ctx, b, "DestroyDataKey", spi.DestroyDataKey, req)
}

func (b *below) ListDataKeys(ctx context.Context, req spi.ListDataKeysRequest) (spi.ListDataKeysResponse, error) {
	return passing(ctx, b, "ListDataKeys", spi.ListDataKeys, req)
}

func (b *below) RewrapDataKey(ctx context.Context, req spi.RewrapDataKeyRequest) (spi.RewrapDataKeyResponse, error) {
	return passing(ctx, b, "RewrapDataKey", spi.RewrapDataKey, req)
}

func (b *below) GetOwnership(ctx context.Context, req spi.GetOwnershipRequest) (spi.GetOwnershipResponse, error) {
	return passing(ctx, b, "GetOwnership", spi.GetOwnership, req)
}

func (b *below) ChangeOwnership(ctx context.Context, req spi.ChangeOwnershipRequest) (spi.ChangeOwnershipResponse, error) {
	return passing(ctx, b, "ChangeOwnership", spi.ChangeOwnership, req)
}
