package admin

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/loomgate/loomgate/cmd/gateway/internal/control"
	"github.com/loomgate/loomgate/decorators/crypto"
	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

// keys returns what rotates and shreds, for a tenant that there is.
func (s *Service) keys(tenant string) (*crypto.Keys, spi.TenantName, error) {
	name := spi.TenantName(tenant)
	if _, err := s.Records.Tenant(name); err != nil {
		return nil, "", err
	}
	if s.Stack.Keys == nil {
		return nil, "", status.Error(codes.FailedPrecondition, "nothing is encrypted: the gateway's configuration names no keyring")
	}
	return s.Stack.Keys, name, nil
}

// RotateTenantKey implements AdminService.
func (s *Service) RotateTenantKey(ctx context.Context, in *pb.RotateTenantKeyRequest) (*pb.RotateTenantKeyResponse, error) {
	return answer(ctx, s, in, s.rotateTenantKey)
}

func (s *Service) rotateTenantKey(ctx context.Context, by control.Actor, in *pb.RotateTenantKeyRequest) (*pb.RotateTenantKeyResponse, error) {
	keys, tenant, err := s.keys(in.GetTenant())
	if err != nil {
		return nil, err
	}
	out := &pb.RotateTenantKeyResponse{}
	if !in.GetDryRun() {
		if err := s.Records.Note(ctx, by, control.TenantKeyRotated, tenant, ""); err != nil {
			return nil, err
		}
		if out.Version, err = keys.RotateTenant(ctx, tenant); err != nil {
			return nil, err
		}
		rewrapped, err := keys.Rewrap(ctx, tenant)
		if err != nil {
			return nil, err
		}
		out.Rewrapped, out.Lost = int64(rewrapped.TenantKeys+rewrapped.DataKeys), int64(rewrapped.Lost)
		retired, err := keys.Retire(ctx, tenant)
		if err != nil {
			return nil, err
		}
		out.Retired = retired.Versions
	}
	report, err := keys.Verify(ctx, tenant)
	out.Findings = findings(report)
	if in.GetDryRun() && len(report.TenantKeys) > 0 {
		out.Version = report.TenantKeys[len(report.TenantKeys)-1]
	}
	return out, err
}

func findings(r crypto.Report) *pb.KeyFindings {
	count := func(state crypto.State) int64 { return int64(r.Executions[state]) }
	return &pb.KeyFindings{
		TenantKeyVersions: r.TenantKeys,
		Encrypted:         count(crypto.Encrypted), Shredded: count(crypto.Shredded), Lost: count(crypto.Lost), Unencrypted: count(crypto.Unencrypted),
	}
}

// ShredTenant implements AdminService.
func (s *Service) ShredTenant(ctx context.Context, in *pb.ShredTenantRequest) (*pb.ShredTenantResponse, error) {
	return answer(ctx, s, in, func(ctx context.Context, by control.Actor, in *pb.ShredTenantRequest) (*pb.ShredTenantResponse, error) {
		keys, tenant, err := s.keys(in.GetTenant())
		if err != nil {
			return nil, err
		}
		shred := keys.Verify
		if !in.GetDryRun() {
			if err := s.Records.Note(ctx, by, control.TenantShredded, tenant, ""); err != nil {
				return nil, err
			}
			shred = keys.ShredTenant
		}
		report, err := shred(ctx, tenant)
		if err != nil {
			return nil, err
		}
		certificate := s.certificate(by, tenant, "", in.GetDryRun())
		certificate.Findings, certificate.Undecryptable = findings(report), report.Undecryptable()
		return &pb.ShredTenantResponse{Certificate: certificate}, nil
	})
}

// ShredExecution implements AdminService.
func (s *Service) ShredExecution(ctx context.Context, in *pb.ShredExecutionRequest) (*pb.ShredExecutionResponse, error) {
	return answer(ctx, s, in, func(ctx context.Context, by control.Actor, in *pb.ShredExecutionRequest) (*pb.ShredExecutionResponse, error) {
		keys, tenant, err := s.keys(in.GetTenant())
		if err != nil {
			return nil, err
		}
		execution := spi.ExecutionID(in.GetExecution())
		certificate := s.certificate(by, tenant, execution, in.GetDryRun())
		state, err := s.shredExecution(ctx, by, keys, tenant, execution, in.GetDryRun())
		if err != nil {
			return nil, err
		}
		certificate.Findings = findings(crypto.Report{Executions: map[crypto.State]int{state: 1}})
		certificate.Undecryptable = state == crypto.Shredded || state == crypto.Lost
		return &pb.ShredExecutionResponse{Certificate: certificate}, nil
	})
}

// shredExecution works below the tenant's view, and lets its errors name what the
// operator does.
func (s *Service) shredExecution(ctx context.Context, by control.Actor, keys *crypto.Keys, tenant spi.TenantName, outer spi.ExecutionID, dryRun bool) (crypto.State, error) {
	scope, err := spi.ScopeOf(tenant)
	if err != nil {
		return 0, err
	}
	id, err := spi.Scoped(scope, "execution id", outer)
	if err != nil {
		return 0, err
	}
	state, err := keys.VerifyExecution(ctx, id)
	switch {
	case err != nil || dryRun && state != crypto.Absent:
		return state, err
	case state == crypto.Absent:
		return state, &control.NotFoundError{What: "execution", Name: string(outer)}
	case state == crypto.Unencrypted:
		return state, status.Error(codes.FailedPrecondition, "the execution was written unencrypted: there is no key to destroy; delete it")
	}
	if err := s.Records.Note(ctx, by, control.ExecutionShredded, tenant, outer); err != nil {
		return state, err
	}
	if err := keys.ShredExecution(ctx, id); err != nil {
		return state, err
	}
	return keys.VerifyExecution(ctx, id)
}

// remains is what no shredding of keys in the databases reaches.
var remains = []string{
	"backups, dumps and archived logs of the databases from before this moment hold the keys, wrapped: whoever restores one and has the keyring can read what it holds; let them expire, or destroy the keyring's keys that wrapped them",
	"names of executions, kinds, times, sizes and sequences of events are not encrypted, and stay until the executions are deleted",
	"what clients and exports have read is theirs",
}

func (s *Service) certificate(by control.Actor, tenant spi.TenantName, execution spi.ExecutionID, dryRun bool) *pb.ShredCertificate {
	c := &pb.ShredCertificate{
		Tenant: string(tenant), Execution: string(execution), At: timestamp(time.Now()), By: by.APIKey, DryRun: dryRun, Remains: remains,
	}
	for _, shard := range s.Stack.Shards {
		c.Shards = append(c.Shards, shard.Name)
	}
	return c
}
