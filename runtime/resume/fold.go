package resume

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/loomgate/loomgate/runtime/events"
	"github.com/loomgate/loomgate/spi"
)

// foldPage is how many events one read of a fold asks for.
const foldPage = 1_000

// Fold reads a log and returns what it comes to. An execution that is not there is
// [Pending]. A payload that is not what its kind calls for is an
// [events.PayloadError].
func (r *Resumer) Fold(ctx context.Context, id spi.ExecutionID) (*State, error) {
	for {
		state := &State{Execution: id}
		err := r.advance(ctx, state)
		if _, changed := errors.AsType[*spi.IncarnationError](err); changed {
			continue // deleted between two pages
		}
		if err != nil {
			return nil, err
		}
		return state, nil
	}
}

// advance takes in what was appended since. An execution that was deleted since is
// an [spi.IncarnationError].
func (r *Resumer) advance(ctx context.Context, state *State) error {
	for {
		page, err := spi.Read(ctx, r.store, spi.ReadRequest{Execution: state.Execution, After: state.Head, Limit: foldPage})
		if err != nil {
			return err
		}
		if state.Incarnation != 0 && page.Incarnation != state.Incarnation {
			return &spi.IncarnationError{Execution: state.Execution, Current: page.Incarnation}
		}
		state.Incarnation, state.Floor = page.Incarnation, page.Floor
		for i := range page.Events {
			if err := state.apply(&page.Events[i]); err != nil {
				return err
			}
		}
		if !page.More {
			return nil
		}
	}
}

// locatePage is how many events one read of LocatePark asks for: what follows a park
// without answering it is little.
const locatePage = 32

// LocatePark returns the park that an execution is in, from the end of its log; nil
// if it is in none.
func (r *Resumer) LocatePark(ctx context.Context, id spi.ExecutionID) (*Park, error) {
	var before int64
	for {
		page, err := spi.Read(ctx, r.store, spi.ReadRequest{Execution: id, After: before, Backward: true, Limit: locatePage})
		if err != nil {
			return nil, err
		}
		for i := range page.Events {
			e := &page.Events[i]
			if e.Kind == spi.KindExecutionSuspended {
				park, err := events.Decode[events.Suspended](id, e)
				return &Park{e.Sequence, e.Fence, park.Waits}, err
			}
			if e.Answering() {
				return nil, nil
			}
			before = e.Sequence
		}
		if !page.More || before <= 1 {
			return nil, nil
		}
	}
}

func marshal(value any) (json.RawMessage, error) {
	if value == nil {
		return nil, nil
	}
	return json.Marshal(value)
}
