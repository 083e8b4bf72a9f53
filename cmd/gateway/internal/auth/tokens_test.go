package auth_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/loomgate/loomgate/cmd/gateway/internal/auth"
	"github.com/loomgate/loomgate/cmd/gateway/internal/config"
	"github.com/loomgate/loomgate/cmd/gateway/internal/control"
	"github.com/loomgate/loomgate/spi"
)

// wantRefused expects the one answer, and a reason that ends so and repeats no token.
func wantRefused(t *testing.T, what, token string, id auth.Identity, err error, reason string) {
	t.Helper()
	refused, ok := errors.AsType[*auth.UnauthenticatedError](err)
	switch {
	case !ok || err.Error() != "unauthenticated":
		t.Errorf("%s: %v", what, err)
	case id.Tenant != "" || id.Scopes != 0 || id.Actor != (control.Actor{}):
		t.Errorf("%s: %+v", what, id)
	case !strings.HasSuffix(refused.Reason(), reason):
		t.Errorf("%s: the reason is %q, not %q", what, refused.Reason(), reason)
	}
	if refused == nil {
		return
	}
	for text := range strings.SplitSeq(token, ".") {
		if len(text) > 8 && strings.Contains(refused.Reason(), text) {
			t.Errorf("%s: the reason repeats the token: %s", what, refused.Reason())
		}
	}
}

func TestATokenOfTheProviderIsWhoItsClaimsSay(t *testing.T) {
	p := newProvider(t)
	records := newRecords(t, "acme", "globex", "Müller & Söhne")
	tokens := p.tokens(records)
	for _, by := range []signer{p.rsa, p.ec} {
		for name, c := range map[string]struct {
			changes map[string]any
			header  []string
			want    spi.TenantName
			scopes  control.Scopes
		}{
			"one tenant as text":           {nil, nil, "acme", readWrite},
			"one of a list":                {map[string]any{"tenants": []string{"globex", "acme"}}, []string{"globex"}, "globex", readWrite},
			"one of a list, no header":     {map[string]any{"tenants": []string{"globex", "acme"}}, nil, "", readWrite},
			"a name that is not ASCII":     {map[string]any{"tenants": []string{"Müller & Söhne", "acme"}}, []string{"M%C3%BCller%20&%20S%C3%B6hne"}, "Müller & Söhne", readWrite},
			"several audiences":            {map[string]any{"aud": []string{"other", "https://gateway.example.com"}}, nil, "acme", readWrite},
			"scopes as a list":             {map[string]any{"scope": []string{"viewer", "other"}}, nil, "acme", control.ScopeRead},
			"no scopes":                    {map[string]any{"scope": nil}, nil, "acme", 0},
			"a scope inside another":       {map[string]any{"scope": "readwrite unread"}, nil, "acme", 0},
			"an administrator":             {map[string]any{"scope": "root", "tenants": nil}, nil, "", control.ScopeAdmin},
			"admin is not mapped to it":    {map[string]any{"scope": "admin read"}, nil, "acme", control.ScopeRead},
			"only an expiry":               {map[string]any{"iat": nil, "nbf": nil}, nil, "acme", readWrite},
			"a tenant that is named twice": {map[string]any{"tenants": []string{"acme", "acme"}}, nil, "acme", readWrite},
		} {
			token := by.sign(t, p.claims(c.changes))
			for range 2 { // the second time it is remembered
				id, err := tokens.Authenticate(t.Context(), bearer(token, c.header...))
				actor := control.Actor{APIKey: "jwt:" + p.URL + ":alice", Address: peer}
				if err != nil || id.Tenant != c.want || id.Scopes != c.scopes || id.Actor != actor {
					t.Errorf("%s: %+v, %v", name, id, err)
				}
			}
		}
	}
	if p.fetched() != 1 {
		t.Errorf("the keys were fetched %d times", p.fetched())
	}
}

