package timers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/loomgate/loomgate/runtime/resume"
	"github.com/loomgate/loomgate/spi"
)

// An Outcome is what a re-driver has to say of an execution.
type Outcome uint8

// What a re-driver may answer.
const (
	Noop      Outcome = iota // nothing of its own to do there
	Done                     // what was to be done is done
	Contended                // still contended: try again later
)

// A Redriver does again what was contended: it derives from the log what there is to
// do. An error counts as [Contended].
type Redriver func(context.Context, spi.ExecutionID) (Outcome, error)

type redrivers struct {
	mu  sync.Mutex
	all []Redriver
}

// Register adds a re-driver. A redrive row goes to each in turn, until one answers
// other than [Noop].
func (s *Service) Register(r Redriver) {
	s.redrivers.mu.Lock()
	defer s.redrivers.mu.Unlock()
	s.redrivers.all = append(s.redrivers.all, r)
}

func (s *Service) registered() []Redriver {
	s.redrivers.mu.Lock()
	defer s.redrivers.mu.Unlock()
	return s.redrivers.all[:len(s.redrivers.all):len(s.redrivers.all)]
}

// handlesRedrive reports whether redrive rows are this node's business. One without
// re-drivers leaves them to the others: to retire them would lose what they are for.
func (s *Service) handlesRedrive() bool { return s.config.Redrive && len(s.registered()) > 0 }

// Judge makes an [Outcome] of what a resume came to: run is nil if there was nothing
// to resume.
func Judge(run *resume.Run, err error) (Outcome, error) {
	_, contended := errors.AsType[*resume.ContendedError](err)
	_, refused := errors.AsType[*resume.RefusedError](err)
	switch {
	case contended:
		return Contended, nil
	case refused:
		return Noop, nil
	case err != nil:
		return Contended, err
	case run == nil:
		return Noop, nil
	}
	return Done, nil
}

// An ExhaustedError says that attempts to resume an execution have run out. It is
// left to recovery.
type ExhaustedError struct {
	Execution spi.ExecutionID
	Attempts  int
}

func (e *ExhaustedError) Error() string {
	return fmt.Sprintf("execution %q is still contended after %d attempts, and left to recovery", e.Execution, e.Attempts)
}

// ScheduleRedrive writes the first redrive row of an execution, and reports whether
// it did: not if redrive rows are switched off.
func (s *Service) ScheduleRedrive(ctx context.Context, id spi.ExecutionID) (bool, error) {
	if !s.config.Redrive {
		return false, nil
	}
	wakeAt := redriveAt(s.config.Now().UTC().Add(s.config.Backoff.delay(0)))
	return true, s.schedule(ctx, spi.Timer{Execution: id, WakeAt: wakeAt, Redrive: true})
}

// redriveAt returns a time for a redrive row, strictly after t. It is never in whole
// milliseconds, as each wait's is: a redrive row that landed on a plain one would make
// it a redrive row too, and its wake would be lost.
func redriveAt(t time.Time) time.Time {
	return t.Truncate(time.Millisecond).Add(time.Millisecond + time.Microsecond)
}

func (s *Service) schedule(ctx context.Context, row spi.Timer) error {
	_, err := spi.ScheduleTimer(ctx, s.store, spi.ScheduleTimerRequest{Timer: row})
	return err
}

// redrive hands a row to the re-drivers. It is not judged by its wake time, which is
// no wait's. The next row is there before this one is retired, and later, so that it
// is not the row which is about to go.
func (s *Service) redrive(ctx context.Context, row spi.Timer, now time.Time) error {
	outcome, err := s.ask(ctx, row.Execution)
	if outcome != Contended {
		_, retiring := s.retire(ctx, row)
		return errors.Join(err, retiring)
	}
	if row.Attempt+1 >= s.config.Backoff.MaxAttempts {
		return errors.Join(err, s.exhausted(ctx, row))
	}
	next := row
	next.Version, next.Attempt = 0, row.Attempt+1
	if now.After(row.WakeAt) {
		next.WakeAt = now
	}
	next.WakeAt = redriveAt(next.WakeAt.Add(s.config.Backoff.delay(next.Attempt)))
	if scheduling := s.schedule(ctx, next); scheduling != nil {
		return errors.Join(err, scheduling)
	}
	_, retiring := s.retire(ctx, row)
	return errors.Join(err, retiring)
}

// ask returns the first answer that is not [Noop].
func (s *Service) ask(ctx context.Context, id spi.ExecutionID) (Outcome, error) {
	for _, redriver := range s.registered() {
		outcome, err := redriver(ctx, id)
		if err != nil {
			return Contended, err
		}
		if outcome != Noop {
			return outcome, nil
		}
	}
	return Noop, nil
}
