package config

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	withTLS     = "tls: {cert_file: c, key_file: k, client_ca_file: a, client_auth: optional}\n"
	oneProvider = "identity: {providers: [{issuer: 'https://login.example.com', audience: [loomgate]}]}"
)

func TestAProviderNeedsOnlyItsIssuerAndAnAudience(t *testing.T) {
	c := mustRead(t, oneProvider)
	p := c.Identity.Providers[0]
	if p.TenantClaim == "" || p.Scopes.Claim == "" || p.ClockSkew > time.Minute || len(p.Algorithms) == 0 || p.KeysMinRefresh > p.KeysRefresh {
		t.Errorf("%+v", p)
	}
	if len(p.Scopes.Admin) > 0 {
		t.Errorf("tokens administer unasked: %v", p.Scopes.Admin)
	}
	wantLoadable(t, c)
	wantLoadable(t, mustRead(t, withTLS+"identity: {certificates: [{uri: 'spiffe://a/b', scopes: [admin]}, {common_name: 'a, b', tenants: [x], scopes: [read]}]}"))
	c = mustRead(t, "", "LOOMGATE_IDENTITY_PROVIDERS_0_ISSUER=https://a", "LOOMGATE_IDENTITY_PROVIDERS_0_AUDIENCE=x,y", "LOOMGATE_IDENTITY_PROVIDERS_0_SCOPES_ADMIN=root")
	if p := c.Identity.Providers[0]; len(p.Audience) != 2 || len(p.Scopes.Admin) != 1 {
		t.Errorf("from variables: %+v", p)
	}
}

func TestAProviderThatWouldLetTooMuchInIsRefused(t *testing.T) {
	const at = "gateway.yaml:1:24: identity.providers[0]"
	for settings, want := range map[string]string{
		"audience: [a]": ".issuer is no issuer, such as https://login.example.com",
		"issuer: 'http://login.example.com', audience: [a]":                          ".issuer is no issuer, such as https://login.example.com",
		"issuer: 'https://u:p@h', audience: [a]":                                     ".issuer is no issuer, such as https://login.example.com",
		"issuer: 'https://h?x', audience: [a]":                                       ".issuer is no issuer, such as https://login.example.com",
		"issuer: 'https://h'":                                                        ".audience is missing: tokens for others would be taken",
		"issuer: 'https://h', audience: []":                                          ".audience is missing: tokens for others would be taken",
		"issuer: 'https://h', audience: [a], algorithms: [none]":                     ".algorithms are not of RS256",
		"issuer: 'https://h', audience: [a], algorithms: [HS256]":                    ".algorithms are not of RS256",
		"issuer: 'https://h', audience: [a], algorithms: []":                         ".algorithms are not of RS256",
		"issuer: 'https://h', audience: [a], tenant_claim: ''":                       ".tenant_claim is empty",
		"issuer: 'https://h', audience: [a], scopes: {claim: ''}":                    ".scopes.claim is empty",
		"issuer: 'https://h', audience: [a], clock_skew: 1h":                         ".clock_skew is not in 0s to 5m",
		"issuer: 'https://h', audience: [a], keys_min_refresh: 0s":                   ".keys_min_refresh is not in 1s to 10m",
		"issuer: 'https://h', audience: [a], keys_refresh: 1m, keys_min_refresh: 2m": ".keys_refresh is less than keys_min_refresh",
	} {
		_, err := read("identity: {providers: [{" + settings + "}]}")
		if err == nil || strings.Count(err.Error(), "\n") > 0 || !strings.Contains(err.Error(), "identity.providers[0]"+want) {
			t.Errorf("%s: %v; want %s%s", settings, err, at, want)
		}
	}
	_, err := read("identity: {providers: [{issuer: 'https://h', audience: [a]}, {issuer: 'https://h', audience: [b]}]}")
	wantProblems(t, err, "gateway.yaml:1:71: identity.providers[1].issuer is that of identity.providers[0]")
}

