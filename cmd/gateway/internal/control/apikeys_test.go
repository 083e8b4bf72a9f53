package control

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loomgate/loomgate/spi"
)

func TestAnAPIKeyIsWhatItWasMadeFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t)
		r := gateway(t, store)
		for _, name := range []spi.TenantName{"a", "b", "c"} {
			must(t, r.CreateTenant(t.Context(), admin, name))
		}
		expires := time.Now().Add(time.Hour).In(time.FixedZone("east", 3600))
		made, text, err := r.CreateAPIKey(t.Context(), admin, Grant{Tenants: []spi.TenantName{"c", "a", "c"}, Scopes: ScopeRead | ScopeAdmin, ExpiresAt: expires})
		must(t, err)
		want := APIKey{
			ID: made.ID, CreatedAt: time.Now().UTC(), CreatedBy: "test",
			Grant: Grant{Tenants: []spi.TenantName{"a", "c"}, Scopes: ScopeRead | ScopeAdmin, ExpiresAt: expires.UTC()},
		}
		id, secret, ok := ParseKey(text)
		if !ok || id != made.ID || !reflect.DeepEqual(made, want) {
			t.Errorf("made %+v, want %+v", made, want)
		}
		for _, g := range []*Records{r, gateway(t, store)} {
			got, proven, err := g.Verify(id, secret)
			must(t, err)
			if !proven || !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v, %v", got, proven)
			}
			for tenant, allowed := range map[spi.TenantName]bool{"a": true, "b": false, "c": true, Tenant: false} {
				if got.Allows(tenant) != allowed {
					t.Errorf("tenant %s: %v", tenant, !allowed)
				}
			}
			listed, next, err := g.ListAPIKeys("", 10)
			must(t, err)
			if next != "" || !reflect.DeepEqual(listed, []APIKey{want}) {
				t.Errorf("listed %+v", listed)
			}
		}
		if !want.Usable(expires.Add(-1)) || want.Usable(expires) {
			t.Error("it does not expire when it should")
		}
	})
}

func TestNothingButItsOwnSecretProvesAKey(t *testing.T) {
	r := gateway(t, newStore(t))
	must(t, r.CreateTenant(t.Context(), admin, "acme"))
	id, secret := newKeyFor(t, r, "acme")
	other, otherSecret := newKeyFor(t, r, "acme")
	for _, c := range []struct {
		id, secret string
		want       bool
	}{
		{id, secret, true},
		{other, otherSecret, true},
		{id, otherSecret, false},
		{id, "", false},
		{id, secret[:len(secret)-1], false},
		{id, strings.ToUpper(secret), false},
		{"", "", false},
		{"aaaaaaaaaaaaaaaa", secret, false},
	} {
		if _, proven, err := r.Verify(c.id, c.secret); err != nil || proven != c.want {
			t.Errorf("%.4s with %.4s: %v, %v", c.id, c.secret, proven, err)
		}
	}
}

func TestAnUnknownKeyIsAsMuchWorkAsAWrongSecret(t *testing.T) {
	r := gateway(t, newStore(t))
	must(t, r.CreateTenant(t.Context(), admin, "acme"))
	id, secret := newKeyFor(t, r, "acme")
	var proofs []string
	r.prove = func(k *storedKey, secret string) bool {
		proofs = append(proofs, secret)
		return k.provenBy(secret)
	}
	for _, id := range []string{id, "aaaaaaaaaaaaaaaa", ""} {
		proofs = nil
		if _, proven, err := r.Verify(id, secret[1:]+"a"); err != nil || proven {
			t.Errorf("%q: %v, %v", id, proven, err)
		}
		if len(proofs) != 1 || proofs[0] != secret[1:]+"a" {
			t.Errorf("%q: %d proofs", id, len(proofs))
		}
	}
}

