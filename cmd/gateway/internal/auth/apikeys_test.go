package auth_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/cmd/gateway/internal/auth"
	"github.com/loomgate/loomgate/cmd/gateway/internal/control"
	"github.com/loomgate/loomgate/spi"
)

const readWrite = control.ScopeRead | control.ScopeWrite

func TestTheTenantIsTheKeysOwn(t *testing.T) {
	records := newRecords(t, "acme", "other")
	id, key := newKey(t, records, control.Grant{Tenants: []spi.TenantName{"acme"}, Scopes: readWrite})
	for _, c := range []auth.Credentials{
		bearer(key),
		bearer(key, "acme"),
		{Authorization: []string{"bearer " + key}, Peer: peer},
		{Authorization: []string{"BEARER   " + key + " "}, Peer: peer},
	} {
		got, err := auth.APIKeys(records).Authenticate(t.Context(), c)
		if err != nil || got.Actor != (control.Actor{APIKey: id, Address: peer}) || got.Tenant != "acme" || got.Scopes != readWrite {
			t.Errorf("%+v, %v", got, err)
		}
		if err := got.Permit("Append"); err != nil {
			t.Error(err)
		}
	}
}

func TestTheHeaderChoosesOnlyAmongTheKeysTenants(t *testing.T) {
	records := newRecords(t, "a", "b", "c", "Müller & Söhne", "50%", "with space")
	_, two := newKey(t, records, control.Grant{Tenants: []spi.TenantName{"a", "b"}, Scopes: readWrite})
	_, all := newKey(t, records, control.Grant{AllTenants: true, Scopes: readWrite})
	for _, c := range []struct {
		key, header string
		want        spi.TenantName // "" for refused
	}{
		{two, "a", "a"},
		{two, "b", "b"},
		{two, "%61", "a"},
		{two, "c", ""},
		{two, "A", ""},
		{two, "", ""},
		{two, " a", ""},
		{two, "a,b", ""},
		{two, "nobody", ""},
		{all, "c", "c"},
		{all, "M%C3%BCller%20&%20S%C3%B6hne", "Müller & Söhne"},
		{all, "Müller & Söhne", "Müller & Söhne"},
		{all, "with%20space", "with space"},
		{all, "with+space", ""},
		{all, "50%25", "50%"},
		{all, "50%", ""},
		{all, "nobody", ""},
		{all, "%FF", ""},
		{all, string(control.Tenant), ""},
		{all, "loomgate%2Fcontrol", ""},
	} {
		got, err := auth.APIKeys(records).Authenticate(t.Context(), bearer(c.key, c.header))
		if got.Tenant != c.want || (c.want == "") != is[*auth.UnauthenticatedError](err) {
			t.Errorf("header %q: %q, %v", c.header, got.Tenant, err)
		}
	}
}

func TestAKeyForSeveralTenantsHasToChoose(t *testing.T) {
	records := newRecords(t, "a", "b")
	_, two := newKey(t, records, control.Grant{Tenants: []spi.TenantName{"b", "a"}, Scopes: readWrite})
	_, all := newKey(t, records, control.Grant{AllTenants: true, Scopes: readWrite})
	for key, want := range map[string]string{
		two: "the call names no tenant: it takes one in the header Loomgate-Tenant, of a, b",
		all: "the call names no tenant: it takes one in the header Loomgate-Tenant",
	} {
		id, err := auth.APIKeys(records).Authenticate(t.Context(), bearer(key))
		must(t, err)
		if err := id.Permit("Read"); !is[*auth.TenantRequiredError](err) || err.Error() != want {
			t.Errorf("%v", err)
		}
	}
}

// A refusal is a credential that is wrong, and why as operators read it.
type refusal struct {
	auth.Credentials
	reason string
}

