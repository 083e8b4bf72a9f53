package resume

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/loomgate/loomgate/runtime/events"
	"github.com/loomgate/loomgate/spi"
)

// Deliver puts a message into an execution's inbox and wakes the execution if it
// waits for one. The run is nil if it does not, or if somebody else woke it.
//
// The id makes it safe to deliver again, which is what whoever got an error should
// do: the message is there once, and the wake is made up for. A [ContendedError]
// means that it is there and the wake is not done.
func (r *Resumer) Deliver(ctx context.Context, to spi.ExecutionID, id spi.EventID, channel string, body any) (*Run, error) {
	text, err := marshal(body)
	if err != nil {
		return nil, err
	}
	received, err := events.New(id, spi.KindMessageReceived, events.Received{Channel: channel, Body: text})
	if err != nil {
		return nil, err
	}
	req := spi.AppendRequest{Execution: to, ExpectedHead: spi.AnyHead, Events: []spi.Event{received}}
	if err := retry(ctx, r.store, spi.Append, req); err != nil {
		return nil, err
	}
	return r.Notify(ctx, to)
}

// Notify wakes an execution that waits for a message which is there: the consumption
// and the resume are one append. The run is nil if there is nothing to wake.
func (r *Resumer) Notify(ctx context.Context, id spi.ExecutionID) (*Run, error) {
	state, err := r.Fold(ctx, id)
	if err != nil || state.Park == nil {
		return nil, err
	}
	if message, _ := state.message(state.Park.Waits); message == nil {
		return nil, nil
	}
	run, err := r.Resume(ctx, Request{
		Execution:       id,
		FenceIfParkedAt: state.Park.Sequence,
		Answer:          func(s *State) (Answer, error) { return s.consume(r.newID()) },
	})
	if _, refused := errors.AsType[*RefusedError](err); refused {
		return nil, nil
	}
	return run, err
}

// consume answers with the oldest message that the park waits for.
func (s *State) consume(id spi.EventID) (Answer, error) {
	message, wait := s.message(s.Park.Waits)
	if message == nil {
		return Answer{}, &RefusedError{s.Execution, ReasonNoSuchWait}
	}
	consumed, err := events.New(id, spi.KindMessageConsumed, events.Consumed{Message: message.ID})
	return Answer{Waits: []string{wait.ID}, Value: message, Companions: []spi.Event{consumed}}, err
}

// message returns the oldest message that one of the waits is for, and the wait.
func (s *State) message(waits []events.Wait) (*events.Message, *events.Wait) {
	for i := range s.Inbox {
		for j := range waits {
			if waits[j].Reason == events.ReasonMessage && waits[j].Channel == s.Inbox[i].Channel {
				return &s.Inbox[i], &waits[j]
			}
		}
	}
	return nil, nil
}

// Receive consumes the oldest message of a channel, or returns nil. An execution
// that is to wait for one parks instead.
func (r *Run) Receive(ctx context.Context, channel string) (message *events.Message, err error) {
	waits := []events.Wait{{Reason: events.ReasonMessage, Channel: channel}}
	if found, _ := r.state.message(waits); found == nil { // as far as the run knows
		if err := r.catchUp(ctx); err != nil {
			return nil, err
		}
	}
	err = r.append(ctx, func() ([]spi.Event, error) {
		found, _ := r.state.message(waits)
		if found == nil {
			return nil, errEmpty
		}
		message = &events.Message{ID: found.ID, Channel: found.Channel, Body: append(json.RawMessage(nil), found.Body...)}
		consumed, err := r.resumer.event(spi.KindMessageConsumed, events.Consumed{Message: found.ID})
		return []spi.Event{consumed}, err
	})
	if err != nil {
		message = nil
	}
	if errors.Is(err, errEmpty) {
		err = nil
	}
	return message, err
}

var errEmpty = errors.New("no message")
