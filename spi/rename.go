package spi

import (
	"context"
	"errors"
)

// RenameError returns err with every name in it replaced by what outer says, for
// a decorator whose callers know executions, refs, leases and keys by other names
// than its inner store does. Text that is neither this package's nor the context's
// is left out, since it might hold an inner name: a wrapper goes, and an error
// with nothing of this package below it becomes an [InternalError].
func RenameError(err error, outer func(name string) string) error {
	for e := err; e != nil; e = errors.Unwrap(e) {
		if own, ok := e.(renamer); ok {
			return own.rename(outer)
		}
		if e == context.Canceled || e == context.DeadlineExceeded { //nolint:errorlint // likewise
			return e
		}
	}
	if err == nil {
		return nil
	}
	return &InternalError{err}
}

// renamer is every error type of this package; the guard test holds it to that.
type renamer interface {
	rename(outer func(string) string) error
}

func (e *OpError) rename(f func(string) string) error {
	return &OpError{e.Op, RenameError(e.Err, f)}
}

func (e *ShardError) rename(f func(string) string) error {
	return &ShardError{e.Shard, RenameError(e.Err, f)}
}

func (e *UnavailableError) rename(f func(string) string) error {
	return &UnavailableError{RenameError(e.Cause, f)}
}

func (e *AmbiguousError) rename(f func(string) string) error {
	return &AmbiguousError{renamed(e.Execution, f), RenameError(e.Cause, f)}
}

func (e *ConflictError) rename(f func(string) string) error {
	return &ConflictError{renamed(e.Execution, f), e.Head, e.Reused}
}

func (e *StaleFenceError) rename(f func(string) string) error {
	return &StaleFenceError{renamed(e.Execution, f), e.Current}
}

func (e *IncarnationError) rename(f func(string) string) error {
	return &IncarnationError{renamed(e.Execution, f), e.Current}
}

func (e *TruncatedError) rename(f func(string) string) error {
	return &TruncatedError{renamed(e.Execution, f), e.Floor}
}

func (e *RangeError) rename(f func(string) string) error {
	return &RangeError{renamed(e.Execution, f), e.Head}
}

func (e *TooLargeError) rename(f func(string) string) error {
	return &TooLargeError{renamed(e.Execution, f)}
}

func (e *KeyMismatchError) rename(f func(string) string) error {
	return &KeyMismatchError{renamed(e.Execution, f)}
}

func (e *ShreddedError) rename(f func(string) string) error {
	return &ShreddedError{renamed(e.Owner, f)}
}

func (e *NotFoundError) rename(f func(string) string) error {
	return &NotFoundError{e.What, renamed(e.Name, f)}
}

func (e *RefVersionError) rename(f func(string) string) error {
	return &RefVersionError{renamed(e.Name, f), e.Current}
}

func (e *LeaseHeldError) rename(f func(string) string) error {
	return &LeaseHeldError{renamed(e.Name, f), e.Holder, e.ExpiresAt}
}

func (e *LeaseLostError) rename(f func(string) string) error {
	return &LeaseLostError{renamed(e.Name, f)}
}

func (e *InvalidArgumentError) rename(func(string) string) error { return e }
func (e *UnsupportedError) rename(func(string) string) error     { return e }
func (e *ThrottledError) rename(func(string) string) error       { return e }
func (e *InternalError) rename(func(string) string) error        { return e }
func (e *MisroutedError) rename(func(string) string) error       { return e }
func (e *SlotMovingError) rename(func(string) string) error      { return e }
func (e *OwnershipError) rename(func(string) string) error       { return e }
func (e *CoverageError) rename(func(string) string) error        { return e }
func (e *CompatibilityError) rename(func(string) string) error   { return e }
func (e *LayerOrderError) rename(func(string) string) error      { return e }
func (e *EmbeddingError) rename(func(string) string) error       { return e }

func renamed[N ~string](name N, outer func(string) string) N {
	if name == "" {
		return ""
	}
	return N(outer(string(name)))
}
