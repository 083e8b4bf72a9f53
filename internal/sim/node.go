package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loomgate/loomgate/runtime/resume"
	"github.com/loomgate/loomgate/runtime/retention"
	"github.com/loomgate/loomgate/runtime/supervise"
	"github.com/loomgate/loomgate/runtime/timers"
	"github.com/loomgate/loomgate/spi"
)

// A node does one piece of work after the other, until it crashes and another takes
// its place, which remembers nothing.
type node struct {
	world *world
	ids   eventIDs
	store *spi.Store
	task  *task
	name  string

	resumer    *resume.Resumer
	timers     *timers.Service
	supervisor *supervise.Supervisor
	asked      map[spi.ExecutionID]*asked // what its re-drivers were asked about
}

func newNode(ctx context.Context, w *world, i int, broken calls) (*node, error) {
	n := &node{world: w, ids: eventIDs{writer: uint64(i)}, name: fmt.Sprintf("node-%d", i)}
	net := &network{
		inner: w.altered,
		calls: broken,
		task:  func() *task { return n.task },
		fault: w.fault,
		early: func(req any) { w.contend(ctx, req) },
		later: func(request func()) { w.late = append(w.late, request) },
		seen:  func(by *task, req, res any) { w.watch(ctx, n, by, req, res) },
	}
	var err error
	if n.store, err = spi.Wrap(net, w.altered); err != nil {
		return nil, err
	}
	return n, n.boot()
}

// boot builds what a process holds.
func (n *node) boot() (err error) {
	n.asked = map[spi.ExecutionID]*asked{}
	n.resumer = resume.New(n.store, resume.WithEventIDs(n.ids.next))
	n.timers, err = timers.New(n.resumer, timers.Config{
		Holder: n.name, LeaseTTL: time.Second, Redrive: true,
		Backoff: timers.Backoff{Random: n.world.random.Float64},
		Now:     func() time.Time { return n.world.now },
		Body:    n.body,
		OnError: func(err error) {
			if e, ok := errors.AsType[*timers.ExhaustedError](err); ok {
				n.world.exhausted[e.Execution] = true
			}
		},
	})
	if err != nil {
		return err
	}
	n.timers.Register(n.ask)
	n.supervisor = supervise.New(n.resumer, supervise.Config{Timers: n.timers, Body: n.body})
	return nil
}

func (n *node) crash() {
	if n.task != nil {
		n.task.crash()
	}
	if err := n.boot(); err != nil {
		n.world.broken("a node boots: %w", err)
	}
}

func (n *node) begin(name string, work func(context.Context)) {
	n.task = newTask(name, func(*task) { work(context.Background()) })
}

// move lets the node make one call, of its work or of what it begins now.
func (n *node) move(context.Context) {
	if n.task == nil || n.task.done {
		n.begin("work", n.pick())
	}
	n.task.run()
}

// pick chooses what to do next.
func (n *node) pick() func(context.Context) {
	w := n.world
	works := []func(context.Context){
		n.poll, n.poll, n.poll, n.poll, n.start, n.supervise, n.supervise, n.send, n.note, n.retain, n.recover, n.recover, n.rival, n.resumeDirectly,
	}
	return works[w.random.IntN(len(works))]
}

// poll wakes what is due.
func (n *node) poll(ctx context.Context) { _ = n.timers.Poll(ctx) }

// supervise resumes parents.
func (n *node) supervise(ctx context.Context) { _ = n.supervisor.Recover(ctx) }

// note writes about an execution that is somebody else's.
func (n *node) note(ctx context.Context) {
	id := n.somebody()
	event := spi.Event{ID: n.ids.next(), Kind: spi.KindExecutionDenied, Kernel: true}
	_, _ = spi.Append(ctx, n.store, spi.AppendRequest{Execution: id, ExpectedHead: spi.AnyHead, Events: []spi.Event{event}})
}

// rival acquires a park and dies of it.
func (n *node) rival(ctx context.Context) {
	id := n.somebody()
	park, err := n.resumer.LocatePark(ctx, id)
	if err != nil || park == nil {
		return
	}
	_, _ = spi.AcquireFenceIf(ctx, n.store, spi.AcquireFenceIfRequest{Execution: id, Fence: park.Fence, ParkSeq: park.Sequence})
}

// retain removes children that ended a while ago.
func (n *node) retain(ctx context.Context) {
	policy := n.supervisor.Retention(retention.Policy{
		Prefix: "child-", MaxAge: 100 * time.Millisecond, Now: func() time.Time { return n.world.now },
	})
	_, _ = retention.Apply(ctx, n.resumer, policy)
}

// recover takes over what runs and whose owner is gone.
func (n *node) recover(ctx context.Context) { n.takeOver(ctx, n.somebody()) }

func (n *node) takeOver(ctx context.Context, id spi.ExecutionID) {
	if owner := n.world.owner[id]; owner == nil || !owner.done {
		return // its lease says that it lives
	}
	n.task.takingOver = id
	n.world.owner[id] = n.task
	run, err := n.resumer.Recover(ctx, id, n.name, time.Second)
	if err == nil && run != nil {
		n.body(ctx, run)
	}
}

// resumeDirectly answers a timer that is due, as a caller of the library might.
func (n *node) resumeDirectly(ctx context.Context) {
	id := n.somebody()
	state, err := n.resumer.Fold(ctx, id)
	if err != nil || state.Park == nil {
		return
	}
	at := state.Park.Sequence
	for _, wait := range state.Park.Waits {
		if wait.WakeAt.IsZero() || wait.WakeAt.After(n.world.latest) {
			continue
		}
		run, err := n.resumer.Resume(ctx, resume.Request{
			Execution: id, FenceIfParkedAt: at,
			Answer: func(*resume.State) (resume.Answer, error) { return resume.Answer{Waits: []string{wait.ID}}, nil },
		})
		if refused, ok := errors.AsType[*resume.RefusedError](err); ok && !n.task.crashed {
			n.world.refused(ctx, id, at, refused)
		}
		if err == nil {
			n.body(ctx, run)
		}
		return
	}
}

// everything is what a healthy node does in the end.
func (n *node) everything(ctx context.Context) {
	for range n.world.parents {
		n.start(ctx)
	}
	for id := range n.world.executions(ctx) {
		n.takeOver(ctx, id)
		if !n.world.exhausted[id] {
			continue // recovery is for what was left to it, and would hide what was lost
		}
		if _, err := n.timers.Restore(ctx, id); err != nil {
			n.world.broken("timers are restored: %w", err)
		}
	}
	if err := n.timers.Poll(ctx); err != nil {
		n.world.broken("timers are polled: %w", err)
	}
	if err := n.supervisor.Recover(ctx); err != nil {
		n.world.broken("parents are recovered: %w", err)
	}
	for range n.world.letters {
		n.send(ctx)
	}
}
