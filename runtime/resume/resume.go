// Package resume owns executions: it folds a log to a state, resumes what is parked,
// and writes for whoever runs an execution.
//
// Many nodes may want to resume one park. [Resumer.Resume] with
// [Request].FenceIfParkedAt takes the fence only if that park is still unanswered, so
// that at most one of them wins and a body which runs already is never fenced out. It
// works on any store: one without a conditional acquire gets the unconditional one,
// with the window that this leaves, and one without fences is guarded by its heads.
package resume

import (
	"context"
	"fmt"

	"github.com/loomgate/loomgate/runtime/events"
	"github.com/loomgate/loomgate/spi"
)

// A Resumer reads and resumes the executions of a store. It is safe for concurrent
// use.
type Resumer struct {
	store *spi.Store
	newID func() spi.EventID
}

// An Option changes how a Resumer works.
type Option func(*Resumer)

// WithEventIDs takes the ids of the events that it writes from newID, in place of
// [spi.NewEventID].
func WithEventIDs(newID func() spi.EventID) Option { return func(r *Resumer) { r.newID = newID } }

// New returns a Resumer over a store.
func New(store *spi.Store, options ...Option) *Resumer {
	r := &Resumer{store, spi.NewEventID}
	for _, option := range options {
		option(r)
	}
	return r
}

// Store returns the store.
func (r *Resumer) Store() *spi.Store { return r.store }

// A Request says which park to answer, and with what.
type Request struct {
	Execution spi.ExecutionID

	// FenceIfParkedAt is the sequence of the park that is answered: the fence is
	// acquired if it is still unanswered. It outranks Fence, and acquires nothing
	// where the store fences nothing.
	FenceIfParkedAt int64

	// Fence is a token that the caller holds already; 0 for none.
	Fence int64

	// Answer says how the park is answered. It is called before anything is
	// acquired, where an error of it refuses, and again on the state that is read
	// under the fence; so it should do nothing but look.
	Answer func(*State) (Answer, error)
}

// An Answer is what ends a park.
type Answer struct {
	Waits      []string    // the ids of the waits that end
	Value      any         // for the body, as JSON
	Companions []spi.Event // appended before the resume, all or none with it
}

// Acting returns on whose behalf an execution is resumed, or an error that refuses.
type Acting func(context.Context, *State) (principal string, err error)

// MetadataPrincipal is the metadata of a resume that holds on whose behalf it is.
const MetadataPrincipal = "principal"

// Resume answers a park and returns the execution in the caller's hands: its state
// is the one read under the fence, with the answer in it.
//
// A park that is answered, or that is not the execution's, is a [RefusedError], and
// nothing was appended. If others keep acquiring the execution while its park stays
// open, that is a [ContendedError] after three attempts. A Request without
// FenceIfParkedAt of an execution that somebody has fenced is an
// [spi.StaleFenceError]. After an [spi.AmbiguousError] the park may be answered.
func (r *Resumer) Resume(ctx context.Context, req Request) (*Run, error) {
	return r.resume(ctx, nil, req)
}

// ResumeAs is Resume on somebody's behalf, who is asked for before anything is
// acquired and is in the resume's metadata.
func (r *Resumer) ResumeAs(ctx context.Context, acting Acting, req Request) (*Run, error) {
	return r.resume(ctx, acting, req)
}

// attempts is how often a resume tries to acquire an open park.
const attempts = 3

func (r *Resumer) resume(ctx context.Context, acting Acting, req Request) (*Run, error) {
	state, err := r.Fold(ctx, req.Execution)
	if err != nil {
		return nil, err
	}
	at := req.FenceIfParkedAt
	if at == 0 && state.Park != nil {
		at = state.Park.Sequence
	}
	if err := state.parkedAt(at); err != nil {
		return nil, err
	}
	if _, err := state.answer(req); err != nil {
		return nil, err
	}
	a := &attempt{resumer: r, req: req, at: at, state: state, expect: state.Park.Fence, id: r.newID()}
	if acting != nil {
		if a.principal, err = acting(ctx, state); err != nil {
			return nil, err
		}
	}
	if req.FenceIfParkedAt == 0 || !r.store.Offered().Has(spi.CapAcquireFence) && !r.store.Offered().Has(spi.CapAcquireFenceIf) {
		return a.land(ctx, req.Fence)
	}
	for range attempts {
		run, err := a.try(ctx)
		if run != nil || err != nil {
			return run, err
		}
	}
	return nil, &ContendedError{req.Execution, attempts}
}

// answer asks for the answer on a state.
func (s *State) answer(req Request) (Answer, error) {
	if req.Answer == nil {
		return Answer{}, nil
	}
	answer, err := req.Answer(s)
	if err != nil {
		return answer, err
	}
	for _, id := range answer.Waits {
		if s.wait(id) == nil {
			return answer, &RefusedError{s.Execution, ReasonNoSuchWait}
		}
	}
	return answer, nil
}

// parkedAt returns a [RefusedError] unless the execution is in that park.
func (s *State) parkedAt(sequence int64) error {
	if s.Park == nil || s.Park.Sequence != sequence {
		return &RefusedError{s.Execution, ReasonNotSuspended}
	}
	return nil
}

// A Reason says why a resume was refused.
type Reason string

// Why a resume is refused.
const (
	ReasonNotSuspended Reason = "not-suspended" // there is no such park, or it is answered
	ReasonNoSuchWait   Reason = "no-such-wait"  // the park is open, but does not wait for that
)

// A RefusedError says that there is nothing to resume. Trying again changes nothing.
type RefusedError struct {
	Execution spi.ExecutionID
	Reason    Reason
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("execution %q is not resumed: %s", e.Execution, e.Reason)
}

// A ContendedError says that the park is open and others were faster, so far: the
// same resume may be tried again later. It is no [RefusedError].
type ContendedError struct {
	Execution spi.ExecutionID
	Attempts  int
}

func (e *ContendedError) Error() string {
	return fmt.Sprintf("execution %q is contended: not resumed in %d attempts", e.Execution, e.Attempts)
}

// Retryable reports that the resume may be tried again.
func (*ContendedError) Retryable() bool { return true }

// event returns an event of the kernel's that is to be written.
func (r *Resumer) event(kind string, payload any) (spi.Event, error) {
	return events.New(r.newID(), kind, payload)
}
