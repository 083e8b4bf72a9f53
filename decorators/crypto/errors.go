package crypto

import (
	"errors"
	"fmt"

	"github.com/loomgate/loomgate/spi"
)

// A KeyLostError says that a key cannot be had although nobody destroyed it in order
// to shred: it is gone from the store, or the KMS does not open it. What it encrypted
// comes back with the key, from a backup perhaps. A key that was destroyed on purpose is
// [spi.ShreddedError].
type KeyLostError struct {
	Owner  spi.KeyOwner // the execution, or the bare scope of a tenant
	Reason string
	Cause  error // what the KMS said; nil where the store lost the key
}

func (e *KeyLostError) Error() string {
	return fmt.Sprintf("the key of %q is lost: %s", e.Owner, e.Reason)
}

// Unwrap returns the cause.
func (e *KeyLostError) Unwrap() error { return e.Cause }

// A TamperedError says that what the store holds is not what was written there: it
// was changed, or moved from elsewhere.
type TamperedError struct {
	Execution spi.ExecutionID
	Sequence  int64  // of the event; 0 for the data key
	Field     string // "envelope", "key id", "metadata", "payload" or "data key"
}

func (e *TamperedError) Error() string {
	if e.Sequence == 0 {
		return fmt.Sprintf("the %s of execution %q does not open", e.Field, e.Execution)
	}
	return fmt.Sprintf("the %s of event %d of execution %q does not open", e.Field, e.Sequence, e.Execution)
}

// An UnencryptedError refuses an execution that was written without this layer; see
// [Options].
type UnencryptedError struct{ Execution spi.ExecutionID }

func (e *UnencryptedError) Error() string {
	return fmt.Sprintf("execution %q was written unencrypted", e.Execution)
}

// errDisturbed is the cause where others kept changing what a call works on.
var errDisturbed = errors.New("the execution kept getting another data key")

// is reports whether err is an E, or wraps one.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// final reports whether an execution is refused for good, and not for now.
func final(err error) bool {
	return is[*spi.ShreddedError](err) || is[*KeyLostError](err) || is[*TamperedError](err) || is[*UnencryptedError](err)
}
