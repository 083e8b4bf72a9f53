package remote

import (
	"context"
	"errors"

	"github.com/loomgate/loomgate/api"
	"github.com/loomgate/loomgate/spi"
)

// backend is every group over the wire.
type backend struct{ *Client }

// What an error says about an earlier try of the same request.

// resolvesAppend is of appends: these errors come after the look for a duplicate, and
// keep the earlier try out as well.
func resolvesAppend(err error) bool {
	return is[*spi.ConflictError](err) || is[*spi.StaleFenceError](err) || is[*spi.ShreddedError](err) || is[*spi.KeyMismatchError](err)
}

// resolvesLease is of leases, of which the latest answer counts.
func resolvesLease(err error) bool {
	return is[*spi.LeaseHeldError](err) || is[*spi.LeaseLostError](err)
}

// resolvesNothing is of what may be repeated and whose errors prove nothing.
func resolvesNothing(error) bool { return false }

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// resolverOf returns how an append is resolved. One to any head is stored twice if it
// is repeated, unless it says since when to look for it.
func resolverOf(reqs ...spi.AppendRequest) resolver {
	for i := range reqs {
		if reqs[i].ExpectedHead == spi.AnyHead && reqs[i].SinceSeq == 0 {
			return nil
		}
	}
	return resolvesAppend
}

func (b backend) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	return write(ctx, b.Client, api.Append, req, req.Execution, resolverOf(req))
}

func (b backend) AppendIfUnchanged(ctx context.Context, req spi.AppendIfUnchangedRequest) (spi.AppendIfUnchangedResponse, error) {
	return write(ctx, b.Client, api.AppendIfUnchanged, req, req.Execution, resolvesAppend)
}

func (b backend) Read(ctx context.Context, req spi.ReadRequest) (spi.ReadResponse, error) {
	return read(ctx, b.Client, api.Read, req)
}

func (b backend) Head(ctx context.Context, req spi.HeadRequest) (spi.HeadResponse, error) {
	return read(ctx, b.Client, api.Head, req)
}

func (b backend) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	return read(ctx, b.Client, api.ListExecutions, req)
}

func (b backend) AcquireFence(ctx context.Context, req spi.AcquireFenceRequest) (spi.AcquireFenceResponse, error) {
	return write(ctx, b.Client, api.AcquireFence, req, req.Execution, nil)
}

func (b backend) AcquireFenceIf(ctx context.Context, req spi.AcquireFenceIfRequest) (spi.AcquireFenceIfResponse, error) {
	return write(ctx, b.Client, api.AcquireFenceIf, req, req.Execution, nil)
}

// CopyPrefix is known by the ids of the copied events. An error proves nothing: the
// source, or the copy, may have changed since.
func (b backend) CopyPrefix(ctx context.Context, req spi.CopyPrefixRequest) (spi.CopyPrefixResponse, error) {
	return write(ctx, b.Client, api.CopyPrefix, req, req.To, resolvesNothing)
}

func (b backend) TruncatePrefixKeeping(ctx context.Context, req spi.TruncatePrefixKeepingRequest) (spi.TruncatePrefixKeepingResponse, error) {
	return write(ctx, b.Client, api.TruncatePrefixKeeping, req, req.Execution, nil)
}

func (b backend) DeleteExecution(ctx context.Context, req spi.DeleteExecutionRequest) (spi.DeleteExecutionResponse, error) {
	return write(ctx, b.Client, api.DeleteExecution, req, req.Execution, nil)
}

func (b backend) SweepTombstones(ctx context.Context, req spi.SweepTombstonesRequest) (spi.SweepTombstonesResponse, error) {
	return write(ctx, b.Client, api.SweepTombstones, req, "", nil)
}

// ScheduleTimer may be repeated: a timer that is scheduled twice is one.
func (b backend) ScheduleTimer(ctx context.Context, req spi.ScheduleTimerRequest) (spi.ScheduleTimerResponse, error) {
	return write(ctx, b.Client, api.ScheduleTimer, req, req.Timer.Execution, resolvesNothing)
}

func (b backend) DueTimers(ctx context.Context, req spi.DueTimersRequest) (spi.DueTimersResponse, error) {
	return read(ctx, b.Client, api.DueTimers, req)
}

func (b backend) CompleteTimer(ctx context.Context, req spi.CompleteTimerRequest) (spi.CompleteTimerResponse, error) {
	return write(ctx, b.Client, api.CompleteTimer, req, req.Execution, nil)
}

func (b backend) PutRef(ctx context.Context, req spi.PutRefRequest) (spi.PutRefResponse, error) {
	return write(ctx, b.Client, api.PutRef, req, "", nil)
}

func (b backend) GetRef(ctx context.Context, req spi.GetRefRequest) (spi.GetRefResponse, error) {
	return read(ctx, b.Client, api.GetRef, req)
}

func (b backend) DeleteRef(ctx context.Context, req spi.DeleteRefRequest) (spi.DeleteRefResponse, error) {
	return write(ctx, b.Client, api.DeleteRef, req, "", nil)
}

func (b backend) ListRefs(ctx context.Context, req spi.ListRefsRequest) (spi.ListRefsResponse, error) {
	return read(ctx, b.Client, api.ListRefs, req)
}

func (b backend) PromoteRef(ctx context.Context, req spi.PromoteRefRequest) (spi.PromoteRefResponse, error) {
	return write(ctx, b.Client, api.PromoteRef, req, "", nil)
}

func (b backend) RefLineage(ctx context.Context, req spi.RefLineageRequest) (spi.RefLineageResponse, error) {
	return read(ctx, b.Client, api.RefLineage, req)
}

// AcquireLease may be repeated: whoever holds the lease gets it again.
func (b backend) AcquireLease(ctx context.Context, req spi.AcquireLeaseRequest) (spi.AcquireLeaseResponse, error) {
	return write(ctx, b.Client, api.AcquireLease, req, "", resolvesLease)
}

// RenewLease may be repeated: the end is counted from the last time.
func (b backend) RenewLease(ctx context.Context, req spi.RenewLeaseRequest) (spi.RenewLeaseResponse, error) {
	return write(ctx, b.Client, api.RenewLease, req, "", resolvesLease)
}

func (b backend) ReleaseLease(ctx context.Context, req spi.ReleaseLeaseRequest) (spi.ReleaseLeaseResponse, error) {
	return write(ctx, b.Client, api.ReleaseLease, req, "", nil)
}

func (b backend) GetOwnership(ctx context.Context, req spi.GetOwnershipRequest) (spi.GetOwnershipResponse, error) {
	return read(ctx, b.Client, api.GetOwnership, req)
}

func (b backend) ChangeOwnership(ctx context.Context, req spi.ChangeOwnershipRequest) (spi.ChangeOwnershipResponse, error) {
	return write(ctx, b.Client, api.ChangeOwnership, req, "", nil)
}
