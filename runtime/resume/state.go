package resume

import (
	"slices"

	"github.com/loomgate/loomgate/runtime/events"
	"github.com/loomgate/loomgate/spi"
)

// A Status is what an execution is doing.
type Status uint8

// What an execution may be doing.
const (
	Pending Status = iota // not started: no events, or only messages
	Running
	Parked
	Ended // completed, failed, cancelled, or continued as another
)

func (s Status) String() string {
	return [...]string{"pending", "running", "parked", "ended"}[s]
}

// A State is what an execution's events come to. Of a truncated log it is what is
// left of them.
type State struct {
	Execution   spi.ExecutionID
	Status      Status
	Head        int64
	Incarnation int64
	Floor       int64

	Started *events.Started // nil if not started
	Park    *Park           // nil unless parked
	End     *spi.Event      // nil unless ended

	// Waits are those of the last park that nothing has ended. While the execution
	// runs, they are what it did not yet get, and may park on again.
	Waits []events.Wait

	// Answer is that of the last park; nil if there was none.
	Answer *events.Resumed

	// Inbox is what was received and not consumed, oldest first.
	Inbox []events.Message

	// Told are the children whose outcome the execution has been given.
	Told map[spi.ExecutionID]bool
}

// A Park is the event that an execution waits at.
type Park struct {
	Sequence int64
	Fence    int64 // the token that it was written under
	Waits    []events.Wait
}

// wait returns the open wait with that id, or nil.
func (s *State) wait(id string) *events.Wait {
	for i := range s.Waits {
		if s.Waits[i].ID == id {
			return &s.Waits[i]
		}
	}
	return nil
}

// apply takes one more event in. Kinds that it does not know change nothing, unless
// they answer.
func (s *State) apply(e *spi.Event) (err error) {
	s.Head = e.Sequence
	switch e.Kind {
	case spi.KindExecutionStarted:
		var started events.Started
		if started, err = events.Decode[events.Started](s.Execution, e); err == nil {
			s.Started, s.Status = &started, Running
		}
	case spi.KindExecutionSuspended:
		var park events.Suspended
		if park, err = events.Decode[events.Suspended](s.Execution, e); err == nil {
			s.Status, s.End = Parked, nil
			s.Park = &Park{e.Sequence, e.Fence, park.Waits}
			s.Waits = slices.Clone(park.Waits)
		}
	case spi.KindExecutionResumed:
		var answer events.Resumed
		if answer, err = events.Decode[events.Resumed](s.Execution, e); err == nil {
			s.answered(answer)
		}
	case spi.KindExecutionCompleted, spi.KindExecutionFailed, spi.KindExecutionCancelled, spi.KindExecutionContinued:
		end := *e
		s.Status, s.Park, s.Waits, s.End = Ended, nil, nil, &end
	case spi.KindMessageReceived:
		var m events.Received
		if m, err = events.Decode[events.Received](s.Execution, e); err == nil {
			s.Inbox = append(s.Inbox, events.Message{ID: e.ID.String(), Channel: m.Channel, Body: m.Body})
		}
	case spi.KindMessageConsumed:
		var c events.Consumed
		if c, err = events.Decode[events.Consumed](s.Execution, e); err == nil {
			s.Inbox = slices.DeleteFunc(s.Inbox, func(m events.Message) bool { return m.ID == c.Message })
		}
	default:
		if e.Answering() { // a newer node's: the park is not for this one to answer
			s.Status, s.Park = Running, nil
		}
	}
	return err
}

func (s *State) answered(answer events.Resumed) {
	s.Status, s.Park, s.End, s.Answer = Running, nil, nil, &answer
	for _, id := range answer.Waits {
		if w := s.wait(id); w != nil {
			for _, child := range w.Children {
				if s.Told == nil {
					s.Told = map[spi.ExecutionID]bool{}
				}
				s.Told[child.Execution] = true
			}
		}
	}
	s.Waits = slices.DeleteFunc(s.Waits, func(w events.Wait) bool { return slices.Contains(answer.Waits, w.ID) })
}
