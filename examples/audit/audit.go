// Package audit is an example of a decorator: it notes who deletes and truncates
// what. Copy it, decide about each method, and let the kit prove it.
package audit

import (
	"context"
	"log/slog"

	"github.com/loomgate/loomgate/spi"
)

type audit struct {
	inner *spi.Store
	log   *slog.Logger
}

// New returns inner with a line logged for each execution that is deleted or
// truncated, and for each attempt.
func New(inner *spi.Store, log *slog.Logger) (*spi.Store, error) {
	return spi.Wrap(&audit{inner, log}, inner)
}

// Caps offers what inner does: nothing here needs more.
func (a *audit) Caps(inner spi.Caps) spi.Caps { return inner }
func (a *audit) Layer() spi.Layer             { return spi.Layer{Name: "audit"} }

func (a *audit) note(ctx context.Context, what string, id spi.ExecutionID, err error) {
	a.log.InfoContext(ctx, what, "execution", id, "error", err)
}

func (a *audit) DeleteExecution(ctx context.Context, req spi.DeleteExecutionRequest) (spi.DeleteExecutionResponse, error) {
	res, err := spi.DeleteExecution(ctx, a.inner, req)
	a.note(ctx, "delete", req.Execution, err)
	return res, err
}

func (a *audit) TruncatePrefixKeeping(ctx context.Context, req spi.TruncatePrefixKeepingRequest) (spi.TruncatePrefixKeepingResponse, error) {
	res, err := spi.TruncatePrefixKeeping(ctx, a.inner, req)
	a.note(ctx, "truncate", req.Execution, err)
	return res, err
}

// What follows passes through. Each line is a decision: a method that spi gains
// does not compile here until there is one for it.

func (a *audit) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	return spi.Append(ctx, a.inner, req)
}

func (a *audit) Read(ctx context.Context, req spi.ReadRequest) (spi.ReadResponse, error) {
	return spi.Read(ctx, a.inner, req)
}

func (a *audit) Head(ctx context.Context, req spi.HeadRequest) (spi.HeadResponse, error) {
	return spi.Head(ctx, a.inner, req)
}

func (a *audit) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	return spi.ListExecutions(ctx, a.inner, req)
}

func (a *audit) AppendBatch(ctx context.Context, req spi.AppendBatchRequest) (spi.AppendBatchResponse, error) {
	return spi.AppendBatch(ctx, a.inner, req)
}

func (a *audit) AcquireFence(ctx context.Context, req spi.AcquireFenceRequest) (spi.AcquireFenceResponse, error) {
	return spi.AcquireFence(ctx, a.inner, req)
}

func (a *audit) AcquireFenceIf(ctx context.Context, req spi.AcquireFenceIfRequest) (spi.AcquireFenceIfResponse, error) {
	return spi.AcquireFenceIf(ctx, a.inner, req)
}

func (a *audit) AppendIfUnchanged(ctx context.Context, req spi.AppendIfUnchangedRequest) (spi.AppendIfUnchangedResponse, error) {
	return spi.AppendIfUnchanged(ctx, a.inner, req)
}

func (a *audit) CopyPrefix(ctx context.Context, req spi.CopyPrefixRequest) (spi.CopyPrefixResponse, error) {
	return spi.CopyPrefix(ctx, a.inner, req)
}

func (a *audit) SweepTombstones(ctx context.Context, req spi.SweepTombstonesRequest) (spi.SweepTombstonesResponse, error) {
	return spi.SweepTombstones(ctx, a.inner, req)
}

func (a *audit) ScheduleTimer(ctx context.Context, req spi.ScheduleTimerRequest) (spi.ScheduleTimerResponse, error) {
	return spi.ScheduleTimer(ctx, a.inner, req)
}

func (a *audit) DueTimers(ctx context.Context, req spi.DueTimersRequest) (spi.DueTimersResponse, error) {
	return spi.DueTimers(ctx, a.inner, req)
}

func (a *audit) CompleteTimer(ctx context.Context, req spi.CompleteTimerRequest) (spi.CompleteTimerResponse, error) {
	return spi.CompleteTimer(ctx, a.inner, req)
}

func (a *audit) PutRef(ctx context.Context, req spi.PutRefRequest) (spi.PutRefResponse, error) {
	return spi.PutRef(ctx, a.inner, req)
}

func (a *audit) GetRef(ctx context.Context, req spi.GetRefRequest) (spi.GetRefResponse, error) {
	return spi.GetRef(ctx, a.inner, req)
}

func (a *audit) DeleteRef(ctx context.Context, req spi.DeleteRefRequest) (spi.DeleteRefResponse, error) {
	return spi.DeleteRef(ctx, a.inner, req)
}

func (a *audit) ListRefs(ctx context.Context, req spi.ListRefsRequest) (spi.ListRefsResponse, error) {
	return spi.ListRefs(ctx, a.inner, req)
}

func (a *audit) PromoteRef(ctx context.Context, req spi.PromoteRefRequest) (spi.PromoteRefResponse, error) {
	return spi.PromoteRef(ctx, a.inner, req)
}

func (a *audit) RefLineage(ctx context.Context, req spi.RefLineageRequest) (spi.RefLineageResponse, error) {
	return spi.RefLineage(ctx, a.inner, req)
}

func (a *audit) AcquireLease(ctx context.Context, req spi.AcquireLeaseRequest) (spi.AcquireLeaseResponse, error) {
	return spi.AcquireLease(ctx, a.inner, req)
}

func (a *audit) RenewLease(ctx context.Context, req spi.RenewLeaseRequest) (spi.RenewLeaseResponse, error) {
	return spi.RenewLease(ctx, a.inner, req)
}

func (a *audit) ReleaseLease(ctx context.Context, req spi.ReleaseLeaseRequest) (spi.ReleaseLeaseResponse, error) {
	return spi.ReleaseLease(ctx, a.inner, req)
}

func (a *audit) CreateDataKey(ctx context.Context, req spi.CreateDataKeyRequest) (spi.CreateDataKeyResponse, error) {
	return spi.CreateDataKey(ctx, a.inner, req)
}

func (a *audit) GetDataKey(ctx context.Context, req spi.GetDataKeyRequest) (spi.GetDataKeyResponse, error) {
	return spi.GetDataKey(ctx, a.inner, req)
}

func (a *audit) DestroyDataKey(ctx context.Context, req spi.DestroyDataKeyRequest) (spi.DestroyDataKeyResponse, error) {
	return spi.DestroyDataKey(ctx, a.inner, req)
}

func (a *audit) ListDataKeys(ctx context.Context, req spi.ListDataKeysRequest) (spi.ListDataKeysResponse, error) {
	return spi.ListDataKeys(ctx, a.inner, req)
}

func (a *audit) RewrapDataKey(ctx context.Context, req spi.RewrapDataKeyRequest) (spi.RewrapDataKeyResponse, error) {
	return spi.RewrapDataKey(ctx, a.inner, req)
}

func (a *audit) GetOwnership(ctx context.Context, req spi.GetOwnershipRequest) (spi.GetOwnershipResponse, error) {
	return spi.GetOwnership(ctx, a.inner, req)
}

func (a *audit) ChangeOwnership(ctx context.Context, req spi.ChangeOwnershipRequest) (spi.ChangeOwnershipResponse, error) {
	return spi.ChangeOwnership(ctx, a.inner, req)
}
