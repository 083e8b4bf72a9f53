package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loomgate/loomgate/spi"
)

// MaxKeyTenants is how many tenants an API key can name. One for more is for all.
const MaxKeyTenants = 100

// A Grant is what an API key is for.
type Grant struct {
	// Tenants are those whose data the key reaches, in code point order. None is for a
	// key that does nothing but administer.
	Tenants []spi.TenantName

	// AllTenants is for a key that reaches all, also those to come; Tenants is empty.
	AllTenants bool

	Scopes Scopes

	// ExpiresAt is from when on the key is refused; zero for never.
	ExpiresAt time.Time
}

// Allows reports whether the key reaches a tenant. None reaches the system's own.
func (g Grant) Allows(tenant spi.TenantName) bool {
	_, named := slices.BinarySearch(g.Tenants, tenant)
	return (named || g.AllTenants) && !strings.HasPrefix(string(tenant), reserved)
}

// An APIKey is what is known of an API key, but for what proves it. Its slices are not to
// be changed.
type APIKey struct {
	ID string
	Grant
	CreatedAt time.Time
	CreatedBy string    // an API key's id, or what acted in its place
	RevokedAt time.Time // zero unless it is revoked

	// Restricted says that a record which only a newer gateway knows takes something
	// away from the key: here, it is refused.
	Restricted bool
}

// Usable reports whether the key lets anybody in at a time.
func (k APIKey) Usable(at time.Time) bool {
	return k.RevokedAt.IsZero() && !k.Restricted && (k.ExpiresAt.IsZero() || at.Before(k.ExpiresAt))
}

// CreateAPIKey makes an API key and returns its text, which is kept nowhere. The error is
// an [spi.InvalidArgumentError], or a [NotFoundError] or a [TenantStateError] for a tenant
// that it names.
func (r *Records) CreateAPIKey(ctx context.Context, by Actor, g Grant) (APIKey, string, error) {
	g, err := g.valid()
	if err != nil {
		return APIKey{}, "", err
	}
	return r.createAPIKey(ctx, by, g, func(s *state) error {
		for _, name := range g.Tenants {
			if t, found := s.tenants.Get(name); !found {
				return &NotFoundError{"tenant", string(name)}
			} else if !t.Usable() {
				return &TenantStateError{name, t.State}
			}
		}
		return nil
	})
}

// createAPIKey makes an API key if check has nothing against it.
func (r *Records) createAPIKey(ctx context.Context, by Actor, g Grant, check func(*state) error) (APIKey, string, error) {
	id, secret := newKey()
	hash := digest(secret)
	when, err := r.change(ctx, by, func(s *state) (decision, error) {
		return decision{kind: apiKeyCreated, record: record{
			APIKey: id, Hash: hash[:], Tenants: g.Tenants, AllTenants: g.AllTenants, Scopes: g.Scopes.Names(), ExpiresAt: g.ExpiresAt,
		}}, check(s)
	})
	if err != nil {
		return APIKey{}, "", err
	}
	return APIKey{ID: id, Grant: g, CreatedAt: when, CreatedBy: by.APIKey}, keyText(id, secret), nil
}

// valid returns the grant in its one form.
func (g Grant) valid() (Grant, error) {
	g.Tenants = slices.Compact(slices.Sorted(slices.Values(g.Tenants)))
	g.ExpiresAt = g.ExpiresAt.UTC().Truncate(time.Microsecond)
	field, rule := "tenants", ""
	switch {
	case g.Scopes == 0 || !allScopes.Has(g.Scopes):
		field, rule = "scopes", "has none, or one that there is not"
	case len(g.Tenants) > MaxKeyTenants:
		rule = fmt.Sprintf("has %d, more than %d", len(g.Tenants), MaxKeyTenants)
	case len(g.Tenants) > 0 && g.AllTenants:
		rule = "has some, and the key is for all"
	case len(g.Tenants) == 0 && !g.AllTenants && g.Scopes != ScopeAdmin:
		rule = "has none, and the key is to read or write"
	case !g.ExpiresAt.IsZero() && !g.ExpiresAt.After(time.Now()):
		field, rule = "expiry", "has passed"
	case g.ExpiresAt.Year() > 9999:
		field, rule = "expiry", "is past the year 9999"
	default:
		return g, nil
	}
	return g, &spi.InvalidArgumentError{Field: field, Rule: rule}
}

// errHasAdmin ends a bootstrap that is not needed.
var errHasAdmin = errors.New("there is an admin key")

// Bootstrap makes a key for everything if there is none that can administer: never made,
// or all expired or revoked. It returns its text, or "" if there is one. Of two that
// begin at once, one makes it.
func (r *Records) Bootstrap(ctx context.Context, by Actor) (string, error) {
	_, text, err := r.createAPIKey(ctx, by, Grant{AllTenants: true, Scopes: allScopes}, func(s *state) error {
		if s.hasAdmin() {
			return errHasAdmin
		}
		return nil
	})
	if errors.Is(err, errHasAdmin) {
		return "", nil
	}
	return text, err
}

// HasAdmin reports whether there is a key that can administer. The error is an
// [spi.UnavailableError].
func (r *Records) HasAdmin() (bool, error) {
	c, err := r.current()
	return err == nil && c.hasAdmin(), err
}

func (s *state) hasAdmin() (found bool) {
	s.keys.Scan(func(_ string, k *storedKey) bool {
		found = k.Scopes.Has(ScopeAdmin) && k.Usable(time.Now())
		return !found
	})
	return found
}

// RevokeAPIKey makes a key let nobody in any more. One that is revoked stays so. The error
// is a [NotFoundError].
func (r *Records) RevokeAPIKey(ctx context.Context, by Actor, id string) error {
	_, err := r.change(ctx, by, func(s *state) (decision, error) {
		k, found := s.keys.Get(id)
		switch {
		case !found:
			return decision{}, &NotFoundError{"API key", id}
		case !k.RevokedAt.IsZero():
			return decision{}, nil
		}
		return decision{kind: apiKeyRevoked, record: record{APIKey: id}, restricts: true}, nil
	})
	return err
}

// Verify returns the API key with an id, and whether the secret is its own. It does the
// same whether or not there is such a key, and compares in constant time. Whether the key
// is usable is the caller's to ask. The error is an [spi.UnavailableError].
func (r *Records) Verify(id, secret string) (key APIKey, proven bool, err error) {
	c, err := r.current()
	if err != nil {
		return APIKey{}, false, err
	}
	stored, found := c.keys.Get(id)
	if !found {
		stored = &nobody
	}
	return stored.APIKey, r.prove(stored, secret), nil
}

// ListAPIKeys returns a page of the API keys, also those that are revoked or expired, in
// the order of their ids after one, and the id to go on after: "" at the end. The error is
// an [spi.InvalidArgumentError] or an [spi.UnavailableError].
func (r *Records) ListAPIKeys(after string, limit int) (page []APIKey, next string, err error) {
	c, err := r.current()
	if err != nil {
		return nil, "", err
	}
	return listAfter(c.keys, after, limit, func(k *storedKey) APIKey { return k.APIKey })
}
