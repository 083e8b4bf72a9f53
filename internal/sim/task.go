// Package sim runs the runtime library in a deterministic simulation: nodes take
// turns at each call of the store, one at a time, as a seed or a script says. Nodes
// crash between any two calls, answers are lost and requests arrive twice, and the
// clock steps. The same seed gives the same run.
package sim

import (
	"errors"
	"iter"

	"github.com/loomgate/loomgate/spi"
)

// errCrashed is what a crashed node's calls return: nothing of what it still does
// reaches the store.
var errCrashed = errors.New("the node has crashed")

// A task is a piece of a node's work, which stops at each call of the store.
type task struct {
	name    string
	step    func() (struct{}, bool)
	stop    func()
	yield   func(struct{}) bool
	crashed bool
	done    bool
	turns   int

	takingOver spi.ExecutionID // what it recovers
}

// newTask returns a task that has not begun.
func newTask(name string, work func(*task)) *task {
	t := &task{name: name}
	t.step, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		work(t)
	})
	return t
}

// run lets the task go on to its next call of the store.
func (t *task) run() {
	t.turns++
	if _, more := t.step(); !more {
		t.done = true
	}
}

// crash ends the task where it stands.
func (t *task) crash() {
	t.crashed, t.done = true, true
	t.stop()
}

// turn waits until it is the task's turn, and reports whether it lives.
func (t *task) turn() bool {
	return !t.crashed && t.yield(struct{}{}) && !t.crashed
}
