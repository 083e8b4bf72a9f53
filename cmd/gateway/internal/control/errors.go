package control

import (
	"errors"
	"fmt"
	"time"

	"github.com/loomgate/loomgate/spi"
)

var errNeverRead = errors.New("the control records have not been read yet")

// A StaleError says that the log could not be read for too long.
type StaleError struct{ Age time.Duration }

func (e *StaleError) Error() string {
	return fmt.Sprintf("the copy of the control records is %v old", e.Age.Round(time.Second))
}

// A TakenError says that a tenant has the name, or had it: one is never used again.
type TakenError struct {
	Name  spi.TenantName
	State TenantState
}

func (e *TakenError) Error() string {
	return fmt.Sprintf("the name %q is taken by a tenant that is %v", e.Name, e.State)
}

// A NotFoundError says that there is no such tenant or API key.
type NotFoundError struct {
	What string // "tenant" or "API key"
	Name string
}

func (e *NotFoundError) Error() string { return fmt.Sprintf("no %s %q", e.What, e.Name) }

// A TenantStateError says that a tenant's state does not admit the change.
type TenantStateError struct {
	Name  spi.TenantName
	State TenantState
}

func (e *TenantStateError) Error() string { return fmt.Sprintf("tenant %q is %v", e.Name, e.State) }

// An OutdatedError refuses a change because the log holds records that only a newer
// gateway knows. The newer one can make it.
type OutdatedError struct{ Sequence int64 } // of the first of them

func (e *OutdatedError) Error() string {
	return fmt.Sprintf("control record %d was written by a newer version of the gateway, which alone can make this change", e.Sequence)
}

// A RecordError says that a record cannot be what a gateway wrote. What comes after it
// cannot be known.
type RecordError struct {
	Sequence int64
	Reason   string // it repeats nothing of the record
}

func (e *RecordError) Error() string {
	return fmt.Sprintf("control record %d %s", e.Sequence, e.Reason)
}
