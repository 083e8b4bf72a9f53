package auth

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/loomgate/loomgate/cmd/gateway/internal/config"
	"github.com/loomgate/loomgate/cmd/gateway/internal/control"
	"github.com/loomgate/loomgate/spi"
)

// maxToken is the longest token that is looked at, in bytes.
const maxToken = 16 << 10

// Tokens is an [Authenticator] by JSON Web Token: one that an OpenID Connect provider of
// the configuration has signed. Which tenants and scopes it is for, its claims say.
//
// The error is an [spi.UnavailableError] where only a provider that does not answer could
// tell. Of a token whose signature has not been verified, nothing is logged.
type Tokens struct {
	records    Records
	providers  map[string]*provider // by issuer
	algorithms []jose.SignatureAlgorithm
	now        func() time.Time

	proven provenTokens
}

// NewTokens returns an authenticator by the tokens of the providers. It fetches nothing:
// until Run has, or the first token is there, no keys are known.
func NewTokens(records Records, providers []config.Provider, o Options) (*Tokens, error) {
	t := &Tokens{records: records, providers: map[string]*provider{}, now: o.clock(), proven: provenTokens{m: map[[sha256.Size]byte]provenToken{}}}
	for _, cfg := range providers {
		p, err := newProvider(cfg, o)
		if err != nil {
			return nil, err
		}
		t.providers[cfg.Issuer] = p
		t.algorithms = append(t.algorithms, p.algorithms...)
	}
	return t, nil
}

// Run keeps the keys of the providers fresh until ctx ends.
func (t *Tokens) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, p := range t.providers {
		running.Go(func() { p.keys.run(ctx, p.KeysRefresh) })
	}
	running.Wait()
}

// Authenticate implements [Authenticator].
func (t *Tokens) Authenticate(ctx context.Context, brought Credentials) (Identity, error) {
	token, err := t.prove(ctx, bearer(brought.Authorization))
	if err != nil {
		return Identity{}, err
	}
	if reason := token.outOfTime(t.now()); reason != "" {
		return Identity{}, &UnauthenticatedError{token.name + " " + reason}
	}
	return identify(t.records, "", token.name, token.grant, brought)
}

// A provenToken is what a token says whose signature holds and that is for this gateway.
type provenToken struct {
	name        string // as the audit trail has it, such as jwt:https://login.example.com:alice
	grant       control.Grant
	from, until time.Time // with the skew that is allowed

	provider *provider
	keys     *publicKeys // those that it was proven by
}

func (p provenToken) outOfTime(now time.Time) (reason string) {
	switch {
	case now.Before(p.from):
		return "is not valid yet"
	case !now.Before(p.until):
		return "has expired"
	}
	return ""
}

// prove returns what a token says, or why it proves nothing. One that was proven by the
// keys that count is not proven again: a call that lasts brings it with every message.
func (t *Tokens) prove(ctx context.Context, text string) (provenToken, error) {
	if len(text) > maxToken {
		return provenToken{}, &UnauthenticatedError{"a token is too long"}
	}
	hash := sha256.Sum256([]byte(text))
	if token, known := t.proven.get(hash); known {
		return token, nil
	}
	token, err := t.verify(ctx, text)
	if err == nil {
		t.proven.put(hash, token)
	}
	return token, err
}

func (t *Tokens) verify(ctx context.Context, text string) (none provenToken, _ error) {
	token, err := jwt.ParseSigned(text, t.algorithms)
	if _, algorithm := errors.AsType[*jose.ErrUnexpectedSignatureAlgorithm](err); algorithm {
		return none, &UnauthenticatedError{"a token is signed by an algorithm that no provider may use"}
	}
	var unverified struct {
		Issuer string `json:"iss"`
	}
	if err != nil || token.UnsafeClaimsWithoutVerification(&unverified) != nil {
		return none, &UnauthenticatedError{"a token is malformed"}
	}
	p := t.providers[unverified.Issuer]
	if p == nil {
		return none, &UnauthenticatedError{"a token is of an issuer that is not in identity.providers"}
	}
	return p.verify(ctx, token)
}

// maxProven is how many tokens are remembered, in tokens.
const maxProven = 4096

// provenTokens remembers the tokens that were proven, by their SHA-256.
type provenTokens struct {
	mu sync.Mutex
	m  map[[sha256.Size]byte]provenToken
}

func (c *provenTokens) get(hash [sha256.Size]byte) (provenToken, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	token, found := c.m[hash]
	return token, found && token.keys == token.provider.keys.current.Load()
}

// put makes room by forgetting all: each is soon proven again.
func (c *provenTokens) put(hash [sha256.Size]byte, token provenToken) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.m) >= maxProven {
		clear(c.m)
	}
	c.m[hash] = token
}

// A provider is one whose tokens are trusted.
type provider struct {
	config.Provider
	algorithms []jose.SignatureAlgorithm
	keys       *keySet
}

func newProvider(cfg config.Provider, o Options) (*provider, error) {
	client, err := newClient(cfg.CAFile)
	if err != nil {
		return nil, err
	}
	p := &provider{Provider: cfg}
	for _, name := range cfg.Algorithms {
		p.algorithms = append(p.algorithms, jose.SignatureAlgorithm(name))
	}
	p.keys = newKeySet(discovery{cfg.Issuer, client}.fetch, cfg.KeysMinRefresh, o.clock(), o.log().With("issuer", cfg.Issuer))
	return p, nil
}

// verify returns what a token of this provider says, if it has signed it.
func (p *provider) verify(ctx context.Context, token *jwt.JSONWebToken) (none provenToken, _ error) {
	header := token.Headers[0] // the compact form has one signature
	algorithm := jose.SignatureAlgorithm(header.Algorithm)
	if !slices.Contains(p.algorithms, algorithm) {
		return none, p.refuse("is signed by an algorithm that the provider may not use")
	}
	keys, err := p.keys.with(ctx, header.KeyID)
	if err != nil {
		return none, &spi.UnavailableError{Cause: err}
	}
	candidates := keys.byID[header.KeyID]
	if len(candidates) == 0 {
		return none, p.refuse("is signed by a key that the provider does not publish")
	}
	for _, key := range candidates {
		if key.Algorithm != "" && key.Algorithm != header.Algorithm {
			continue
		}
		var claims jwt.Claims
		var all map[string]any
		if token.Claims(key.Key, &claims, &all) != nil {
			continue // also if they are no claims: what is wrong with them is not told apart
		}
		proven, reason := p.read(claims, all)
		if reason != "" {
			return none, p.refuse("%s", reason)
		}
		proven.provider, proven.keys = p, keys
		return proven, nil
	}
	return none, p.refuse("is forged or malformed: the signature does not hold")
}
