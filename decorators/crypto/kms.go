package crypto

import (
	"context"
	"errors"
)

// A KMS wraps the keys of tenants under keys that never leave it. [Keyring] is one.
// It is safe for concurrent use.
type KMS interface {
	// Wrap encrypts a key of 32 bytes under the present key of the KMS, and returns
	// that key's name: 1 to [spi.MaxDescription] bytes of UTF-8 without U+0000, no
	// secret. It is another name after a rotation.
	Wrap(ctx context.Context, key, associated []byte) (wrapped []byte, by string, err error)

	// Unwrap decrypts what Wrap returned, given the same associated data. The error
	// is [ErrCannotUnwrap] if asking again will not help. Any other is taken for a
	// failure that passes.
	Unwrap(ctx context.Context, by string, wrapped, associated []byte) (key []byte, err error)
}

// ErrCannotUnwrap is what an error of [KMS.Unwrap] wraps where the KMS has no such
// key, or the key does not open what it is given.
var ErrCannotUnwrap = errors.New("the KMS cannot unwrap the key")
