package resume

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/loomgate/loomgate/runtime/events"
	"github.com/loomgate/loomgate/spi"
)

// A Run is an execution in the hands of one owner, who alone writes what answers: its
// parks and its end. It is for one goroutine.
//
// Whoever loses the execution to another gets an [spi.StaleFenceError] or a
// [SupersededError], and should let go.
type Run struct {
	resumer *Resumer
	state   *State
	token   int64
}

// A SupersededError says that somebody else has written for an execution whose owner
// holds no fence.
type SupersededError struct {
	Execution spi.ExecutionID
	Sequence  int64 // where
}

func (e *SupersededError) Error() string {
	return fmt.Sprintf("execution %q goes on elsewhere since %d", e.Execution, e.Sequence)
}

// A StartedError says that an execution has been started already.
type StartedError struct{ Execution spi.ExecutionID }

func (e *StartedError) Error() string {
	return fmt.Sprintf("execution %q is started already", e.Execution)
}

// Start begins an execution, without a fence. Messages may have come before.
func (r *Resumer) Start(ctx context.Context, id spi.ExecutionID, started events.Started) (*Run, error) {
	state, err := r.Fold(ctx, id)
	if err != nil {
		return nil, err
	}
	event, err := r.event(spi.KindExecutionStarted, started)
	if err != nil {
		return nil, err
	}
	run := &Run{resumer: r, state: state}
	for {
		if state.Status != Pending {
			return nil, &StartedError{id}
		}
		err := run.write(ctx, 0, []spi.Event{event})
		if err == nil {
			return run, nil
		}
		if !conflicts(err) {
			return nil, err
		}
		if err := r.advance(ctx, state); err != nil {
			return nil, err
		}
	}
}

// State returns the execution's state, with everything that the run has written. It
// is for reading, and changes with the next write.
func (r *Run) State() *State { return r.state }

// Token returns the fence token that the run writes under; 0 if none.
func (r *Run) Token() int64 { return r.token }

// Append writes events of the application.
func (r *Run) Append(ctx context.Context, batch ...spi.Event) error {
	return r.append(ctx, func() ([]spi.Event, error) { return batch, nil })
}

// Complete ends the execution with a result as JSON; nil is none.
func (r *Run) Complete(ctx context.Context, result any) error {
	return r.end(ctx, spi.KindExecutionCompleted, result)
}

// Fail ends the execution with a reason as JSON.
func (r *Run) Fail(ctx context.Context, reason any) error {
	return r.end(ctx, spi.KindExecutionFailed, reason)
}

// Cancel ends the execution before it is done, with a reason as JSON.
func (r *Run) Cancel(ctx context.Context, reason any) error {
	return r.end(ctx, spi.KindExecutionCancelled, reason)
}

func (r *Run) end(ctx context.Context, kind string, payload any) error {
	event, err := r.resumer.event(kind, payload)
	if err != nil {
		return err
	}
	return r.Append(ctx, event)
}

// Park makes the execution wait, and reports whether it does: if a message that one
// of the waits is for is there already, park, consumption and resume are one append,
// and the run goes on with the state's Answer. Timers are scheduled first, so that
// none is lost; their times are rounded up to whole milliseconds. Once parked, the
// execution is nobody's.
func (r *Run) Park(ctx context.Context, waits ...events.Wait) (parked bool, err error) {
	park := events.Suspended{Waits: slices.Clone(waits)}
	for i := range park.Waits {
		park.Waits[i].WakeAt = wholeMillisecond(park.Waits[i].WakeAt)
	}
	if err := park.Validate(); err != nil {
		return false, err
	}
	for _, w := range park.Waits {
		if w.WakeAt.IsZero() {
			continue
		}
		row := spi.Timer{Execution: r.state.Execution, WakeAt: w.WakeAt}
		if err := retry(ctx, r.resumer.store, spi.ScheduleTimer, spi.ScheduleTimerRequest{Timer: row}); err != nil {
			return false, err
		}
	}
	suspended, err := r.resumer.event(spi.KindExecutionSuspended, park)
	if err != nil {
		return false, err
	}
	resumed := r.resumer.newID()
	err = r.append(ctx, func() ([]spi.Event, error) {
		message, wait := r.state.message(park.Waits)
		if parked = message == nil; parked {
			return []spi.Event{suspended}, nil
		}
		consumed, err := r.resumer.event(spi.KindMessageConsumed, events.Consumed{Message: message.ID})
		if err != nil {
			return nil, err
		}
		value, err := marshal(message)
		if err != nil {
			return nil, err
		}
		answer, err := events.New(resumed, spi.KindExecutionResumed, events.Resumed{Waits: []string{wait.ID}, Value: value})
		return []spi.Event{suspended, consumed, answer}, err
	})
	return parked, err
}

func wholeMillisecond(t time.Time) time.Time {
	if whole := t.UTC().Truncate(time.Millisecond); whole.Before(t) {
		return whole.Add(time.Millisecond)
	}
	return t.UTC()
}

// append writes what build makes of the state, at its head. What others append in
// between and does not answer is taken in first.
func (r *Run) append(ctx context.Context, build func() ([]spi.Event, error)) error {
	for {
		batch, err := build()
		if err != nil {
			return err
		}
		if err = r.write(ctx, 0, batch); !conflicts(err) {
			return err
		}
		from := r.state.Head
		if err := r.catchUp(ctx); err != nil {
			return err
		}
		if r.state.Head == from {
			return err
		}
	}
}

// catchUp takes in what others have appended, unless it means that the execution is
// theirs.
func (r *Run) catchUp(ctx context.Context) error {
	for {
		tail, err := spi.Read(ctx, r.resumer.store, spi.ReadRequest{Execution: r.state.Execution, After: r.state.Head, Limit: foldPage})
		if err != nil {
			return err
		}
		for i := range tail.Events {
			e := &tail.Events[i]
			if e.Answering() || e.Fence > r.token {
				return &SupersededError{r.state.Execution, e.Sequence}
			}
			if err := r.state.apply(e); err != nil {
				return err
			}
		}
		if !tail.More {
			return nil
		}
	}
}

// write appends at the state's head and takes the events into the state. since is
// where an earlier try can have stored them; 0 is the head.
func (r *Run) write(ctx context.Context, since int64, batch []spi.Event) error {
	req := spi.AppendRequest{
		Execution: r.state.Execution, ExpectedHead: r.state.Head, Fence: r.token,
		Incarnation: r.state.Incarnation, SinceSeq: since, Events: batch,
	}
	res, err := settled(ctx, r.resumer.store, spi.Append, req)
	if err != nil {
		return err
	}
	if r.state.Incarnation = res.Incarnation; res.FirstSeq != r.state.Head+1 {
		return r.resumer.advance(ctx, r.state)
	}
	for i, e := range batch {
		e.Sequence, e.Fence = res.FirstSeq+int64(i), r.token
		if err := r.state.apply(&e); err != nil {
			return err
		}
	}
	return nil
}

func conflicts(err error) bool {
	conflict, ok := errors.AsType[*spi.ConflictError](err)
	return ok && !conflict.Reused
}
