package events

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/loomgate/loomgate/spi"
)

// New returns an event of a kernel kind with that payload; nil is none.
func New(id spi.EventID, kind string, payload any) (spi.Event, error) {
	event := spi.Event{ID: id, Kind: kind, Kernel: true}
	if payload == nil {
		return event, nil
	}
	text, err := json.Marshal(payload)
	if err != nil {
		return event, fmt.Errorf("the payload of %s: %w", kind, err)
	}
	event.Payload = text
	return event, nil
}

// Decode reads the payload of an event of that execution. An empty payload leaves
// the zero value. The error is a [PayloadError].
func Decode[T any](execution spi.ExecutionID, event *spi.Event) (payload T, err error) {
	if len(event.Payload) == 0 {
		return payload, nil
	}
	if json.Unmarshal(event.Payload, &payload) != nil {
		return payload, &PayloadError{execution, event.Sequence, event.Kind, "is not what the schema says"}
	}
	return payload, nil
}

// Validate returns a [PayloadError] without an execution unless the park can be
// waited for: it has waits, each with an id of its own and with what its reason
// calls for.
func (s Suspended) Validate() error {
	wrong := func(format string, args ...any) error {
		return &PayloadError{Kind: spi.KindExecutionSuspended, Rule: fmt.Sprintf(format, args...)}
	}
	if len(s.Waits) == 0 {
		return wrong("has no waits")
	}
	seen := make(map[string]bool, len(s.Waits))
	for i, w := range s.Waits {
		switch {
		case w.ID == "" || seen[w.ID]:
			return wrong("has no id of its own for waits[%d]", i)
		case !w.WakeAt.Equal(w.WakeAt.Truncate(time.Millisecond)):
			return wrong("has a wake time finer than a millisecond in waits[%d]", i)
		}
		seen[w.ID] = true
		if rule := w.fault(); rule != "" {
			return wrong("%s in waits[%d]", rule, i)
		}
	}
	return nil
}

// fault returns the rule that the wait breaks, or "".
func (w Wait) fault() string {
	switch {
	case w.Reason != ReasonTimer && w.Reason != ReasonChildren && w.Reason != ReasonMessage && w.Reason != ReasonExternal:
		return "has no known reason"
	case (w.Reason == ReasonTimer) == w.WakeAt.IsZero():
		return "has a wake time for another reason than a timer, or a timer without one"
	case (w.Reason == ReasonMessage) == (w.Channel == ""):
		return "has a channel for another reason than a message, or a message without one"
	case (w.Reason == ReasonChildren) == (len(w.Children) == 0):
		return "has children for another reason than children, or none for that"
	}
	for _, c := range w.Children {
		if c.Key == "" || c.Execution.Validate() != nil {
			return "has a child without a key or an execution"
		}
	}
	return ""
}
