package spi

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// An OpError names the method that was called. Every error of the package functions
// is one; what went wrong is in Err, for errors.As and errors.Is.
type OpError struct {
	Op  string // a method, such as "Append"
	Err error
}

func (e *OpError) Error() string { return e.Op + ": " + e.Err.Error() }

// Unwrap returns what went wrong.
func (e *OpError) Unwrap() error { return e.Err }

// WithoutOp returns an error of a package function without the method's name: as the
// results of a batch hold it, and for a layer that answers another method with it.
func WithoutOp(err error) error {
	if op, ok := err.(*OpError); ok { //nolint:errorlint // what is below another error is that one's to say
		return op.Err
	}
	return err
}

// An InvalidArgumentError refuses a request that could never be right, before
// any I/O and any change.
type InvalidArgumentError struct {
	Field string // such as "execution id" or "events[3].kind"
	Rule  string // the rule that the field breaks; it never repeats the value
}

func (e *InvalidArgumentError) Error() string { return e.Field + " " + e.Rule }

// An UnsupportedError says that the store does not offer a method. It is
// errors.ErrUnsupported.
type UnsupportedError struct {
	Cap Caps // what would have to be offered
}

func (e *UnsupportedError) Error() string { return e.Cap.String() + " is not offered by this store" }

// Unwrap returns errors.ErrUnsupported.
func (e *UnsupportedError) Unwrap() error { return errors.ErrUnsupported }

// A ConflictError says that the log is not where an append expected it. Read from
// the head that was expected to the one that is, and decide again.
type ConflictError struct {
	Execution ExecutionID
	Head      int64 // the head that the check saw

	// Reused says that some of the append's events are in the log, but not all of
	// them in one piece: their ids were used before, for something else. Only then
	// can Head be what was expected.
	Reused bool
}

func (e *ConflictError) Error() string {
	if e.Reused {
		return fmt.Sprintf("execution %q at head %d holds some of these event ids already", e.Execution, e.Head)
	}
	return fmt.Sprintf("execution %q is at head %d", e.Execution, e.Head)
}

// A StaleFenceError says that somebody has acquired the execution since the token
// was read. Whoever gets it no longer owns the execution.
type StaleFenceError struct {
	Execution ExecutionID
	Current   int64 // the token that counts now
}

func (e *StaleFenceError) Error() string {
	return fmt.Sprintf("execution %q is fenced at %d", e.Execution, e.Current)
}

// An IncarnationError says that the execution was deleted, or deleted and written
// anew, since its incarnation was read. It says nothing about an earlier ambiguous
// append.
type IncarnationError struct {
	Execution ExecutionID
	Current   int64 // the incarnation that a call has to state now
}

func (e *IncarnationError) Error() string {
	return fmt.Sprintf("execution %q is in incarnation %d", e.Execution, e.Current)
}

// A TruncatedError says that the call needs events below the floor, which may be
// gone. It says nothing about an earlier ambiguous append.
type TruncatedError struct {
	Execution ExecutionID
	Floor     int64 // every event from here on is there
}

func (e *TruncatedError) Error() string {
	return fmt.Sprintf("execution %q is truncated below %d", e.Execution, e.Floor)
}

// An AmbiguousError says that a write may or may not have happened, and may still
// happen until the same request, sent again, gets another answer. An AcquireFence
// cannot be resolved like that; see [FenceAcquirer].
type AmbiguousError struct {
	Execution ExecutionID // "" where the write was not to an execution
	Cause     error
}

func (e *AmbiguousError) Error() string {
	if e.Execution == "" {
		return fmt.Sprintf("the outcome is unknown: %v", e.Cause)
	}
	return fmt.Sprintf("the outcome for execution %q is unknown: %v", e.Execution, e.Cause)
}

// Unwrap returns the cause.
func (e *AmbiguousError) Unwrap() error { return e.Cause }

// An UnavailableError says that the store cannot answer now and that nothing has
// changed: the same request may be sent again.
type UnavailableError struct{ Cause error }

func (e *UnavailableError) Error() string { return fmt.Sprintf("unavailable: %v", e.Cause) }

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Cause }

// A ThrottledError says that the caller is over a limit of its own, and that nothing has
// changed: the same request may be sent again, after a while.
type ThrottledError struct {
	Limit string // such as "requests a second" or "calls in flight"

	// RetryAfter is how long to wait before the request is sent again: sooner it would be
	// refused, or has little chance. It may be refused again after it.
	RetryAfter time.Duration
}

func (e *ThrottledError) Error() string {
	return fmt.Sprintf("over the limit of %s: retry after %v", e.Limit, e.RetryAfter)
}

// An InternalError hides an error that is not of this package, which may hold an
// inner name or a value. The cause is there for an operator's log, and is found
// neither by errors.As nor by errors.Is, except that of a context.
type InternalError struct{ Cause error }

func (e *InternalError) Error() string { return "internal error" }

// Is reports whether the cause is that target, for errors that tell nothing.
func (e *InternalError) Is(target error) bool {
	return (target == context.Canceled || target == context.DeadlineExceeded) && errors.Is(e.Cause, target)
}

// A NotFoundError says that there is nothing by that name.
type NotFoundError struct {
	What string // "execution", "ref" or "data key"
	Name string
}

