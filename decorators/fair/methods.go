package fair

import (
	"context"

	"github.com/loomgate/loomgate/spi"
)

// fair is the store behind a gate.
type fair struct {
	inner *spi.Store
	gate  *Gate
}

// Caps offers what inner does.
func (f *fair) Caps(inner spi.Caps) spi.Caps { return inner }
func (f *fair) Layer() spi.Layer             { return spi.Layer{Name: "fair"} }

// inTurn does a call when its tenant has a slot. name is in the tenant's scope.
func inTurn[N ~string, Q, R any](ctx context.Context, f *fair, c class, name N, req Q, call func(context.Context, *spi.Store, Q) (R, error)) (res R, err error) {
	tenant, _, _ := spi.SplitScope(name)
	leave, err := f.gate.enter(ctx, c, tenant)
	if err != nil {
		return res, err
	}
	defer leave() // also if the call panics
	return call(ctx, f.inner, req)
}

func (f *fair) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	if f.gate.gathered {
		return spi.Append(ctx, f.inner, req)
	}
	return inTurn(ctx, f, data, req.Execution, req, spi.Append)
}

func (f *fair) Read(ctx context.Context, req spi.ReadRequest) (spi.ReadResponse, error) {
	return inTurn(ctx, f, data, req.Execution, req, spi.Read)
}

func (f *fair) Head(ctx context.Context, req spi.HeadRequest) (spi.HeadResponse, error) {
	return inTurn(ctx, f, data, req.Execution, req, spi.Head)
}

func (f *fair) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	return inTurn(ctx, f, data, req.Prefix, req, spi.ListExecutions)
}

// AppendBatch is of one tenant: what its view has called holds no other's.
func (f *fair) AppendBatch(ctx context.Context, req spi.AppendBatchRequest) (spi.AppendBatchResponse, error) {
	return inTurn(ctx, f, data, req.Appends[0].Execution, req, spi.AppendBatch)
}

func (f *fair) AcquireFence(ctx context.Context, req spi.AcquireFenceRequest) (spi.AcquireFenceResponse, error) {
	return inTurn(ctx, f, coordination, req.Execution, req, spi.AcquireFence)
}

func (f *fair) AcquireFenceIf(ctx context.Context, req spi.AcquireFenceIfRequest) (spi.AcquireFenceIfResponse, error) {
	return inTurn(ctx, f, coordination, req.Execution, req, spi.AcquireFenceIf)
}

func (f *fair) AppendIfUnchanged(ctx context.Context, req spi.AppendIfUnchangedRequest) (spi.AppendIfUnchangedResponse, error) {
	return inTurn(ctx, f, data, req.Execution, req, spi.AppendIfUnchanged)
}

func (f *fair) CopyPrefix(ctx context.Context, req spi.CopyPrefixRequest) (spi.CopyPrefixResponse, error) {
	return inTurn(ctx, f, data, req.To, req, spi.CopyPrefix)
}

func (f *fair) TruncatePrefixKeeping(ctx context.Context, req spi.TruncatePrefixKeepingRequest) (spi.TruncatePrefixKeepingResponse, error) {
	return inTurn(ctx, f, data, req.Execution, req, spi.TruncatePrefixKeeping)
}

func (f *fair) DeleteExecution(ctx context.Context, req spi.DeleteExecutionRequest) (spi.DeleteExecutionResponse, error) {
	return inTurn(ctx, f, data, req.Execution, req, spi.DeleteExecution)
}

func (f *fair) SweepTombstones(ctx context.Context, req spi.SweepTombstonesRequest) (spi.SweepTombstonesResponse, error) {
	return inTurn(ctx, f, data, req.Prefix, req, spi.SweepTombstones)
}

func (f *fair) ScheduleTimer(ctx context.Context, req spi.ScheduleTimerRequest) (spi.ScheduleTimerResponse, error) {
	return inTurn(ctx, f, coordination, req.Timer.Execution, req, spi.ScheduleTimer)
}

func (f *fair) DueTimers(ctx context.Context, req spi.DueTimersRequest) (spi.DueTimersResponse, error) {
	return inTurn(ctx, f, coordination, req.Prefix, req, spi.DueTimers)
}

