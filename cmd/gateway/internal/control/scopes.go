package control

import (
	"slices"
	"strings"

	"github.com/loomgate/loomgate/spi"
)

// Scopes are what an API key may do. None implies another.
type Scopes uint8

// The scopes.
const (
	ScopeRead  Scopes = 1 << iota // read the data of the key's tenants
	ScopeWrite                    // write it
	ScopeAdmin                    // tenants, API keys and the audit trail; no tenant's data

	allScopes = ScopeRead | ScopeWrite | ScopeAdmin
)

var scopeNames = [...]string{"read", "write", "admin"}

// Names returns the name of each scope.
func (s Scopes) Names() []string {
	var names []string
	for i, name := range scopeNames {
		if s.Has(1 << i) {
			names = append(names, name)
		}
	}
	return names
}

func (s Scopes) String() string { return strings.Join(s.Names(), ", ") }

// Has reports whether all of others are among s.
func (s Scopes) Has(others Scopes) bool { return s&others == others }

// ParseScopes returns the scopes with those names, or an [spi.InvalidArgumentError].
func ParseScopes(names []string) (Scopes, error) {
	for _, name := range names {
		if !slices.Contains(scopeNames[:], name) {
			return 0, &spi.InvalidArgumentError{Field: "scopes", Rule: "has one that is not " + strings.Join(scopeNames[:], ", ")}
		}
	}
	return scopesOf(names), nil
}

// scopesOf returns the scopes with those names. A name that this build does not know
// allows nothing.
func scopesOf(names []string) (s Scopes) {
	for i, known := range scopeNames {
		if slices.Contains(names, known) {
			s |= 1 << i
		}
	}
	return s
}
