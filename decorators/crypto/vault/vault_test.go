package vault_test

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/decorators/crypto"
	"github.com/loomgate/loomgate/decorators/crypto/vault"
	"github.com/loomgate/loomgate/spi"
)

// A transit server answers as Vault does: one mount, one namespace, one token, keys of
// the type aes256-gcm96.
type transit struct {
	mu        sync.Mutex
	mount     string
	namespace string
	token     string
	keys      map[string][]cipher.AEAD // by version, from 1
	answer    func(http.ResponseWriter, *http.Request) bool
}

func newTransit(t *testing.T) *transit {
	s := &transit{mount: "transit", token: "s.token", keys: map[string][]cipher.AEAD{}}
	s.rotate(t, "loomgate")
	return s
}

func (s *transit) rotate(t *testing.T, key string) {
	raw := make([]byte, 32)
	rand.Read(raw)
	block, err := aes.NewCipher(raw)
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys[key] = append(s.keys[key], gcm)
}

func refuse(w http.ResponseWriter, status int, errs ...string) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string][]string{"errors": errs})
}

func (s *transit) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answer != nil && s.answer(w, r) {
		return
	}
	path, found := strings.CutPrefix(r.URL.Path, "/v1/"+s.mount+"/")
	operation, key, _ := strings.Cut(path, "/")
	switch {
	case r.Header.Get("X-Vault-Token") != s.token:
		refuse(w, http.StatusForbidden, "permission denied")
		return
	case !found || r.Header.Get("X-Vault-Namespace") != s.namespace:
		refuse(w, http.StatusNotFound, "no handler for route")
		return
	case r.Method != http.MethodPost && r.Method != http.MethodPut:
		refuse(w, http.StatusMethodNotAllowed, "unsupported operation")
		return
	}
	var req map[string]string
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		refuse(w, http.StatusBadRequest, "failed to parse JSON input")
		return
	}
	associated, err := base64.StdEncoding.DecodeString(req["associated_data"])
	versions := s.keys[key]
	switch {
	case err != nil:
		refuse(w, http.StatusBadRequest, "failed to base64-decode associated_data")
	case len(versions) == 0:
		refuse(w, http.StatusBadRequest, "encryption key not found")
	case operation == "encrypt":
		plaintext, err := base64.StdEncoding.DecodeString(req["plaintext"])
		if err != nil {
			refuse(w, http.StatusBadRequest, "failed to base64-decode plaintext")
			return
		}
		gcm := versions[len(versions)-1]
		nonce := make([]byte, gcm.NonceSize())
		rand.Read(nonce)
		sealed := base64.StdEncoding.EncodeToString(gcm.Seal(nonce, nonce, plaintext, associated))
		_ = json.NewEncoder(w).Encode(map[string]any{"request_id": "r", "data": map[string]any{
			"ciphertext": fmt.Sprintf("vault:v%d:%s", len(versions), sealed), "key_version": len(versions),
		}})
	case operation == "decrypt":
		plaintext, err := open(versions, req["ciphertext"], associated)
		if err != nil {
			refuse(w, http.StatusBadRequest, err.Error())
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": map[string]string{"plaintext": base64.StdEncoding.EncodeToString(plaintext)}})
	default:
		refuse(w, http.StatusNotFound)
	}
}

func open(versions []cipher.AEAD, ciphertext string, associated []byte) ([]byte, error) {
	var version int
	var text string
	if _, err := fmt.Sscanf(ciphertext, "vault:v%d:%s", &version, &text); err != nil {
		return nil, errors.New("invalid ciphertext: no prefix")
	}
	if version < 1 || version > len(versions) {
		return nil, errors.New("invalid ciphertext: version is too new")
	}
	sealed, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(sealed) < 12 {
		return nil, errors.New("invalid ciphertext: could not decode base64")
	}
	plaintext, err := versions[version-1].Open(nil, sealed[:12], sealed[12:], associated)
	if err != nil {
		return nil, errors.New("cipher: message authentication failed")
	}
	return plaintext, nil
}

// config starts the server and returns how it is reached.
func (s *transit) config(t *testing.T) vault.Config {
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return vault.Config{Address: server.URL, Key: "loomgate", TokenFile: tokenFile(t, s.token+"\n")}
}