func (f *fair) CompleteTimer(ctx context.Context, req spi.CompleteTimerRequest) (spi.CompleteTimerResponse, error) {
	return inTurn(ctx, f, coordination, req.Execution, req, spi.CompleteTimer)
}

func (f *fair) PutRef(ctx context.Context, req spi.PutRefRequest) (spi.PutRefResponse, error) {
	return inTurn(ctx, f, data, req.Name, req, spi.PutRef)
}

func (f *fair) GetRef(ctx context.Context, req spi.GetRefRequest) (spi.GetRefResponse, error) {
	return inTurn(ctx, f, data, req.Name, req, spi.GetRef)
}

func (f *fair) DeleteRef(ctx context.Context, req spi.DeleteRefRequest) (spi.DeleteRefResponse, error) {
	return inTurn(ctx, f, data, req.Name, req, spi.DeleteRef)
}

func (f *fair) ListRefs(ctx context.Context, req spi.ListRefsRequest) (spi.ListRefsResponse, error) {
	return inTurn(ctx, f, data, req.Prefix, req, spi.ListRefs)
}

func (f *fair) PromoteRef(ctx context.Context, req spi.PromoteRefRequest) (spi.PromoteRefResponse, error) {
	return inTurn(ctx, f, data, req.Name, req, spi.PromoteRef)
}

func (f *fair) RefLineage(ctx context.Context, req spi.RefLineageRequest) (spi.RefLineageResponse, error) {
	return inTurn(ctx, f, data, req.Name, req, spi.RefLineage)
}

func (f *fair) AcquireLease(ctx context.Context, req spi.AcquireLeaseRequest) (spi.AcquireLeaseResponse, error) {
	return inTurn(ctx, f, coordination, req.Name, req, spi.AcquireLease)
}

func (f *fair) RenewLease(ctx context.Context, req spi.RenewLeaseRequest) (spi.RenewLeaseResponse, error) {
	return inTurn(ctx, f, coordination, req.Name, req, spi.RenewLease)
}

func (f *fair) ReleaseLease(ctx context.Context, req spi.ReleaseLeaseRequest) (spi.ReleaseLeaseResponse, error) {
	return inTurn(ctx, f, coordination, req.Name, req, spi.ReleaseLease)
}

func (f *fair) CreateDataKey(ctx context.Context, req spi.CreateDataKeyRequest) (spi.CreateDataKeyResponse, error) {
	return inTurn(ctx, f, data, req.Key.Owner, req, spi.CreateDataKey)
}

func (f *fair) GetDataKey(ctx context.Context, req spi.GetDataKeyRequest) (spi.GetDataKeyResponse, error) {
	return inTurn(ctx, f, data, req.Owner, req, spi.GetDataKey)
}

func (f *fair) DestroyDataKey(ctx context.Context, req spi.DestroyDataKeyRequest) (spi.DestroyDataKeyResponse, error) {
	return inTurn(ctx, f, data, req.Owner, req, spi.DestroyDataKey)
}

func (f *fair) ListDataKeys(ctx context.Context, req spi.ListDataKeysRequest) (spi.ListDataKeysResponse, error) {
	return inTurn(ctx, f, data, req.Prefix, req, spi.ListDataKeys)
}

func (f *fair) RewrapDataKey(ctx context.Context, req spi.RewrapDataKeyRequest) (spi.RewrapDataKeyResponse, error) {
	return inTurn(ctx, f, data, req.Owner, req, spi.RewrapDataKey)
}

// What is asked about ownership is how the store is and who owns what: it does not wait.

func (f *fair) GetOwnership(ctx context.Context, req spi.GetOwnershipRequest) (spi.GetOwnershipResponse, error) {
	return spi.GetOwnership(ctx, f.inner, req)
}

func (f *fair) ChangeOwnership(ctx context.Context, req spi.ChangeOwnershipRequest) (spi.ChangeOwnershipResponse, error) {
	return spi.ChangeOwnership(ctx, f.inner, req)
}
