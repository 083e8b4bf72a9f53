package control

import (
	"context"
	"fmt"

	"github.com/loomgate/loomgate/spi"
)

// TenantLimits are limits that a tenant has of its own. Where one is nil, what a gateway is
// configured with counts. 0 refuses everything of the kind; the largest integer limits
// nothing.
type TenantLimits struct {
	RequestsPerSecond *int64 `json:"requests_per_second,omitempty"`
	BytesPerSecond    *int64 `json:"bytes_per_second,omitempty"`
	EventsPerSecond   *int64 `json:"events_per_second,omitempty"`
	InFlight          *int64 `json:"in_flight,omitempty"`
	Executions        *int64 `json:"executions,omitempty"`
}

// each calls do with each limit of l, and the same one of others.
func (l *TenantLimits) each(other *TenantLimits, do func(name string, mine, theirs **int64)) {
	do("requests per second", &l.RequestsPerSecond, &other.RequestsPerSecond)
	do("bytes per second", &l.BytesPerSecond, &other.BytesPerSecond)
	do("events per second", &l.EventsPerSecond, &other.EventsPerSecond)
	do("in flight", &l.InFlight, &other.InFlight)
	do("executions", &l.Executions, &other.Executions)
}

// over returns l, and what it leaves open of others.
func (l TenantLimits) over(others TenantLimits) TenantLimits {
	l.each(&others, func(_ string, mine, theirs **int64) {
		if *mine == nil {
			*mine = *theirs
		}
	})
	return l
}

func (l TenantLimits) equal(others TenantLimits) bool {
	same := true
	l.each(&others, func(_ string, mine, theirs **int64) {
		same = same && (*mine == nil) == (*theirs == nil) && (*mine == nil || **mine == **theirs)
	})
	return same
}

func (l TenantLimits) validate() (err error) {
	l.each(&l, func(name string, mine, _ **int64) {
		if *mine != nil && **mine < 0 && err == nil {
			err = &spi.InvalidArgumentError{Field: "limit of " + name, Rule: fmt.Sprintf("is %d, which is negative", **mine)}
		}
	})
	return err
}

// SetTenantLimits sets those limits of a tenant that are given, after all others have gone
// if it is reset, and returns what the tenant has then. The error is an
// [spi.InvalidArgumentError], a [NotFoundError], or a [TenantStateError] if it is purged.
func (r *Records) SetTenantLimits(ctx context.Context, by Actor, name spi.TenantName, reset bool, set TenantLimits) (limits TenantLimits, err error) {
	if err := set.validate(); err != nil {
		return limits, err
	}
	_, err = r.change(ctx, by, func(s *state) (decision, error) {
		t, found := s.tenants.Get(name)
		switch {
		case !found:
			return decision{}, &NotFoundError{"tenant", string(name)}
		case t.State == TenantPurged:
			return decision{}, &TenantStateError{name, t.State}
		}
		limits = set
		if !reset {
			limits = set.over(t.Limits)
		}
		if limits.equal(t.Limits) {
			return decision{}, nil
		}
		return decision{kind: tenantLimits, record: record{Tenant: name, Limits: limits}}, nil
	})
	return limits, err
}
