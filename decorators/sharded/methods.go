package sharded

import (
	"context"

	"github.com/loomgate/loomgate/spi"
)

// Caps leaves out what is for one shard. Copies need an inner store that can write
// what was read from another.
func (s *sharded) Caps(inner spi.Caps) spi.Caps {
	inner &^= spi.CapChangeOwnership | spi.CapCopyPrefix
	if inner.Has(spi.CapAppendIfUnchanged) {
		inner |= spi.CapCopyPrefix
	}
	return inner
}

func (s *sharded) Layer() spi.Layer { return spi.Layer{Name: "sharded"} }

// Each of these methods is about one name, and goes where that is.

func (s *sharded) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	return write(ctx, s, req.Execution, req, func(ctx context.Context, shard *spi.Store, r spi.Route, req spi.AppendRequest) (spi.AppendResponse, error) {
		req.Route = r
		return spi.Append(ctx, shard, req)
	})
}

func (s *sharded) Read(ctx context.Context, req spi.ReadRequest) (spi.ReadResponse, error) {
	return read(ctx, s, req.Execution, req, func(ctx context.Context, shard *spi.Store, r spi.Route, req spi.ReadRequest) (spi.ReadResponse, error) {
		req.Route = r
		return spi.Read(ctx, shard, req)
	})
}

func (s *sharded) Head(ctx context.Context, req spi.HeadRequest) (spi.HeadResponse, error) {
	return read(ctx, s, req.Execution, req, func(ctx context.Context, shard *spi.Store, r spi.Route, req spi.HeadRequest) (spi.HeadResponse, error) {
		req.Route = r
		return spi.Head(ctx, shard, req)
	})
}

func (s *sharded) AcquireFence(ctx context.Context, req spi.AcquireFenceRequest) (spi.AcquireFenceResponse, error) {
	return write(ctx, s, req.Execution, req, func(ctx context.Context, shard *spi.Store, r spi.Route, req spi.AcquireFenceRequest) (spi.AcquireFenceResponse, error) {
		req.Route = r
		return spi.AcquireFence(ctx, shard, req)
	})
}

func (s *sharded) AcquireFenceIf(ctx context.Context, req spi.AcquireFenceIfRequest) (spi.AcquireFenceIfResponse, error) {
	return write(ctx, s, req.Execution, req, func(ctx context.Context, shard *spi.Store, r spi.Route, req spi.AcquireFenceIfRequest) (spi.AcquireFenceIfResponse, error) {
		req.Route = r
		return spi.AcquireFenceIf(ctx, shard, req)
	})
}

func (s *sharded) AppendIfUnchanged(ctx context.Context, req spi.AppendIfUnchangedRequest) (spi.AppendIfUnchangedResponse, error) {
	return write(ctx, s, req.Execution, req, func(ctx context.Context, shard *spi.Store, r spi.Route, req spi.AppendIfUnchangedRequest) (spi.AppendIfUnchangedResponse, error) {
		req.Route = r
		return spi.AppendIfUnchanged(ctx, shard, req)
	})
}

func (s *sharded) TruncatePrefixKeeping(ctx context.Context, req spi.TruncatePrefixKeepingRequest) (spi.TruncatePrefixKeepingResponse, error) {
	return write(ctx, s, req.Execution, req, func(ctx context.Context, shard *spi.Store, r spi.Route, req spi.TruncatePrefixKeepingRequest) (spi.TruncatePrefixKeepingResponse, error) {
		req.Route = r
		return spi.TruncatePrefixKeeping(ctx, shard, req)
	})
}

func (s *sharded) DeleteExecution(ctx context.Context, req spi.DeleteExecutionRequest) (spi.DeleteExecutionResponse, error) {
	return write(ctx, s, req.Execution, req, func(ctx context.Context, shard *spi.Store, r spi.Route, req spi.DeleteExecutionRequest) (spi.DeleteExecutionResponse, error) {
		req.Route = r
		return spi.DeleteExecution(ctx, shard, req)
	})
}

func (s *sharded) ScheduleTimer(ctx context.Context, req spi.ScheduleTimerRequest) (spi.ScheduleTimerResponse, error) {
	return write(ctx, s, req.Timer.Execution, req, func(ctx context.Context, shard *spi.Store, r spi.Route, req spi.ScheduleTimerRequest) (spi.ScheduleTimerResponse, error) {
		req.Route = r
		return spi.ScheduleTimer(ctx, shard, req)
	})
}

func (s *sharded) CompleteTimer(ctx context.Context, req spi.CompleteTimerRequest) (spi.CompleteTimerResponse, error) {
	return write(ctx, s, req.Execution, req, func(ctx context.Context, shard *spi.Store, r spi.Route, req spi.CompleteTimerRequest) (spi.CompleteTimerResponse, error) {
		req.Route = r
		return spi.CompleteTimer(ctx, shard, req)
	})
}

