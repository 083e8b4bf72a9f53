package spi

import (
	"strconv"
	"strings"
)

// A TenantName names a tenant: well-formed UTF-8 of 1 to [MaxTenantName] bytes
// without U+0000. Case is kept and counts.
type TenantName string

// Validate returns an [InvalidArgumentError] unless n names a tenant.
func (n TenantName) Validate() error { return validName("tenant name", string(n), 1, MaxTenantName) }

// A Scope puts one tenant's names into a store that tenants share, and takes them
// out again. What it puts in front is
//
//	LENGTH ":" TENANT "/"
//
// with the name's length in bytes in decimal: no tenant's prefix is a prefix of
// another's, whatever characters the names hold, and each prefix tells its tenant.
// The names of one tenant are one contiguous range in the tenant's own order.
type Scope struct{ prefix string }

// ScopeOf returns the scope of a tenant, or an [InvalidArgumentError].
func ScopeOf(tenant TenantName) (Scope, error) {
	if err := tenant.Validate(); err != nil {
		return Scope{}, err
	}
	return Scope{strconv.Itoa(len(tenant)) + ":" + string(tenant) + "/"}, nil
}

// Prefix returns what stands in front of the tenant's names.
func (s Scope) Prefix() string { return s.prefix }

// Scoped returns the name that the shared store knows outer by. It checks a name as
// its tenant chose it: the error is an [InvalidArgumentError] with field, such as
// "execution id", where outer is longer than [MaxOuterID] or no name at all.
func Scoped[N ~string](s Scope, field string, outer N) (N, error) {
	if err := validName(field, string(outer), 1, MaxOuterID); err != nil {
		return "", err
	}
	return N(s.prefix) + outer, nil
}

// Unscoped returns the name that the tenant knows inner by, and false if inner is not
// the tenant's.
func Unscoped[N ~string](s Scope, inner N) (N, bool) {
	outer, ok := strings.CutPrefix(string(inner), s.prefix)
	return N(outer), ok
}

// SplitScope splits a name of a shared store into its tenant and the name that the
// tenant knows, which is empty for a bare scope. It reports false for a name that
// no scope made.
func SplitScope[N ~string](inner N) (TenantName, N, bool) {
	digits, rest, found := strings.Cut(string(inner), ":")
	n, err := strconv.Atoi(digits)
	if !found || err != nil || n < 1 || n > MaxTenantName || strconv.Itoa(n) != digits {
		return "", "", false
	}
	if len(rest) <= n || rest[n] != '/' {
		return "", "", false
	}
	return TenantName(rest[:n]), N(rest[n+1:]), true
}
