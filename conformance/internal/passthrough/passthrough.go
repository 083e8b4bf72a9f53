// Package passthrough is a backend that hands every call to a store. What the kit
// breaks on purpose embeds it and overrides the method to break; a decorator could
// not, which is as it should be.
package passthrough

import (
	"context"

	"github.com/loomgate/loomgate/spi"
)

// A Backend hands every call to Inner, unless there is a Fault.
type Backend struct {
	Inner *spi.Store

	// Fault, if there is one, is asked before each call for an error to answer.
	Fault func() error
}

// call is what every method does.
func call[Q, R any](ctx context.Context, b Backend, do func(context.Context, *spi.Store, Q) (R, error), req Q) (R, error) {
	if b.Fault != nil {
		if err := b.Fault(); err != nil {
			var none R
			return none, err
		}
	}
	return do(ctx, b.Inner, req)
}

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
	return call(ctx, b, spi.Append, req)
}

// Read calls the inner store's.
func (b Backend) Read(ctx context.Context, req spi.ReadRequest) (spi.ReadResponse, error) {
	return call(ctx, b, spi.Read, req)
}

// Head calls the inner store's.
func (b Backend) Head(ctx context.Context, req spi.HeadRequest) (spi.HeadResponse, error) {
	return call(ctx, b, spi.Head, req)
}

// ListExecutions calls the inner store's.
func (b Backend) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	return call(ctx, b, spi.ListExecutions, req)
}

// AppendBatch calls the inner store's.
func (b Backend) AppendBatch(ctx context.Context, req spi.AppendBatchRequest) (spi.AppendBatchResponse, error) {
	return call(ctx, b, spi.AppendBatch, req)
}

// AcquireFence calls the inner store's.
func (b Backend) AcquireFence(ctx context.Context, req spi.AcquireFenceRequest) (spi.AcquireFenceResponse, error) {
	return call(ctx, b, spi.AcquireFence, req)
}

// AcquireFenceIf calls the inner store's.
func (b Backend) AcquireFenceIf(ctx context.Context, req spi.AcquireFenceIfRequest) (spi.AcquireFenceIfResponse, error) {
	return call(ctx, b, spi.AcquireFenceIf, req)
}

// AppendIfUnchanged calls the inner store's.
func (b Backend) AppendIfUnchanged(ctx context.Context, req spi.AppendIfUnchangedRequest) (spi.AppendIfUnchangedResponse, error) {
	return call(ctx, b, spi.AppendIfUnchanged, req)
}

// CopyPrefix calls the inner store's.
func (b Backend) CopyPrefix(ctx context.Context, req spi.CopyPrefixRequest) (spi.CopyPrefixResponse, error) {
	return call(ctx, b, spi.CopyPrefix, req)
}

// TruncatePrefixKeeping calls the inner store's.
func (b Backend) TruncatePrefixKeeping(ctx context.Context, req spi.TruncatePrefixKeepingRequest) (spi.TruncatePrefixKeepingResponse, error) {
	return call(ctx, b, spi.TruncatePrefixKeeping, req)
}

// DeleteExecution calls the inner store's.
func (b Backend) DeleteExecution(ctx context.Context, req spi.DeleteExecutionRequest) (spi.DeleteExecutionResponse, error) {
	return call(ctx, b, spi.DeleteExecution, req)
}

// SweepTombstones calls the inner store's.
func (b Backend) SweepTombstones(ctx context.Context, req spi.SweepTombstonesRequest) (spi.SweepTombstonesResponse, error) {
	return call(ctx, b, spi.SweepTombstones, req)
}

// ScheduleTimer calls the inner store's.
func (b Backend) ScheduleTimer(ctx context.Context, req spi.ScheduleTimerRequest) (spi.ScheduleTimerResponse, error) {
	return call(ctx, b, spi.ScheduleTimer, req)
}

// DueTimers calls the inner store's.
func (b Backend) DueTimers(ctx context.Context, req spi.DueTimersRequest) (spi.DueTimersResponse, error) {
	return call(ctx, b, spi.DueTimers, req)
}

