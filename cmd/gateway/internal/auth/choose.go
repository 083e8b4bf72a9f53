package auth

import (
	"errors"
	"net/url"

	"github.com/loomgate/loomgate/cmd/gateway/internal/control"
	"github.com/loomgate/loomgate/spi"
)

// choose returns the tenant that a call is about, or why it is refused. A grant for one
// tenant needs no header; without one, a grant for several has chosen none yet, and so has
// one that can still administer after its only tenant is gone.
func choose(records Records, grant control.Grant, header []string) (tenant spi.TenantName, reason string, err error) {
	switch {
	case len(header) > 1:
		return "", "comes with several tenants", nil
	case len(header) == 1:
		name, err := url.PathUnescape(header[0])
		if err != nil || !grant.Allows(spi.TenantName(name)) {
			return "", "does not allow the tenant", nil
		}
		tenant = spi.TenantName(name)
	case len(grant.Tenants) == 1:
		tenant = grant.Tenants[0]
	default:
		return "", "", nil
	}
	record, err := records.Tenant(tenant)
	if _, unknown := errors.AsType[*control.NotFoundError](err); err != nil && !unknown {
		return "", "", err
	}
	switch {
	case record.Usable():
		return tenant, "", nil
	case len(header) == 0 && grant.Scopes.Has(control.ScopeAdmin):
		return "", "", nil
	}
	return "", "is for a tenant that is not there or not in use", nil
}
