package auth

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/loomgate/loomgate/cmd/gateway/internal/control"
	"github.com/loomgate/loomgate/spi"
)

// refuse returns the error for a token that claims to be of this provider.
func (p *provider) refuse(format string, args ...any) error {
	return &UnauthenticatedError{"a token of " + p.Issuer + " " + fmt.Sprintf(format, args...)}
}

// read returns what the claims of a token say whose signature holds, or why it is refused.
func (p *provider) read(claims jwt.Claims, all map[string]any) (token provenToken, reason string) {
	switch {
	case !slices.ContainsFunc(p.Audience, claims.Audience.Contains):
		return token, "is for another audience"
	case !isSubject(claims.Subject):
		return token, "names no subject, or not one of 1 to 255 printable bytes"
	case claims.Expiry == nil:
		return token, "never expires"
	}
	token.name = "jwt:" + p.Issuer + ":" + claims.Subject
	token.until = claims.Expiry.Time().Add(p.ClockSkew)
	for _, at := range []*jwt.NumericDate{claims.NotBefore, claims.IssuedAt} {
		if at != nil && at.Time().After(token.from) {
			token.from = at.Time()
		}
	}
	if !token.from.IsZero() {
		token.from = token.from.Add(-p.ClockSkew)
	}
	token.grant, reason = p.grant(all)
	return token, reason
}

// maxSubject is the longest subject, in bytes, as OpenID Connect has it.
const maxSubject = 255

func isSubject(text string) bool {
	unprintable := func(c rune) bool { return !unicode.IsPrint(c) }
	return text != "" && len(text) <= maxSubject && utf8.ValidString(text) && !strings.ContainsFunc(text, unprintable)
}

// grant returns what the claims allow, or why they are refused. A name that no tenant can
// have refuses the whole token: nothing is guessed.
func (p *provider) grant(claims map[string]any) (control.Grant, string) {
	tenants, ok := texts(claims[p.TenantClaim])
	if !ok {
		return control.Grant{}, "has a claim of tenants that is neither text nor a list of texts"
	}
	for _, name := range tenants {
		if control.ValidateTenantName(spi.TenantName(name)) != nil {
			return control.Grant{}, "names what no tenant can be called"
		}
	}
	said, ok := texts(claims[p.Scopes.Claim])
	if !ok {
		return control.Grant{}, "has a claim of scopes that is neither text nor a list of texts"
	}
	if len(said) == 1 {
		said = strings.Fields(said[0]) // as OAuth 2.0 has them in one text
	}
	var scopes []string
	for scope, meant := range map[string][]string{"read": p.Scopes.Read, "write": p.Scopes.Write, "admin": p.Scopes.Admin} {
		if slices.ContainsFunc(said, func(one string) bool { return slices.Contains(meant, one) }) {
			scopes = append(scopes, scope)
		}
	}
	g := grantOf(tenants, scopes)
	if len(g.Tenants) == 0 && !g.Scopes.Has(control.ScopeAdmin) {
		return control.Grant{}, "names no tenant"
	}
	return g, ""
}

// texts returns what a claim holds: nothing, one text or a list of them.
func texts(claim any) (all []string, ok bool) {
	switch claim := claim.(type) {
	case nil:
		return nil, true
	case string:
		return []string{claim}, true
	case []any:
		for _, one := range claim {
			text, ok := one.(string)
			if !ok {
				return nil, false
			}
			all = append(all, text)
		}
		return all, true
	}
	return nil, false
}
