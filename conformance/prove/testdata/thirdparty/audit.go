// Package audit is a decorator as somebody else might write one, in a module of
// their own: it reports every call and how it ended.
package audit

import (
	"context"

	"github.com/loomgate/loomgate/spi"
)

// Audit reports the calls of a store.
type Audit struct {
	inner  *spi.Store
	report func(method string, err error)
}

// New returns a store that reports its calls.
func New(inner *spi.Store, report func(method string, err error)) (*spi.Store, error) {
	return spi.Wrap(&Audit{inner, report}, inner)
}

// Caps offers what the inner store does.
func (a *Audit) Caps(inner spi.Caps) spi.Caps { return inner }

// Layer names the decorator.
func (a *Audit) Layer() spi.Layer { return spi.Layer{Name: "audit"} }

// audited makes a call of the inner store and reports it.
func audited[Q, R any](ctx context.Context, a *Audit, method string, call func(context.Context, *spi.Store, Q) (R, error), req Q) (R, error) {
	res, err := call(ctx, a.inner, req)
	a.report(method, err)
	return res, err
}

// Append reports the call.
func (a *Audit) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	return audited(ctx, a, "Append", spi.Append, req)
}

// Read reports the call.
func (a *Audit) Read(ctx context.Context, req spi.ReadRequest) (spi.ReadResponse, error) {
	return audited(ctx, a, "Read", spi.Read, req)
}

// Head reports the call.
func (a *Audit) Head(ctx context.Context, req spi.HeadRequest) (spi.HeadResponse, error) {
	return audited(ctx, a, "Head", spi.Head, req)
}

// ListExecutions reports the call.
func (a *Audit) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	return audited(ctx, a, "ListExecutions", spi.ListExecutions, req)
}

// AppendBatch reports the call.
func (a *Audit) AppendBatch(ctx context.Context, req spi.AppendBatchRequest) (spi.AppendBatchResponse, error) {
	return audited(ctx, a, "AppendBatch", spi.AppendBatch, req)
}

// AcquireFence reports the call.
func (a *Audit) AcquireFence(ctx context.Context, req spi.AcquireFenceRequest) (spi.AcquireFenceResponse, error) {
	return audited(ctx, a, "AcquireFence", spi.AcquireFence, req)
}

// AcquireFenceIf reports the call.
func (a *Audit) AcquireFenceIf(ctx context.Context, req spi.AcquireFenceIfRequest) (spi.AcquireFenceIfResponse, error) {
	return audited(ctx, a, "AcquireFenceIf", spi.AcquireFenceIf, req)
}

// AppendIfUnchanged reports the call.
func (a *Audit) AppendIfUnchanged(ctx context.Context, req spi.AppendIfUnchangedRequest) (spi.AppendIfUnchangedResponse, error) {
	return audited(ctx, a, "AppendIfUnchanged", spi.AppendIfUnchanged, req)
}

// CopyPrefix reports the call.
func (a *Audit) CopyPrefix(ctx context.Context, req spi.CopyPrefixRequest) (spi.CopyPrefixResponse, error) {
	return audited(ctx, a, "CopyPrefix", spi.CopyPrefix, req)
}

// TruncatePrefixKeeping reports the call.
func (a *Audit) TruncatePrefixKeeping(ctx context.Context, req spi.TruncatePrefixKeepingRequest) (spi.TruncatePrefixKeepingResponse, error) {
	return audited(ctx, a, "TruncatePrefixKeeping", spi.TruncatePrefixKeeping, req)
}

// DeleteExecution reports the call.
func (a *Audit) DeleteExecution(ctx context.Context, req spi.DeleteExecutionRequest) (spi.DeleteExecutionResponse, error) {
	return audited(ctx, a, "DeleteExecution", spi.DeleteExecution, req)
}

// SweepTombstones reports the call.
func (a *Audit) SweepTombstones(ctx context.Context, req spi.SweepTombstonesRequest) (spi.SweepTombstonesResponse, error) {
	return audited(ctx, a, "SweepTombstones", spi.SweepTombstones, req)
}

// ScheduleTimer reports the call.
func (a *Audit) ScheduleTimer(ctx context.Context, req spi.ScheduleTimerRequest) (spi.ScheduleTimerResponse, error) {
	return audited(ctx, a, "ScheduleTimer", spi.ScheduleTimer, req)
}

// DueTimers reports the call.
func (a *Audit) DueTimers(ctx context.Context, req spi.DueTimersRequest) (spi.DueTimersResponse, error) {
	return audited(ctx, a, "DueTimers", spi.DueTimers, req)
}

