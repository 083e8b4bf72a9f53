package timers

import (
	"context"
	"errors"

	"github.com/loomgate/loomgate/runtime/resume"
	"github.com/loomgate/loomgate/spi"
)

// Deliver is [resume.Resumer.Deliver] of a service whose nodes have registered
// [Service.Inbox]: of a wake that is contended it writes a redrive row, and returns no
// error, because any of those nodes does it later. With redrive rows switched off the
// error is the [resume.ContendedError].
func (s *Service) Deliver(ctx context.Context, to spi.ExecutionID, id spi.EventID, channel string, body any) (*resume.Run, error) {
	run, err := s.resumer.Deliver(ctx, to, id, channel, body)
	if _, contended := errors.AsType[*resume.ContendedError](err); !contended {
		return run, err
	}
	written, scheduling := s.ScheduleRedrive(ctx, to)
	if scheduling != nil || !written {
		return nil, errors.Join(err, scheduling)
	}
	return nil, nil
}

// Inbox is the re-driver of messages: it wakes an execution for a message that is in its
// inbox, and gives it to the service's body. Register it on each node that polls, or on
// none: a node without it takes such a row for one that nobody has to do with.
func (s *Service) Inbox(ctx context.Context, id spi.ExecutionID) (Outcome, error) {
	run, err := s.resumer.Notify(ctx, id)
	outcome, err := Judge(run, err)
	if run != nil {
		s.config.Body(ctx, run)
	}
	return outcome, err
}
