package crypto_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/loomgate/loomgate/decorators/crypto"
	"github.com/loomgate/loomgate/spi"
)

var secret = []byte("correct horse battery staple")

func newRing(t *testing.T) (*crypto.Keyring, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keyring")
	return must[*crypto.Keyring](t)(crypto.CreateKeyring(path, secret)), path
}

func openRing(t *testing.T, path string) *crypto.Keyring {
	t.Helper()
	return must[*crypto.Keyring](t)(crypto.OpenKeyring(path, secret))
}

// wrapped is what a ring has wrapped.
type wrapped struct {
	by   string
	data []byte
}

func wrap(t *testing.T, k *crypto.Keyring) wrapped {
	t.Helper()
	data, by, err := k.Wrap(t.Context(), []byte("a key"), []byte("of acme"))
	if err != nil {
		t.Fatal(err)
	}
	return wrapped{by, data}
}

func wantUnwrapped(t *testing.T, k *crypto.Keyring, w wrapped) {
	t.Helper()
	key, err := k.Unwrap(t.Context(), w.by, w.data, []byte("of acme"))
	if err != nil || string(key) != "a key" {
		t.Errorf("%s unwraps %q (%v)", w.by, key, err)
	}
}

func TestARingUnwrapsAfterRotationsAndReopening(t *testing.T) {
	k, path := newRing(t)
	all := []wrapped{wrap(t, k)}
	for range 3 {
		if err := k.Rotate(); err != nil {
			t.Fatal(err)
		}
		all = append(all, wrap(t, k))
	}
	names := map[string]bool{}
	for _, w := range all {
		names[w.by] = true
		wantUnwrapped(t, k, w)
		wantUnwrapped(t, openRing(t, path), w)
	}
	if len(names) != len(all) {
		t.Errorf("the keys are named %v", names)
	}
	if again := wrap(t, openRing(t, path)); again.by != all[3].by {
		t.Errorf("opened again, it wraps by %s, not by %s", again.by, all[3].by)
	}
}

// TestARingThatRunsMeetsAKeyThatAnotherProcessAdded by looking at the file again.
func TestARingThatRunsMeetsAKeyThatAnotherProcessAdded(t *testing.T) {
	running, path := newRing(t)
	if err := openRing(t, path).Rotate(); err != nil {
		t.Fatal(err)
	}
	wantUnwrapped(t, running, wrap(t, openRing(t, path)))
}

// TestNoRotationIsLostAmongMany rotates by several processes' worth of rings at once: the
// file holds each key that was ever the newest.
func TestNoRotationIsLostAmongMany(t *testing.T) {
	_, path := newRing(t)
	var rings [4]*crypto.Keyring
	for i := range rings {
		rings[i] = openRing(t, path)
	}
	var work sync.WaitGroup
	all := make(chan wrapped, 200)
	for _, k := range rings {
		work.Go(func() {
			for range cap(all) / len(rings) {
				err := k.Rotate()
				if err != nil && !strings.Contains(err.Error(), "a rotation is under way") {
					t.Error(err)
				}
				data, by, err := k.Wrap(t.Context(), []byte("a key"), []byte("of acme"))
				if err != nil {
					t.Error(err)
				}
				all <- wrapped{by, data}
			}
		})
	}
	work.Wait()
	close(all)
	k := openRing(t, path)
	for w := range all {
		wantUnwrapped(t, k, w)
	}
	if left := must[[]os.DirEntry](t)(os.ReadDir(filepath.Dir(path))); len(left) != 1 {
		t.Errorf("left are %v", left)
	}
}