// CompleteTimer reports the call.
func (a *Audit) CompleteTimer(ctx context.Context, req spi.CompleteTimerRequest) (spi.CompleteTimerResponse, error) {
	return audited(ctx, a, "CompleteTimer", spi.CompleteTimer, req)
}

// PutRef reports the call.
func (a *Audit) PutRef(ctx context.Context, req spi.PutRefRequest) (spi.PutRefResponse, error) {
	return audited(ctx, a, "PutRef", spi.PutRef, req)
}

// GetRef reports the call.
func (a *Audit) GetRef(ctx context.Context, req spi.GetRefRequest) (spi.GetRefResponse, error) {
	return audited(ctx, a, "GetRef", spi.GetRef, req)
}

// DeleteRef reports the call.
func (a *Audit) DeleteRef(ctx context.Context, req spi.DeleteRefRequest) (spi.DeleteRefResponse, error) {
	return audited(ctx, a, "DeleteRef", spi.DeleteRef, req)
}

// ListRefs reports the call.
func (a *Audit) ListRefs(ctx context.Context, req spi.ListRefsRequest) (spi.ListRefsResponse, error) {
	return audited(ctx, a, "ListRefs", spi.ListRefs, req)
}

// PromoteRef reports the call.
func (a *Audit) PromoteRef(ctx context.Context, req spi.PromoteRefRequest) (spi.PromoteRefResponse, error) {
	return audited(ctx, a, "PromoteRef", spi.PromoteRef, req)
}

// RefLineage reports the call.
func (a *Audit) RefLineage(ctx context.Context, req spi.RefLineageRequest) (spi.RefLineageResponse, error) {
	return audited(ctx, a, "RefLineage", spi.RefLineage, req)
}

// AcquireLease reports the call.
func (a *Audit) AcquireLease(ctx context.Context, req spi.AcquireLeaseRequest) (spi.AcquireLeaseResponse, error) {
	return audited(ctx, a, "AcquireLease", spi.AcquireLease, req)
}

// RenewLease reports the call.
func (a *Audit) RenewLease(ctx context.Context, req spi.RenewLeaseRequest) (spi.RenewLeaseResponse, error) {
	return audited(ctx, a, "RenewLease", spi.RenewLease, req)
}

// ReleaseLease reports the call.
func (a *Audit) ReleaseLease(ctx context.Context, req spi.ReleaseLeaseRequest) (spi.ReleaseLeaseResponse, error) {
	return audited(ctx, a, "ReleaseLease", spi.ReleaseLease, req)
}

// CreateDataKey reports the call.
func (a *Audit) CreateDataKey(ctx context.Context, req spi.CreateDataKeyRequest) (spi.CreateDataKeyResponse, error) {
	return audited(ctx, a, "CreateDataKey", spi.CreateDataKey, req)
}

// GetDataKey reports the call.
func (a *Audit) GetDataKey(ctx context.Context, req spi.GetDataKeyRequest) (spi.GetDataKeyResponse, error) {
	return audited(ctx, a, "GetDataKey", spi.GetDataKey, req)
}

// DestroyDataKey reports the call.
func (a *Audit) DestroyDataKey(ctx context.Context, req spi.DestroyDataKeyRequest) (spi.DestroyDataKeyResponse, error) {
	return audited(ctx, a, "DestroyDataKey", spi.DestroyDataKey, req)
}

// ListDataKeys reports the call.
func (a *Audit) ListDataKeys(ctx context.Context, req spi.ListDataKeysRequest) (spi.ListDataKeysResponse, error) {
	return audited(ctx, a, "ListDataKeys", spi.ListDataKeys, req)
}

// RewrapDataKey reports the call.
func (a *Audit) RewrapDataKey(ctx context.Context, req spi.RewrapDataKeyRequest) (spi.RewrapDataKeyResponse, error) {
	return audited(ctx, a, "RewrapDataKey", spi.RewrapDataKey, req)
}

// GetOwnership reports the call.
func (a *Audit) GetOwnership(ctx context.Context, req spi.GetOwnershipRequest) (spi.GetOwnershipResponse, error) {
	return audited(ctx, a, "GetOwnership", spi.GetOwnership, req)
}

// ChangeOwnership reports the call.
func (a *Audit) ChangeOwnership(ctx context.Context, req spi.ChangeOwnershipRequest) (spi.ChangeOwnershipResponse, error) {
	return audited(ctx, a, "ChangeOwnership", spi.ChangeOwnership, req)
}
