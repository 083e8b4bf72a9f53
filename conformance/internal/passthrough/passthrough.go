// Package passthrough is a backend that hands every call to a store. What the kit
// breaks on purpose embeds it and overrides the method to break; a decorator could
// not, which is as it should be.
package passthrough

import (
	"context"

	"github.com/loomgate/loomgate/spi"
)

// A Backend hands every call to Inner.
type Backend struct{ Inner *spi.Store }

// Methods is what a Backend and whatever embeds it has.
type Methods interface {
	spi.EventMethods
	spi.TimerMethods
	spi.RefMethods
	spi.LeaseMethods
	spi.DataKeyMethods
	spi.OwnershipMethods
}

// Open returns a store over b that offers what inner does.
func Open(b Methods, inner *spi.Store) (*spi.Store, error) {
	s, err := spi.Open(spi.Backend{Events: b, Timers: b, Refs: b, Leases: b, DataKeys: b, Ownership: b})
	if err != nil {
		return nil, err
	}
	return spi.Only(s, inner.Offered()), nil
}

// Append calls the inner store's.
func (b Backend) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	return spi.Append(ctx, b.Inner, req)
}

// Read calls the inner store's.
func (b Backend) Read(ctx context.Context, req spi.ReadRequest) (spi.ReadResponse, error) {
	return spi.Read(ctx, b.Inner, req)
}

// Head calls the inner store's.
func (b Backend) Head(ctx context.Context, req spi.HeadRequest) (spi.HeadResponse, error) {
	return spi.Head(ctx, b.Inner, req)
}

// ListExecutions calls the inner store's.
func (b Backend) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	return spi.ListExecutions(ctx, b.Inner, req)
}

// AppendBatch calls the inner store's.
func (b Backend) AppendBatch(ctx context.Context, req spi.AppendBatchRequest) (spi.AppendBatchResponse, error) {
	return spi.AppendBatch(ctx, b.Inner, req)
}

// AcquireFence calls the inner store's.
func (b Backend) AcquireFence(ctx context.Context, req spi.AcquireFenceRequest) (spi.AcquireFenceResponse, error) {
	return spi.AcquireFence(ctx, b.Inner, req)
}

// AcquireFenceIf calls the inner store's.
func (b Backend) AcquireFenceIf(ctx context.Context, req spi.AcquireFenceIfRequest) (spi.AcquireFenceIfResponse, error) {
	return spi.AcquireFenceIf(ctx, b.Inner, req)
}

// AppendIfUnchanged calls the inner store's.
func (b Backend) AppendIfUnchanged(ctx context.Context, req spi.AppendIfUnchangedRequest) (spi.AppendIfUnchangedResponse, error) {
	return spi.AppendIfUnchanged(ctx, b.Inner, req)
}

// CopyPrefix calls the inner store's.
func (b Backend) CopyPrefix(ctx context.Context, req spi.CopyPrefixRequest) (spi.CopyPrefixResponse, error) {
	return spi.CopyPrefix(ctx, b.Inner, req)
}

// TruncatePrefixKeeping calls the inner store's.
func (b Backend) TruncatePrefixKeeping(ctx context.Context, req spi.TruncatePrefixKeepingRequest) (spi.TruncatePrefixKeepingResponse, error) {
	return spi.TruncatePrefixKeeping(ctx, b.Inner, req)
}

// DeleteExecution calls the inner store's.
func (b Backend) DeleteExecution(ctx context.Context, req spi.DeleteExecutionRequest) (spi.DeleteExecutionResponse, error) {
	return spi.DeleteExecution(ctx, b.Inner, req)
}

// SweepTombstones calls the inner store's.
func (b Backend) SweepTombstones(ctx context.Context, req spi.SweepTombstonesRequest) (spi.SweepTombstonesResponse, error) {
	return spi.SweepTombstones(ctx, b.Inner, req)
}

// ScheduleTimer calls the inner store's.
func (b Backend) ScheduleTimer(ctx context.Context, req spi.ScheduleTimerRequest) (spi.ScheduleTimerResponse, error) {
	return spi.ScheduleTimer(ctx, b.Inner, req)
}

// DueTimers calls the inner store's.
func (b Backend) DueTimers(ctx context.Context, req spi.DueTimersRequest) (spi.DueTimersResponse, error) {
	return spi.DueTimers(ctx, b.Inner, req)
}

