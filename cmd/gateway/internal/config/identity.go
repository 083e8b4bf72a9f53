package config

import (
	"net/url"
	"slices"
	"strings"
)

func (r *reading) checkClientAuth(c *Config) {
	on := c.TLS.ClientAuth == ClientAuthOptional || c.TLS.ClientAuth == ClientAuthRequired
	switch {
	case on && !c.TLS.Enabled():
		r.wrong("tls.client_auth", "is given without tls.cert_file and tls.key_file")
	case on && c.TLS.ClientCAFile == "":
		r.wrong("tls.client_auth", "is given without tls.client_ca_file")
	case !on && c.TLS.ClientCAFile != "":
		r.wrong("tls.client_ca_file", "is given, and tls.client_auth is off")
	case !on && len(c.Identity.Certificates) > 0:
		r.wrong("identity.certificates", "are given, and tls.client_auth is off")
	}
}

func (r *reading) checkIdentity(c *Config) {
	issuers := map[string]int{}
	for i, p := range c.Identity.Providers {
		at := element("identity.providers", i)
		r.checkProvider(at, p)
		if first, again := issuers[p.Issuer]; again {
			r.wrong(at+".issuer", "is that of %s", element("identity.providers", first))
		} else {
			issuers[p.Issuer] = i
		}
	}
	subjects := map[[3]string]int{}
	for i, m := range c.Identity.Certificates {
		at := element("identity.certificates", i)
		r.checkCertificate(at, m)
		subject := [3]string{m.CommonName, m.URI, m.DNS}
		if first, again := subjects[subject]; again {
			r.wrong(at, "is about the subject of %s", element("identity.certificates", first))
		} else {
			subjects[subject] = i
		}
	}
}

// algorithms are those that tokens can be signed with: none where whoever can verify a
// token can make one.
var algorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

func (r *reading) checkProvider(at string, p Provider) {
	if u, err := url.Parse(p.Issuer); err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		r.wrong(at+".issuer", "is no issuer, such as https://login.example.com")
	}
	if len(p.Audience) == 0 {
		r.wrong(at+".audience", "is missing: tokens for others would be taken")
	}
	if p.TenantClaim == "" {
		r.wrong(at+".tenant_claim", "is empty")
	}
	if p.Scopes.Claim == "" {
		r.wrong(at+".scopes.claim", "is empty")
	}
	if len(p.Algorithms) == 0 || slices.ContainsFunc(p.Algorithms, func(name string) bool { return !slices.Contains(algorithms, name) }) {
		r.wrong(at+".algorithms", "are not of %s", strings.Join(algorithms, ", "))
	}
	if p.KeysRefresh < p.KeysMinRefresh {
		r.wrong(at+".keys_refresh", "is less than keys_min_refresh")
	}
}

// scopes are those that a credential can have.
var scopes = []string{"read", "write", "admin"}

func (r *reading) checkCertificate(at string, m Certificate) {
	given := 0
	for _, name := range []string{m.CommonName, m.URI, m.DNS} {
		if name != "" {
			given++
		}
	}
	if given != 1 {
		r.wrong(at, "names its subject by none or several of common_name, uri and dns")
	}
	if m.URI != "" {
		if u, err := url.Parse(m.URI); err != nil || u.Scheme == "" || u.String() != m.URI {
			r.wrong(at+".uri", "is no URI, such as spiffe://example.com/worker")
		}
	}
	unknown := slices.ContainsFunc(m.Scopes, func(name string) bool { return !slices.Contains(scopes, name) })
	switch admin := slices.Contains(m.Scopes, "admin"); {
	case len(m.Scopes) == 0 || unknown:
		r.wrong(at+".scopes", "are not of %s", strings.Join(scopes, ", "))
	case len(m.Tenants) == 0 && (!admin || len(m.Scopes) > 1):
		r.wrong(at+".tenants", "are missing: only what does nothing but administer has none")
	}
}
