package faults

import (
	"context"

	"github.com/loomgate/loomgate/spi"
)

// plain does a call that answers with no page.
func plain[Q, R any](ctx context.Context, f *faults, t target, req Q, call func(context.Context, *spi.Store, Q) (R, error)) (R, error) {
	res, _, err := do(ctx, f, t, req, call)
	return res, err
}

// paged does a call that answers with a page.
func paged[Q, R any](ctx context.Context, f *faults, t target, req Q, call func(context.Context, *spi.Store, Q) (R, error), bend func(*R, Page)) (R, error) {
	res, fault, err := do(ctx, f, t, req, call)
	if err == nil {
		bend(&res, fault.Page)
	}
	return res, err
}

func (f *faults) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	return plain(ctx, f, writingTo("Append", req.Execution), req, spi.Append)
}

func (f *faults) AppendIfUnchanged(ctx context.Context, req spi.AppendIfUnchangedRequest) (spi.AppendIfUnchangedResponse, error) {
	return plain(ctx, f, writingTo("AppendIfUnchanged", req.Execution), req, spi.AppendIfUnchanged)
}

func (f *faults) Read(ctx context.Context, req spi.ReadRequest) (spi.ReadResponse, error) {
	return paged(ctx, f, reading("Read", req.Execution), req, spi.Read, bendEvents)
}

func (f *faults) Head(ctx context.Context, req spi.HeadRequest) (spi.HeadResponse, error) {
	return plain(ctx, f, reading("Head", req.Execution), req, spi.Head)
}

func (f *faults) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	return paged(ctx, f, reading("ListExecutions", req.Prefix), req, spi.ListExecutions, bendExecutions)
}

func (f *faults) AcquireFence(ctx context.Context, req spi.AcquireFenceRequest) (spi.AcquireFenceResponse, error) {
	return plain(ctx, f, writingTo("AcquireFence", req.Execution), req, spi.AcquireFence)
}

func (f *faults) AcquireFenceIf(ctx context.Context, req spi.AcquireFenceIfRequest) (spi.AcquireFenceIfResponse, error) {
	return plain(ctx, f, writingTo("AcquireFenceIf", req.Execution), req, spi.AcquireFenceIf)
}

func (f *faults) CopyPrefix(ctx context.Context, req spi.CopyPrefixRequest) (spi.CopyPrefixResponse, error) {
	return plain(ctx, f, writingTo("CopyPrefix", req.To), req, spi.CopyPrefix)
}

func (f *faults) TruncatePrefixKeeping(ctx context.Context, req spi.TruncatePrefixKeepingRequest) (spi.TruncatePrefixKeepingResponse, error) {
	return plain(ctx, f, writingTo("TruncatePrefixKeeping", req.Execution), req, spi.TruncatePrefixKeeping)
}

func (f *faults) DeleteExecution(ctx context.Context, req spi.DeleteExecutionRequest) (spi.DeleteExecutionResponse, error) {
	return plain(ctx, f, writingTo("DeleteExecution", req.Execution), req, spi.DeleteExecution)
}

func (f *faults) SweepTombstones(ctx context.Context, req spi.SweepTombstonesRequest) (spi.SweepTombstonesResponse, error) {
	return plain(ctx, f, writing("SweepTombstones", req.Prefix), req, spi.SweepTombstones)
}

func (f *faults) ScheduleTimer(ctx context.Context, req spi.ScheduleTimerRequest) (spi.ScheduleTimerResponse, error) {
	return plain(ctx, f, writingTo("ScheduleTimer", req.Timer.Execution), req, spi.ScheduleTimer)
}

func (f *faults) DueTimers(ctx context.Context, req spi.DueTimersRequest) (spi.DueTimersResponse, error) {
	return paged(ctx, f, reading("DueTimers", req.Prefix), req, spi.DueTimers, bendTimers)
}

func (f *faults) CompleteTimer(ctx context.Context, req spi.CompleteTimerRequest) (spi.CompleteTimerResponse, error) {
	return plain(ctx, f, writingTo("CompleteTimer", req.Execution), req, spi.CompleteTimer)
}

