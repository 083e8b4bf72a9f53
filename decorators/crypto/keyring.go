package crypto

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/tink"
)

// MinSecret is the least number of bytes of a keyring's secret.
const MinSecret = 16

// A Keyring is a KMS in a file: a few keys, of which the newest wraps, encrypted under
// a secret that is kept elsewhere. Whoever loses the file or the secret has lost
// everything that is encrypted; whoever has a backup of both and of the store can read
// what was shredded since.
type Keyring struct {
	path  string
	ring  string    // its id
	seal  tink.AEAD // made of the secret
	state atomic.Pointer[ringState]
}

// A ringState is the keys at one time.
type ringState struct {
	handle  *keyset.Handle
	aead    tink.AEAD
	primary uint32
}

// What a [KeyringError] wraps.
var (
	ErrWrongSecret    = errors.New("the secret is not the keyring's")
	ErrDamagedKeyring = errors.New("the file is damaged")
)

// A KeyringError says what is wrong with a keyring's file.
type KeyringError struct {
	Path string
	Err  error
}

func (e *KeyringError) Error() string { return fmt.Sprintf("keyring %q: %v", e.Path, e.Err) }

// Unwrap returns what is wrong.
func (e *KeyringError) Unwrap() error { return e.Err }

// CreateKeyring makes a keyring with one key in a file that must not exist, readable by
// its owner only. The secret is a passphrase or random bytes, at least MinSecret of
// them, every one of which counts: a line feed at the end too.
func CreateKeyring(path string, secret []byte) (*Keyring, error) {
	k, err := createKeyring(path, secret)
	if err != nil {
		return nil, &KeyringError{path, err}
	}
	return k, nil
}

// OpenKeyring opens a keyring. The error is a [KeyringError]; what it wraps tells a
// wrong secret ([ErrWrongSecret]) from a damaged file ([ErrDamagedKeyring]).
func OpenKeyring(path string, secret []byte) (*Keyring, error) {
	k, err := openKeyring(path, secret)
	if err != nil {
		return nil, &KeyringError{path, err}
	}
	return k, nil
}

// Rotate adds a key, which wraps from now on; the others stay, to unwrap. The file is
// replaced at once or not at all, and one rotation at a time. Bring the file to the
// other nodes at once: those that run look at it again when they meet a key that they
// do not know. Then call [Keys.Rewrap] for each tenant.
func (k *Keyring) Rotate() error {
	if err := k.rotate(); err != nil {
		return &KeyringError{k.path, err}
	}
	return nil
}

func createKeyring(path string, secret []byte) (*Keyring, error) {
	file := newRingFile()
	seal, err := file.derive(secret)
	if err != nil {
		return nil, err
	}
	handle, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	if err != nil {
		return nil, err
	}
	k := &Keyring{path: path, ring: file.Ring, seal: seal}
	if err := k.use(handle); err != nil {
		return nil, err
	}
	content, err := file.write(handle, seal)
	if err != nil {
		return nil, err
	}
	return k, writeNew(path, content)
}

func openKeyring(path string, secret []byte) (*Keyring, error) {
	file, err := readRingFile(path)
	if err != nil {
		return nil, err
	}
	seal, err := file.derive(secret)
	if err != nil {
		return nil, err
	}
	k := &Keyring{path: path, ring: file.Ring, seal: seal}
	return k, k.load(file)
}

// load makes the keys of a file the present ones.
func (k *Keyring) load(file ringFile) error {
	if file.Ring != k.ring {
		return fmt.Errorf("it is ring %s by now, not %s", file.Ring, k.ring)
	}
	handle, err := file.open(k.seal)
	if err != nil {
		return err
	}
	return k.use(handle)
}

func (k *Keyring) use(handle *keyset.Handle) error {
	primitive, err := aead.New(handle)
	if err != nil {
		return err
	}
	k.state.Store(&ringState{handle, primitive, handle.KeysetInfo().GetPrimaryKeyId()})
	return nil
}

// rotate reads the file again: another process may have rotated it. The new file is the
// lock.
func (k *Keyring) rotate() error {
	next := k.path + ".new"
	lock, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("a rotation is under way; if none is, one was cut off: remove %q", next)
	}
	if err != nil {
		return err
	}
	handle, err := k.rotated(lock)
	err = errors.Join(err, lock.Close())
	if err == nil {
		err = os.Rename(next, k.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(next))
	}
	return errors.Join(syncFolder(k.path), k.use(handle))
}

// rotated writes the ring with another key, which is its primary.
func (k *Keyring) rotated(to *os.File) (*keyset.Handle, error) {
	file, err := readRingFile(k.path)
	if err != nil {
		return nil, err
	}
	if err := k.load(file); err != nil {
		return nil, err
	}
	manager := keyset.NewManagerFromHandle(k.state.Load().handle)
	id, err := manager.Add(aead.AES256GCMKeyTemplate())
	if err != nil {
		return nil, err
	}
	if err := manager.SetPrimary(id); err != nil {
		return nil, err
	}
	handle, err := manager.Handle()
	if err != nil {
		return nil, err
	}
	content, err := file.write(handle, k.seal)
	if err != nil {
		return nil, err
	}
	if _, err := to.Write(content); err != nil {
		return nil, err
	}
	return handle, to.Sync()
}

// name returns the name of a key of the ring.
func (k *Keyring) name(id uint32) string { return fmt.Sprintf("keyring/%s/%08x", k.ring, id) }

// Wrap implements [KMS].
func (k *Keyring) Wrap(_ context.Context, key, associated []byte) (wrapped []byte, by string, err error) {
	s := k.state.Load()
	wrapped, err = s.aead.Encrypt(key, associated)
	return wrapped, k.name(s.primary), err
}

// Unwrap implements [KMS].
func (k *Keyring) Unwrap(_ context.Context, by string, wrapped, associated []byte) ([]byte, error) {
	if !strings.HasPrefix(by, "keyring/"+k.ring+"/") {
		return nil, fmt.Errorf("%w: %q is not of ring %s", ErrCannotUnwrap, by, k.ring)
	}
	if !k.holds(by) {
		if err := k.reload(); err != nil {
			return nil, err
		}
	}
	if !k.holds(by) {
		return nil, fmt.Errorf("%w: %q is not in file %q, which may be old", ErrCannotUnwrap, by, k.path)
	}
	key, err := k.state.Load().aead.Decrypt(wrapped, associated)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCannotUnwrap, err)
	}
	return key, nil
}

func (k *Keyring) holds(name string) bool {
	for _, key := range k.state.Load().handle.KeysetInfo().GetKeyInfo() {
		if k.name(key.GetKeyId()) == name {
			return true
		}
	}
	return false
}

func (k *Keyring) reload() error {
	file, err := readRingFile(k.path)
	if err == nil {
		err = k.load(file)
	}
	if err != nil {
		return &KeyringError{k.path, err}
	}
	return nil
}