func TestEveryTokenThatIsWrongHasTheOneAnswer(t *testing.T) {
	p, other := newProvider(t), newProvider(t)
	records := newRecords(t, "acme", "other")
	tokens := p.tokens(records)
	public, err := x509.MarshalPKIXPublicKey(p.rsa.key.Public())
	must(t, err)
	publicPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	hmac := func(secret []byte) string {
		return signWith(t, jose.SigningKey{Algorithm: jose.HS256, Key: jose.JSONWebKey{Key: secret, KeyID: p.rsa.id}}, p.claims(nil))
	}
	none := part(t, map[string]string{"alg": "none", "kid": p.rsa.id}) + "." + part(t, p.claims(nil)) + "."
	stranger := newEC(t, p.ec.id)
	good := p.ec.sign(t, p.claims(nil))
	noKey := signer{"", jose.ES256, p.ec.key}
	ps256 := signer{p.rsa.id, jose.PS256, p.rsa.key}
	sign := func(changes map[string]any) string { return p.ec.sign(t, p.claims(changes)) }
	at := func(d time.Duration) int64 { return p.clock().Add(d).Unix() }
	const (
		malformed, algorithm, forged = "is malformed", "algorithm that no provider may use", "the signature does not hold"
		unknownKey, unknownIssuer    = "by a key that the provider does not publish", "is of an issuer that is not in identity.providers"
		expired, early, audience     = "has expired", "is not valid yet", "is for another audience"
		subject, noTenant            = "names no subject, or not one of 1 to 255 printable bytes", "names no tenant"
		notText, notAName            = "neither text nor a list of texts", "names what no tenant can be called"
	)
	for name, c := range map[string]struct {
		token, reason string
	}{
		"alg none":                            {none, algorithm},
		"alg none, in other letters":          {part(t, map[string]string{"alg": "NoNe"}) + "." + part(t, p.claims(nil)) + ".", algorithm},
		"HS256 with the public key":           {hmac(publicPEM), algorithm},
		"HS256 with the public key, DER":      {hmac(public), algorithm},
		"an algorithm that is not configured": {ps256.sign(t, p.claims(nil)), algorithm},
		"expired":                             {sign(map[string]any{"exp": at(-time.Hour)}), expired},
		"without an expiry":                   {sign(map[string]any{"exp": nil}), "never expires"},
		"not valid yet":                       {sign(map[string]any{"nbf": at(time.Hour)}), early},
		"issued in the future":                {sign(map[string]any{"iat": at(time.Hour)}), early},
		"an expiry that is no number":         {sign(map[string]any{"exp": "tomorrow"}), forged},
		"an expiry past all numbers":          {sign(map[string]any{"exp": 1e300}), forged},
		"signed by a stranger":                {stranger.sign(t, p.claims(nil)), forged},
		"claims edited":                       {edited(t, good, p.claims(map[string]any{"tenants": "other"})), forged},
		"the signature cut":                   {good[:len(good)-4], forged},
		"no signature":                        {good[:strings.LastIndex(good, ".")+1], forged},
		"an unknown key":                      {signer{"ec-9", jose.ES256, p.ec.key}.sign(t, p.claims(nil)), unknownKey},
		"no key named":                        {noKey.sign(t, p.claims(nil)), unknownKey},
		"the key of the other kind":           {signer{p.rsa.id, jose.ES256, p.ec.key}.sign(t, p.claims(nil)), forged},
		"another audience":                    {sign(map[string]any{"aud": "another"}), audience},
		"no audience":                         {sign(map[string]any{"aud": nil}), audience},
		"an audience that only begins so":     {sign(map[string]any{"aud": []string{"loomgate2", "LOOMGATE"}}), audience},
		"another issuer":                      {other.ec.sign(t, other.claims(nil)), unknownIssuer},
		"another issuer, who says he is this": {other.ec.sign(t, p.claims(nil)), forged},
		"the issuer with a slash":             {sign(map[string]any{"iss": p.URL + "/"}), unknownIssuer},
		"no issuer":                           {sign(map[string]any{"iss": nil}), unknownIssuer},
		"no subject":                          {sign(map[string]any{"sub": nil}), subject},
		"a subject of 256 bytes":              {sign(map[string]any{"sub": strings.Repeat("x", 256)}), subject},
		"a subject with a line break":         {sign(map[string]any{"sub": "alice\n2026 bob"}), subject},
		"no dots":                             {"a.b", malformed},
		"no base64":                           {"a.b.c", malformed},
		"too long":                            {sign(map[string]any{"more": strings.Repeat("x", 20_000)}), "is too long"},
		"no tenant":                           {sign(map[string]any{"tenants": nil}), noTenant},
		"an empty list of tenants":            {sign(map[string]any{"tenants": []string{}}), noTenant},
		"a number for a tenant":               {sign(map[string]any{"tenants": 7}), notText},
		"a number among tenants":              {sign(map[string]any{"tenants": []any{"acme", 7}}), notText},
		"a list in the list":                  {sign(map[string]any{"tenants": []any{[]string{"acme"}}}), notText},
		"true for scopes":                     {sign(map[string]any{"scope": true}), notText},
		"an empty name":                       {sign(map[string]any{"tenants": ""}), notAName},
		"a name with a zero":                  {sign(map[string]any{"tenants": []string{"acme", "ac\x00me"}}), notAName},
		"a name of 129 bytes":                 {sign(map[string]any{"tenants": strings.Repeat("x", spi.MaxTenantName+1)}), notAName},
		"a name with a line break":            {sign(map[string]any{"tenants": "acme\n"}), notAName},
		"the system's own":                    {sign(map[string]any{"tenants": string(control.Tenant)}), notAName},
		"the system's own, beside a good one": {sign(map[string]any{"tenants": []string{"acme", string(control.Tenant)}}), notAName},
		"a tenant in other case":              {sign(map[string]any{"tenants": "ACME"}), "is for a tenant that is not there or not in use"},
		"a tenant like a path":                {sign(map[string]any{"tenants": "../acme"}), "is for a tenant that is not there or not in use"},
		"a tenant that there is not":          {sign(map[string]any{"tenants": "nobody"}), "is for a tenant that is not there or not in use"},
	} {
		p.pass(least) // an unknown key may be asked for again
		id, err := tokens.Authenticate(t.Context(), bearer(c.token))
		wantRefused(t, name, c.token, id, err, c.reason)
	}
	for header, reason := range map[string]string{"other": "does not allow the tenant", "ACME": "does not allow the tenant", "": "does not allow the tenant", "%ff": "does not allow the tenant"} {
		id, err := tokens.Authenticate(t.Context(), bearer(sign(nil), header))
		wantRefused(t, "the header "+header, good, id, err, reason)
	}
	id, err := tokens.Authenticate(t.Context(), bearer(sign(nil), "acme", "acme"))
	wantRefused(t, "two headers", good, id, err, "comes with several tenants")
	if id, err := tokens.Authenticate(t.Context(), bearer(good)); err != nil || id.Tenant != "acme" {
		t.Errorf("the good one: %+v, %v", id, err)
	}
}

