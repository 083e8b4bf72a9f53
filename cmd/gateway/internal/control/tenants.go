package control

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/loomgate/loomgate/spi"
)

// TenantState is what a tenant's name stands for. It only ever goes forward.
type TenantState uint8

// The states of a tenant.
const (
	TenantActive   TenantState = iota + 1
	TenantDisabled             // nobody is let in; its data is being removed
	TenantPurged               // its data is gone, and the name is never used again
)

func (s TenantState) String() string {
	switch s {
	case TenantActive:
		return "active"
	case TenantDisabled:
		return "disabled"
	case TenantPurged:
		return "purged"
	}
	return fmt.Sprintf("tenant state %d", uint8(s))
}

// A TenantRecord is what is known of a tenant.
type TenantRecord struct {
	Name       spi.TenantName
	State      TenantState
	CreatedAt  time.Time
	DisabledAt time.Time // zero while it is active
	PurgedAt   time.Time // zero until it is purged
	Limits     TenantLimits

	// Restricted says that a record which only a newer gateway knows takes something
	// away from the tenant: here, it is refused.
	Restricted bool
}

// Usable reports whether the tenant's data may be used.
func (t TenantRecord) Usable() bool { return t.State == TenantActive && !t.Restricted }

// ValidateTenantName returns an [spi.InvalidArgumentError] unless a customer can have
// the name: that of an [spi.TenantName], of characters that can be seen and inner
// spaces, and not in the system's own range.
func ValidateTenantName(name spi.TenantName) error {
	if err := name.Validate(); err != nil {
		return err
	}
	rule := ""
	switch s := string(name); {
	case strings.HasPrefix(s, reserved):
		rule = "begins with " + reserved + ", as only the system's own do"
	case strings.ContainsFunc(s, func(c rune) bool { return !unicode.IsPrint(c) }):
		rule = "has a character that cannot be seen"
	case strings.TrimSpace(s) != s:
		rule = "begins or ends with a space"
	default:
		return nil
	}
	return &spi.InvalidArgumentError{Field: "tenant name", Rule: rule}
}

// CreateTenant makes a tenant. The error is an [spi.InvalidArgumentError] or a
// [TakenError].
func (r *Records) CreateTenant(ctx context.Context, by Actor, name spi.TenantName) error {
	if err := ValidateTenantName(name); err != nil {
		return err
	}
	_, err := r.change(ctx, by, func(s *state) (decision, error) {
		if t, taken := s.tenants.Get(name); taken {
			return decision{}, &TakenError{name, t.State}
		}
		return decision{kind: tenantCreated, record: record{Tenant: name}}, nil
	})
	return err
}

// DisableTenant is the first step of a deletion: nobody is let in any more. One that is
// disabled stays so. The error is a [NotFoundError], or a [TenantStateError] if it is
// purged.
//
// Other gateways follow with their next look, and one that cannot look only when its
// copy is too old. Data that is to stay away is purged, or purged again,
// [Options.MaxStaleness] after DisabledAt.
func (r *Records) DisableTenant(ctx context.Context, by Actor, name spi.TenantName) error {
	return r.changeTenant(ctx, by, name, tenantDisabled, TenantActive, TenantDisabled)
}

// MarkPurged is the last step of a deletion, once the tenant's data is gone. One that
// is purged stays so. The error is a [NotFoundError], or a [TenantStateError] if it is
// still active.
func (r *Records) MarkPurged(ctx context.Context, by Actor, name spi.TenantName) error {
	return r.changeTenant(ctx, by, name, tenantPurged, TenantDisabled, TenantPurged)
}

func (r *Records) changeTenant(ctx context.Context, by Actor, name spi.TenantName, kind string, from, to TenantState) error {
	_, err := r.change(ctx, by, func(s *state) (decision, error) {
		t, found := s.tenants.Get(name)
		switch {
		case !found:
			return decision{}, &NotFoundError{"tenant", string(name)}
		case t.State == to:
			return decision{}, nil
		case t.State != from:
			return decision{}, &TenantStateError{name, t.State}
		}
		return decision{kind: kind, record: record{Tenant: name}, restricts: true}, nil
	})
	return err
}

// Tenant returns a tenant. The error is a [NotFoundError] or an [spi.UnavailableError].
func (r *Records) Tenant(name spi.TenantName) (TenantRecord, error) {
	c, err := r.current()
	if err != nil {
		return TenantRecord{}, err
	}
	t, found := c.tenants.Get(name)
	if !found {
		return TenantRecord{}, &NotFoundError{"tenant", string(name)}
	}
	return *t, nil
}

// ListTenants returns a page of the tenants in any state, in code point order after a
// name, and the name to go on after: "" at the end. The error is an
// [spi.InvalidArgumentError] or an [spi.UnavailableError].
func (r *Records) ListTenants(after spi.TenantName, limit int) (page []TenantRecord, next spi.TenantName, err error) {
	c, err := r.current()
	if err != nil {
		return nil, "", err
	}
	return listAfter(c.tenants, after, limit, func(t *TenantRecord) TenantRecord { return *t })
}
