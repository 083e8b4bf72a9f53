package control

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/loomgate/loomgate/spi"
)

func TestARecordOfANewerGatewayIsKeptAndLetsNobodyIn(t *testing.T) {
	store := newStore(t)
	r := gateway(t, store)
	must(t, r.CreateTenant(t.Context(), admin, "acme"))
	id, secret := newKeyFor(t, r, "acme")
	for _, event := range [][2]string{
		{"TenantRenamed", `{"v":1,"by":"x","tenant":"acme","name":"other"}`},
		{tenantCreated, `{"v":2,"by":"x","tenant":"other"}`},
		{apiKeyCreated, `{"v":2,"by":"x","api_key":"k","all_tenants":true,"scopes":["admin"]}`},
		{apiKeyRevoked, `{"v":2,"by":"x","api_key":"` + id + `","until":"tomorrow"}`},
	} {
		write(t, store, event[0], event[1])
	}
	for _, g := range []*Records{r, gateway(t, store)} {
		refresh(t, g)
		tenants, _, err := g.ListTenants("", 10)
		must(t, err)
		keys, _, err := g.ListAPIKeys("", 10)
		must(t, err)
		if len(tenants) != 1 || len(keys) != 1 || !usable(t, g, id, secret) {
			t.Errorf("%+v, %+v", tenants, keys)
		}
	}
	var kinds []string
	for action, err := range r.Audit(t.Context(), 2) {
		must(t, err)
		kinds = append(kinds, action.Kind)
	}
	if got := strings.Join(kinds, " "); got != "TenantRenamed TenantCreated APIKeyCreated APIKeyRevoked" {
		t.Errorf("the audit trail has %s", got)
	}
}

func TestANewerRecordThatRestrictsIsObeyed(t *testing.T) {
	store := newStore(t)
	r := gateway(t, store)
	for _, name := range []spi.TenantName{"a", "b"} {
		must(t, r.CreateTenant(t.Context(), admin, name))
	}
	idA, secretA := newKeyFor(t, r, "a")
	idB, secretB := newKeyFor(t, r, "b")
	write(t, store, "TenantSuspended", `{"v":7,"by":"x","tenant":"a","restricts":true}`)
	write(t, store, apiKeyRevoked, `{"v":2,"by":"x","api_key":"`+idB+`","restricts":true}`)
	for _, g := range []*Records{r, gateway(t, store)} {
		refresh(t, g)
		for name, want := range map[spi.TenantName]bool{"a": false, "b": true} {
			if tenant, err := g.Tenant(name); err != nil || tenant.Usable() != want {
				t.Errorf("%s is usable: %v, %v", name, !want, err)
			}
		}
		if !usable(t, g, idA, secretA) || usable(t, g, idB, secretB) {
			t.Error("the wrong key is refused")
		}
	}
}

func TestOverANewerRecordNothingIsCreatedAndEverythingCanBeTakenAway(t *testing.T) {
	store := newStore(t)
	r := gateway(t, store)
	must(t, r.CreateTenant(t.Context(), admin, "acme"))
	id, secret := newKeyFor(t, r, "acme")
	write(t, store, "TenantRenamed", `{"v":1,"by":"x","tenant":"acme","name":"other"}`)
	_, _, errKey := r.CreateAPIKey(t.Context(), admin, Grant{AllTenants: true, Scopes: ScopeRead})
	_, errFirst := r.Bootstrap(t.Context(), admin)
	for _, err := range []error{r.CreateTenant(t.Context(), admin, "other"), errKey, errFirst} {
		if !is[*OutdatedError](err) {
			t.Errorf("%v", err)
		}
	}
	must(t, r.RevokeAPIKey(t.Context(), admin, id))
	must(t, r.DisableTenant(t.Context(), admin, "acme"))
	must(t, r.MarkPurged(t.Context(), admin, "acme"))
	if usable(t, r, id, secret) {
		t.Error("the key is usable")
	}
}

func TestARecordThatNoGatewayWroteEndsTheService(t *testing.T) {
	for _, event := range [][2]string{
		{tenantCreated, ""},
		{tenantCreated, "{"},
		{tenantCreated, "[]"},
		{tenantCreated, `"x"`},
		{tenantCreated, `{"tenant":"a"}`},
		{tenantCreated, `{"v":0,"tenant":"a"}`},
		{tenantCreated, `{"v":-1,"tenant":"a"}`},
		{tenantCreated, `{"v":"1","tenant":"a"}`},
		{tenantCreated, `{"v":1,"tenant":5}`},
		{apiKeyCreated, `{"v":1,"api_key":"k"}`},
		{apiKeyCreated, `{"v":1,"api_key":"k","sha256":"AAAA"}`},
	} {
		payload := event[1]
		store := newStore(t)
		must(t, gateway(t, store).CreateTenant(t.Context(), admin, "acme"))
		write(t, store, event[0], payload)
		r := New(store, Options{})
		err := r.Refresh(t.Context())
		if bad, ok := errors.AsType[*RecordError](err); !ok || bad.Sequence != 2 || r.Ready() == nil {
			t.Errorf("%q: %v", payload, err)
		}
		if err := r.CreateTenant(t.Context(), admin, "other"); !is[*RecordError](err) {
			t.Errorf("%q: %v", payload, err)
		}
	}
}