func TestTheSecretIsStoredNowhere(t *testing.T) {
	store := newStore(t)
	log, logged := newLog()
	r := New(store, Options{Log: log})
	must(t, r.CreateTenant(t.Context(), admin, "acme"))
	id, secret := newKeyFor(t, r, "acme")
	page, err := spi.Read(t.Context(), store, spi.ReadRequest{Execution: Execution, Limit: 10})
	must(t, err)
	stored := fmt.Sprintf("%s %v", page.Events[1].Payload, page.Events)
	hash := sha256.Sum256([]byte(secret))
	if !strings.Contains(stored, base64.StdEncoding.EncodeToString(hash[:])) {
		t.Error("no hash is stored")
	}
	// What callers get holds neither the secret nor the hash.
	keys, _, err := r.ListAPIKeys("", 10)
	must(t, err)
	found, _, err := r.Verify(id, secret)
	must(t, err)
	shown := fmt.Sprintf("%+v %+v", keys, found)
	for action, err := range r.Audit(t.Context(), 0) {
		must(t, err)
		shown += fmt.Sprintf("%+v", action)
	}
	for _, hidden := range []string{secret, hex.EncodeToString([]byte(secret)), strings.Trim(fmt.Sprintf("%d", []byte(secret)), "[]")} {
		if strings.Contains(stored, hidden) || strings.Contains(shown, hidden) || strings.Contains(logged(), hidden) {
			t.Error("the secret is there")
		}
	}
	for _, hidden := range []string{base64.StdEncoding.EncodeToString(hash[:]), hex.EncodeToString(hash[:]), strings.Trim(fmt.Sprint(hash), "[]")} {
		if strings.Contains(shown, hidden) {
			t.Error("the hash is shown")
		}
	}
}

func TestGrantsThatNoKeyCanHave(t *testing.T) {
	store := newStore(t)
	r := gateway(t, store)
	must(t, r.CreateTenant(t.Context(), admin, "acme"))
	must(t, r.CreateTenant(t.Context(), admin, "gone"))
	must(t, r.DisableTenant(t.Context(), admin, "gone"))
	many := make([]spi.TenantName, MaxKeyTenants+1)
	for i := range many {
		many[i] = spi.TenantName(fmt.Sprint(i))
	}
	acme := []spi.TenantName{"acme"}
	invalid := is[*spi.InvalidArgumentError]
	before := count(t, store)
	for name, c := range map[string]struct {
		grant Grant
		want  func(error) bool
	}{
		"no scope":                      {Grant{Tenants: acme}, invalid},
		"a scope that there is not":     {Grant{Tenants: acme, Scopes: ScopeRead | 1<<7}, invalid},
		"no tenant":                     {Grant{Scopes: ScopeRead | ScopeAdmin}, invalid},
		"all tenants and one":           {Grant{Tenants: acme, AllTenants: true, Scopes: ScopeRead}, invalid},
		"too many tenants":              {Grant{Tenants: many, Scopes: ScopeRead}, invalid},
		"an expiry that has passed":     {Grant{Tenants: acme, Scopes: ScopeRead, ExpiresAt: time.Now().Add(-time.Second)}, invalid},
		"an expiry past all years":      {Grant{Tenants: acme, Scopes: ScopeRead, ExpiresAt: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, invalid},
		"a tenant that there is not":    {Grant{Tenants: []spi.TenantName{"acme", "other"}, Scopes: ScopeRead}, is[*NotFoundError]},
		"a tenant that is disabled":     {Grant{Tenants: []spi.TenantName{"gone"}, Scopes: ScopeRead}, is[*TenantStateError]},
		"the tenant of these records":   {Grant{Tenants: []spi.TenantName{Tenant}, Scopes: ScopeRead}, is[*NotFoundError]},
		"a tenant that can have no key": {Grant{Tenants: []spi.TenantName{"\xff"}, Scopes: ScopeRead}, is[*NotFoundError]},
	} {
		if _, text, err := r.CreateAPIKey(t.Context(), admin, c.grant); !c.want(err) || text != "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := count(t, store); got != before {
		t.Errorf("%d records were written", got-before)
	}
	_, _, err := r.CreateAPIKey(t.Context(), admin, Grant{Scopes: ScopeAdmin})
	must(t, err)
}

func TestARevokedKeyStaysRevoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t)
		r := gateway(t, store)
		must(t, r.CreateTenant(t.Context(), admin, "acme"))
		id, secret := newKeyFor(t, r, "acme")
		if err := r.RevokeAPIKey(t.Context(), admin, "aaaaaaaaaaaaaaaa"); !is[*NotFoundError](err) {
			t.Errorf("a key that there is not: %v", err)
		}
		at := time.Now().UTC()
		for range 2 {
			must(t, r.RevokeAPIKey(t.Context(), admin, id))
			time.Sleep(time.Second)
		}
		for _, g := range []*Records{r, gateway(t, store)} {
			if key, _, err := g.Verify(id, secret); err != nil || key.RevokedAt != at || usable(t, g, id, secret) {
				t.Errorf("%+v, %v", key, err)
			}
		}
		if got := count(t, store); got != 3 {
			t.Errorf("%d records", got)
		}
	})
}