func TestATokenHoldsToTheEdgesOfTheSkew(t *testing.T) {
	p := newProvider(t)
	tokens := p.tokens(newRecords(t, "acme"))
	begin := p.clock()
	token := p.rsa.sign(t, p.claims(map[string]any{
		"iat": begin.Add(time.Minute).Unix(), "nbf": begin.Add(2 * time.Minute).Unix(), "exp": begin.Add(3 * time.Minute).Unix(),
	}))
	for _, c := range []struct {
		at     time.Duration
		reason string // "" for let in
	}{
		{2*time.Minute - skew - 1, "is not valid yet"},
		{2*time.Minute - skew, ""},
		{3*time.Minute + skew - 1, ""},
		{3*time.Minute + skew, "has expired"}, // also of a token that is remembered
		{time.Hour, "has expired"},
	} {
		p.set(func() { p.now = begin.Add(c.at) })
		id, err := tokens.Authenticate(t.Context(), bearer(token))
		if c.reason != "" {
			wantRefused(t, c.at.String(), token, id, err, c.reason)
		} else if err != nil || id.Tenant != "acme" {
			t.Errorf("after %v: %+v, %v", c.at, id, err)
		}
	}
}

func TestAFloodOfUnknownKeysIsOneFetchAnInterval(t *testing.T) {
	p := newProvider(t)
	tokens := p.tokens(newRecords(t, "acme"))
	flood := func(name string) {
		var calling sync.WaitGroup
		for i := range 200 {
			token := signer{fmt.Sprintf("%s-%d", name, i), jose.ES256, p.ec.key}.sign(t, p.claims(nil))
			calling.Go(func() {
				id, err := tokens.Authenticate(t.Context(), bearer(token))
				wantRefused(t, "an unknown key", token, id, err, "by a key that the provider does not publish")
			})
		}
		calling.Wait()
	}
	for interval := range 3 {
		flood("first")
		flood("second")
		if p.fetched() != interval+1 {
			t.Fatalf("the keys were fetched %d times in interval %d", p.fetched(), interval)
		}
		p.pass(least - 1)
		flood("just before it ends")
		if p.fetched() != interval+1 {
			t.Fatalf("the keys were fetched again after less than %v", least)
		}
		p.pass(1)
	}
}

