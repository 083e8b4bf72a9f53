package sim

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/loomgate/loomgate/runtime/events"
	"github.com/loomgate/loomgate/runtime/resume"
	"github.com/loomgate/loomgate/spi"
)

// What the executions of a world do. A parent starts three children and parks on
// them, then on a message and a timer, whichever comes first, then on the other. A
// child sleeps once.

const (
	waitChildren = "children"
	waitMessage  = "message"
	waitTick     = "tick"
	channel      = "letters"
)

// A letter is a message that somebody sends until it is acknowledged.
type letter struct {
	to           spi.ExecutionID
	id           spi.EventID
	acknowledged bool
}

func newLetter(to spi.ExecutionID, i int) *letter {
	ids := eventIDs{writer: 100 + uint64(i)}
	return &letter{to: to, id: ids.next()}
}

// send delivers a letter that is not acknowledged yet.
func (n *node) send(ctx context.Context) {
	w := n.world
	l := w.letters[w.random.IntN(len(w.letters))]
	if w.quiet {
		for _, l = range w.letters {
			if !l.acknowledged {
				break
			}
		}
	}
	run, err := n.resumer.Deliver(ctx, l.to, l.id, channel, nil)
	if err != nil {
		return
	}
	l.acknowledged = true
	if run != nil {
		n.body(ctx, run)
	}
}

// start starts a parent that is not started yet.
func (n *node) start(ctx context.Context) {
	for _, id := range n.world.parents {
		if n.world.owner[id] != nil {
			continue
		}
		run, err := n.resumer.Start(ctx, id, events.Started{})
		if err == nil {
			n.body(ctx, run)
		}
		return
	}
}

// body runs an execution to its next park or its end. What it does follows from the
// state, so that another node can do it again.
func (n *node) body(ctx context.Context, run *resume.Run) {
	var err error
	id := run.State().Execution
	if isChild(id) {
		err = n.child(ctx, run)
	} else {
		err = n.parent(ctx, run)
	}
	if err == nil && isChild(id) && run.State().Status == resume.Ended {
		_ = n.supervisor.Settled(ctx, id)
	}
}

func (n *node) parent(ctx context.Context, run *resume.Run) error {
	for {
		state, answered := run.State(), ""
		if state.Answer != nil && len(state.Answer.Waits) == 1 {
			answered = state.Answer.Waits[0]
		}
		if err := run.Append(ctx, spi.Event{ID: n.ids.next(), Kind: "Worked"}); err != nil {
			return err
		}
		var waits []events.Wait
		switch {
		case answered == "":
			children, err := n.children(ctx, state.Execution)
			if err != nil {
				return err
			}
			waits = []events.Wait{{ID: waitChildren, Reason: events.ReasonChildren, Group: "all", Children: children}}
		case answered == waitChildren:
			waits = []events.Wait{
				{ID: waitMessage, Reason: events.ReasonMessage, Channel: channel},
				{ID: waitTick, Reason: events.ReasonTimer, WakeAt: n.soon()},
			}
		case len(state.Waits) > 0:
			waits = state.Waits
		default:
			return run.Complete(ctx, nil)
		}
		if parked, err := run.Park(ctx, waits...); parked || err != nil {
			return err
		}
	}
}

func (n *node) children(ctx context.Context, parent spi.ExecutionID) ([]events.Child, error) {
	var children []events.Child
	for i := range 3 {
		child := events.Child{Key: fmt.Sprint(i), Execution: spi.ExecutionID(fmt.Sprintf("child-%s-%d", parent, i))}
		children = append(children, child)
		edge := &events.Parent{Execution: parent, Key: child.Key, Group: "all"}
		run, err := n.resumer.Start(ctx, child.Execution, events.Started{Parent: edge})
		if isOne[*resume.StartedError](err) || isOne[*spi.IncarnationError](err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := n.child(ctx, run); err != nil {
			return nil, err
		}
	}
	return children, nil
}

func (n *node) child(ctx context.Context, run *resume.Run) error {
	if run.State().Answer != nil {
		return run.Complete(ctx, nil)
	}
	_, err := run.Park(ctx, events.Wait{ID: "sleep", Reason: events.ReasonTimer, WakeAt: n.soon()})
	return err
}

func (n *node) soon() time.Time {
	return n.world.now.Add(time.Duration(n.world.random.Int64N(int64(300 * time.Millisecond)))).Truncate(time.Millisecond)
}

func isChild(id spi.ExecutionID) bool { return strings.HasPrefix(string(id), "child-") }

// somebody returns an execution.
func (n *node) somebody() spi.ExecutionID {
	w := n.world
	parent := w.parents[w.random.IntN(len(w.parents))]
	if i := w.random.IntN(4); i < 3 {
		return spi.ExecutionID(fmt.Sprintf("child-%s-%d", parent, i))
	}
	return parent
}

// executions returns what there is.
func (w *world) executions(ctx context.Context) iter.Seq[spi.ExecutionID] {
	return func(yield func(spi.ExecutionID) bool) {
		all, err := spi.ListExecutions(ctx, w.store, spi.ListExecutionsRequest{Limit: spi.MaxLimit})
		if err != nil {
			w.broken("executions are listed: %w", err)
		}
		for _, id := range all.Executions {
			if !yield(id) {
				return
			}
		}
	}
}