func (e *NotFoundError) Error() string { return fmt.Sprintf("no %s %q", e.What, e.Name) }

// A RangeError says that a log is shorter than the call needs.
type RangeError struct {
	Execution ExecutionID
	Head      int64
}

func (e *RangeError) Error() string {
	return fmt.Sprintf("execution %q ends at %d", e.Execution, e.Head)
}

// A TooLargeError says that the events to copy exceed [MaxEvents] or
// [MaxAppendBytes].
type TooLargeError struct{ Execution ExecutionID }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("execution %q holds more to copy than %d events or %d bytes", e.Execution, MaxEvents, MaxAppendBytes)
}

// A RefVersionError says that a ref is not at the version that the call expected.
type RefVersionError struct {
	Name    RefName
	Current int64 // 0: there is no such ref
}

func (e *RefVersionError) Error() string {
	return fmt.Sprintf("ref %q is at version %d", e.Name, e.Current)
}

// A LeaseHeldError says that somebody else holds a lease.
type LeaseHeldError struct {
	Name      LeaseName
	Holder    string
	ExpiresAt time.Time // by the store's clock
}

func (e *LeaseHeldError) Error() string {
	return fmt.Sprintf("lease %q is held by %q until %s", e.Name, e.Holder, e.ExpiresAt.Format(time.RFC3339Nano))
}

// A LeaseLostError says that a lease has expired, was released, or is somebody
// else's by now.
type LeaseLostError struct{ Name LeaseName }

func (e *LeaseLostError) Error() string { return fmt.Sprintf("lease %q is lost", e.Name) }

// A ShreddedError says that the data key was destroyed on purpose: what it
// encrypted is gone for good, and the execution takes no more events.
type ShreddedError struct{ Owner KeyOwner }

func (e *ShreddedError) Error() string { return fmt.Sprintf("the data key of %q is shredded", e.Owner) }

// A KeyMismatchError says that an append was encrypted under another data key than
// the execution has now, or not at all where it has one. Fetch the key again.
type KeyMismatchError struct{ Execution ExecutionID }

func (e *KeyMismatchError) Error() string {
	return fmt.Sprintf("execution %q has another data key", e.Execution)
}

// A MisroutedError says that the shard does not own the slot at the epoch that the
// call states: the caller's map is stale. Nothing about an earlier ambiguous
// append follows from it.
type MisroutedError struct {
	Shard string // as its identity says; "" if it has none
	Route Route  // what the call stated
	Epoch int64  // the slot's epoch at this shard; 0 if it never had the slot
}

func (e *MisroutedError) Error() string {
	return fmt.Sprintf("shard %q does not own slot %d at epoch %d (its epoch is %d)", e.Shard, e.Route.Slot, e.Route.Epoch, e.Epoch)
}

// A SlotMovingError says that the slot is on its way to another shard. A layer that
// routes tries again with a fresh map; its callers may send the same request again.
type SlotMovingError struct {
	Shard string
	Slot  Slot
	State SlotState
}

func (e *SlotMovingError) Error() string {
	return fmt.Sprintf("slot %d of shard %q is %s", e.Slot, e.Shard, e.State)
}

// An OwnershipError refuses a change of ownership and says why.
type OwnershipError struct {
	Shard   string
	Version int64 // the ownership version that is current
	Reason  string
}

func (e *OwnershipError) Error() string {
	return fmt.Sprintf("ownership of shard %q at version %d: %s", e.Shard, e.Version, e.Reason)
}

// A CoverageError says that the shards of a page, or of a map, do not cover every
// slot once. A page may be asked for again: somebody may be moving slots. A map has
// to be mended.
type CoverageError struct {
	Missing SlotSet // nobody's
	Twice   SlotSet // more than one shard's
}

func (e *CoverageError) Error() string {
	return fmt.Sprintf("slots covered by no shard: %v; by more than one: %v", e.Missing, e.Twice)
}

// A ShardError names the shard that failed, to operators.
type ShardError struct {
	Shard string
	Err   error
}

func (e *ShardError) Error() string { return fmt.Sprintf("shard %q: %v", e.Shard, e.Err) }

// Unwrap returns what went wrong there.
func (e *ShardError) Unwrap() error { return e.Err }

// A CompatibilityError refuses a peer or a database whose group has another major
// version.
type CompatibilityError struct {
	Group      Group
	Have, Want Version
}

func (e *CompatibilityError) Error() string {
	return fmt.Sprintf("%s has version %v, not %d.x as here", e.Group, e.Have, e.Want.Major)
}

// A LayerOrderError refuses a stack in which two layers are in an unsafe order.
type LayerOrderError struct{ Outer, Inner, Reason string }

func (e *LayerOrderError) Error() string {
	return fmt.Sprintf("layer %q over %q: %s", e.Outer, e.Inner, e.Reason)
}

// An EmbeddingError refuses a decorator whose embedded field would decide about a
// method in its place.
type EmbeddingError struct{ Decorator, Embedded, Method string }

func (e *EmbeddingError) Error() string {
	return fmt.Sprintf("decorator %s embeds %s, which would decide about %s in its place", e.Decorator, e.Embedded, e.Method)
}
