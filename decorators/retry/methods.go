package retry

import (
	"context"

	"github.com/loomgate/loomgate/spi"
)

// The rules. docs/retry.md gives the reasons.

// safe is the rule of a request that may be sent again, and that every success
// settles.
func safe[R any]() rule[R] { return rule[R]{again: true} }

// safeIf is the rule of a request that may be sent again only on a condition.
func safeIf[R any](again bool) rule[R] { return rule[R]{again: again} }

// appended reports whether an error says that an append has not happened, and will
// not: the search for a duplicate came first.
func appended(err error) bool {
	return is[*spi.ConflictError](err) || is[*spi.StaleFenceError](err) || is[*spi.ShreddedError](err) || is[*spi.KeyMismatchError](err)
}

// fresh answers an append whose events a lost try of its own has stored: it is no
// duplicate to its caller.
func fresh(res *spi.AppendResponse) bool {
	res.Duplicate = false
	return true
}

func ruleOfAppend(req spi.AppendRequest) rule[spi.AppendResponse] {
	return rule[spi.AppendResponse]{again: req.ExpectedHead != spi.AnyHead || req.SinceSeq > 0, settles: appended, settle: fresh}
}

func (r *retry) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	return do(ctx, r, req, spi.Append, ruleOfAppend(req))
}

func (r *retry) AppendIfUnchanged(ctx context.Context, req spi.AppendIfUnchangedRequest) (spi.AppendIfUnchangedResponse, error) {
	return do(ctx, r, req, spi.AppendIfUnchanged, rule[spi.AppendIfUnchangedResponse]{
		again: true, settles: appended,
		settle: func(res *spi.AppendIfUnchangedResponse) bool { return fresh(&res.AppendResponse) },
	})
}

// CopyPrefix is settled by no error about its source, which may have changed since.
func (r *retry) CopyPrefix(ctx context.Context, req spi.CopyPrefixRequest) (spi.CopyPrefixResponse, error) {
	return do(ctx, r, req, spi.CopyPrefix, rule[spi.CopyPrefixResponse]{
		again: true, settles: is[*spi.ConflictError],
		settle: func(res *spi.CopyPrefixResponse) bool {
			res.Duplicate = false
			return true
		},
	})
}

// AcquireFence is never sent again: the late twin of a lost try would make the token
// of the later one stale.
func (r *retry) AcquireFence(ctx context.Context, req spi.AcquireFenceRequest) (spi.AcquireFenceResponse, error) {
	return do(ctx, r, req, spi.AcquireFence, rule[spi.AcquireFenceResponse]{})
}

// AcquireFenceIf takes effect at one token only, so it may be sent again. A refusal at
// the next token may be due to the lost try itself.
func (r *retry) AcquireFenceIf(ctx context.Context, req spi.AcquireFenceIfRequest) (spi.AcquireFenceIfResponse, error) {
	return do(ctx, r, req, spi.AcquireFenceIf, rule[spi.AcquireFenceIfResponse]{
		again:  true,
		settle: func(res *spi.AcquireFenceIfResponse) bool { return res.Acquired || res.Token != req.Fence+1 },
	})
}

// PutRef is sent again only at a version: that of a name which was deleted in between
// never comes back, but the name may.
func (r *retry) PutRef(ctx context.Context, req spi.PutRefRequest) (spi.PutRefResponse, error) {
	return do(ctx, r, req, spi.PutRef, safeIf[spi.PutRefResponse](req.ExpectedVersion > 0))
}

func (r *retry) PromoteRef(ctx context.Context, req spi.PromoteRefRequest) (spi.PromoteRefResponse, error) {
	return do(ctx, r, req, spi.PromoteRef, safe[spi.PromoteRefResponse]())
}

func (r *retry) DeleteRef(ctx context.Context, req spi.DeleteRefRequest) (spi.DeleteRefResponse, error) {
	return do(ctx, r, req, spi.DeleteRef, safeIf[spi.DeleteRefResponse](req.ExpectedVersion > 0))
}

func (r *retry) AcquireLease(ctx context.Context, req spi.AcquireLeaseRequest) (spi.AcquireLeaseResponse, error) {
	return do(ctx, r, req, spi.AcquireLease, rule[spi.AcquireLeaseResponse]{again: true, settles: is[*spi.LeaseHeldError]})
}

func (r *retry) RenewLease(ctx context.Context, req spi.RenewLeaseRequest) (spi.RenewLeaseResponse, error) {
	return do(ctx, r, req, spi.RenewLease, rule[spi.RenewLeaseResponse]{again: true, settles: is[*spi.LeaseLostError]})
}

func (r *retry) ReleaseLease(ctx context.Context, req spi.ReleaseLeaseRequest) (spi.ReleaseLeaseResponse, error) {
	return do(ctx, r, req, spi.ReleaseLease, safe[spi.ReleaseLeaseResponse]())
}

