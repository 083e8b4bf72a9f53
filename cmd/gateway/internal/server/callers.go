package server

import (
	"context"
	"errors"
	"log/slog"
	"path"

	"connectrpc.com/connect/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/loomgate/loomgate/cmd/gateway/internal/auth"
	"github.com/loomgate/loomgate/cmd/gateway/internal/control"
	"github.com/loomgate/loomgate/cmd/gateway/internal/telemetry"
	"github.com/loomgate/loomgate/spi"

	apiserver "github.com/loomgate/loomgate/api/server"
)

// callers finds out who makes a call, and what it reaches.
type callers struct {
	auth   auth.Authenticator
	tenant func(context.Context, spi.TenantName) (*spi.Store, error)
	log    *slog.Logger
}

// resolve is an [apiserver.Resolver].
func (c *callers) resolve(ctx context.Context) (apiserver.Caller, error) {
	id, err := c.authenticate(ctx)
	if err != nil {
		return apiserver.Caller{}, err
	}
	if err := id.Permit(permission(ctx)); err != nil {
		return apiserver.Caller{}, c.refuse(ctx, err)
	}
	telemetry.SetTenant(ctx, string(id.Tenant))
	store, err := c.tenant(ctx, id.Tenant)
	return apiserver.Caller{Store: store, Operator: id.Scopes.Has(control.ScopeAdmin)}, err
}

// admit returns who administers. Its error is the caller's answer.
func (c *callers) admit(ctx context.Context) (control.Actor, error) {
	id, err := c.authenticate(ctx)
	if err != nil {
		return control.Actor{}, err
	}
	return id.Actor, c.refuse(ctx, id.PermitAdmin())
}

func (c *callers) authenticate(ctx context.Context) (auth.Identity, error) {
	id, err := c.auth.Authenticate(ctx, brought(ctx))
	return id, c.refuse(ctx, err)
}

// refuse makes the answer of an error. Why a credential was refused only the log tells.
func (c *callers) refuse(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	code := codes.Internal
	if refused, ok := errors.AsType[*auth.UnauthenticatedError](err); ok {
		c.log.InfoContext(ctx, "a credential was refused", "reason", refused.Reason(), "peer", brought(ctx).Peer)
		code = codes.Unauthenticated
	}
	if _, ok := errors.AsType[*auth.PermissionError](err); ok {
		code = codes.PermissionDenied
	}
	if _, ok := errors.AsType[*auth.TenantRequiredError](err); ok {
		code = codes.InvalidArgument
	}
	if code == codes.Internal {
		return err // a store's, which the API answers
	}
	return status.Error(code, err.Error())
}

// permission returns the method of the storage interface that a call needs the scopes of.
func permission(ctx context.Context) string {
	switch name := path.Base(procedure(ctx)); name {
	case "AppendStream":
		return "Append"
	case "GetStack":
		return "Head" // it tells what can be called; whoever may read may ask
	default:
		return name
	}
}

// procedure returns the path of a call, such as /loomgate.v1.EventService/Append,
// whichever way it came in.
func procedure(ctx context.Context) string {
	if info, ok := connect.CallInfoForServerContext(ctx); ok {
		return info.Spec.Procedure
	}
	name, _ := grpc.Method(ctx)
	return name
}

// brought returns the credentials of a call, whichever way it came in.
func brought(ctx context.Context) auth.Credentials {
	c := auth.Credentials{
		Authorization: apiserver.Header(ctx, auth.AuthorizationHeader),
		Tenant:        apiserver.Header(ctx, auth.TenantHeader),
	}
	if info, ok := connect.CallInfoForServerContext(ctx); ok {
		c.Peer, c.Certificate = info.PeerAddr, certificateOf(ctx)
	} else if p, ok := peer.FromContext(ctx); ok {
		c.Peer = p.Addr.String()
		if secure, ok := p.AuthInfo.(credentials.TLSInfo); ok {
			c.Certificate = verified(&secure.State)
		}
	}
	return c
}
