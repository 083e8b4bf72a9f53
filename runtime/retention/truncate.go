package retention

import (
	"context"
	"errors"

	"github.com/loomgate/loomgate/runtime/resume"
	"github.com/loomgate/loomgate/spi"
)

// truncate shortens the log of a parked execution, which nobody is writing.
func (r *run) truncate(ctx context.Context, id spi.ExecutionID) error {
	state, err := r.resumer.Fold(ctx, id)
	if err != nil {
		return &Error{ActionTruncate, id, err}
	}
	if state.Status != resume.Parked {
		return nil
	}
	before := min(r.Truncate(state), state.Park.Sequence)
	if before <= max(state.Floor, 1) {
		return nil
	}
	keep, err := r.keep(ctx, state, before)
	if err != nil {
		return &Error{ActionTruncate, id, err}
	}
	r.Decided(Decision{Action: ActionTruncate, Execution: id, Before: before})
	r.report.Truncated++
	if r.DryRun {
		return nil
	}
	_, err = spi.TruncatePrefixKeeping(ctx, r.store, spi.TruncatePrefixKeepingRequest{
		Execution: id, Incarnation: state.Incarnation, Before: before, Keep: keep,
	})
	if _, changed := errors.AsType[*spi.IncarnationError](err); err != nil && !changed {
		return &Error{ActionTruncate, id, err}
	}
	return nil
}

// keep returns the events before a sequence that the execution's state rests on: its
// start, and the messages that it has not consumed.
func (r *run) keep(ctx context.Context, state *resume.State, before int64) (keep []int64, err error) {
	waiting := make(map[string]bool, len(state.Inbox))
	for _, m := range state.Inbox {
		waiting[m.ID] = true
	}
	var after int64
	for after+1 < before {
		part, err := spi.Read(ctx, r.store, spi.ReadRequest{Execution: state.Execution, After: after, Until: before - 1, Limit: page})
		if err != nil {
			return nil, err
		}
		for i := range part.Events {
			e := &part.Events[i]
			if e.Kind == spi.KindExecutionStarted || e.Kind == spi.KindMessageReceived && waiting[e.ID.String()] {
				keep = append(keep, e.Sequence)
			}
			after = e.Sequence
		}
		if !part.More {
			break
		}
	}
	return keep, nil
}