func TestCallsThatComeWhileKeysAreFetchedWaitForThem(t *testing.T) {
	p := newProvider(t)
	tokens := p.tokens(newRecords(t, "acme"))
	hold := make(chan struct{})
	p.set(func() { p.hold = hold })
	token := p.ec.sign(t, p.claims(nil))
	var calling sync.WaitGroup
	for range 50 {
		calling.Go(func() {
			if id, err := tokens.Authenticate(t.Context(), bearer(token)); err != nil || id.Tenant != "acme" {
				t.Errorf("%+v, %v", id, err)
			}
		})
	}
	close(hold)
	calling.Wait()
	if p.fetched() != 1 {
		t.Errorf("the keys were fetched %d times", p.fetched())
	}
}

func TestKeysAreRotated(t *testing.T) {
	p := newProvider(t)
	tokens := p.tokens(newRecords(t, "acme"))
	old := p.ec.sign(t, p.claims(nil))
	_, err := tokens.Authenticate(t.Context(), bearer(old))
	must(t, err)

	next := newEC(t, "ec-2")
	p.publish(p.ec, next)
	p.pass(least)
	token := next.sign(t, p.claims(nil))
	for _, token := range []string{token, old} {
		if _, err := tokens.Authenticate(t.Context(), bearer(token)); err != nil {
			t.Errorf("while both are published: %v", err)
		}
	}

	p.publish(next)
	p.pass(least)
	unknown := newEC(t, "ec-3").sign(t, p.claims(nil))
	_, err = tokens.Authenticate(t.Context(), bearer(unknown)) // makes it look
	if !is[*auth.UnauthenticatedError](err) {
		t.Errorf("%v", err)
	}
	id, err := tokens.Authenticate(t.Context(), bearer(old))
	wantRefused(t, "a key that was withdrawn", old, id, err, "by a key that the provider does not publish")
	if _, err := tokens.Authenticate(t.Context(), bearer(token)); err != nil {
		t.Errorf("the new key: %v", err)
	}
}

func TestAProviderThatIsDownStopsNoKnownKey(t *testing.T) {
	p := newProvider(t)
	tokens := p.tokens(newRecords(t, "acme"))
	p.set(func() { p.down = true })
	token := p.ec.sign(t, p.claims(nil))
	if _, err := tokens.Authenticate(t.Context(), bearer(token)); !is[*spi.UnavailableError](err) {
		t.Errorf("down from the start: %v", err)
	}
	p.set(func() { p.down = false })
	p.pass(least)
	_, err := tokens.Authenticate(t.Context(), bearer(token))
	must(t, err)

	p.set(func() { p.down = true })
	p.pass(least)
	if _, err := tokens.Authenticate(t.Context(), bearer(newEC(t, "ec-2").sign(t, p.claims(nil)))); !is[*spi.UnavailableError](err) {
		t.Errorf("a key that may be new: %v", err)
	}
	for _, by := range []signer{p.ec, p.rsa} {
		if id, err := tokens.Authenticate(t.Context(), bearer(by.sign(t, p.claims(nil)))); err != nil || id.Tenant != "acme" {
			t.Errorf("a known key: %+v, %v", id, err)
		}
	}
}