// CreateDataKey created the key that is there if it is the caller's own.
func (r *retry) CreateDataKey(ctx context.Context, req spi.CreateDataKeyRequest) (spi.CreateDataKeyResponse, error) {
	return do(ctx, r, req, spi.CreateDataKey, rule[spi.CreateDataKeyResponse]{
		again: true,
		settle: func(res *spi.CreateDataKeyResponse) bool {
			res.Created = res.Key.ID == req.Key.ID
			return true
		},
	})
}

// DestroyDataKey is sent again only for a tenant's key. An execution may have been
// deleted in between, and have a new key under the same version.
func (r *retry) DestroyDataKey(ctx context.Context, req spi.DestroyDataKeyRequest) (spi.DestroyDataKeyResponse, error) {
	return do(ctx, r, req, spi.DestroyDataKey, safeIf[spi.DestroyDataKeyResponse](ofTenant(req.Owner)))
}

// RewrapDataKey is sent again only for a tenant's key, likewise.
func (r *retry) RewrapDataKey(ctx context.Context, req spi.RewrapDataKeyRequest) (spi.RewrapDataKeyResponse, error) {
	return do(ctx, r, req, spi.RewrapDataKey, safeIf[spi.RewrapDataKeyResponse](ofTenant(req.Owner)))
}

func ofTenant(o spi.KeyOwner) bool {
	_, execution := o.Execution()
	return !execution
}

// What follows may be sent again as it is, and any success settles it.

func (r *retry) Read(ctx context.Context, req spi.ReadRequest) (spi.ReadResponse, error) {
	return do(ctx, r, req, spi.Read, safe[spi.ReadResponse]())
}

func (r *retry) Head(ctx context.Context, req spi.HeadRequest) (spi.HeadResponse, error) {
	return do(ctx, r, req, spi.Head, safe[spi.HeadResponse]())
}

func (r *retry) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	return do(ctx, r, req, spi.ListExecutions, safe[spi.ListExecutionsResponse]())
}

func (r *retry) TruncatePrefixKeeping(ctx context.Context, req spi.TruncatePrefixKeepingRequest) (spi.TruncatePrefixKeepingResponse, error) {
	return do(ctx, r, req, spi.TruncatePrefixKeeping, safe[spi.TruncatePrefixKeepingResponse]())
}

func (r *retry) DeleteExecution(ctx context.Context, req spi.DeleteExecutionRequest) (spi.DeleteExecutionResponse, error) {
	return do(ctx, r, req, spi.DeleteExecution, safe[spi.DeleteExecutionResponse]())
}

func (r *retry) SweepTombstones(ctx context.Context, req spi.SweepTombstonesRequest) (spi.SweepTombstonesResponse, error) {
	return do(ctx, r, req, spi.SweepTombstones, safe[spi.SweepTombstonesResponse]())
}

func (r *retry) ScheduleTimer(ctx context.Context, req spi.ScheduleTimerRequest) (spi.ScheduleTimerResponse, error) {
	return do(ctx, r, req, spi.ScheduleTimer, safe[spi.ScheduleTimerResponse]())
}

func (r *retry) DueTimers(ctx context.Context, req spi.DueTimersRequest) (spi.DueTimersResponse, error) {
	return do(ctx, r, req, spi.DueTimers, safe[spi.DueTimersResponse]())
}

func (r *retry) CompleteTimer(ctx context.Context, req spi.CompleteTimerRequest) (spi.CompleteTimerResponse, error) {
	return do(ctx, r, req, spi.CompleteTimer, safe[spi.CompleteTimerResponse]())
}

func (r *retry) GetRef(ctx context.Context, req spi.GetRefRequest) (spi.GetRefResponse, error) {
	return do(ctx, r, req, spi.GetRef, safe[spi.GetRefResponse]())
}

func (r *retry) ListRefs(ctx context.Context, req spi.ListRefsRequest) (spi.ListRefsResponse, error) {
	return do(ctx, r, req, spi.ListRefs, safe[spi.ListRefsResponse]())
}

func (r *retry) RefLineage(ctx context.Context, req spi.RefLineageRequest) (spi.RefLineageResponse, error) {
	return do(ctx, r, req, spi.RefLineage, safe[spi.RefLineageResponse]())
}

func (r *retry) GetDataKey(ctx context.Context, req spi.GetDataKeyRequest) (spi.GetDataKeyResponse, error) {
	return do(ctx, r, req, spi.GetDataKey, safe[spi.GetDataKeyResponse]())
}

func (r *retry) ListDataKeys(ctx context.Context, req spi.ListDataKeysRequest) (spi.ListDataKeysResponse, error) {
	return do(ctx, r, req, spi.ListDataKeys, safe[spi.ListDataKeysResponse]())
}

func (r *retry) GetOwnership(ctx context.Context, req spi.GetOwnershipRequest) (spi.GetOwnershipResponse, error) {
	return do(ctx, r, req, spi.GetOwnership, safe[spi.GetOwnershipResponse]())
}

func (r *retry) ChangeOwnership(ctx context.Context, req spi.ChangeOwnershipRequest) (spi.ChangeOwnershipResponse, error) {
	return do(ctx, r, req, spi.ChangeOwnership, safe[spi.ChangeOwnershipResponse]())
}
