package admin

import (
	"context"

	"github.com/loomgate/loomgate/cmd/gateway/internal/control"
	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

// GetTenantLimits implements AdminService.
func (s *Service) GetTenantLimits(ctx context.Context, in *pb.GetTenantLimitsRequest) (*pb.GetTenantLimitsResponse, error) {
	return answer(ctx, s, in, func(_ context.Context, _ control.Actor, in *pb.GetTenantLimitsRequest) (*pb.GetTenantLimitsResponse, error) {
		record, err := s.Records.Tenant(spi.TenantName(in.GetName()))
		if err != nil {
			return nil, err
		}
		here, usage, err := s.Limits.Limits(record.Name)
		if err != nil {
			return nil, err
		}
		return &pb.GetTenantLimitsResponse{
			Own: encodeLimits(record.Limits),
			Effective: &pb.TenantLimits{
				RequestsPerSecond: &here.RequestsPerSecond, BytesPerSecond: &here.BytesPerSecond, EventsPerSecond: &here.EventsPerSecond,
				InFlight: &here.InFlight, Executions: &here.Executions,
			},
			InFlight: usage.InFlight, Executions: usage.Executions, CountedAt: timestamp(usage.CountedAt),
		}, nil
	})
}

// SetTenantLimits implements AdminService.
func (s *Service) SetTenantLimits(ctx context.Context, in *pb.SetTenantLimitsRequest) (*pb.SetTenantLimitsResponse, error) {
	return answer(ctx, s, in, func(ctx context.Context, by control.Actor, in *pb.SetTenantLimitsRequest) (*pb.SetTenantLimitsResponse, error) {
		set := in.GetLimits()
		if set == nil {
			set = &pb.TenantLimits{}
		}
		own, err := s.Records.SetTenantLimits(ctx, by, spi.TenantName(in.GetName()), in.GetReset_(), control.TenantLimits{
			RequestsPerSecond: set.RequestsPerSecond, BytesPerSecond: set.BytesPerSecond, EventsPerSecond: set.EventsPerSecond,
			InFlight: set.InFlight, Executions: set.Executions,
		})
		return &pb.SetTenantLimitsResponse{Own: encodeLimits(own)}, err
	})
}

func encodeLimits(l control.TenantLimits) *pb.TenantLimits {
	return &pb.TenantLimits{
		RequestsPerSecond: l.RequestsPerSecond, BytesPerSecond: l.BytesPerSecond, EventsPerSecond: l.EventsPerSecond,
		InFlight: l.InFlight, Executions: l.Executions,
	}
}
