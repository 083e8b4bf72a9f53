package auth_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"net/url"
	"testing"
	"time"

	"github.com/loomgate/loomgate/cmd/gateway/internal/auth"
	"github.com/loomgate/loomgate/cmd/gateway/internal/config"
	"github.com/loomgate/loomgate/cmd/gateway/internal/control"
	"github.com/loomgate/loomgate/spi"
)

var mapped = []config.Certificate{
	{CommonName: "worker", Tenants: config.Texts{"acme"}, Scopes: config.Texts{"read", "write"}},
	{URI: "spiffe://example.com/operator", Scopes: config.Texts{"admin"}},
	{DNS: "reports.internal", Tenants: config.Texts{"globex", "acme"}, Scopes: config.Texts{"read"}},
	{CommonName: "gone", Tenants: config.Texts{"nobody"}, Scopes: config.Texts{"read"}},
	{CommonName: "control", Tenants: config.Texts{string(control.Tenant)}, Scopes: config.Texts{"read"}},
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// certificate returns one as a handshake has verified it.
func certificate(change func(*x509.Certificate)) *x509.Certificate {
	c := &x509.Certificate{NotBefore: noon.Add(-time.Hour), NotAfter: noon.Add(time.Hour)}
	change(c)
	return c
}

func named(name string) *x509.Certificate {
	return certificate(func(c *x509.Certificate) { c.Subject = pkix.Name{CommonName: name} })
}

func withURI(t *testing.T, text string) *x509.Certificate {
	u, err := url.Parse(text)
	must(t, err)
	return certificate(func(c *x509.Certificate) { c.URIs = []*url.URL{u} })
}

func withDNS(names ...string) *x509.Certificate {
	return certificate(func(c *x509.Certificate) { c.DNSNames = names })
}

func TestACertificateIsWhoItsSubjectIsMappedTo(t *testing.T) {
	certificates := auth.Certificates(newRecords(t, "acme", "globex"), mapped, auth.Options{Now: func() time.Time { return noon }})
	both := named("worker")
	both.DNSNames = []string{"reports.internal"}
	for _, c := range []struct {
		*x509.Certificate
		header []string
		actor  string
		tenant spi.TenantName
		scopes control.Scopes
	}{
		{named("worker"), nil, "certificate:CN=worker", "acme", readWrite},
		{named("worker"), []string{"acme"}, "certificate:CN=worker", "acme", readWrite},
		{withURI(t, "spiffe://example.com/operator"), nil, "certificate:URI=spiffe://example.com/operator", "", control.ScopeAdmin},
		{withDNS("x", "reports.internal"), []string{"globex"}, "certificate:DNS=reports.internal", "globex", control.ScopeRead},
		{withDNS("reports.internal"), nil, "certificate:DNS=reports.internal", "", control.ScopeRead},
		{both, nil, "certificate:CN=worker", "acme", readWrite},
	} {
		id, err := certificates.Authenticate(t.Context(), auth.Credentials{Certificate: c.Certificate, Tenant: c.header, Peer: peer})
		if err != nil || id.Actor != (control.Actor{APIKey: c.actor, Address: peer}) || id.Tenant != c.tenant || id.Scopes != c.scopes {
			t.Errorf("%s: %+v, %v", c.actor, id, err)
		}
	}
}

func TestACertificateOfNobodyIsRefused(t *testing.T) {
	now := noon
	certificates := auth.Certificates(newRecords(t, "acme", "globex"), mapped, auth.Options{Now: func() time.Time { return now }})
	const nobody, notInUse = "of nobody in identity.certificates", "is for a tenant that is not there or not in use"
	for name, c := range map[string]struct {
		*x509.Certificate
		header []string
		reason string
	}{
		"no name":                 {named(""), nil, nobody},
		"another name":            {named("worker2"), nil, nobody},
		"in other case":           {named("Worker"), nil, nobody},
		"the name as DNS":         {withDNS("worker"), nil, nobody},
		"below the DNS name":      {withDNS("a.reports.internal", "*.internal"), nil, nobody},
		"below the URI":           {withURI(t, "spiffe://example.com/operator/x"), nil, nobody},
		"another tenant":          {named("worker"), []string{"globex"}, "does not allow the tenant"},
		"a tenant there is not":   {named("gone"), nil, notInUse},
		"the system's own tenant": {named("control"), nil, notInUse},
		"the system's own, named": {named("control"), []string{"loomgate%2Fcontrol"}, "does not allow the tenant"},
	} {
		id, err := certificates.Authenticate(t.Context(), auth.Credentials{Certificate: c.Certificate, Tenant: c.header})
		wantRefused(t, name, "", id, err, c.reason)
	}
	for _, now = range []time.Time{noon.Add(-time.Hour - 1), noon.Add(time.Hour + 1)} {
		id, err := certificates.Authenticate(t.Context(), auth.Credentials{Certificate: named("worker")})
		wantRefused(t, now.String(), "", id, err, "has expired, or is not valid yet")
	}
}

func TestOneKindOfCredentialDecidesAndNoOtherIsAsked(t *testing.T) {
	p := newProvider(t)
	records := newRecords(t, "acme", "globex", "third")
	_, key := newKey(t, records, control.Grant{Tenants: []spi.TenantName{"globex"}, Scopes: readWrite})
	token := p.ec.sign(t, p.claims(map[string]any{"tenants": "third"}))
	whole := auth.Chain{
		APIKeys: auth.APIKeys(records), Tokens: p.tokens(records),
		Certificates: auth.Certificates(records, mapped, auth.Options{Now: func() time.Time { return noon }}),
	}
	keysOnly := auth.Chain{APIKeys: auth.APIKeys(records)}
	expired := p.ec.sign(t, p.claims(map[string]any{"exp": 1}))
	for name, c := range map[string]struct {
		auth.Chain
		authorization []string
		*x509.Certificate
		want spi.TenantName // "" for refused
	}{
		"a key":                              {whole, []string{"Bearer " + key}, nil, "globex"},
		"a token":                            {whole, []string{"bearer " + token}, nil, "third"},
		"a certificate":                      {whole, nil, named("worker"), "acme"},
		"a key and a certificate":            {whole, []string{"Bearer " + key}, named("worker"), "globex"},
		"a token and a certificate":          {whole, []string{"Bearer " + token}, named("worker"), "third"},
		"a key and a stranger's certificate": {whole, []string{"Bearer " + key}, named("stranger"), "globex"},
		"a wrong key and a certificate":      {whole, []string{"Bearer " + key + "x"}, named("worker"), ""},
		"a bad token and a certificate":      {whole, []string{"Bearer " + expired}, named("worker"), ""},
		"an empty header and a certificate":  {whole, []string{""}, named("worker"), ""},
		"another scheme and a certificate":   {whole, []string{"Basic d29ya2Vy"}, named("worker"), ""},
		"two headers and a certificate":      {whole, []string{"Bearer " + key, "Bearer " + token}, named("worker"), ""},
		"nothing":                            {whole, nil, nil, ""},
		"a stranger's certificate":           {whole, nil, named("stranger"), ""},
		"a token that nobody trusts":         {keysOnly, []string{"Bearer " + token}, nil, ""},
		"a certificate that nobody maps":     {keysOnly, nil, named("worker"), ""},
		"a key where there are only keys":    {keysOnly, []string{"Bearer " + key}, named("worker"), "globex"},
	} {
		id, err := c.Authenticate(t.Context(), auth.Credentials{Authorization: c.authorization, Certificate: c.Certificate, Peer: peer})
		if id.Tenant != c.want || (c.want == "") != is[*auth.UnauthenticatedError](err) {
			t.Errorf("%s: %+v, %v", name, id, err)
		}
	}
}