// CompleteTimer calls the inner store's.
func (b Backend) CompleteTimer(ctx context.Context, req spi.CompleteTimerRequest) (spi.CompleteTimerResponse, error) {
	return call(ctx, b, spi.CompleteTimer, req)
}

// PutRef calls the inner store's.
func (b Backend) PutRef(ctx context.Context, req spi.PutRefRequest) (spi.PutRefResponse, error) {
	return call(ctx, b, spi.PutRef, req)
}

// GetRef calls the inner store's.
func (b Backend) GetRef(ctx context.Context, req spi.GetRefRequest) (spi.GetRefResponse, error) {
	return call(ctx, b, spi.GetRef, req)
}

// DeleteRef calls the inner store's.
func (b Backend) DeleteRef(ctx context.Context, req spi.DeleteRefRequest) (spi.DeleteRefResponse, error) {
	return call(ctx, b, spi.DeleteRef, req)
}

// ListRefs calls the inner store's.
func (b Backend) ListRefs(ctx context.Context, req spi.ListRefsRequest) (spi.ListRefsResponse, error) {
	return call(ctx, b, spi.ListRefs, req)
}

// PromoteRef calls the inner store's.
func (b Backend) PromoteRef(ctx context.Context, req spi.PromoteRefRequest) (spi.PromoteRefResponse, error) {
	return call(ctx, b, spi.PromoteRef, req)
}

// RefLineage calls the inner store's.
func (b Backend) RefLineage(ctx context.Context, req spi.RefLineageRequest) (spi.RefLineageResponse, error) {
	return call(ctx, b, spi.RefLineage, req)
}

// AcquireLease calls the inner store's.
func (b Backend) AcquireLease(ctx context.Context, req spi.AcquireLeaseRequest) (spi.AcquireLeaseResponse, error) {
	return call(ctx, b, spi.AcquireLease, req)
}

// RenewLease calls the inner store's.
func (b Backend) RenewLease(ctx context.Context, req spi.RenewLeaseRequest) (spi.RenewLeaseResponse, error) {
	return call(ctx, b, spi.RenewLease, req)
}

// ReleaseLease calls the inner store's.
func (b Backend) ReleaseLease(ctx context.Context, req spi.ReleaseLeaseRequest) (spi.ReleaseLeaseResponse, error) {
	return call(ctx, b, spi.ReleaseLease, req)
}

// CreateDataKey calls the inner store's.
func (b Backend) CreateDataKey(ctx context.Context, req spi.CreateDataKeyRequest) (spi.CreateDataKeyResponse, error) {
	return call(ctx, b, spi.CreateDataKey, req)
}

// GetDataKey calls the inner store's.
func (b Backend) GetDataKey(ctx context.Context, req spi.GetDataKeyRequest) (spi.GetDataKeyResponse, error) {
	return call(ctx, b, spi.GetDataKey, req)
}

// DestroyDataKey calls the inner store's.
func (b Backend) DestroyDataKey(ctx context.Context, req spi.DestroyDataKeyRequest) (spi.DestroyDataKeyResponse, error) {
	return call(ctx, b, spi.DestroyDataKey, req)
}

// ListDataKeys calls the inner store's.
func (b Backend) ListDataKeys(ctx context.Context, req spi.ListDataKeysRequest) (spi.ListDataKeysResponse, error) {
	return call(ctx, b, spi.ListDataKeys, req)
}

// RewrapDataKey calls the inner store's.
func (b Backend) RewrapDataKey(ctx context.Context, req spi.RewrapDataKeyRequest) (spi.RewrapDataKeyResponse, error) {
	return call(ctx, b, spi.RewrapDataKey, req)
}

// GetOwnership calls the inner store's.
func (b Backend) GetOwnership(ctx context.Context, req spi.GetOwnershipRequest) (spi.GetOwnershipResponse, error) {
	return call(ctx, b, spi.GetOwnership, req)
}

// ChangeOwnership calls the inner store's.
func (b Backend) ChangeOwnership(ctx context.Context, req spi.ChangeOwnershipRequest) (spi.ChangeOwnershipResponse, error) {
	return call(ctx, b, spi.ChangeOwnership, req)
}
