package crypto

import (
	"errors"
	"testing"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/keyset"
)

// FuzzKeyringFile reads files that anybody may have written: each is refused or comes
// back as it is, and none asks for more than a gigabyte.
func FuzzKeyringFile(f *testing.F) {
	seal, err := newAEAD(testRaw)
	if err != nil {
		f.Fatal(err)
	}
	handle, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	if err != nil {
		f.Fatal(err)
	}
	file := newRingFile()
	content, err := file.write(handle, seal)
	if err != nil {
		f.Fatal(err)
	}
	greedy := file
	greedy.KDF.MemoryKiB = 1 << 31
	asksForMore, err := greedy.write(handle, seal)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(content)
	f.Add(asksForMore)
	f.Add([]byte("{}"))
	f.Add([]byte(`{"format":"loomgate keyring 1"}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		file, err := parseRingFile(content)
		if err != nil {
			return
		}
		if !file.KDF.valid() || file.KDF.MemoryKiB > 1<<20 {
			t.Fatalf("it takes the parameters %+v", file.KDF)
		}
		handle, err := file.open(seal)
		if err != nil {
			if !errors.Is(err, ErrWrongSecret) {
				t.Fatal(err)
			}
			return
		}
		written, err := file.write(handle, seal)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := parseRingFile(written); err != nil || again.Ring != file.Ring {
			t.Fatalf("written again, it is %+v (%v)", again, err)
		}
	})
}

func TestAFileThatAsksForAllMemoryIsRefused(t *testing.T) {
	for name, change := range map[string]func(*kdf){
		"memory":    func(k *kdf) { k.MemoryKiB = 1<<20 + 1 },
		"no memory": func(k *kdf) { k.MemoryKiB = 0 },
		"passes":    func(k *kdf) { k.Passes = 17 },
		"no pass":   func(k *kdf) { k.Passes = 0 },
		"lanes":     func(k *kdf) { k.Lanes = 17 },
		"no lane":   func(k *kdf) { k.Lanes = 0 },
		"salt":      func(k *kdf) { k.Salt = nil },
	} {
		t.Run(name, func(t *testing.T) {
			seal, err := newAEAD(testRaw)
			if err != nil {
				t.Fatal(err)
			}
			handle, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
			if err != nil {
				t.Fatal(err)
			}
			file := newRingFile()
			change(&file.KDF)
			content, err := file.write(handle, seal)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := parseRingFile(content); !errors.Is(err, ErrDamagedKeyring) {
				t.Errorf("it answers %v", err)
			}
		})
	}
}
