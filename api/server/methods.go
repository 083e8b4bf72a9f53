package server

import (
	"context"

	"github.com/loomgate/loomgate/api"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

// AppendBatch tells of each append what its caller may know.
func (s service) AppendBatch(ctx context.Context, in *pb.AppendBatchRequest) (*pb.AppendBatchResponse, error) {
	caller, err := s.caller(ctx)
	if err != nil {
		return nil, err
	}
	res, err := call(ctx, caller.Store, api.AppendBatch, in)
	if err != nil {
		return nil, s.Status(ctx, err, caller.Operator)
	}
	audience := s.audience(ctx, caller.Operator)
	for i := range res.Results {
		res.Results[i].Err = audience.Mask(res.Results[i].Err)
	}
	return api.AppendBatch.EncodeResponse(res), nil
}

func (s service) Append(ctx context.Context, in *pb.AppendRequest) (*pb.AppendResponse, error) {
	return serve(ctx, s, api.Append, in)
}

func (s service) AppendIfUnchanged(ctx context.Context, in *pb.AppendIfUnchangedRequest) (*pb.AppendIfUnchangedResponse, error) {
	return serve(ctx, s, api.AppendIfUnchanged, in)
}

func (s service) Read(ctx context.Context, in *pb.ReadRequest) (*pb.ReadResponse, error) {
	return serve(ctx, s, api.Read, in)
}

func (s service) Head(ctx context.Context, in *pb.HeadRequest) (*pb.HeadResponse, error) {
	return serve(ctx, s, api.Head, in)
}

func (s service) ListExecutions(ctx context.Context, in *pb.ListExecutionsRequest) (*pb.ListExecutionsResponse, error) {
	return serve(ctx, s, api.ListExecutions, in)
}

func (s service) AcquireFence(ctx context.Context, in *pb.AcquireFenceRequest) (*pb.AcquireFenceResponse, error) {
	return serve(ctx, s, api.AcquireFence, in)
}

func (s service) AcquireFenceIf(ctx context.Context, in *pb.AcquireFenceIfRequest) (*pb.AcquireFenceIfResponse, error) {
	return serve(ctx, s, api.AcquireFenceIf, in)
}

func (s service) CopyPrefix(ctx context.Context, in *pb.CopyPrefixRequest) (*pb.CopyPrefixResponse, error) {
	return serve(ctx, s, api.CopyPrefix, in)
}

func (s service) TruncatePrefixKeeping(ctx context.Context, in *pb.TruncatePrefixKeepingRequest) (*pb.TruncatePrefixKeepingResponse, error) {
	return serve(ctx, s, api.TruncatePrefixKeeping, in)
}

func (s service) DeleteExecution(ctx context.Context, in *pb.DeleteExecutionRequest) (*pb.DeleteExecutionResponse, error) {
	return serve(ctx, s, api.DeleteExecution, in)
}

func (s service) SweepTombstones(ctx context.Context, in *pb.SweepTombstonesRequest) (*pb.SweepTombstonesResponse, error) {
	return serve(ctx, s, api.SweepTombstones, in)
}

func (s service) ScheduleTimer(ctx context.Context, in *pb.ScheduleTimerRequest) (*pb.ScheduleTimerResponse, error) {
	return serve(ctx, s, api.ScheduleTimer, in)
}

func (s service) DueTimers(ctx context.Context, in *pb.DueTimersRequest) (*pb.DueTimersResponse, error) {
	return serve(ctx, s, api.DueTimers, in)
}

func (s service) CompleteTimer(ctx context.Context, in *pb.CompleteTimerRequest) (*pb.CompleteTimerResponse, error) {
	return serve(ctx, s, api.CompleteTimer, in)
}

func (s service) PutRef(ctx context.Context, in *pb.PutRefRequest) (*pb.PutRefResponse, error) {
	return serve(ctx, s, api.PutRef, in)
}

func (s service) GetRef(ctx context.Context, in *pb.GetRefRequest) (*pb.GetRefResponse, error) {
	return serve(ctx, s, api.GetRef, in)
}

func (s service) DeleteRef(ctx context.Context, in *pb.DeleteRefRequest) (*pb.DeleteRefResponse, error) {
	return serve(ctx, s, api.DeleteRef, in)
}

func (s service) ListRefs(ctx context.Context, in *pb.ListRefsRequest) (*pb.ListRefsResponse, error) {
	return serve(ctx, s, api.ListRefs, in)
}

func (s service) PromoteRef(ctx context.Context, in *pb.PromoteRefRequest) (*pb.PromoteRefResponse, error) {
	return serve(ctx, s, api.PromoteRef, in)
}

func (s service) RefLineage(ctx context.Context, in *pb.RefLineageRequest) (*pb.RefLineageResponse, error) {
	return serve(ctx, s, api.RefLineage, in)
}

func (s service) AcquireLease(ctx context.Context, in *pb.AcquireLeaseRequest) (*pb.AcquireLeaseResponse, error) {
	return serve(ctx, s, api.AcquireLease, in)
}

func (s service) RenewLease(ctx context.Context, in *pb.RenewLeaseRequest) (*pb.RenewLeaseResponse, error) {
	return serve(ctx, s, api.RenewLease, in)
}

func (s service) ReleaseLease(ctx context.Context, in *pb.ReleaseLeaseRequest) (*pb.ReleaseLeaseResponse, error) {
	return serve(ctx, s, api.ReleaseLease, in)
}

func (s service) GetOwnership(ctx context.Context, in *pb.GetOwnershipRequest) (*pb.GetOwnershipResponse, error) {
	return serve(ctx, s, api.GetOwnership, in)
}

func (s service) ChangeOwnership(ctx context.Context, in *pb.ChangeOwnershipRequest) (*pb.ChangeOwnershipResponse, error) {
	return serve(ctx, s, api.ChangeOwnership, in)
}
