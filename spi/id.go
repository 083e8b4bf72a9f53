package spi

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Limits on names, in bytes of UTF-8.
const (
	// MaxOuterID is the longest execution id, ref name, lease name or key owner
	// that a tenant may choose. The scope codec enforces it; see [Scoped].
	MaxOuterID = 512

	// MaxID is the longest one inside a stack, where a scope stands in front.
	MaxID = 1024

	// MaxTenantName is the longest tenant name.
	MaxTenantName = 128
)

// An ExecutionID names one append-only log. It is well-formed UTF-8 of 1 to
// [MaxID] bytes without U+0000. A lone surrogate is not well-formed; nothing is
// ever replaced or normalised, so an id comes back byte for byte.
type ExecutionID string

// Validate returns an [InvalidArgumentError] unless id may be stored.
func (id ExecutionID) Validate() error { return validName("execution id", string(id), 1, MaxID) }

// A RefName names one branch ref. It obeys the rules of an [ExecutionID].
type RefName string

// Validate returns an [InvalidArgumentError] unless n may be stored.
func (n RefName) Validate() error { return validName("ref name", string(n), 1, MaxID) }

// A LeaseName names one lease. It obeys the rules of an [ExecutionID].
type LeaseName string

// Validate returns an [InvalidArgumentError] unless n may be stored.
func (n LeaseName) Validate() error { return validName("lease name", string(n), 1, MaxID) }

// A KeyOwner is whom a data key belongs to: an execution, by its id, or a tenant,
// by its bare scope ([Scope.Prefix]), which is no execution's name. It obeys the
// rules of an [ExecutionID].
type KeyOwner string

// Validate returns an [InvalidArgumentError] unless o may be stored.
func (o KeyOwner) Validate() error { return validName("key owner", string(o), 1, MaxID) }

// Execution returns the execution that o is, and false if o is a bare scope.
func (o KeyOwner) Execution() (ExecutionID, bool) {
	_, outer, scoped := SplitScope(o)
	return ExecutionID(o), !scoped || outer != ""
}

// An EventID identifies one event. Its writer chooses it and uses it once, which
// is what makes an append safe to retry. On the wire it is UUID text.
type EventID [16]byte

// NewEventID returns a random id: a version 4 UUID.
func NewEventID() EventID {
	var id EventID
	rand.Read(id[:]) // never fails: crypto/rand ends the program instead
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id
}

// String returns the id as UUID text, such as 0190d2f6-6d2f-7cc1-8a1c-6f1d0e5b7a90.
func (id EventID) String() string { return uuidText(id) }

// A KeyID identifies one data key. Its creator chooses it at random, so that the
// keys of two incarnations never share one. The zero KeyID means no key.
type KeyID [16]byte

// String returns the id as UUID text.
func (id KeyID) String() string { return uuidText(id) }

func uuidText(id [16]byte) string {
	var text [36]byte
	hex.Encode(text[:8], id[:4])
	hex.Encode(text[9:13], id[4:6])
	hex.Encode(text[14:18], id[6:8])
	hex.Encode(text[19:23], id[8:10])
	hex.Encode(text[24:], id[10:])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return string(text[:])
}

func validName(field, s string, shortest, longest int) error {
	if len(s) >= shortest && len(s) <= longest && utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return nil // every call comes this way
	}
	return &InvalidArgumentError{field, nameFault(s, shortest, longest)}
}

// nameFault returns the rule that a name breaks, or "".
func nameFault(s string, shortest, longest int) string {
	switch {
	case len(s) < shortest || len(s) > longest:
		return fmt.Sprintf("has %d bytes, not %d to %d", len(s), shortest, longest)
	case !utf8.ValidString(s):
		return "is not well-formed UTF-8"
	case strings.IndexByte(s, 0) >= 0:
		return "contains U+0000"
	}
	return ""
}
