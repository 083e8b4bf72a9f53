// Package auth finds out who calls a gateway and what the caller may do.
//
// A call brings a credential, and the tenant comes from it: a header only chooses among
// the tenants that the credential allows. Whatever is wrong with a credential has one
// answer, [UnauthenticatedError], which tells its sender nothing; the reason is for the
// operator's log.
//
// [APIKeys] authenticates by API key, [Tokens] by the signed token of an identity
// provider, [Certificates] by the client's TLS certificate. [Chain] tells which it is.
package auth

import (
	"context"
	"crypto/x509"
	"fmt"
	"strings"

	"github.com/loomgate/loomgate/cmd/gateway/internal/control"
	"github.com/loomgate/loomgate/spi"
)

// The headers, or the gRPC metadata, that credentials come in.
const (
	AuthorizationHeader = "Authorization"   // Bearer KEY, or Bearer TOKEN
	TenantHeader        = "Loomgate-Tenant" // a tenant's name, percent-encoded where it is not plain ASCII
)

// Credentials are what a call brings.
type Credentials struct {
	Authorization []string // the values of the Authorization header
	Tenant        []string // those of the Loomgate-Tenant header
	Peer          string   // the client's address, for the audit trail

	// Certificate is the client's, if it brought one; the handshake has verified it.
	Certificate *x509.Certificate
}

// An Authenticator finds out who calls. It is safe for concurrent use.
//
// It is asked for every call, and for every message of a call that lasts, which is how a
// revocation reaches one. The error is an [UnauthenticatedError], or an
// [spi.UnavailableError] if it cannot be told now.
type Authenticator interface {
	Authenticate(context.Context, Credentials) (Identity, error)
}

// An Identity is who calls.
type Identity struct {
	Actor control.Actor // as the audit trail names the caller

	// Tenant is whose data the call is about; "" if none was chosen. See Permit.
	Tenant spi.TenantName

	Scopes control.Scopes

	choices []spi.TenantName // the tenants that could have been chosen, if they are named
}

// An UnauthenticatedError refuses a credential. It is the same for an unknown, expired or
// revoked API key, a wrong secret, a token or a certificate that does not hold, and a
// tenant that is not there or not the credential's.
type UnauthenticatedError struct{ reason string }

func (e *UnauthenticatedError) Error() string { return "unauthenticated" }

// Reason returns what is wrong, for the operator's log only. It holds no secret.
func (e *UnauthenticatedError) Reason() string { return e.reason }

// A PermissionError says that the caller's scopes do not cover a call.
type PermissionError struct {
	Call string         // such as "Append", or "administer"
	Need control.Scopes // what it takes; none if nobody may
}

func (e *PermissionError) Error() string {
	if e.Need == 0 {
		return fmt.Sprintf("%s is not for clients", e.Call)
	}
	return fmt.Sprintf("%s needs the scopes: %v", e.Call, e.Need)
}

// A TenantRequiredError says that the caller has to choose a tenant.
type TenantRequiredError struct {
	Tenants []spi.TenantName // those to choose from; none if the caller may choose any
}

func (e *TenantRequiredError) Error() string {
	text := "the call names no tenant: it takes one in the header " + TenantHeader
	if len(e.Tenants) == 0 {
		return text
	}
	names := make([]string, len(e.Tenants))
	for i, name := range e.Tenants {
		names[i] = string(name)
	}
	return text + ", of " + strings.Join(names, ", ")
}