// refusals are wrong in every way.
func refusals(t *testing.T, records *control.Records) map[string]refusal {
	grant := control.Grant{Tenants: []spi.TenantName{"acme"}, Scopes: readWrite}
	_, good := newKey(t, records, grant)
	_, other := newKey(t, records, grant)
	revokedID, revoked := newKey(t, records, grant)
	must(t, records.RevokeAPIKey(t.Context(), admin, revokedID))
	expires := grant
	expires.ExpiresAt = time.Now().Add(time.Hour)
	_, expired := newKey(t, records, expires)
	time.Sleep(time.Hour)
	_, disabled := newKey(t, records, control.Grant{Tenants: []spi.TenantName{"disabled"}, Scopes: readWrite})
	_, purged := newKey(t, records, control.Grant{Tenants: []spi.TenantName{"purged"}, Scopes: readWrite})
	_, all := newKey(t, records, control.Grant{AllTenants: true, Scopes: readWrite})
	for _, name := range []spi.TenantName{"disabled", "purged"} {
		must(t, records.DisableTenant(t.Context(), admin, name))
	}
	must(t, records.MarkPurged(t.Context(), admin, "purged"))
	secretOf := func(key string) string { return key[strings.LastIndex(key, "_"):] }
	const (
		noKey, unknown, wrong, isRevoked, hasExpired = "there is no API key", "is unknown", "comes with a wrong secret", "is revoked", "has expired"
		notAllowed, several, noTenant                = "does not allow the tenant", "comes with several tenants", "is for a tenant that is not there or not in use"
	)
	return map[string]refusal{
		"no credential":                 {auth.Credentials{}, noKey},
		"an empty one":                  {auth.Credentials{Authorization: []string{""}}, noKey},
		"two":                           {auth.Credentials{Authorization: []string{"Bearer " + good, "Bearer " + good}}, noKey},
		"no scheme":                     {auth.Credentials{Authorization: []string{good}}, noKey},
		"another scheme":                {auth.Credentials{Authorization: []string{"Basic " + good}}, noKey},
		"no key":                        {bearer("hunter2"), noKey},
		"a key that is cut":             {bearer(good[:len(good)-1]), noKey},
		"an unknown key":                {bearer("lg_aaaaaaaaaaaaaaaa" + secretOf(good)), unknown},
		"a wrong secret":                {bearer(strings.TrimSuffix(good, secretOf(good)) + secretOf(other)), wrong},
		"a revoked key":                 {bearer(revoked), isRevoked},
		"a revoked key, a wrong secret": {bearer(strings.TrimSuffix(revoked, secretOf(revoked)) + secretOf(good)), wrong},
		"an expired key":                {bearer(expired), hasExpired},
		"a tenant not allowed":          {bearer(good, "other"), notAllowed},
		"a tenant that there is not":    {bearer(good, "nobody"), notAllowed},
		"a tenant of all, there is not": {bearer(all, "nobody"), noTenant},
		"the system's tenant":           {bearer(all, string(control.Tenant)), notAllowed},
		"a tenant chosen twice":         {bearer(good, "acme", "acme"), several},
		"a tenant chosen, not its own":  {bearer(good, "acme", "other"), several},
		"a disabled tenant":             {bearer(disabled), noTenant},
		"a disabled tenant, chosen":     {bearer(all, "disabled"), noTenant},
		"a purged tenant":               {bearer(purged), noTenant},
	}
}

func TestEveryRefusalIsTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		records := newRecords(t, "acme", "other", "disabled", "purged")
		for name, c := range refusals(t, records) {
			got, err := auth.APIKeys(records).Authenticate(t.Context(), c.Credentials)
			refused, ok := errors.AsType[*auth.UnauthenticatedError](err)
			if !ok || fmt.Sprintf("%v %s", err, err) != "unauthenticated unauthenticated" {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if got.Tenant != "" || got.Scopes != 0 || got.Actor != (control.Actor{}) {
				t.Errorf("%s: %+v", name, got)
			}
			if reason := refused.Reason(); !strings.HasSuffix(reason, c.reason) || auth.Redact(reason) != reason {
				t.Errorf("%s: the reason is %q", name, reason)
			}
		}
	})
}

// asked is records that note what they are asked.
type asked struct {
	*control.Records
	calls []string
}

func (a *asked) Verify(id, secret string) (control.APIKey, bool, error) {
	a.calls = append(a.calls, "Verify")
	return a.Records.Verify(id, secret)
}

func (a *asked) Tenant(name spi.TenantName) (control.TenantRecord, error) {
	a.calls = append(a.calls, "Tenant")
	return a.Records.Tenant(name)
}

