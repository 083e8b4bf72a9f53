package timers

import (
	"context"
	"errors"

	"github.com/loomgate/loomgate/runtime/events"
	"github.com/loomgate/loomgate/runtime/resume"
	"github.com/loomgate/loomgate/spi"
)

// wake answers the wait that a plain row is for. A row whose wait has ended is
// retired; one of an execution that does not wait now is left, because the row is
// written before the park that it is for.
func (s *Service) wake(ctx context.Context, row spi.Timer) error {
	if s.waiting.before(keyOf(row), s.config.Now()) {
		return nil
	}
	state, err := s.resumer.Fold(ctx, row.Execution)
	switch {
	case err != nil:
		return err
	case state.Status == resume.Ended:
		_, err := s.retire(ctx, row)
		return err
	case state.Status != resume.Parked:
		s.later(row, false)
		return nil
	case waitOf(state, row) == nil:
		_, err := s.retire(ctx, row)
		return err
	}
	run, err := s.resumer.Resume(ctx, resume.Request{
		Execution:       row.Execution,
		FenceIfParkedAt: state.Park.Sequence,
		Answer:          func(state *resume.State) (resume.Answer, error) { return answer(state, row) },
	})
	if _, contended := errors.AsType[*resume.ContendedError](err); contended {
		return s.contended(ctx, row)
	}
	if _, refused := errors.AsType[*resume.RefusedError](err); refused {
		return nil // the next poll sees what has become of the wait
	}
	if err != nil {
		return err
	}
	_, err = s.retire(ctx, row)
	s.config.Body(ctx, run)
	return err
}

// waitOf returns the open wait that a row is for, or nil.
func waitOf(state *resume.State, row spi.Timer) *events.Wait {
	for i := range state.Park.Waits {
		if w := &state.Park.Waits[i]; w.Reason == events.ReasonTimer && w.WakeAt.Equal(row.WakeAt) {
			return w
		}
	}
	return nil
}

func answer(state *resume.State, row spi.Timer) (resume.Answer, error) {
	wait := waitOf(state, row)
	if wait == nil {
		return resume.Answer{}, &resume.RefusedError{Execution: row.Execution, Reason: resume.ReasonNoSuchWait}
	}
	return resume.Answer{Waits: []string{wait.ID}, Value: events.Woken{WakeAt: row.WakeAt}}, nil
}

// contended puts a wake off: until then no token is taken for it. It has no row of
// its own for that, because re-drivers would not know what it wakes.
func (s *Service) contended(ctx context.Context, row spi.Timer) error {
	if s.later(row, true) < s.config.Backoff.MaxAttempts {
		return nil
	}
	return s.exhausted(ctx, row)
}

// exhausted leaves an execution to recovery, and reports so once: whoever retires the
// row does.
func (s *Service) exhausted(ctx context.Context, row spi.Timer) error {
	retired, err := s.retire(ctx, row)
	if err != nil || !retired {
		return err
	}
	return &ExhaustedError{row.Execution, s.config.Backoff.MaxAttempts}
}

// Restore schedules the timers of a parked execution again, for one whose rows were
// retired when attempts ran out. It reports whether there were any.
func (s *Service) Restore(ctx context.Context, id spi.ExecutionID) (bool, error) {
	park, err := s.resumer.LocatePark(ctx, id)
	if err != nil || park == nil {
		return false, err
	}
	restored := false
	for _, w := range park.Waits {
		if w.Reason != events.ReasonTimer {
			continue
		}
		restored = true
		row := spi.Timer{Execution: id, WakeAt: w.WakeAt}
		if _, err := spi.ScheduleTimer(ctx, s.store, spi.ScheduleTimerRequest{Timer: row}); err != nil {
			return false, err
		}
	}
	return restored, nil
}
