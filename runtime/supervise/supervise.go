// Package supervise resumes parents that are parked on their children when those have
// settled.
//
// Any number of supervisors on any number of nodes may try: what there is to do is
// derived from the logs, and one of them wins. The edge from a child to its parent is
// in the child's own start event.
package supervise

import (
	"context"
	"errors"
	"time"

	"github.com/loomgate/loomgate/runtime/events"
	"github.com/loomgate/loomgate/runtime/resume"
	"github.com/loomgate/loomgate/runtime/timers"
	"github.com/loomgate/loomgate/spi"
)

// Config says how a [Supervisor] works.
type Config struct {
	Prefix   string        // only executions whose id starts with it
	Interval time.Duration // between two looks at all executions: 1 min

	// Timers takes what is contended, if its redrive rows are switched on; a
	// re-driver is registered with it. nil reports what is contended.
	Timers *timers.Service

	// Body is given each parent that was resumed. nil leaves it to recovery.
	Body func(context.Context, *resume.Run)

	// OnError is told what went wrong in Run.
	OnError func(error)
}

// A Supervisor resumes parents. It is safe for concurrent use if its Body is.
type Supervisor struct {
	resumer *resume.Resumer
	config  Config
}

// New returns a supervisor over the store of a resumer.
func New(resumer *resume.Resumer, config Config) *Supervisor {
	if config.Interval == 0 {
		config.Interval = time.Minute
	}
	if config.Body == nil {
		config.Body = func(context.Context, *resume.Run) {}
	}
	if config.OnError == nil {
		config.OnError = func(error) {}
	}
	s := &Supervisor{resumer, config}
	if config.Timers != nil {
		config.Timers.Register(func(ctx context.Context, id spi.ExecutionID) (timers.Outcome, error) {
			return timers.Judge(s.resume(ctx, id))
		})
	}
	return s
}