func (f *faults) PutRef(ctx context.Context, req spi.PutRefRequest) (spi.PutRefResponse, error) {
	return plain(ctx, f, writing("PutRef", req.Name), req, spi.PutRef)
}

func (f *faults) GetRef(ctx context.Context, req spi.GetRefRequest) (spi.GetRefResponse, error) {
	return plain(ctx, f, reading("GetRef", req.Name), req, spi.GetRef)
}

func (f *faults) DeleteRef(ctx context.Context, req spi.DeleteRefRequest) (spi.DeleteRefResponse, error) {
	return plain(ctx, f, writing("DeleteRef", req.Name), req, spi.DeleteRef)
}

func (f *faults) ListRefs(ctx context.Context, req spi.ListRefsRequest) (spi.ListRefsResponse, error) {
	return paged(ctx, f, reading("ListRefs", req.Prefix), req, spi.ListRefs, bendRefs)
}

func (f *faults) PromoteRef(ctx context.Context, req spi.PromoteRefRequest) (spi.PromoteRefResponse, error) {
	return plain(ctx, f, writing("PromoteRef", req.Name), req, spi.PromoteRef)
}

func (f *faults) RefLineage(ctx context.Context, req spi.RefLineageRequest) (spi.RefLineageResponse, error) {
	return paged(ctx, f, reading("RefLineage", req.Name), req, spi.RefLineage, bendLineage)
}

func (f *faults) AcquireLease(ctx context.Context, req spi.AcquireLeaseRequest) (spi.AcquireLeaseResponse, error) {
	return plain(ctx, f, writing("AcquireLease", req.Name), req, spi.AcquireLease)
}

func (f *faults) RenewLease(ctx context.Context, req spi.RenewLeaseRequest) (spi.RenewLeaseResponse, error) {
	return plain(ctx, f, writing("RenewLease", req.Name), req, spi.RenewLease)
}

func (f *faults) ReleaseLease(ctx context.Context, req spi.ReleaseLeaseRequest) (spi.ReleaseLeaseResponse, error) {
	return plain(ctx, f, writing("ReleaseLease", req.Name), req, spi.ReleaseLease)
}

func (f *faults) CreateDataKey(ctx context.Context, req spi.CreateDataKeyRequest) (spi.CreateDataKeyResponse, error) {
	return plain(ctx, f, writing("CreateDataKey", req.Key.Owner), req, spi.CreateDataKey)
}

func (f *faults) GetDataKey(ctx context.Context, req spi.GetDataKeyRequest) (spi.GetDataKeyResponse, error) {
	return plain(ctx, f, reading("GetDataKey", req.Owner), req, spi.GetDataKey)
}

func (f *faults) DestroyDataKey(ctx context.Context, req spi.DestroyDataKeyRequest) (spi.DestroyDataKeyResponse, error) {
	return plain(ctx, f, writing("DestroyDataKey", req.Owner), req, spi.DestroyDataKey)
}

func (f *faults) ListDataKeys(ctx context.Context, req spi.ListDataKeysRequest) (spi.ListDataKeysResponse, error) {
	return paged(ctx, f, reading("ListDataKeys", req.Prefix), req, spi.ListDataKeys, bendKeys)
}

func (f *faults) RewrapDataKey(ctx context.Context, req spi.RewrapDataKeyRequest) (spi.RewrapDataKeyResponse, error) {
	return plain(ctx, f, writing("RewrapDataKey", req.Owner), req, spi.RewrapDataKey)
}

func (f *faults) GetOwnership(ctx context.Context, req spi.GetOwnershipRequest) (spi.GetOwnershipResponse, error) {
	return plain(ctx, f, reading("GetOwnership", ""), req, spi.GetOwnership)
}

func (f *faults) ChangeOwnership(ctx context.Context, req spi.ChangeOwnershipRequest) (spi.ChangeOwnershipResponse, error) {
	return plain(ctx, f, writing("ChangeOwnership", ""), req, spi.ChangeOwnership)
}