func TestAMappingOfCertificatesIsWhole(t *testing.T) {
	for settings, want := range map[string]string{
		"tenants: [a], scopes: [read]":                             " names its subject by none or several of common_name, uri and dns",
		"common_name: x, dns: y, tenants: [a], scopes: [read]":     " names its subject by none or several of common_name, uri and dns",
		"common_name: x, tenants: [a]":                             ".scopes are not of read, write, admin",
		"common_name: x, tenants: [a], scopes: [read, everything]": ".scopes are not of read, write, admin",
		"common_name: x, scopes: [read]":                           ".tenants are missing: only what does nothing but administer has none",
		"common_name: x, scopes: [admin, read]":                    ".tenants are missing: only what does nothing but administer has none",
		"uri: worker, scopes: [admin]":                             ".uri is no URI, such as spiffe://example.com/worker",
		"uri: 'spiffe://a/b c', scopes: [admin]":                   ".uri is no URI, such as spiffe://example.com/worker",
	} {
		_, err := read(withTLS + "identity: {certificates: [{" + settings + "}]}")
		if err == nil || strings.Count(err.Error(), "\n") > 0 || !strings.Contains(err.Error(), "identity.certificates[0]"+want) {
			t.Errorf("%s: %v; want %s", settings, err, want)
		}
	}
	_, err := read(withTLS + "identity: {certificates: [{dns: a, scopes: [admin]}, {dns: a, scopes: [admin]}]}")
	wantProblems(t, err, "gateway.yaml:2:54: identity.certificates[1] is about the subject of identity.certificates[0]")
}

func TestClientsCertificatesNeedTLSAndAuthorities(t *testing.T) {
	for text, want := range map[string]string{
		"tls: {client_auth: optional}":                                          "gateway.yaml:1:20: tls.client_auth is given without tls.cert_file and tls.key_file",
		"tls: {cert_file: c, key_file: k, client_auth: required}":               "gateway.yaml:1:47: tls.client_auth is given without tls.client_ca_file",
		"tls: {cert_file: c, key_file: k, client_ca_file: a}":                   "gateway.yaml:1:50: tls.client_ca_file is given, and tls.client_auth is off",
		"tls: {cert_file: c, key_file: k, client_ca_file: a, client_auth: off}": "gateway.yaml:1:50: tls.client_ca_file is given, and tls.client_auth is off",
		"tls: {client_auth: sometimes}":                                         "gateway.yaml:1:20: tls.client_auth is not off or optional or required",
		"identity: {certificates: [{dns: a, scopes: [admin]}]}":                 "gateway.yaml:1:12: identity.certificates are given, and tls.client_auth is off",
	} {
		_, err := read(text)
		wantProblems(t, err, want)
	}
}

func TestFilesForTLSToAShardHaveToBeThere(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	const unreadable, broken = "names a file in sslrootcert, sslcert or sslkey that cannot be read: no such file or directory",
		"has settings for TLS that do not hold: sslmode, or what is in the files sslrootcert, sslcert and sslkey"
	for settings, want := range map[string]string{
		"sslmode=verify-full sslrootcert=" + missing:                    unreadable,
		"sslmode=verify-full sslrootcert=" + secretFile(t, "no PEM"):    broken,
		"sslmode=verify-full sslcert=" + missing + " sslkey=" + missing: unreadable,
		"sslmode=verify-full sslcert=" + missing:                        broken,
		"sslmode=verify-everything":                                     broken,
		"sslmode=verify-full port=x":                                    "is no DSN of Postgres, such as postgres://user@host:5432/database",
	} {
		path := secretFile(t, "host=db password=hunter2 "+settings)
		_, err := read("shards: [{name: a, dsn_file: " + path + "}]")
		wantProblems(t, err, "gateway.yaml:1:30: shards[0].dsn_file "+want)
		wantHidden(t, settings, err.Error())
	}
}

func TestAServerIsVerifiedOnlyIfEveryWayToItIs(t *testing.T) {
	for dsn, want := range map[string]bool{
		"postgres://db/d":                                     false,
		"postgres://db/d?sslmode=disable":                     false,
		"postgres://db/d?sslmode=prefer":                      false,
		"postgres://db/d?sslmode=require":                     false,
		"postgres://db/d?sslmode=verify-ca":                   false,
		"postgres://db/d?sslmode=verify-full":                 true,
		"postgres://db,127.0.0.1/d?sslmode=verify-full":       true,
		"postgres://127.0.0.1,db/d?sslmode=require":           false,
		"postgres://127.0.0.1/d":                              true,
		"postgres://localhost/d?sslmode=disable":              true,
		"host=/run/postgresql dbname=d":                       true,
		"host=/run/postgresql,db dbname=d":                    false,
		"host=db dbname=d sslrootcert=system sslmode=disable": true, // the driver makes it verify-full
		"no DSN": false,
	} {
		if got := (Shard{DSN: NewSecret(dsn)}).VerifiesServer(); got != want {
			t.Errorf("%s: %v", dsn, got)
		}
	}
}