// TestWithoutTheSecretEveryRefusalIsTheSameWork compares what is asked of the records, so
// that no measuring of time tells a key that there is from one that there is not.
func TestWithoutTheSecretEveryRefusalIsTheSameWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		records := newRecords(t, "acme", "other", "disabled", "purged")
		all := refusals(t, records)
		for _, name := range []string{"no credential", "no key", "a key that is cut", "an unknown key", "a wrong secret", "a revoked key, a wrong secret"} {
			for _, tenant := range []string{"", "acme", "nobody"} {
				a := &asked{Records: records}
				c := all[name].Credentials
				if tenant != "" {
					c.Tenant = []string{tenant}
				}
				_, err := auth.APIKeys(a).Authenticate(t.Context(), c)
				if !is[*auth.UnauthenticatedError](err) || !slices.Equal(a.calls, []string{"Verify"}) {
					t.Errorf("%s for %q: asks %v, %v", name, tenant, a.calls, err)
				}
			}
		}
	})
}

func TestAnAdminOutlivesATenantAndNotItsKey(t *testing.T) {
	records := newRecords(t, "acme")
	keyID, key := newKey(t, records, control.Grant{Tenants: []spi.TenantName{"acme"}, Scopes: readWrite | control.ScopeAdmin})
	_, none := newKey(t, records, control.Grant{Scopes: control.ScopeAdmin})
	must(t, records.DisableTenant(t.Context(), admin, "acme"))
	for _, key := range []string{key, none} {
		id, err := auth.APIKeys(records).Authenticate(t.Context(), bearer(key))
		must(t, err)
		if err := id.PermitAdmin(); err != nil || id.Tenant != "" {
			t.Errorf("%+v, %v", id, err)
		}
		if err := id.Permit("Read"); err == nil {
			t.Error("it may read")
		}
	}
	if _, err := auth.APIKeys(records).Authenticate(t.Context(), bearer(key, "acme")); !is[*auth.UnauthenticatedError](err) {
		t.Errorf("chosen: %v", err)
	}
	must(t, records.RevokeAPIKey(t.Context(), admin, keyID))
	if _, err := auth.APIKeys(records).Authenticate(t.Context(), bearer(key)); !is[*auth.UnauthenticatedError](err) {
		t.Errorf("revoked: %v", err)
	}
}

func TestAKeyExpiresWhenItShould(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := memory.New()
		must(t, err)
		records := control.New(store, control.Options{MaxStaleness: 24 * time.Hour})
		must(t, records.CreateTenant(t.Context(), admin, "acme"))
		_, key := newKey(t, records, control.Grant{Tenants: []spi.TenantName{"acme"}, Scopes: readWrite, ExpiresAt: time.Now().Add(time.Hour)})
		time.Sleep(time.Hour - time.Nanosecond)
		_, err = auth.APIKeys(records).Authenticate(t.Context(), bearer(key))
		must(t, err)
		time.Sleep(time.Nanosecond)
		if _, err := auth.APIKeys(records).Authenticate(t.Context(), bearer(key)); !is[*auth.UnauthenticatedError](err) {
			t.Errorf("%v", err)
		}
	})
}

// unavailable is records whose answers have become too old, after some.
type unavailable struct {
	*control.Records
	answers int
}

func (u *unavailable) fail() error {
	if u.answers--; u.answers < 0 {
		return &spi.UnavailableError{Cause: context.DeadlineExceeded}
	}
	return nil
}

func (u *unavailable) Verify(id, secret string) (control.APIKey, bool, error) {
	if err := u.fail(); err != nil {
		return control.APIKey{}, false, err
	}
	return u.Records.Verify(id, secret)
}

func (u *unavailable) Tenant(name spi.TenantName) (control.TenantRecord, error) {
	if err := u.fail(); err != nil {
		return control.TenantRecord{}, err
	}
	return u.Records.Tenant(name)
}

func TestRecordsThatAreTooOldLetNobodyIn(t *testing.T) {
	records := newRecords(t, "acme")
	_, key := newKey(t, records, control.Grant{Tenants: []spi.TenantName{"acme"}, Scopes: readWrite})
	for answers := range 2 {
		id, err := auth.APIKeys(&unavailable{records, answers}).Authenticate(t.Context(), bearer(key))
		if !is[*spi.UnavailableError](err) || id.Tenant != "" {
			t.Errorf("after %d answers: %+v, %v", answers, id, err)
		}
	}
}

func BenchmarkAuthenticate(b *testing.B) {
	records := newRecords(b, "acme")
	_, key := newKey(b, records, control.Grant{Tenants: []spi.TenantName{"acme"}, Scopes: readWrite})
	a, c := auth.APIKeys(records), bearer(key)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := a.Authenticate(b.Context(), c); err != nil {
			b.Fatal(err)
		}
	}
}
