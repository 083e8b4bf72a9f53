package admin

import (
	"context"

	"github.com/loomgate/loomgate/cmd/gateway/internal/control"
	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

var tenantStates = map[control.TenantState]pb.TenantState{
	control.TenantActive:   pb.TenantState_TENANT_STATE_ACTIVE,
	control.TenantDisabled: pb.TenantState_TENANT_STATE_DISABLED,
	control.TenantPurged:   pb.TenantState_TENANT_STATE_PURGED,
}

func encodeTenant(t control.TenantRecord) *pb.Tenant {
	return &pb.Tenant{Name: string(t.Name), State: tenantStates[t.State], CreatedAt: timestamp(t.CreatedAt)}
}

// CreateTenant implements AdminService.
func (s *Service) CreateTenant(ctx context.Context, in *pb.CreateTenantRequest) (*pb.CreateTenantResponse, error) {
	return answer(ctx, s, in, func(ctx context.Context, by control.Actor, in *pb.CreateTenantRequest) (*pb.CreateTenantResponse, error) {
		name := spi.TenantName(in.GetName())
		if err := s.Records.CreateTenant(ctx, by, name); err != nil {
			return nil, err
		}
		t, err := s.Records.Tenant(name)
		return &pb.CreateTenantResponse{Tenant: encodeTenant(t)}, err
	})
}

// ListTenants implements AdminService.
func (s *Service) ListTenants(ctx context.Context, in *pb.ListTenantsRequest) (*pb.ListTenantsResponse, error) {
	return answer(ctx, s, in, func(_ context.Context, _ control.Actor, in *pb.ListTenantsRequest) (*pb.ListTenantsResponse, error) {
		page, next, err := s.Records.ListTenants(spi.TenantName(in.GetAfter()), int(in.GetLimit()))
		out := &pb.ListTenantsResponse{Next: string(next)}
		for _, t := range page {
			out.Tenants = append(out.Tenants, encodeTenant(t))
		}
		return out, err
	})
}

// DisableTenant implements AdminService.
func (s *Service) DisableTenant(ctx context.Context, in *pb.DisableTenantRequest) (*pb.DisableTenantResponse, error) {
	return answer(ctx, s, in, func(ctx context.Context, by control.Actor, in *pb.DisableTenantRequest) (*pb.DisableTenantResponse, error) {
		return &pb.DisableTenantResponse{}, s.Records.DisableTenant(ctx, by, spi.TenantName(in.GetName()))
	})
}

// PurgeTenant implements AdminService.
func (s *Service) PurgeTenant(ctx context.Context, in *pb.PurgeTenantRequest) (*pb.PurgeTenantResponse, error) {
	return answer(ctx, s, in, s.purgeTenant)
}

func (s *Service) purgeTenant(ctx context.Context, by control.Actor, in *pb.PurgeTenantRequest) (*pb.PurgeTenantResponse, error) {
	name := spi.TenantName(in.GetName())
	if err := pageLimit(in.GetLimit()); err != nil {
		return nil, err
	}
	record, err := s.Records.Tenant(name)
	switch {
	case err != nil:
		return nil, err
	case record.State == control.TenantPurged:
		return &pb.PurgeTenantResponse{Done: true}, nil
	case record.State != control.TenantDisabled:
		return nil, &control.TenantStateError{Name: name, State: record.State}
	}
	store, err := s.Stack.Tenant(name)
	if err != nil {
		return nil, err
	}
	removed, err := purgeExecutions(ctx, store, int(in.GetLimit()))
	out := &pb.PurgeTenantResponse{Executions: int32(removed)} //nolint:gosec // at most the limit
	if err != nil || removed > 0 {
		return out, err
	}
	if more, err := purgeRefs(ctx, store, int(in.GetLimit())); err != nil || more {
		return out, err
	}
	if more, err := sweep(ctx, store, int(in.GetLimit())); err != nil || more {
		return out, err
	}
	if s.Stack.Keys != nil {
		if _, err := s.Stack.Keys.ShredTenant(ctx, name); err != nil {
			return out, err
		}
	}
	out.Done = true
	return out, s.Records.MarkPurged(ctx, by, name)
}

// purgeExecutions removes executions, with their timers and data keys.
func purgeExecutions(ctx context.Context, store *spi.Store, limit int) (removed int, err error) {
	page, err := spi.ListExecutions(ctx, store, spi.ListExecutionsRequest{Limit: limit})
	if err != nil {
		return 0, err
	}
	for _, id := range page.Executions {
		at, err := spi.Head(ctx, store, spi.HeadRequest{Execution: id})
		if err != nil {
			return removed, err
		}
		if _, err := spi.DeleteExecution(ctx, store, spi.DeleteExecutionRequest{Execution: id, Incarnation: at.Incarnation}); err != nil {
			return removed, err
		}
		removed++
	}
	return removed, nil
}

// purgeRefs removes refs, and reports whether there may be more.
func purgeRefs(ctx context.Context, store *spi.Store, limit int) (more bool, err error) {
	page, err := spi.ListRefs(ctx, store, spi.ListRefsRequest{Limit: limit})
	if err != nil {
		return false, err
	}
	for _, ref := range page.Refs {
		if _, err := spi.DeleteRef(ctx, store, spi.DeleteRefRequest{Name: ref.Name, ExpectedVersion: ref.Version}); err != nil {
			return false, err
		}
	}
	return len(page.Refs) > 0, nil
}

// sweep forgets the ids of what was deleted: nobody writes for the tenant any more.
func sweep(ctx context.Context, store *spi.Store, limit int) (more bool, err error) {
	res, err := spi.SweepTombstones(ctx, store, spi.SweepTombstonesRequest{Limit: limit})
	return res.Swept > 0, err
}
