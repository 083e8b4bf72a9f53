package spi

import "context"

// stub is a decorator in which every call goes to one store below, for tests and
// benchmarks of what a layer costs.
type stub struct {
	inner *Store
	layer Layer
	caps  func(Caps) Caps // nil: what inner offers
}

func (s *stub) Layer() Layer { return s.layer }

func (s *stub) Caps(inner Caps) Caps {
	if s.caps == nil {
		return inner
	}
	return s.caps(inner)
}

func (s *stub) Append(ctx context.Context, req AppendRequest) (AppendResponse, error) {
	return Append(ctx, s.inner, req)
}

func (s *stub) Read(ctx context.Context, req ReadRequest) (ReadResponse, error) {
	return Read(ctx, s.inner, req)
}

func (s *stub) Head(ctx context.Context, req HeadRequest) (HeadResponse, error) {
	return Head(ctx, s.inner, req)
}

func (s *stub) ListExecutions(ctx context.Context, req ListExecutionsRequest) (ListExecutionsResponse, error) {
	return ListExecutions(ctx, s.inner, req)
}

func (s *stub) AppendBatch(ctx context.Context, req AppendBatchRequest) (AppendBatchResponse, error) {
	return AppendBatch(ctx, s.inner, req)
}

func (s *stub) AcquireFence(ctx context.Context, req AcquireFenceRequest) (AcquireFenceResponse, error) {
	return AcquireFence(ctx, s.inner, req)
}

func (s *stub) AcquireFenceIf(ctx context.Context, req AcquireFenceIfRequest) (AcquireFenceIfResponse, error) {
	return AcquireFenceIf(ctx, s.inner, req)
}

func (s *stub) AppendIfUnchanged(ctx context.Context, req AppendIfUnchangedRequest) (AppendIfUnchangedResponse, error) {
	return AppendIfUnchanged(ctx, s.inner, req)
}

func (s *stub) CopyPrefix(ctx context.Context, req CopyPrefixRequest) (CopyPrefixResponse, error) {
	return CopyPrefix(ctx, s.inner, req)
}

func (s *stub) TruncatePrefixKeeping(ctx context.Context, req TruncatePrefixKeepingRequest) (TruncatePrefixKeepingResponse, error) {
	return TruncatePrefixKeeping(ctx, s.inner, req)
}

func (s *stub) DeleteExecution(ctx context.Context, req DeleteExecutionRequest) (DeleteExecutionResponse, error) {
	return DeleteExecution(ctx, s.inner, req)
}

func (s *stub) SweepTombstones(ctx context.Context, req SweepTombstonesRequest) (SweepTombstonesResponse, error) {
	return SweepTombstones(ctx, s.inner, req)
}

func (s *stub) ScheduleTimer(ctx context.Context, req ScheduleTimerRequest) (ScheduleTimerResponse, error) {
	return ScheduleTimer(ctx, s.inner, req)
}

func (s *stub) DueTimers(ctx context.Context, req DueTimersRequest) (DueTimersResponse, error) {
	return DueTimers(ctx, s.inner, req)
}

func (s *stub) CompleteTimer(ctx context.Context, req CompleteTimerRequest) (CompleteTimerResponse, error) {
	return CompleteTimer(ctx, s.inner, req)
}

func (s *stub) PutRef(ctx context.Context, req PutRefRequest) (PutRefResponse, error) {
	return PutRef(ctx, s.inner, req)
}

func (s *stub) GetRef(ctx context.Context, req GetRefRequest) (GetRefResponse, error) {
	return GetRef(ctx, s.inner, req)
}

func (s *stub) DeleteRef(ctx context.Context, req DeleteRefRequest) (DeleteRefResponse, error) {
	return DeleteRef(ctx, s.inner, req)
}

func (s *stub) ListRefs(ctx context.Context, req ListRefsRequest) (ListRefsResponse, error) {
	return ListRefs(ctx, s.inner, req)
}

func (s *stub) PromoteRef(ctx context.Context, req PromoteRefRequest) (PromoteRefResponse, error) {
	return PromoteRef(ctx, s.inner, req)
}

func (s *stub) RefLineage(ctx context.Context, req RefLineageRequest) (RefLineageResponse, error) {
	return RefLineage(ctx, s.inner, req)
}

func (s *stub) AcquireLease(ctx context.Context, req AcquireLeaseRequest) (AcquireLeaseResponse, error) {
	return AcquireLease(ctx, s.inner, req)
}

func (s *stub) RenewLease(ctx context.Context, req RenewLeaseRequest) (RenewLeaseResponse, error) {
	return RenewLease(ctx, s.inner, req)
}

func (s *stub) ReleaseLease(ctx context.Context, req ReleaseLeaseRequest) (ReleaseLeaseResponse, error) {
	return ReleaseLease(ctx, s.inner, req)
}

func (s *stub) CreateDataKey(ctx context.Context, req CreateDataKeyRequest) (CreateDataKeyResponse, error) {
	return CreateDataKey(ctx, s.inner, req)
}

func (s *stub) GetDataKey(ctx context.Context, req GetDataKeyRequest) (GetDataKeyResponse, error) {
	return GetDataKey(ctx, s.inner, req)
}

func (s *stub) DestroyDataKey(ctx context.Context, req DestroyDataKeyRequest) (DestroyDataKeyResponse, error) {
	return DestroyDataKey(ctx, s.inner, req)
}

func (s *stub) ListDataKeys(ctx context.Context, req ListDataKeysRequest) (ListDataKeysResponse, error) {
	return ListDataKeys(ctx, s.inner, req)
}

func (s *stub) RewrapDataKey(ctx context.Context, req RewrapDataKeyRequest) (RewrapDataKeyResponse, error) {
	return RewrapDataKey(ctx, s.inner, req)
}

func (s *stub) GetOwnership(ctx context.Context, req GetOwnershipRequest) (GetOwnershipResponse, error) {
	return GetOwnership(ctx, s.inner, req)
}

func (s *stub) ChangeOwnership(ctx context.Context, req ChangeOwnershipRequest) (ChangeOwnershipResponse, error) {
	return ChangeOwnership(ctx, s.inner, req)
}