func (s *sharded) PutRef(ctx context.Context, req spi.PutRefRequest) (spi.PutRefResponse, error) {
	return write(ctx, s, req.Name, req, func(ctx context.Context, shard *spi.Store, r spi.Route, req spi.PutRefRequest) (spi.PutRefResponse, error) {
		req.Route = r
		return spi.PutRef(ctx, shard, req)
	})
}

func (s *sharded) GetRef(ctx context.Context, req spi.GetRefRequest) (spi.GetRefResponse, error) {
	return read(ctx, s, req.Name, req, func(ctx context.Context, shard *spi.Store, r spi.Route, req spi.GetRefRequest) (spi.GetRefResponse, error) {
		req.Route = r
		return spi.GetRef(ctx, shard, req)
	})
}

func (s *sharded) DeleteRef(ctx context.Context, req spi.DeleteRefRequest) (spi.DeleteRefResponse, error) {
	return write(ctx, s, req.Name, req, func(ctx context.Context, shard *spi.Store, r spi.Route, req spi.DeleteRefRequest) (spi.DeleteRefResponse, error) {
		req.Route = r
		return spi.DeleteRef(ctx, shard, req)
	})
}

func (s *sharded) PromoteRef(ctx context.Context, req spi.PromoteRefRequest) (spi.PromoteRefResponse, error) {
	return write(ctx, s, req.Name, req, func(ctx context.Context, shard *spi.Store, r spi.Route, req spi.PromoteRefRequest) (spi.PromoteRefResponse, error) {
		req.Route = r
		return spi.PromoteRef(ctx, shard, req)
	})
}

func (s *sharded) RefLineage(ctx context.Context, req spi.RefLineageRequest) (spi.RefLineageResponse, error) {
	return read(ctx, s, req.Name, req, func(ctx context.Context, shard *spi.Store, r spi.Route, req spi.RefLineageRequest) (spi.RefLineageResponse, error) {
		req.Route = r
		return spi.RefLineage(ctx, shard, req)
	})
}

func (s *sharded) AcquireLease(ctx context.Context, req spi.AcquireLeaseRequest) (spi.AcquireLeaseResponse, error) {
	return write(ctx, s, req.Name, req, func(ctx context.Context, shard *spi.Store, r spi.Route, req spi.AcquireLeaseRequest) (spi.AcquireLeaseResponse, error) {
		req.Route = r
		return spi.AcquireLease(ctx, shard, req)
	})
}

func (s *sharded) RenewLease(ctx context.Context, req spi.RenewLeaseRequest) (spi.RenewLeaseResponse, error) {
	return write(ctx, s, req.Name, req, func(ctx context.Context, shard *spi.Store, r spi.Route, req spi.RenewLeaseRequest) (spi.RenewLeaseResponse, error) {
		req.Route = r
		return spi.RenewLease(ctx, shard, req)
	})
}

func (s *sharded) ReleaseLease(ctx context.Context, req spi.ReleaseLeaseRequest) (spi.ReleaseLeaseResponse, error) {
	return write(ctx, s, req.Name, req, func(ctx context.Context, shard *spi.Store, r spi.Route, req spi.ReleaseLeaseRequest) (spi.ReleaseLeaseResponse, error) {
		req.Route = r
		return spi.ReleaseLease(ctx, shard, req)
	})
}

func (s *sharded) CreateDataKey(ctx context.Context, req spi.CreateDataKeyRequest) (spi.CreateDataKeyResponse, error) {
	return write(ctx, s, req.Key.Owner, req, func(ctx context.Context, shard *spi.Store, r spi.Route, req spi.CreateDataKeyRequest) (spi.CreateDataKeyResponse, error) {
		req.Route = r
		return spi.CreateDataKey(ctx, shard, req)
	})
}

func (s *sharded) GetDataKey(ctx context.Context, req spi.GetDataKeyRequest) (spi.GetDataKeyResponse, error) {
	return read(ctx, s, req.Owner, req, func(ctx context.Context, shard *spi.Store, r spi.Route, req spi.GetDataKeyRequest) (spi.GetDataKeyResponse, error) {
		req.Route = r
		return spi.GetDataKey(ctx, shard, req)
	})
}

func (s *sharded) DestroyDataKey(ctx context.Context, req spi.DestroyDataKeyRequest) (spi.DestroyDataKeyResponse, error) {
	return write(ctx, s, req.Owner, req, func(ctx context.Context, shard *spi.Store, r spi.Route, req spi.DestroyDataKeyRequest) (spi.DestroyDataKeyResponse, error) {
		req.Route = r
		return spi.DestroyDataKey(ctx, shard, req)
	})
}

func (s *sharded) RewrapDataKey(ctx context.Context, req spi.RewrapDataKeyRequest) (spi.RewrapDataKeyResponse, error) {
	return write(ctx, s, req.Owner, req, func(ctx context.Context, shard *spi.Store, r spi.Route, req spi.RewrapDataKeyRequest) (spi.RewrapDataKeyResponse, error) {
		req.Route = r
		return spi.RewrapDataKey(ctx, shard, req)
	})
}
