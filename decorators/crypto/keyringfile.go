package crypto

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/tink"
	"golang.org/x/crypto/argon2"

	"github.com/loomgate/loomgate/spi"
)

// A ringFile is the content of a keyring's file, in JSON.
type ringFile struct {
	Format string `json:"format"` // ringFormat
	Ring   string `json:"ring"`   // the ring's id
	KDF    kdf    `json:"argon2id"`
	Keyset []byte `json:"keyset"` // tink's, encrypted

	// Checksum is of all the rest, to tell a damaged file from a wrong secret.
	Checksum string `json:"checksum"`
}

const ringFormat = "loomgate keyring 1"

// A kdf says how the key that encrypts the keyset is made of the secret, by Argon2id.
type kdf struct {
	Passes    uint32 `json:"passes"`
	MemoryKiB uint32 `json:"memoryKiB"`
	Lanes     uint8  `json:"lanes"`
	Salt      []byte `json:"salt"`
}

const saltSize = 16

// newRingFile takes the parameters that RFC 9106 recommends where memory is not plenty.
func newRingFile() ringFile {
	salt := make([]byte, saltSize)
	rand.Read(salt) // never fails: crypto/rand ends the program instead
	return ringFile{Format: ringFormat, Ring: spi.NewEventID().String(), KDF: kdf{3, 64 << 10, 4, salt}}
}

// valid keeps a file from asking for all memory.
func (k kdf) valid() bool {
	return k.Passes >= 1 && k.Passes <= 16 && k.Lanes >= 1 && k.Lanes <= 16 &&
		k.MemoryKiB >= 8*uint32(k.Lanes) && k.MemoryKiB <= 1<<20 && len(k.Salt) == saltSize
}

// derive makes what encrypts the keyset of the secret.
func (f ringFile) derive(secret []byte) (tink.AEAD, error) {
	if len(secret) < MinSecret {
		return nil, fmt.Errorf("the secret has %d bytes, less than %d", len(secret), MinSecret)
	}
	raw := argon2.IDKey(secret, f.KDF.Salt, f.KDF.Passes, f.KDF.MemoryKiB, f.KDF.Lanes, keySize)
	defer clear(raw)
	return newAEAD(raw)
}

func (f ringFile) associated() []byte { return appendField(appendField(nil, f.Format), f.Ring) }

func (f ringFile) checksum() string {
	f.Checksum = ""
	all, err := json.Marshal(f)
	if err != nil {
		panic(err) // strings, numbers and bytes
	}
	sum := sha256.Sum256(all)
	return hex.EncodeToString(sum[:])
}

// write returns the file with these keys.
func (f ringFile) write(handle *keyset.Handle, seal tink.AEAD) ([]byte, error) {
	var encrypted bytes.Buffer
	if err := handle.WriteWithAssociatedData(keyset.NewBinaryWriter(&encrypted), seal, f.associated()); err != nil {
		return nil, err
	}
	f.Keyset = encrypted.Bytes()
	f.Checksum = f.checksum()
	content, err := json.MarshalIndent(f, "", "  ")
	return append(content, '\n'), err
}

// open returns the keys of the file.
func (f ringFile) open(seal tink.AEAD) (*keyset.Handle, error) {
	handle, err := keyset.ReadWithAssociatedData(keyset.NewBinaryReader(bytes.NewReader(f.Keyset)), seal, f.associated())
	if err != nil {
		return nil, ErrWrongSecret // the checksum was right
	}
	return handle, nil
}

func parseRingFile(content []byte) (f ringFile, err error) {
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&f); err != nil {
		return f, fmt.Errorf("%w: %w", ErrDamagedKeyring, err)
	}
	_, err = decoder.Token()
	switch {
	case !errors.Is(err, io.EOF):
		return f, fmt.Errorf("%w: something follows its end", ErrDamagedKeyring)
	case f.Format != ringFormat:
		return f, fmt.Errorf("it is no keyring that this version knows: its format is %q", f.Format)
	case f.Checksum != f.checksum():
		return f, fmt.Errorf("%w: the checksum is wrong", ErrDamagedKeyring)
	case !f.KDF.valid():
		return f, fmt.Errorf("%w: its parameters make no sense", ErrDamagedKeyring)
	}
	return f, nil
}

func readRingFile(path string) (ringFile, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return ringFile{}, err
	}
	return parseRingFile(content)
}

// writeNew writes a file that must not exist.
func writeNew(path string, content []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	err = errors.Join(err, file.Sync(), file.Close())
	if err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return syncFolder(path)
}

// syncFolder brings a new name to disk.
func syncFolder(path string) error {
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