func tokenFile(t *testing.T, content string) string {
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func must[V any](t *testing.T) func(V, error) V {
	return func(v V, err error) V {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

var (
	key        = bytes.Repeat([]byte{0, 0xff}, 16)
	associated = []byte("of acme\x00")
)

func TestAKeyComesBackAndAfterARotationToo(t *testing.T) {
	s := newTransit(t)
	kms := must[*vault.Transit](t)(vault.New(s.config(t)))
	type pair struct {
		by      string
		wrapped []byte
	}
	var all []pair
	for _, want := range []string{"vault/transit/loomgate/v1", "vault/transit/loomgate/v2", "vault/transit/loomgate/v3"} {
		wrapped, by, err := kms.Wrap(t.Context(), key, associated)
		if err != nil || by != want {
			t.Fatalf("it wraps by %q (%v), not by %q", by, err, want)
		}
		if bytes.Contains(wrapped, []byte(base64.StdEncoding.EncodeToString(key))) {
			t.Error("the key stands in what is wrapped")
		}
		all = append(all, pair{by, wrapped})
		s.rotate(t, "loomgate")
	}
	for _, p := range all {
		if got, err := kms.Unwrap(t.Context(), p.by, p.wrapped, associated); err != nil || !bytes.Equal(got, key) {
			t.Errorf("%s unwraps %x (%v)", p.by, got, err)
		}
	}
}

func TestMountNamespaceAndTokenAreStated(t *testing.T) {
	s := newTransit(t)
	s.mount, s.namespace = "teams/blue/transit", "admin/blue"
	c := s.config(t)
	c.Mount, c.Namespace = "/teams/blue/transit/", "admin/blue"
	kms := must[*vault.Transit](t)(vault.New(c))
	wrapped, by, err := kms.Wrap(t.Context(), key, associated)
	if err != nil || by != "vault/teams/blue/transit/loomgate/v1" {
		t.Fatalf("it wraps by %q (%v)", by, err)
	}
	// A token that was renewed is read from its file.
	s.token = "s.renewed"
	if _, err := kms.Unwrap(t.Context(), by, wrapped, associated); status(t, err) != http.StatusForbidden {
		t.Errorf("with the old token it answers %v", err)
	}
	if err := os.WriteFile(c.TokenFile, []byte(" s.renewed "), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := kms.Unwrap(t.Context(), by, wrapped, associated); err != nil {
		t.Errorf("with the new one it answers %v", err)
	}
}

func status(t *testing.T, err error) int {
	t.Helper()
	refused, ok := errors.AsType[*vault.StatusError](err)
	if !ok {
		t.Fatalf("the error is %v", err)
	}
	return refused.Status
}

func TestWhatCannotBeUnwrappedIsToldFromWhatMayPass(t *testing.T) {
	s := newTransit(t)
	c := s.config(t)
	kms := must[*vault.Transit](t)(vault.New(c))
	wrapped, by, err := kms.Wrap(t.Context(), key, associated)
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(wrapped)
	damaged[len(damaged)-3] ^= 1
	status := func(code int) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			refuse(w, code, "because")
			return true
		}
	}
	for _, c := range []struct {
		name       string
		by         string
		wrapped    []byte
		associated []byte
		answer     func(http.ResponseWriter, *http.Request) bool
		key        string
		lost       bool
	}{
		{name: "bound to another tenant", associated: []byte("of bolt"), lost: true},
		{name: "damaged", wrapped: damaged, lost: true},
		{name: "no ciphertext of Vault's", wrapped: []byte("keyring"), lost: true},
		{name: "another version than its name says", by: "vault/transit/loomgate/v2", lost: true},
		{name: "of another mount", by: "vault/other/loomgate/v1", lost: true},
		{name: "of another KMS", by: "keyring/1", lost: true},
		{name: "under a key that is gone", key: "gone", by: "vault/transit/gone/v1", lost: true},
		{name: "forbidden", answer: status(http.StatusForbidden)},
		{name: "not mounted", answer: status(http.StatusNotFound)},
		{name: "sealed", answer: status(http.StatusServiceUnavailable)},
		{name: "failing", answer: status(http.StatusInternalServerError)},
		{name: "too busy", answer: status(http.StatusTooManyRequests)},
		{name: "a page of a proxy's", answer: func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusBadGateway)
			_, _ = w.Write([]byte(`{"status": 400, "errors": "none of Vault's"}`))
			return true
		}},
		{name: "no JSON", answer: func(w http.ResponseWriter, _ *http.Request) bool {
			_, _ = w.Write([]byte("OK"))
			return true
		}},
		{name: "empty", answer: func(w http.ResponseWriter, _ *http.Request) bool {
			_, _ = w.Write([]byte(`{"data": {}}`))
			return true
		}},
		{name: "cut off", answer: func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte(`{"data":`))
			return true
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			kms := kms
			if c.key != "" {
				config := s.config(t)
				config.Key = c.key
				kms = must[*vault.Transit](t)(vault.New(config))
			}
			s.mu.Lock()
			s.answer = c.answer
			s.mu.Unlock()
			if c.by == "" {
				c.by = by
			}
			if c.wrapped == nil {
				c.wrapped = wrapped
			}
			if c.associated == nil {
				c.associated = associated
			}
			got, err := kms.Unwrap(t.Context(), c.by, c.wrapped, c.associated)
			if err == nil || len(got) > 0 {
				t.Fatalf("it unwraps %x (%v)", got, err)
			}
			if lost := errors.Is(err, crypto.ErrCannotUnwrap); lost != c.lost {
				t.Errorf("it is lost: %v (%v)", lost, err)
			}
			for _, told := range []string{"s.token", base64.StdEncoding.EncodeToString(key)} {
				if strings.Contains(err.Error(), told) {
					t.Errorf("it tells %q: %v", told, err)
				}
			}
		})
	}
}

func TestAServerThatDoesNotAnswerIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := vault.Config{Address: "https://vault.example.com", Key: "loomgate", TokenFile: tokenFile(t, "t"), Transport: silent{}}
		begun := time.Now()
		_, _, err := must[*vault.Transit](t)(vault.New(c)).Wrap(t.Context(), key, associated)
		if took := time.Since(begun); err == nil || took != 5*time.Second {
			t.Errorf("it answers %v after %v", err, took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _, err = must[*vault.Transit](t)(vault.New(c)).Wrap(ctx, key, associated)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a caller's deadline answers %v", err)
		}
	})
}

// silent never answers.
type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestAStandbyIsFollowedToTheActiveNode but never to where the token could be read on
// the way.
func TestAStandbyIsFollowedToTheActiveNode(t *testing.T) {
	s := newTransit(t)
	c := s.config(t)
	redirect := func(to string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, to+r.URL.Path, http.StatusTemporaryRedirect)
		})
	}
	standby := httptest.NewServer(redirect(c.Address))
	defer standby.Close()
	active := c.Address
	c.Address = standby.URL
	kms := must[*vault.Transit](t)(vault.New(c))
	wrapped, by, err := kms.Wrap(t.Context(), key, associated)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := kms.Unwrap(t.Context(), by, wrapped, associated); err != nil || !bytes.Equal(got, key) {
		t.Errorf("it unwraps %x (%v)", got, err)
	}
	secure := httptest.NewTLSServer(redirect(active))
	defer secure.Close()
	c.Address, c.Transport = secure.URL, secure.Client().Transport
	if _, _, err := must[*vault.Transit](t)(vault.New(c)).Wrap(t.Context(), key, associated); err == nil || !strings.Contains(err.Error(), "from https to http") {
		t.Errorf("a redirect to http answers %v", err)
	}
}

func TestAConfigurationThatCannotBeIsRefused(t *testing.T) {
	good := vault.Config{Address: "https://vault.example.com:8200/base", Key: "k", TokenFile: "token"}
	if _, err := vault.New(good); err != nil {
		t.Fatal(err)
	}
	for field, change := range map[string]func(*vault.Config){
		"address":    func(c *vault.Config) { c.Address = "vault.example.com:8200" },
		"key":        func(c *vault.Config) { c.Key = "a/b" },
		"mount":      func(c *vault.Config) { c.Mount = "../sys" },
		"token file": func(c *vault.Config) { c.TokenFile = "" },
		"timeout":    func(c *vault.Config) { c.Timeout = -1 },
	} {
		c := good
		change(&c)
		_, err := vault.New(c)
		if refused, ok := errors.AsType[*vault.ConfigError](err); !ok || refused.Field != field {
			t.Errorf("for the %s it answers %v", field, err)
		}
	}
	c := good
	c.Address = "https://user:password@vault.example.com"
	if _, err := vault.New(c); err == nil || strings.Contains(err.Error(), "password") {
		t.Errorf("an address with a password answers %v", err)
	}
	c = good
	c.TokenFile = filepath.Join(t.TempDir(), "absent")
	if _, _, err := must[*vault.Transit](t)(vault.New(c)).Wrap(t.Context(), key, associated); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without the token's file it answers %v", err)
	}
}

// TestALayerLivesOnVault through a rotation of Vault's key.
func TestALayerLivesOnVault(t *testing.T) {
	s := newTransit(t)
	kms := must[*vault.Transit](t)(vault.New(s.config(t)))
	inner := must[*spi.Store](t)(memory.New())
	ctx := t.Context()
	write := must[*spi.Store](t)(crypto.New(inner, kms, crypto.Options{}))
	event := spi.Event{ID: spi.NewEventID(), Kind: "Noted", Payload: []byte("secret")}
	must[spi.AppendResponse](t)(spi.Append(ctx, write, spi.AppendRequest{Execution: "4:acme/e", Events: []spi.Event{event}}))
	s.rotate(t, "loomgate")
	keys := must[*crypto.Keys](t)(crypto.NewKeys(inner, kms, crypto.Options{}))
	if got := must[crypto.Rewrapped](t)(keys.Rewrap(ctx, "acme")); got != (crypto.Rewrapped{TenantKeys: 1}) {
		t.Errorf("it rewraps %+v", got)
	}
	read := must[*spi.Store](t)(crypto.New(inner, kms, crypto.Options{}))
	res := must[spi.ReadResponse](t)(spi.Read(ctx, read, spi.ReadRequest{Execution: "4:acme/e", Limit: 1}))
	if string(res.Events[0].Payload) != "secret" {
		t.Errorf("it reads %q", res.Events[0].Payload)
	}
	s.mu.Lock()
	s.keys = map[string][]cipher.AEAD{}
	s.mu.Unlock()
	_, err := spi.Read(ctx, must[*spi.Store](t)(crypto.New(inner, kms, crypto.Options{})), spi.ReadRequest{Execution: "4:acme/e", Limit: 1})
	if lost, ok := errors.AsType[*crypto.KeyLostError](err); !ok || lost.Owner != "4:acme/e" {
		t.Errorf("without the key it answers %v", err)
	}
}
