package auth_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/loomgate/loomgate/cmd/gateway/internal/auth"
	"github.com/loomgate/loomgate/cmd/gateway/internal/config"
)

// A signer is a key of a provider.
type signer struct {
	id        string
	algorithm jose.SignatureAlgorithm
	key       crypto.Signer
}

// rsaKey is made once: that takes long.
var rsaKey = sync.OnceValue(func() crypto.Signer {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

func newEC(t testing.TB, id string) signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	return signer{id, jose.ES256, key}
}

// sign returns the token with those claims.
func (s signer) sign(t testing.TB, claims map[string]any) string {
	t.Helper()
	return signWith(t, jose.SigningKey{Algorithm: s.algorithm, Key: jose.JSONWebKey{Key: s.key, KeyID: s.id}}, claims)
}

func signWith(t testing.TB, key jose.SigningKey, claims map[string]any) string {
	t.Helper()
	s, err := jose.NewSigner(key, nil)
	must(t, err)
	payload, err := json.Marshal(claims)
	must(t, err)
	object, err := s.Sign(payload)
	must(t, err)
	text, err := object.CompactSerialize()
	must(t, err)
	return text
}

// A provider is an OpenID Connect provider in this process, and a clock that it shares
// with what trusts it.
type provider struct {
	*httptest.Server
	testing.TB
	rsa, ec signer
	ca      string // a file with its own authority

	mu        sync.Mutex
	now       time.Time
	published []jose.JSONWebKey
	fetches   int // of keys
	down      bool
	hold      chan struct{} // if there is one, answers wait until it is closed
	issuer    string        // that it says it is
}

func newProvider(t testing.TB) *provider {
	t.Helper()
	p := &provider{
		TB: t, rsa: signer{"rsa-1", jose.RS256, rsaKey()}, ec: newEC(t, "ec-1"),
		now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), ca: filepath.Join(t.TempDir(), "ca.pem"),
	}
	p.Server = httptest.NewTLSServer(p)
	t.Cleanup(p.Close)
	p.issuer = p.URL
	must(t, os.WriteFile(p.ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate().Raw}), 0o600))
	p.publish(p.rsa, p.ec)
	return p
}

func (p *provider) publish(signers ...signer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.published = nil
	for _, s := range signers {
		p.published = append(p.published, jose.JSONWebKey{Key: s.key.Public(), KeyID: s.id, Algorithm: string(s.algorithm), Use: "sig"})
	}
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	down, hold, issuer, keys := p.down, p.hold, p.issuer, p.published
	if r.URL.Path == "/keys" {
		p.fetches++
	}
	p.mu.Unlock()
	if hold != nil {
		<-hold
	}
	var answer any
	switch {
	case down:
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	case r.URL.Path == "/.well-known/openid-configuration":
		answer = map[string]string{"issuer": issuer, "jwks_uri": p.URL + "/keys"}
	case r.URL.Path == "/keys":
		answer = jose.JSONWebKeySet{Keys: keys}
	}
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		p.Error(err)
	}
}

func (p *provider) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

func (p *provider) pass(d time.Duration) { p.set(func() { p.now = p.now.Add(d) }) }

func (p *provider) clock() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

func (p *provider) fetched() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fetches
}

// What the tests' gateways are told.
const (
	audience = "loomgate"
	skew     = 30 * time.Second
	least    = time.Minute
)

// trusted returns the provider's configuration.
func (p *provider) trusted() config.Provider {
	return config.Provider{
		Issuer: p.URL, Audience: config.Texts{audience, "https://gateway.example.com"}, TenantClaim: "tenants",
		Scopes:    config.ScopesClaim{Claim: "scope", Read: config.Texts{"read", "viewer"}, Write: config.Texts{"write"}, Admin: config.Texts{"root"}},
		ClockSkew: skew, Algorithms: config.Texts{"RS256", "ES256"}, KeysRefresh: time.Hour, KeysMinRefresh: least, CAFile: p.ca,
	}
}

// tokens returns an authenticator that trusts the provider.
func (p *provider) tokens(records auth.Records) *auth.Tokens {
	p.Helper()
	tokens, err := auth.NewTokens(records, []config.Provider{p.trusted()}, auth.Options{Now: p.clock})
	must(p, err)
	return tokens
}

// claims returns good ones, for acme, with changes: a nil leaves a claim out.
func (p *provider) claims(changes map[string]any) map[string]any {
	now := p.clock()
	all := map[string]any{
		"iss": p.URL, "sub": "alice", "aud": audience, "tenants": "acme", "scope": "openid read write",
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}
	for name, value := range changes {
		if all[name] = value; value == nil {
			delete(all, name)
		}
	}
	return all
}

// part returns a part of a token.
func part(t testing.TB, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	must(t, err)
	return base64.RawURLEncoding.EncodeToString(text)
}

// edited returns the token with other claims under the same signature.
func edited(t testing.TB, token string, claims map[string]any) string {
	t.Helper()
	parts := strings.Split(token, ".")
	parts[1] = part(t, claims)
	return strings.Join(parts, ".")
}
