package admin

import (
	"context"
	"fmt"

	"github.com/loomgate/loomgate/cmd/gateway/internal/control"
	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

var scopes = map[pb.Scope]control.Scopes{
	pb.Scope_SCOPE_READ:  control.ScopeRead,
	pb.Scope_SCOPE_WRITE: control.ScopeWrite,
	pb.Scope_SCOPE_ADMIN: control.ScopeAdmin,
}

func encodeKey(k control.APIKey) *pb.ApiKey {
	out := &pb.ApiKey{
		Id: k.ID, AllTenants: k.AllTenants, CreatedAt: timestamp(k.CreatedAt), ExpiresAt: timestamp(k.ExpiresAt), RevokedAt: timestamp(k.RevokedAt),
	}
	for _, t := range k.Tenants {
		out.Tenants = append(out.Tenants, string(t))
	}
	for _, scope := range []pb.Scope{pb.Scope_SCOPE_READ, pb.Scope_SCOPE_WRITE, pb.Scope_SCOPE_ADMIN} {
		if k.Scopes.Has(scopes[scope]) {
			out.Scopes = append(out.Scopes, scope)
		}
	}
	return out
}

// CreateApiKey implements AdminService.
func (s *Service) CreateApiKey(ctx context.Context, in *pb.CreateApiKeyRequest) (*pb.CreateApiKeyResponse, error) {
	return answer(ctx, s, in, func(ctx context.Context, by control.Actor, in *pb.CreateApiKeyRequest) (*pb.CreateApiKeyResponse, error) {
		grant := control.Grant{AllTenants: in.GetAllTenants()}
		for _, t := range in.GetTenants() {
			grant.Tenants = append(grant.Tenants, spi.TenantName(t))
		}
		for i, scope := range in.GetScopes() {
			if scopes[scope] == 0 {
				return nil, &spi.InvalidArgumentError{Field: fmt.Sprintf("scopes[%d]", i), Rule: "is none that there is"}
			}
			grant.Scopes |= scopes[scope]
		}
		if t := in.GetExpiresAt(); t != nil {
			if err := t.CheckValid(); err != nil {
				return nil, &spi.InvalidArgumentError{Field: "expires at", Rule: "is no time"}
			}
			grant.ExpiresAt = t.AsTime()
		}
		key, text, err := s.Records.CreateAPIKey(ctx, by, grant)
		if err != nil {
			return nil, err
		}
		return &pb.CreateApiKeyResponse{ApiKey: encodeKey(key), Text: text}, nil
	})
}

// ListApiKeys implements AdminService.
func (s *Service) ListApiKeys(ctx context.Context, in *pb.ListApiKeysRequest) (*pb.ListApiKeysResponse, error) {
	return answer(ctx, s, in, func(_ context.Context, _ control.Actor, in *pb.ListApiKeysRequest) (*pb.ListApiKeysResponse, error) {
		page, next, err := s.Records.ListAPIKeys(in.GetAfter(), int(in.GetLimit()))
		out := &pb.ListApiKeysResponse{Next: next}
		for _, k := range page {
			out.ApiKeys = append(out.ApiKeys, encodeKey(k))
		}
		return out, err
	})
}

// RevokeApiKey implements AdminService.
func (s *Service) RevokeApiKey(ctx context.Context, in *pb.RevokeApiKeyRequest) (*pb.RevokeApiKeyResponse, error) {
	return answer(ctx, s, in, func(ctx context.Context, by control.Actor, in *pb.RevokeApiKeyRequest) (*pb.RevokeApiKeyResponse, error) {
		return &pb.RevokeApiKeyResponse{}, s.Records.RevokeAPIKey(ctx, by, in.GetId())
	})
}