func TestARotationThatWasCutOffIsNamed(t *testing.T) {
	k, path := newRing(t)
	if err := os.WriteFile(path+".new", []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := want[*crypto.KeyringError](t, k.Rotate()); !strings.Contains(err.Error(), `remove "`+path+`.new"`) {
		t.Errorf("it says %v", err)
	}
	wantUnwrapped(t, openRing(t, path), wrap(t, k))
	if err := os.Remove(path + ".new"); err != nil {
		t.Fatal(err)
	}
	if err := k.Rotate(); err != nil {
		t.Error(err)
	}
}

func TestWhatIsBoundElsewhereIsNotUnwrapped(t *testing.T) {
	k, _ := newRing(t)
	other, _ := newRing(t)
	mine, others := wrap(t, k), wrap(t, other)
	damaged := bytes.Clone(mine.data)
	damaged[len(damaged)-1]++
	for name, err := range map[string]error{
		"bound to another tenant": second(k.Unwrap(t.Context(), mine.by, mine.data, []byte("of bolt"))),
		"of another ring":         second(k.Unwrap(t.Context(), others.by, others.data, []byte("of acme"))),
		"of no ring":              second(k.Unwrap(t.Context(), "kms/1", mine.data, []byte("of acme"))),
		"of a key never heard of": second(k.Unwrap(t.Context(), mine.by[:len(mine.by)-8]+"00000000", mine.data, []byte("of acme"))),
		"damaged":                 second(k.Unwrap(t.Context(), mine.by, damaged, []byte("of acme"))),
	} {
		if !errors.Is(err, crypto.ErrCannotUnwrap) {
			t.Errorf("what is %s answers %v", name, err)
		}
	}
}

func second[V any](_ V, err error) error { return err }

func TestEachFaultOfAFileIsNamed(t *testing.T) {
	_, path := newRing(t)
	content := must[[]byte](t)(os.ReadFile(path))
	write := func(content []byte) string {
		path := filepath.Join(t.TempDir(), "keyring")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	_, err := crypto.OpenKeyring(path, []byte("correct horse battery stable"))
	if !errors.Is(err, crypto.ErrWrongSecret) || want[*crypto.KeyringError](t, err).Path != path {
		t.Errorf("a wrong secret answers %v", err)
	}
	for i := range content { // each byte of the file, in turn
		damaged := bytes.Clone(content)
		damaged[i] ^= 0x10
		_, err := crypto.OpenKeyring(write(damaged), secret)
		if err == nil || errors.Is(err, crypto.ErrWrongSecret) {
			t.Fatalf("byte %d, %q, damaged: %v", i, content[i], err)
		}
		want[*crypto.KeyringError](t, err)
	}
	for _, n := range []int{0, 1, len(content) / 2, len(content) - 3} {
		if _, err := crypto.OpenKeyring(write(content[:n]), secret); !errors.Is(err, crypto.ErrDamagedKeyring) {
			t.Errorf("cut to %d bytes: %v", n, err)
		}
	}
	if _, err := crypto.OpenKeyring(write(append(bytes.Clone(content), "{}"...)), secret); !errors.Is(err, crypto.ErrDamagedKeyring) {
		t.Errorf("with more at its end: %v", err)
	}
	if _, err := crypto.OpenKeyring(path+"-absent", secret); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	for _, make := range []func(string, []byte) (*crypto.Keyring, error){crypto.OpenKeyring, crypto.CreateKeyring} {
		if _, err := make(path, []byte("short")); err == nil || !strings.Contains(err.Error(), "less than 16") {
			t.Errorf("a short secret: %v", err)
		}
	}
}

func TestARingIsNeverWrittenOver(t *testing.T) {
	k, path := newRing(t)
	_, err := crypto.CreateKeyring(path, secret)
	if !errors.Is(err, os.ErrExist) {
		t.Errorf("it answers %v", err)
	}
	wantUnwrapped(t, openRing(t, path), wrap(t, k))
}

// TestARingInThePlaceOfAnotherIsRefused by a process that has the other open.
func TestARingInThePlaceOfAnotherIsRefused(t *testing.T) {
	k, path := newRing(t)
	_, other := newRing(t)
	if err := os.Rename(other, path); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := want[*crypto.KeyringError](t, k.Rotate()); !strings.Contains(err.Error(), "it is ring") {
			t.Errorf("it says %v", err)
		}
	}
}

func TestOnlyItsOwnerReadsTheFileAndNoKeyStandsInIt(t *testing.T) {
	k, path := newRing(t)
	for range 2 {
		info := must[os.FileInfo](t)(os.Stat(path))
		if info.Mode().Perm() != 0o600 {
			t.Errorf("its mode is %v", info.Mode())
		}
		if content := must[[]byte](t)(os.ReadFile(path)); bytes.Contains(content, secret) {
			t.Error("the secret stands in it")
		}
		if err := k.Rotate(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestALayerLivesOnARing through rotations of the ring and of the tenant.
func TestALayerLivesOnARing(t *testing.T) {
	r := newRig(t)
	k, path := newRing(t)
	node := func(k *crypto.Keyring) *spi.Store {
		return must[*spi.Store](t)(crypto.New(r.inner, k, crypto.Options{}))
	}
	r.append(node(k), "4:acme/e", 0, noted("one"))
	if err := k.Rotate(); err != nil {
		t.Fatal(err)
	}
	keys := must[*crypto.Keys](t)(crypto.NewKeys(r.inner, k, crypto.Options{}))
	if got := must[crypto.Rewrapped](t)(keys.Rewrap(t.Context(), "acme")); got != (crypto.Rewrapped{TenantKeys: 1}) {
		t.Errorf("it rewraps %+v", got)
	}
	r.wantRead(node(openRing(t, path)), "4:acme/e", "one")
	other, _ := newRing(t)
	_, err := r.read(node(other), "4:acme/e")
	want[*crypto.KeyLostError](t, err)
}
