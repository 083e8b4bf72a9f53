package auth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/loomgate/loomgate/cmd/gateway/internal/control"
	"github.com/loomgate/loomgate/spi"
)

// Records is what authenticating by API key asks of [control.Records].
type Records interface {
	Verify(id, secret string) (key control.APIKey, proven bool, err error)
	Tenant(spi.TenantName) (control.TenantRecord, error)
}

// apiKeys is an [Authenticator].
type apiKeys struct{ records Records }

// APIKeys returns an authenticator by API key.
func APIKeys(records Records) Authenticator { return apiKeys{records} }

func (a apiKeys) Authenticate(_ context.Context, c Credentials) (Identity, error) {
	id, secret, _ := control.ParseKey(bearer(c.Authorization))
	key, proven, err := a.records.Verify(id, secret) // also for a text that is no key: the same work
	switch {
	case err != nil:
		return Identity{}, err
	case id == "":
		return Identity{}, &UnauthenticatedError{"there is no API key"}
	case !proven && key.ID == "":
		return refuse(id, "is unknown")
	case !proven:
		return refuse(id, "comes with a wrong secret")
	case !key.RevokedAt.IsZero() || key.Restricted:
		return refuse(id, "is revoked")
	case !key.Usable(time.Now()):
		return refuse(id, "has expired")
	}
	tenant, reason, err := a.choose(key, c.Tenant)
	if err != nil {
		return Identity{}, err
	}
	if reason != "" {
		return refuse(id, reason)
	}
	return Identity{
		Actor:   control.Actor{APIKey: key.ID, Address: c.Peer},
		Tenant:  tenant,
		Scopes:  key.Scopes,
		choices: key.Tenants,
	}, nil
}

func refuse(id, reason string) (Identity, error) {
	return Identity{}, &UnauthenticatedError{fmt.Sprintf("API key %s %s", id, reason)}
}

// bearer returns the token of an Authorization header, or "".
func bearer(values []string) string {
	if len(values) != 1 {
		return ""
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.Trim(token, " ")
}

// choose returns the tenant that a call is about, or why it is refused. A key for one
// tenant needs no header; without one, a key for several has chosen none yet, and so has
// one that can still administer after its only tenant is gone.
func (a apiKeys) choose(key control.APIKey, header []string) (tenant spi.TenantName, reason string, err error) {
	switch {
	case len(header) > 1:
		return "", "comes with several tenants", nil
	case len(header) == 1:
		name, err := url.PathUnescape(header[0])
		if err != nil || !key.Allows(spi.TenantName(name)) {
			return "", "does not allow the tenant", nil
		}
		tenant = spi.TenantName(name)
	case len(key.Tenants) == 1:
		tenant = key.Tenants[0]
	default:
		return "", "", nil
	}
	record, err := a.records.Tenant(tenant)
	if _, unknown := errors.AsType[*control.NotFoundError](err); err != nil && !unknown {
		return "", "", err
	}
	switch {
	case record.Usable():
		return tenant, "", nil
	case len(header) == 0 && key.Scopes.Has(control.ScopeAdmin):
		return "", "", nil
	}
	return "", "is for a tenant that is not there or not in use", nil
}