// Run looks at all executions, again and again, until ctx ends: what a supervisor
// that crashed has left undone is done by another.
func (s *Supervisor) Run(ctx context.Context) error {
	ticker := time.NewTicker(s.config.Interval)
	defer ticker.Stop()
	for {
		if err := s.Recover(ctx); err != nil && ctx.Err() == nil {
			s.config.OnError(err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// Settled is called when a child has settled, by whoever saw it. It resumes the
// child's parent if that waits for nothing else in the same wait.
func (s *Supervisor) Settled(ctx context.Context, child spi.ExecutionID) error {
	state, err := s.resumer.Fold(ctx, child)
	if err != nil || state.Status != resume.Ended || state.Started == nil || state.Started.Parent == nil {
		return err
	}
	edge := *state.Started.Parent
	park, err := s.resumer.LocatePark(ctx, edge.Execution)
	if err != nil || park == nil {
		return err
	}
	for _, w := range park.Waits {
		if w.Names(child, edge) {
			return s.Adopt(ctx, edge.Execution)
		}
	}
	return nil
}

// Adopt resumes a parent whose children have settled. What is contended becomes a
// redrive row, or else is a [resume.ContendedError].
func (s *Supervisor) Adopt(ctx context.Context, parent spi.ExecutionID) error {
	_, err := s.resume(ctx, parent)
	if _, contended := errors.AsType[*resume.ContendedError](err); contended && s.config.Timers != nil {
		written, failed := s.config.Timers.ScheduleRedrive(ctx, parent)
		if written && failed == nil {
			return nil
		}
		return errors.Join(err, failed)
	}
	return err
}

// resume resumes a parent, if there is anything to resume. The first try is without
// a fence: to take one up front would leave every parent fenced, and closed to whoever
// resumes without one. Only a parent that is fenced already is acquired, on condition.
func (s *Supervisor) resume(ctx context.Context, parent spi.ExecutionID) (*resume.Run, error) {
	state, err := s.resumer.Fold(ctx, parent)
	if err != nil || state.Park == nil {
		return nil, err
	}
	wait, outcomes, err := s.settled(ctx, parent, state.Park)
	if wait == "" || err != nil {
		return nil, err
	}
	at := state.Park.Sequence
	req := resume.Request{Execution: parent, Answer: func(state *resume.State) (resume.Answer, error) {
		if state.Park.Sequence != at {
			return resume.Answer{}, &resume.RefusedError{Execution: parent, Reason: resume.ReasonNotSuspended}
		}
		return resume.Answer{Waits: []string{wait}, Value: outcomes}, nil
	}}
	run, err := s.resumer.Resume(ctx, req)
	if _, fenced := errors.AsType[*spi.StaleFenceError](err); fenced {
		req.FenceIfParkedAt = at
		run, err = s.resumer.Resume(ctx, req)
	}
	if _, refused := errors.AsType[*resume.RefusedError](err); refused {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s.config.Body(ctx, run)
	return run, nil
}

// settled returns the first wait of a park all of whose children have settled, and
// how; "" if there is none.
func (s *Supervisor) settled(ctx context.Context, parent spi.ExecutionID, park *resume.Park) (wait string, outcomes []events.Outcome, err error) {
	for _, w := range park.Waits {
		if w.Reason != events.ReasonChildren {
			continue
		}
		outcomes, err := s.outcomes(ctx, parent, w)
		if err != nil {
			return "", nil, err
		}
		if len(outcomes) == len(w.Children) {
			return w.ID, outcomes, nil
		}
	}
	return "", nil, nil
}

// outcomes returns how the children of a wait settled, up to the first that has not.
func (s *Supervisor) outcomes(ctx context.Context, parent spi.ExecutionID, wait events.Wait) ([]events.Outcome, error) {
	outcomes := make([]events.Outcome, 0, len(wait.Children))
	for _, c := range wait.Children {
		outcome := events.Outcome{Key: c.Key, Execution: c.Execution}
		state, err := s.resumer.Fold(ctx, c.Execution)
		_, shredded := errors.AsType[*spi.ShreddedError](err)
		if err != nil && !shredded {
			return nil, err
		}
		switch {
		case shredded:
			outcome.Deleted = true
		case state.Status == resume.Ended && names(wait, parent, state):
			outcome.Kind, outcome.Result = state.End.Kind, state.End.Payload
		case state.Head == 0 && state.Incarnation > 1:
			outcome.Deleted = true
		default:
			return outcomes, nil
		}
		outcomes = append(outcomes, outcome)
	}
	return outcomes, nil
}

// names reports whether the edge that a child's start event holds is the one that
// the wait names.
func names(wait events.Wait, parent spi.ExecutionID, child *resume.State) bool {
	edge := edgeOf(child)
	return edge != nil && edge.Execution == parent && wait.Names(child.Execution, *edge)
}

func edgeOf(child *resume.State) *events.Parent {
	if child.Started == nil {
		return nil
	}
	return child.Started.Parent
}

// page is how many executions one page of a recovery lists.
const page = 500

// Recover adopts every parent whose children have settled. It goes on after an
// error, and returns all of them.
func (s *Supervisor) Recover(ctx context.Context) error {
	var after string
	var failed []error
	for {
		listed, err := spi.ListExecutions(ctx, s.resumer.Store(), spi.ListExecutionsRequest{Prefix: s.config.Prefix, After: after, Limit: page})
		if err != nil {
			return errors.Join(append(failed, err)...)
		}
		for _, id := range listed.Executions {
			if err := s.recover(ctx, id); err != nil {
				failed = append(failed, err)
			}
		}
		if after = listed.Next; after == "" {
			return errors.Join(failed...)
		}
	}
}

// recover reads the end of each log, and the rest only of parents.
func (s *Supervisor) recover(ctx context.Context, id spi.ExecutionID) error {
	park, err := s.resumer.LocatePark(ctx, id)
	if _, shredded := errors.AsType[*spi.ShreddedError](err); shredded {
		return nil
	}
	if err != nil || park == nil {
		return err
	}
	for _, w := range park.Waits {
		if w.Reason == events.ReasonChildren {
			return s.Adopt(ctx, id)
		}
	}
	return nil
}