// TestOnlyPublicKeysForSignaturesCount publishes what a provider should not, each under the
// id of a key that would do.
func TestOnlyPublicKeysForSignaturesCount(t *testing.T) {
	t.Setenv("GODEBUG", "rsa1024min=0")
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	must(t, err)
	secret := []byte("a secret that everybody can read, long enough for HS256")
	p := newProvider(t)
	ec := newEC(t, "ec-9")
	p.published = append(p.published,
		jose.JSONWebKey{Key: secret, KeyID: "oct"},
		jose.JSONWebKey{Key: p.ec.key, KeyID: "private"},
		jose.JSONWebKey{Key: ec.key.Public(), KeyID: "enc", Use: "enc"},
		jose.JSONWebKey{Key: ec.key.Public(), KeyID: "other", Algorithm: "ES384", Use: "sig"},
		jose.JSONWebKey{Key: &weak.PublicKey, KeyID: "weak"},
	)
	tokens := p.tokens(newRecords(t, "acme"))
	const unpublished = "by a key that the provider does not publish"
	for token, reason := range map[string]string{
		signWith(t, jose.SigningKey{Algorithm: jose.HS256, Key: jose.JSONWebKey{Key: secret, KeyID: "oct"}}, p.claims(nil)): "algorithm that no provider may use",
		signer{"private", jose.ES256, p.ec.key}.sign(t, p.claims(nil)):                                                      unpublished,
		signer{"enc", jose.ES256, ec.key}.sign(t, p.claims(nil)):                                                            unpublished,
		signer{"weak", jose.RS256, weak}.sign(t, p.claims(nil)):                                                             unpublished,
		signer{"other", jose.ES256, ec.key}.sign(t, p.claims(nil)):                                                          "the signature does not hold",
	} {
		id, err := tokens.Authenticate(t.Context(), bearer(token))
		wantRefused(t, reason, token, id, err, reason)
	}
	if _, err := tokens.Authenticate(t.Context(), bearer(p.ec.sign(t, p.claims(nil)))); err != nil {
		t.Errorf("a good key beside them: %v", err)
	}
}

// TestEachProviderSignsOnlyForItself trusts two, with an algorithm each.
func TestEachProviderSignsOnlyForItself(t *testing.T) {
	one, two := newProvider(t), newProvider(t)
	ofOne, ofTwo := one.trusted(), two.trusted()
	ofOne.Algorithms, ofTwo.Algorithms = config.Texts{"RS256"}, config.Texts{"ES256"}
	tokens, err := auth.NewTokens(newRecords(t, "acme"), []config.Provider{ofOne, ofTwo}, auth.Options{Now: one.clock})
	must(t, err)
	for _, token := range []string{one.rsa.sign(t, one.claims(nil)), two.ec.sign(t, two.claims(nil))} {
		if id, err := tokens.Authenticate(t.Context(), bearer(token)); err != nil || id.Tenant != "acme" {
			t.Errorf("%+v, %v", id, err)
		}
	}
	for token, reason := range map[string]string{
		one.ec.sign(t, one.claims(nil)):  "by an algorithm that the provider may not use",
		two.rsa.sign(t, two.claims(nil)): "by an algorithm that the provider may not use",
		two.ec.sign(t, one.claims(nil)):  "by an algorithm that the provider may not use",
		one.ec.sign(t, two.claims(nil)):  "the signature does not hold",
	} {
		id, err := tokens.Authenticate(t.Context(), bearer(token))
		wantRefused(t, reason, token, id, err, reason)
	}
}

func TestAProviderThatSaysItIsAnotherIsNotBelieved(t *testing.T) {
	p := newProvider(t)
	p.issuer = "https://login.example.com"
	_, err := p.tokens(newRecords(t, "acme")).Authenticate(t.Context(), bearer(p.ec.sign(t, p.claims(nil))))
	if !is[*spi.UnavailableError](err) {
		t.Errorf("%v", err)
	}
}

func BenchmarkAuthenticateToken(b *testing.B) {
	p := newProvider(b)
	tokens := p.tokens(newRecords(b, "acme"))
	c := bearer(p.ec.sign(b, p.claims(nil)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tokens.Authenticate(b.Context(), c); err != nil {
			b.Fatal(err)
		}
	}
}
