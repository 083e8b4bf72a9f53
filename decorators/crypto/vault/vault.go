// Package vault wraps tenants' keys by the transit engine of HashiCorp Vault, or of
// what speaks its API, for package crypto.
//
// The transit key has to be of a type that takes associated data: aes256-gcm96 (the
// default) or chacha20-poly1305. The token needs update on MOUNT/encrypt/KEY and
// MOUNT/decrypt/KEY, and nothing else.
package vault

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/loomgate/loomgate/decorators/crypto"
)

// A Config says where the key is.
type Config struct {
	Address   string // of the server, such as https://vault.example.com:8200
	Mount     string // of the transit engine; "transit" if empty
	Key       string // the transit key
	Namespace string // "" for none

	// TokenFile holds the token, with or without white space around it. It is read for
	// each call, so that whatever renews the token may replace the file.
	TokenFile string

	// Timeout bounds one call; 5 s if it is 0.
	Timeout time.Duration

	// Transport carries the calls; http.DefaultTransport if nil. It is where a CA of
	// one's own belongs.
	Transport http.RoundTripper
}

// A Transit is a [crypto.KMS]. What it wraps is named after the mount, the key and its
// version, such as vault/transit/loomgate/v3.
type Transit struct {
	config Config
	base   *url.URL
	client *http.Client
}

var _ crypto.KMS = (*Transit)(nil)

// A ConfigError refuses a configuration.
type ConfigError struct{ Field, Rule string }

func (e *ConfigError) Error() string { return "vault: " + e.Field + " " + e.Rule }

// New returns a KMS. It calls nobody; the error is a [ConfigError].
func New(c Config) (*Transit, error) {
	c.Mount = cmp.Or(strings.Trim(c.Mount, "/"), "transit")
	c.Timeout = cmp.Or(c.Timeout, 5*time.Second)
	base, err := url.Parse(c.Address)
	switch {
	case err != nil || base.Host == "" || base.Scheme != "https" && base.Scheme != "http":
		return nil, &ConfigError{"address", "is no http or https URL"}
	case base.User != nil || base.RawQuery != "" || base.Fragment != "":
		return nil, &ConfigError{"address", "is more than a host and a path"}
	case c.Key == "" || strings.ContainsAny(c.Key, "/?#%"):
		return nil, &ConfigError{"key", "is empty or no name of one"}
	case strings.Contains("/"+c.Mount+"/"+c.Key+"/", "/../"):
		return nil, &ConfigError{"mount", "or key leads elsewhere"}
	case c.TokenFile == "":
		return nil, &ConfigError{"token file", "is missing"}
	case c.Timeout < 0:
		return nil, &ConfigError{"timeout", "is negative"}
	}
	return &Transit{c, base, &http.Client{Transport: c.Transport, Timeout: c.Timeout, CheckRedirect: checkRedirect}}, nil
}

// checkRedirect follows a standby to the active node, with the token, but never from
// https to http.
func checkRedirect(next *http.Request, so []*http.Request) error {
	if len(so) > 3 {
		return errors.New("more than three redirects")
	}
	if so[0].URL.Scheme == "https" && next.URL.Scheme != "https" {
		return errors.New("a redirect from https to http")
	}
	return nil
}

// name returns the name of a version of the key.
func (t *Transit) name(version string) string {
	return "vault/" + t.config.Mount + "/" + t.config.Key + "/" + version
}

// Wrap implements [crypto.KMS].
func (t *Transit) Wrap(ctx context.Context, key, associated []byte) (wrapped []byte, by string, err error) {
	var answer struct {
		Data struct{ Ciphertext string }
	}
	if err := t.call(ctx, "encrypt", request{Plaintext: key, AssociatedData: associated}, &answer); err != nil {
		return nil, "", err
	}
	version, ok := versionOf(answer.Data.Ciphertext)
	if !ok {
		return nil, "", errors.New("vault: encrypt answers no ciphertext")
	}
	return []byte(answer.Data.Ciphertext), t.name(version), nil
}

// Unwrap implements [crypto.KMS].
func (t *Transit) Unwrap(ctx context.Context, by string, wrapped, associated []byte) ([]byte, error) {
	version, ok := versionOf(string(wrapped))
	if !ok || by != t.name(version) {
		return nil, fmt.Errorf("vault: %w: %q is not wrapped by the key %q of %q", crypto.ErrCannotUnwrap, by, t.config.Key, t.config.Mount)
	}
	var answer struct {
		Data struct{ Plaintext []byte }
	}
	if err := t.call(ctx, "decrypt", request{Ciphertext: string(wrapped), AssociatedData: associated}, &answer); err != nil {
		return nil, err
	}
	if len(answer.Data.Plaintext) == 0 {
		return nil, errors.New("vault: decrypt answers no plaintext")
	}
	return answer.Data.Plaintext, nil
}

// versionOf returns the version of the key that a ciphertext is under, such as v3 of
// vault:v3:….
func versionOf(ciphertext string) (version string, ok bool) {
	parts := strings.SplitN(ciphertext, ":", 3)
	if len(parts) != 3 || parts[0] != "vault" || len(parts[1]) < 2 || parts[1][0] != 'v' || parts[2] == "" {
		return "", false
	}
	return parts[1], strings.Trim(parts[1][1:], "0123456789") == ""
}

// A request of the API; bytes are in base64 there.
type request struct {
	Plaintext      []byte `json:"plaintext,omitempty"`
	Ciphertext     string `json:"ciphertext,omitempty"`
	AssociatedData []byte `json:"associated_data,omitempty"`
}

// A StatusError is an answer that is none. Vault's 400 is [crypto.ErrCannotUnwrap]: the
// key is not there, or does not open what it was given. Any other may pass: a token is
// renewed, a seal opened, a mount brought back.
type StatusError struct {
	Status int
	Errors []string // as Vault says
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("vault: status %d: %s", e.Status, strings.Join(e.Errors, "; "))
}

// Unwrap returns crypto.ErrCannotUnwrap where trying again will not help.
func (e *StatusError) Unwrap() error {
	if e.Status == http.StatusBadRequest {
		return crypto.ErrCannotUnwrap
	}
	return nil
}

// maxAnswer bounds what is read of an answer.
const maxAnswer = 1 << 20

// call posts to an operation on the key.
func (t *Transit) call(ctx context.Context, operation string, req request, answer any) error {
	body, err := json.Marshal(req)
	if err != nil {
		return err
	}
	token, err := os.ReadFile(t.config.TokenFile)
	if err != nil {
		return fmt.Errorf("vault: the token: %w", err)
	}
	where := t.base.JoinPath("v1", t.config.Mount, operation, t.config.Key)
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, where.String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	post.Header.Set("Content-Type", "application/json")
	post.Header.Set("X-Vault-Request", "true")
	post.Header.Set("X-Vault-Token", string(bytes.TrimSpace(token)))
	if t.config.Namespace != "" {
		post.Header.Set("X-Vault-Namespace", t.config.Namespace)
	}
	res, err := t.client.Do(post)
	if err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	defer res.Body.Close()
	content, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("vault: %s: %w", operation, err)
	}
	if res.StatusCode != http.StatusOK {
		var said struct{ Errors []string }
		_ = json.Unmarshal(content, &said) // a proxy's page says nothing
		return &StatusError{res.StatusCode, said.Errors}
	}
	if err := json.Unmarshal(content, answer); err != nil {
		return fmt.Errorf("vault: %s answers no JSON that is expected: %w", operation, err)
	}
	return nil
}
