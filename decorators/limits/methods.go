package limits

import (
	"context"

	"github.com/loomgate/loomgate/spi"
)

// do does a call, if the account allows it. sizeOf returns the bytes of an answer; nil
// where they are not counted.
func do[Q, R any](
	ctx context.Context, l *limited, c class, use cost, req Q,
	call func(context.Context, *spi.Store, Q) (R, error), sizeOf func(*R) int,
) (res R, err error) {
	use.reads = sizeOf != nil
	if err := l.account.begin(c, use); err != nil {
		return res, err
	}
	defer atEnd(ctx, func() { l.account.leave(c) }) // also if the call panics
	res, err = call(ctx, l.inner, req)
	if err == nil && sizeOf != nil {
		l.account.used(int64(sizeOf(&res)))
	}
	return res, err
}

// plain is a call of which only the number counts.
func plain[Q, R any](ctx context.Context, l *limited, c class, req Q, call func(context.Context, *spi.Store, Q) (R, error)) (R, error) {
	return do(ctx, l, c, cost{}, req, call, nil)
}

func (l *limited) Read(ctx context.Context, req spi.ReadRequest) (spi.ReadResponse, error) {
	return do(ctx, l, data, cost{}, req, spi.Read, func(res *spi.ReadResponse) (size int) {
		for i := range res.Events {
			size += res.Events[i].Size()
		}
		return size
	})
}

func (l *limited) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	return do(ctx, l, data, cost{}, req, spi.ListExecutions, func(res *spi.ListExecutionsResponse) (size int) {
		for _, id := range res.Executions {
			size += len(id)
		}
		return size
	})
}

func (l *limited) ListRefs(ctx context.Context, req spi.ListRefsRequest) (spi.ListRefsResponse, error) {
	return do(ctx, l, data, cost{}, req, spi.ListRefs, func(res *spi.ListRefsResponse) int { return sizeOfRefs(res.Refs) })
}

func (l *limited) RefLineage(ctx context.Context, req spi.RefLineageRequest) (spi.RefLineageResponse, error) {
	return do(ctx, l, data, cost{}, req, spi.RefLineage, func(res *spi.RefLineageResponse) int { return sizeOfRefs(res.Refs) })
}

func sizeOfRefs(refs []spi.Ref) (size int) {
	for _, r := range refs {
		size += len(r.Name) + len(r.Execution)
	}
	return size
}

func (l *limited) Head(ctx context.Context, req spi.HeadRequest) (spi.HeadResponse, error) {
	return plain(ctx, l, data, req, spi.Head)
}

func (l *limited) TruncatePrefixKeeping(ctx context.Context, req spi.TruncatePrefixKeepingRequest) (spi.TruncatePrefixKeepingResponse, error) {
	return plain(ctx, l, data, req, spi.TruncatePrefixKeeping)
}

func (l *limited) SweepTombstones(ctx context.Context, req spi.SweepTombstonesRequest) (spi.SweepTombstonesResponse, error) {
	return plain(ctx, l, data, req, spi.SweepTombstones)
}

func (l *limited) PutRef(ctx context.Context, req spi.PutRefRequest) (spi.PutRefResponse, error) {
	return plain(ctx, l, data, req, spi.PutRef)
}

func (l *limited) GetRef(ctx context.Context, req spi.GetRefRequest) (spi.GetRefResponse, error) {
	return plain(ctx, l, data, req, spi.GetRef)
}

func (l *limited) DeleteRef(ctx context.Context, req spi.DeleteRefRequest) (spi.DeleteRefResponse, error) {
	return plain(ctx, l, data, req, spi.DeleteRef)
}

func (l *limited) PromoteRef(ctx context.Context, req spi.PromoteRefRequest) (spi.PromoteRefResponse, error) {
	return plain(ctx, l, data, req, spi.PromoteRef)
}

func (l *limited) CreateDataKey(ctx context.Context, req spi.CreateDataKeyRequest) (spi.CreateDataKeyResponse, error) {
	return plain(ctx, l, data, req, spi.CreateDataKey)
}

func (l *limited) GetDataKey(ctx context.Context, req spi.GetDataKeyRequest) (spi.GetDataKeyResponse, error) {
	return plain(ctx, l, data, req, spi.GetDataKey)
}

func (l *limited) DestroyDataKey(ctx context.Context, req spi.DestroyDataKeyRequest) (spi.DestroyDataKeyResponse, error) {
	return plain(ctx, l, data, req, spi.DestroyDataKey)
}

func (l *limited) ListDataKeys(ctx context.Context, req spi.ListDataKeysRequest) (spi.ListDataKeysResponse, error) {
	return plain(ctx, l, data, req, spi.ListDataKeys)
}

func (l *limited) RewrapDataKey(ctx context.Context, req spi.RewrapDataKeyRequest) (spi.RewrapDataKeyResponse, error) {
	return plain(ctx, l, data, req, spi.RewrapDataKey)
}

func (l *limited) GetOwnership(ctx context.Context, req spi.GetOwnershipRequest) (spi.GetOwnershipResponse, error) {
	return plain(ctx, l, data, req, spi.GetOwnership)
}

func (l *limited) ChangeOwnership(ctx context.Context, req spi.ChangeOwnershipRequest) (spi.ChangeOwnershipResponse, error) {
	return plain(ctx, l, data, req, spi.ChangeOwnership)
}

// Fences, timers and leases are counted apart, and have no bytes.

func (l *limited) AcquireFence(ctx context.Context, req spi.AcquireFenceRequest) (spi.AcquireFenceResponse, error) {
	return plain(ctx, l, coordination, req, spi.AcquireFence)
}

func (l *limited) AcquireFenceIf(ctx context.Context, req spi.AcquireFenceIfRequest) (spi.AcquireFenceIfResponse, error) {
	return plain(ctx, l, coordination, req, spi.AcquireFenceIf)
}

func (l *limited) ScheduleTimer(ctx context.Context, req spi.ScheduleTimerRequest) (spi.ScheduleTimerResponse, error) {
	return plain(ctx, l, coordination, req, spi.ScheduleTimer)
}

func (l *limited) DueTimers(ctx context.Context, req spi.DueTimersRequest) (spi.DueTimersResponse, error) {
	return plain(ctx, l, coordination, req, spi.DueTimers)
}

func (l *limited) CompleteTimer(ctx context.Context, req spi.CompleteTimerRequest) (spi.CompleteTimerResponse, error) {
	return plain(ctx, l, coordination, req, spi.CompleteTimer)
}

func (l *limited) AcquireLease(ctx context.Context, req spi.AcquireLeaseRequest) (spi.AcquireLeaseResponse, error) {
	return plain(ctx, l, coordination, req, spi.AcquireLease)
}

func (l *limited) RenewLease(ctx context.Context, req spi.RenewLeaseRequest) (spi.RenewLeaseResponse, error) {
	return plain(ctx, l, coordination, req, spi.RenewLease)
}

func (l *limited) ReleaseLease(ctx context.Context, req spi.ReleaseLeaseRequest) (spi.ReleaseLeaseResponse, error) {
	return plain(ctx, l, coordination, req, spi.ReleaseLease)
}