// CompleteTimer calls the inner store's.
func (b Backend) CompleteTimer(ctx context.Context, req spi.CompleteTimerRequest) (spi.CompleteTimerResponse, error) {
	return spi.CompleteTimer(ctx, b.Inner, req)
}

// PutRef calls the inner store's.
func (b Backend) PutRef(ctx context.Context, req spi.PutRefRequest) (spi.PutRefResponse, error) {
	return spi.PutRef(ctx, b.Inner, req)
}

// GetRef calls the inner store's.
func (b Backend) GetRef(ctx context.Context, req spi.GetRefRequest) (spi.GetRefResponse, error) {
	return spi.GetRef(ctx, b.Inner, req)
}

// DeleteRef calls the inner store's.
func (b Backend) DeleteRef(ctx context.Context, req spi.DeleteRefRequest) (spi.DeleteRefResponse, error) {
	return spi.DeleteRef(ctx, b.Inner, req)
}

// ListRefs calls the inner store's.
func (b Backend) ListRefs(ctx context.Context, req spi.ListRefsRequest) (spi.ListRefsResponse, error) {
	return spi.ListRefs(ctx, b.Inner, req)
}

// PromoteRef calls the inner store's.
func (b Backend) PromoteRef(ctx context.Context, req spi.PromoteRefRequest) (spi.PromoteRefResponse, error) {
	return spi.PromoteRef(ctx, b.Inner, req)
}

// RefLineage calls the inner store's.
func (b Backend) RefLineage(ctx context.Context, req spi.RefLineageRequest) (spi.RefLineageResponse, error) {
	return spi.RefLineage(ctx, b.Inner, req)
}

// AcquireLease calls the inner store's.
func (b Backend) AcquireLease(ctx context.Context, req spi.AcquireLeaseRequest) (spi.AcquireLeaseResponse, error) {
	return spi.AcquireLease(ctx, b.Inner, req)
}

// RenewLease calls the inner store's.
func (b Backend) RenewLease(ctx context.Context, req spi.RenewLeaseRequest) (spi.RenewLeaseResponse, error) {
	return spi.RenewLease(ctx, b.Inner, req)
}

// ReleaseLease calls the inner store's.
func (b Backend) ReleaseLease(ctx context.Context, req spi.ReleaseLeaseRequest) (spi.ReleaseLeaseResponse, error) {
	return spi.ReleaseLease(ctx, b.Inner, req)
}

// CreateDataKey calls the inner store's.
func (b Backend) CreateDataKey(ctx context.Context, req spi.CreateDataKeyRequest) (spi.CreateDataKeyResponse, error) {
	return spi.CreateDataKey(ctx, b.Inner, req)
}

// GetDataKey calls the inner store's.
func (b Backend) GetDataKey(ctx context.Context, req spi.GetDataKeyRequest) (spi.GetDataKeyResponse, error) {
	return spi.GetDataKey(ctx, b.Inner, req)
}

// DestroyDataKey calls the inner store's.
func (b Backend) DestroyDataKey(ctx context.Context, req spi.DestroyDataKeyRequest) (spi.DestroyDataKeyResponse, error) {
	return spi.DestroyDataKey(ctx, b.Inner, req)
}

// ListDataKeys calls the inner store's.
func (b Backend) ListDataKeys(ctx context.Context, req spi.ListDataKeysRequest) (spi.ListDataKeysResponse, error) {
	return spi.ListDataKeys(ctx, b.Inner, req)
}

// RewrapDataKey calls the inner store's.
func (b Backend) RewrapDataKey(ctx context.Context, req spi.RewrapDataKeyRequest) (spi.RewrapDataKeyResponse, error) {
	return spi.RewrapDataKey(ctx, b.Inner, req)
}

// GetOwnership calls the inner store's.
func (b Backend) GetOwnership(ctx context.Context, req spi.GetOwnershipRequest) (spi.GetOwnershipResponse, error) {
	return spi.GetOwnership(ctx, b.Inner, req)
}

// ChangeOwnership calls the inner store's.
func (b Backend) ChangeOwnership(ctx context.Context, req spi.ChangeOwnershipRequest) (spi.ChangeOwnershipResponse, error) {
	return spi.ChangeOwnership(ctx, b.Inner, req)
}
