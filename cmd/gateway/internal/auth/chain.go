package auth

import (
	"context"
	"strings"

	"github.com/loomgate/loomgate/cmd/gateway/internal/control"
)

// A Chain is an [Authenticator] that asks the one for the kind of credential that a call
// brings. Only one is ever asked: what it refuses, no other lets in.
type Chain struct {
	APIKeys      Authenticator
	Tokens       Authenticator // nil: no identity provider is trusted
	Certificates Authenticator // nil: no certificate lets anybody in
}

// Authenticate implements [Authenticator]. An Authorization header decides, if there is
// one, whatever the client's certificate is.
func (c Chain) Authenticate(ctx context.Context, brought Credentials) (Identity, error) {
	switch {
	case len(brought.Authorization) == 0 && brought.Certificate != nil && c.Certificates != nil:
		return c.Certificates.Authenticate(ctx, brought)
	case c.Tokens != nil && isToken(bearer(brought.Authorization)):
		return c.Tokens.Authenticate(ctx, brought)
	}
	return c.APIKeys.Authenticate(ctx, brought)
}

// isToken reports whether a text is meant as a JSON Web Token. No API key has a dot.
func isToken(text string) bool {
	return !strings.HasPrefix(text, control.KeyPrefix) && strings.Contains(text, ".")
}
