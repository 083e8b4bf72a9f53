package transfer

import (
	"fmt"

	"github.com/loomgate/loomgate/spi"
)

// A LineError says what is wrong with a line of a file. An import has stored what comes
// before the line, and nothing else.
type LineError struct {
	Line   int64  // from 1
	Column int    // the byte in the line, from 1
	Offset int64  // of that byte in the file, uncompressed, from 0
	Reason string // it repeats nothing of a payload
	Err    error  // why the file cannot be read on; nil where its content is wrong
}

func (e *LineError) Error() string {
	return fmt.Sprintf("line %d, byte %d (offset %d): %s", e.Line, e.Column, e.Offset, e.Reason)
}

// Unwrap returns what the reader said.
func (e *LineError) Unwrap() error { return e.Err }

// A StoreError says where an import ended because the store would not go on.
type StoreError struct {
	Execution spi.ExecutionID
	Line      int64 // of the execution's first event that is not known to be stored
	From      int64 // every line before it is stored
	Err       error
}

func (e *StoreError) Error() string {
	return fmt.Sprintf("line %d, of execution %q: %v (what is before line %d is stored)", e.Line, e.Execution, e.Err, e.From)
}

// Unwrap returns what the store said.
func (e *StoreError) Unwrap() error { return e.Err }

// A ForeignError says that an execution holds an event that is not the file's. An import
// adds nothing to it.
type ForeignError struct {
	Execution spi.ExecutionID
	Sequence  int64 // where the other event is
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("execution %q holds another event at sequence %d than the file", e.Execution, e.Sequence)
}

// A ChangedError says that a log was deleted or truncated while it was read, so that
// what was read before and what would follow are not one log.
type ChangedError struct{ Execution spi.ExecutionID }

func (e *ChangedError) Error() string {
	return fmt.Sprintf("execution %q was deleted or truncated while it was read", e.Execution)
}

// A GapError says that a log has not the event that it has to have at a sequence.
type GapError struct {
	Execution spi.ExecutionID
	Sequence  int64
}

func (e *GapError) Error() string {
	return fmt.Sprintf("execution %q has no event where sequence %d has to be", e.Execution, e.Sequence)
}

// An OrderError says that a listing is not in order, or does not go on.
type OrderError struct{ Execution spi.ExecutionID }

func (e *OrderError) Error() string {
	return fmt.Sprintf("the listing of executions goes back at %q, or repeats it", e.Execution)
}