func TestOfManyGatewaysThatStartOneMakesTheFirstAdminKey(t *testing.T) {
	store := newStore(t)
	var made atomic.Int32
	var starting sync.WaitGroup
	for range 8 {
		starting.Go(func() {
			text, err := New(store, Options{}).Bootstrap(t.Context(), Actor{APIKey: "init"})
			if err != nil {
				t.Error(err)
			}
			if text != "" {
				made.Add(1)
			}
		})
	}
	starting.Wait()
	if made.Load() != 1 || count(t, store) != 1 {
		t.Errorf("%d made, %d records", made.Load(), count(t, store))
	}
}

func TestTheFirstAdminKeyDoesEverything(t *testing.T) {
	r := gateway(t, newStore(t))
	must(t, r.CreateTenant(t.Context(), admin, "acme"))
	newKeyFor(t, r, "acme") // not an admin's
	text, err := r.Bootstrap(t.Context(), Actor{APIKey: "init"})
	must(t, err)
	id, secret, _ := ParseKey(text)
	key, proven, err := r.Verify(id, secret)
	must(t, err)
	if !key.Allows("acme") || key.Allows(Tenant) {
		t.Error("it reaches the wrong tenants")
	}
	if !proven || !key.AllTenants || key.Scopes != allScopes || !key.ExpiresAt.IsZero() || key.CreatedBy != "init" {
		t.Errorf("%+v", key)
	}
}

func TestWhereNoAdminKeyIsUsableAnotherIsMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := gateway(t, newStore(t))
		bootstrap := func() string {
			text, err := r.Bootstrap(t.Context(), Actor{APIKey: "init"})
			must(t, err)
			return text
		}
		first, _, _ := ParseKey(bootstrap())
		if text := bootstrap(); text != "" {
			t.Error("a second one")
		}
		must(t, r.RevokeAPIKey(t.Context(), admin, first))
		_, _, err := r.CreateAPIKey(t.Context(), admin, Grant{Scopes: ScopeAdmin, ExpiresAt: time.Now().Add(time.Hour)})
		must(t, err)
		if text := bootstrap(); text != "" {
			t.Error("a second one, beside one that expires")
		}
		time.Sleep(time.Hour)
		if text := bootstrap(); text == "" {
			t.Error("none, where the last has expired")
		}
	})
}

func TestKeysAreTextsOfOneForm(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		id, secret := newKey()
		text := keyText(id, secret)
		gotID, gotSecret, ok := ParseKey(text)
		if !ok || gotID != id || gotSecret != secret || seen[id] || seen[secret] {
			t.Fatalf("%q: %q, %q, %v", text, gotID, gotSecret, ok)
		}
		if strings.HasPrefix(secret, id) || secret[:len(secret)/2] == secret[len(secret)/2:] {
			t.Fatal("it is less random than it looks")
		}
		seen[id], seen[secret] = true, true
	}
	id, secret := newKey()
	for _, text := range []string{
		"", "lg_", "lg__", id + "_" + secret, "LG_" + id + "_" + secret, "lg_" + id + secret, "lg_" + id + "_" + secret + "a", "lg_" + id + "_" + secret[1:],
		"lg_" + id[1:] + "_" + secret, "lg_" + strings.ToUpper(id) + "_" + secret, "lg_" + id + "_" + strings.ToUpper(secret), "lg_" + id + "_" + secret[1:] + "0",
		" lg_" + id + "_" + secret, "lg_" + id + "_" + secret + "\n", "lg_" + id + "_" + secret[1:] + "_", "lg_" + id[1:] + "\x00_" + secret,
	} {
		if _, _, ok := ParseKey(text); ok {
			t.Errorf("%q is a key", text)
		}
	}
}

func TestScopesHaveNames(t *testing.T) {
	for s := Scopes(0); s <= allScopes; s++ {
		if got, err := ParseScopes(s.Names()); err != nil || got != s {
			t.Errorf("%q is %v, %v", s.Names(), got, err)
		}
	}
	if _, err := ParseScopes([]string{"read", "root"}); !is[*spi.InvalidArgumentError](err) {
		t.Errorf("%v", err)
	}
	if s := ScopeRead | ScopeAdmin; s.Has(ScopeWrite) || s.Has(allScopes) || !s.Has(ScopeAdmin) || s.String() != "read, admin" {
		t.Errorf("%v", s)
	}
}
