// Package events holds what the kernel's own events carry: why an execution is
// parked and on what, who its parent is, which children and messages it waits for.
//
// Payloads are JSON; [Schema] documents them. A reader ignores fields that it does
// not know, so a newer writer may add some. Times are UTC in whole milliseconds.
package events

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"time"

	"github.com/loomgate/loomgate/spi"
)

// Schema is the JSON schema of the payloads, one definition a kind.
//
//go:embed schema.json
var Schema []byte

// A Reason says what a wait is for.
type Reason string

// Why an execution waits.
const (
	ReasonTimer    Reason = "timer"    // until WakeAt
	ReasonChildren Reason = "children" // until each child has settled
	ReasonMessage  Reason = "message"  // for a message on Channel
	ReasonExternal Reason = "external" // for whoever answers
)

// Started is the payload of EXECUTION_STARTED.
type Started struct {
	// Parent is the execution that will wait for this one; nil if none will.
	Parent *Parent         `json:"parent,omitempty"`
	Input  json.RawMessage `json:"input,omitempty"`
}

// A Parent is the edge from a child to the execution that waits for it.
type Parent struct {
	Execution spi.ExecutionID `json:"execution"`
	Key       string          `json:"key"`             // what the parent calls the child
	Group     string          `json:"group,omitempty"` // what it calls the child and its siblings
}

// Suspended is the payload of EXECUTION_SUSPENDED: a park on one wait or several.
// One that ends answers the park; the body may park again on the others.
type Suspended struct {
	Waits []Wait `json:"waits"`
}

// A Wait is one thing that a parked execution waits for.
type Wait struct {
	ID       string    `json:"id"` // unique in the park
	Reason   Reason    `json:"reason"`
	WakeAt   time.Time `json:"wakeAt,omitzero"`
	Channel  string    `json:"channel,omitempty"`
	Group    string    `json:"group,omitempty"` // names Children as a whole
	Children []Child   `json:"children,omitempty"`
}

// A Child is an execution that a parent waits for.
type Child struct {
	Key       string          `json:"key"`
	Execution spi.ExecutionID `json:"execution"`
}

// Resumed is the payload of EXECUTION_RESUMED. An event without a payload opens an
// execution again and ends none of its waits.
type Resumed struct {
	Waits []string        `json:"waits,omitempty"` // the ids of those that ended
	Value json.RawMessage `json:"value,omitempty"` // [Woken], [Outcome] a child, [Message], or the caller's
}

// Woken is the value with which a timer answers.
type Woken struct {
	WakeAt time.Time `json:"wakeAt"`
}

// An Outcome is how a child settled.
type Outcome struct {
	Key       string          `json:"key"`
	Execution spi.ExecutionID `json:"execution"`
	Kind      string          `json:"kind,omitempty"`    // of its last event; empty if it was deleted
	Result    []byte          `json:"result,omitempty"`  // that event's payload
	Deleted   bool            `json:"deleted,omitempty"` // or shredded: there is no telling
}

// Received is the payload of MESSAGE_RECEIVED. The event's id is the message's.
type Received struct {
	Channel string          `json:"channel"`
	Body    json.RawMessage `json:"body,omitempty"`
}

// Consumed is the payload of MESSAGE_CONSUMED.
type Consumed struct {
	Message string `json:"message"` // the id of the message's event, as UUID text
}

// A Message is what an execution received, and the value with which it answers.
type Message struct {
	ID      string          `json:"id"`
	Channel string          `json:"channel"`
	Body    json.RawMessage `json:"body,omitempty"`
}

// A PayloadError says that an event's payload is not what its kind calls for.
type PayloadError struct {
	Execution spi.ExecutionID
	Sequence  int64 // 0: the event is not written yet
	Kind      string
	Rule      string // never repeats the payload
}

func (e *PayloadError) Error() string {
	return fmt.Sprintf("execution %q: the payload of %s at %d %s", e.Execution, e.Kind, e.Sequence, e.Rule)
}

// Names reports whether the wait is on that child, by the edge that the child's own
// start event holds: by its key, or by the group that it belongs to.
func (w Wait) Names(child spi.ExecutionID, edge Parent) bool {
	if w.Reason != ReasonChildren {
		return false
	}
	for _, c := range w.Children {
		if c.Execution == child {
			return c.Key == edge.Key || w.Group != "" && w.Group == edge.Group
		}
	}
	return false
}