func TestWhatWasWrittenWrongChangesNothing(t *testing.T) {
	store := newStore(t)
	r := gateway(t, store)
	must(t, r.CreateTenant(t.Context(), admin, "gone"))
	must(t, r.DisableTenant(t.Context(), admin, "gone"))
	must(t, r.MarkPurged(t.Context(), admin, "gone"))
	must(t, r.CreateTenant(t.Context(), admin, "acme"))
	id, secret := newKeyFor(t, r, "acme")
	revoked, _ := newKeyFor(t, r, "acme")
	must(t, r.RevokeAPIKey(t.Context(), admin, revoked))
	before, _, err := r.Verify(revoked, "")
	must(t, err)
	hash := `"sha256":"` + strings.Repeat("A", 43) + `="`
	for _, event := range [][2]string{
		{tenantCreated, `{"v":1,"tenant":"gone"}`},
		{tenantDisabled, `{"v":1,"tenant":"gone"}`},
		{tenantPurged, `{"v":1,"tenant":"acme"}`},
		{tenantDisabled, `{"v":1,"tenant":"nobody"}`},
		{apiKeyRevoked, `{"v":1,"api_key":"nobody"}`},
		{apiKeyRevoked, `{"v":1,"api_key":"` + revoked + `"}`},
		{apiKeyCreated, `{"v":1,"api_key":"` + id + `","all_tenants":true,"scopes":["admin"],` + hash + `}`},
		{apiKeyCreated, `{"v":1,"api_key":"k","all_tenants":true,"scopes":["admin","root"],` + hash + `}`},
	} {
		write(t, store, event[0], event[1])
	}
	refresh(t, r)
	gone, err := r.Tenant("gone")
	must(t, err)
	acme, err := r.Tenant("acme")
	must(t, err)
	if gone.State != TenantPurged || acme.State != TenantActive {
		t.Errorf("%v, %v", gone, acme)
	}
	if key, proven, err := r.Verify(id, secret); err != nil || !proven || key.AllTenants || key.Scopes != ScopeRead {
		t.Errorf("%+v, %v, %v", key, proven, err)
	}
	if key, _, err := r.Verify(revoked, ""); err != nil || key.RevokedAt != before.RevokedAt {
		t.Errorf("revoked at %v and then %v", before.RevokedAt, key.RevokedAt)
	}
	if key, _, err := r.Verify("k", ""); err != nil || key.Scopes != ScopeAdmin {
		t.Errorf("a scope that nobody knows: %v, %v", key.Scopes, err)
	}
}

func TestTheAuditTrailSaysWhoDidWhatWhenAndFromWhere(t *testing.T) {
	store := newStore(t)
	r := gateway(t, store)
	steps := []func(Actor) error{
		func(by Actor) error { return r.CreateTenant(t.Context(), by, "acme") },
		func(by Actor) error {
			_, _, err := r.CreateAPIKey(t.Context(), by, Grant{Tenants: []spi.TenantName{"acme"}, Scopes: ScopeWrite})
			return err
		},
		func(by Actor) error {
			keys, _, err := r.ListAPIKeys("", 1)
			must(t, err)
			return r.RevokeAPIKey(t.Context(), by, keys[0].ID)
		},
		func(by Actor) error { return r.DisableTenant(t.Context(), by, "acme") },
		func(by Actor) error { return r.MarkPurged(t.Context(), by, "acme") },
	}
	for i, step := range steps {
		must(t, step(Actor{fmt.Sprint("key", i), fmt.Sprint("192.0.2.", i)}))
	}
	kinds := []string{tenantCreated, apiKeyCreated, apiKeyRevoked, tenantDisabled, tenantPurged}
	n := 0
	for a, err := range r.Audit(t.Context(), 0) {
		must(t, err)
		about := a.Tenant == "acme" && a.APIKey == ""
		if strings.HasPrefix(a.Kind, "APIKey") {
			about = a.Tenant == "" && a.APIKey != ""
		}
		if a.Sequence != int64(n+1) || a.Kind != kinds[n] || a.By != (Actor{fmt.Sprint("key", n), fmt.Sprint("192.0.2.", n)}) || !about || a.At.IsZero() {
			t.Errorf("%d: %+v", n, a)
		}
		if (a.Kind == apiKeyCreated) != (a.Grant.Scopes == ScopeWrite && a.Grant.Allows("acme")) {
			t.Errorf("%d: %+v", n, a.Grant)
		}
		n++
	}
	if n != len(steps) {
		t.Errorf("%d actions", n)
	}
}

func TestTheAuditTrailGoesOnAfterARecordThatIsNone(t *testing.T) {
	f, store := newFaulty(t, newStore(t))
	must(t, gateway(t, store).CreateTenant(t.Context(), admin, "a"))
	write(t, store, tenantCreated, "{")
	write(t, store, tenantCreated, `{"v":1,"by":"x","tenant":"b"}`)
	for range pageSize {
		write(t, store, tenantCreated, `{"v":1,"by":"x","tenant":"c"}`)
	}
	n, bad := int64(0), 0
	for a, err := range New(store, Options{}).Audit(t.Context(), 0) {
		if n++; a.Sequence != n {
			t.Fatalf("action %d is %d", n, a.Sequence)
		}
		if is[*RecordError](err) {
			bad++
		}
	}
	if n != pageSize+3 || bad != 1 {
		t.Errorf("%d actions, %d bad", n, bad)
	}
	f.setRead(down)
	n = 0
	for _, err := range New(store, Options{}).Audit(t.Context(), 0) {
		if n++; !is[*spi.UnavailableError](err) {
			t.Error(err)
		}
	}
	if n != 1 {
		t.Errorf("%d actions of a shard that is down", n)
	}
}
