package auth

import (
	"context"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/go-jose/go-jose/v4"
)

// A discovery finds the keys of a provider, as OpenID Connect Discovery 1.0 has it.
type discovery struct {
	issuer string
	client *http.Client
}

// newClient returns a client for a provider, which speaks nothing but TLS. The file, if
// there is one, holds the authorities that it trusts instead of the system's.
func newClient(caFile string) (*http.Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if caFile != "" {
		roots, err := ReadAuthorities(caFile)
		if err != nil {
			return nil, fmt.Errorf("identity provider: %w", err)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	return &http.Client{
		Transport: transport,
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if req.URL.Scheme != "https" {
				return errors.New("it redirects to where there is no TLS")
			}
			if len(via) > 3 {
				return errors.New("it redirects again and again")
			}
			return nil
		},
	}, nil
}

// ReadAuthorities returns the certificates of a PEM file.
func ReadAuthorities(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate, PEM", file)
	}
	return pool, nil
}

func (d discovery) fetch(ctx context.Context) (*publicKeys, error) {
	var document struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	if err := d.get(ctx, strings.TrimSuffix(d.issuer, "/")+"/.well-known/openid-configuration", &document); err != nil {
		return nil, err
	}
	if document.Issuer != d.issuer {
		return nil, errors.New("the discovery document is of another issuer")
	}
	if at, err := url.Parse(document.Keys); err != nil || at.Scheme != "https" {
		return nil, errors.New("the discovery document has no jwks_uri with TLS")
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := d.get(ctx, document.Keys, &set); err != nil {
		return nil, err
	}
	keys := &publicKeys{byID: map[string][]jose.JSONWebKey{}}
	for _, raw := range set.Keys {
		var key jose.JSONWebKey
		if key.UnmarshalJSON(raw) == nil && usable(key) { // one of a kind that is not known is for others
			keys.byID[key.KeyID] = append(keys.byID[key.KeyID], key)
		}
	}
	if len(keys.byID) == 0 {
		return nil, errors.New("the provider publishes no key that can be used")
	}
	return keys, nil
}

// minRSA is the smallest RSA key that counts, in bits.
const minRSA = 2048

// usable reports whether a key is a public one for signatures.
func usable(key jose.JSONWebKey) bool {
	if r, is := key.Key.(*rsa.PublicKey); is && r.N.BitLen() < minRSA {
		return false
	}
	return key.IsPublic() && key.Valid() && (key.Use == "" || key.Use == "sig")
}

// maxDocument is the largest answer of a provider, in bytes.
const maxDocument = 1 << 20

// get decodes what is at a URL.
func (d discovery) get(ctx context.Context, from string, to any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return err
	}
	res, err := d.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", from, res.Status)
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, maxDocument+1))
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	if len(text) > maxDocument {
		return fmt.Errorf("%s answers with more than %d bytes", from, maxDocument)
	}
	if json.Unmarshal(text, to) != nil {
		return fmt.Errorf("%s answers with no JSON of what was asked", from)
	}
	return nil
}
