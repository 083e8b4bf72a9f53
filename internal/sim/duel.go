package sim

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/runtime/events"
	"github.com/loomgate/loomgate/runtime/resume"
	"github.com/loomgate/loomgate/spi"
)

// A duel is two nodes that resume one park, where somebody has acquired the execution
// before them and died. Whoever wins runs the execution to its end.
type duel struct {
	store *spi.Store // as it is
	ids   eventIDs
	nodes [2]*duelist
	known map[uint64]bool // states that were gone on from already
	err   error           // the first sentence that is broken
}

type duelist struct {
	task *task
	ids  eventIDs
	told maphash.Hash // everything that the node was answered: all that it acts on
	won  bool
	err  error

	crashed bool // in the schedule, and not because the run is over
}

// eventIDs are one writer's, the same in each run.
type eventIDs struct{ writer, last uint64 }

func (e *eventIDs) next() (id spi.EventID) {
	e.last++
	binary.BigEndian.PutUint64(id[:8], e.writer+1)
	binary.BigEndian.PutUint64(id[8:], e.last)
	return id
}

const contested = spi.ExecutionID("contested")

// Duels runs every interleaving of the calls of two resumers, with at most so many
// crashes, over a store that alter may break. Schedules that come to a state which
// another has come to are gone on with once. It returns how many it ran, and the first
// in which a sentence is broken.
func Duels(crashes int, alter func(*spi.Store) (*spi.Store, error)) (runs int, err error) {
	s, known := &script{}, map[uint64]bool{}
	for {
		runs++
		if err := runDuel(s, crashes, known, alter); err != nil {
			return runs, fmt.Errorf("schedule %v: %w", s.choices, err)
		}
		if !s.next() {
			return runs, nil
		}
	}
}

// epoch is when simulations begin.
var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func runDuel(s *script, crashes int, known map[uint64]bool, alter func(*spi.Store) (*spi.Store, error)) error {
	ctx := context.Background()
	inner, err := memory.New(memory.WithClock(func() time.Time { return epoch }))
	if err != nil {
		return err
	}
	d := &duel{store: inner, known: known, ids: eventIDs{writer: 9}}
	altered, err := alter(inner)
	if err != nil {
		return err
	}
	park, err := d.prepare(ctx)
	if err != nil {
		return err
	}
	for i := range d.nodes {
		if err := d.enter(ctx, i, altered, park); err != nil {
			return err
		}
	}
	fought := d.fight(ctx, s, crashes)
	for _, n := range d.nodes {
		n.task.crash()
	}
	if !fought && d.err == nil {
		return nil
	}
	return errors.Join(d.err, d.judge(ctx))
}

// prepare parks an execution, and lets somebody acquire it who then dies.
func (d *duel) prepare(ctx context.Context) (park int64, err error) {
	r := resume.New(d.store, resume.WithEventIDs(d.ids.next))
	run, err := r.Start(ctx, contested, events.Started{})
	if err != nil {
		return 0, err
	}
	if _, err := run.Park(ctx, events.Wait{ID: "answer", Reason: events.ReasonExternal}); err != nil {
		return 0, err
	}
	_, err = spi.AcquireFence(ctx, d.store, spi.AcquireFenceRequest{Execution: contested})
	return run.State().Park.Sequence, err
}

func (d *duel) enter(ctx context.Context, i int, altered *spi.Store, park int64) error {
	n := &duelist{ids: eventIDs{writer: uint64(i)}}
	n.told.SetSeed(seed)
	told := func(res any, err error) { fmt.Fprint(&n.told, res, err) }
	store, err := spi.Wrap(&network{inner: altered, task: func() *task { return n.task }, told: told}, altered)
	if err != nil {
		return err
	}
	r := resume.New(store, resume.WithEventIDs(n.ids.next))
	d.nodes[i] = n
	n.task = newTask(fmt.Sprint(i), func(*task) { d.play(ctx, n, r, park) })
	return nil
}

// play is what a node does.
func (d *duel) play(ctx context.Context, n *duelist, r *resume.Resumer, park int64) {
	run, err := r.Resume(ctx, resume.Request{
		Execution: contested, FenceIfParkedAt: park,
		Answer: func(*resume.State) (resume.Answer, error) { return resume.Answer{Waits: []string{"answer"}}, nil },
	})
	n.err = err
	if n.task.crashed {
		return
	}
	if _, refused := errors.AsType[*resume.RefusedError](err); refused && d.open(ctx, park) {
		d.broken("contention is never reported as refusal: the park is open")
	}
	if err != nil {
		return
	}
	n.won = true
	if err := run.Complete(ctx, nil); err != nil && !n.task.crashed {
		d.broken("a running body is never fenced out: %w", err)
	}
}

func (d *duel) broken(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format, args...)
	}
}

// open reports whether the park is unanswered.
func (d *duel) open(ctx context.Context, park int64) bool {
	now, err := resume.New(d.store).LocatePark(ctx, contested)
	return err == nil && now != nil && now.Sequence == park
}

// fight lets the nodes take turns until neither has any left. It returns false if it
// has come to where another schedule has been.
func (d *duel) fight(ctx context.Context, s *script, crashes int) bool {
	for {
		var moves []func()
		for _, n := range d.nodes {
			if n.task.done {
				continue
			}
			moves = append(moves, n.task.run)
			if crashes > 0 {
				moves = append(moves, func() { crashes--; n.crashed = true; n.task.crash() })
			}
		}
		if len(moves) == 0 {
			return true
		}
		if s.fresh() {
			state := d.state(ctx, crashes)
			if d.known[state] {
				return false
			}
			d.known[state] = true
		}
		moves[s.choose(len(moves))]()
	}
}

var seed = maphash.MakeSeed()

// state is the store's and the nodes' state, which alone decides what can follow.
func (d *duel) state(ctx context.Context, crashes int) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	log, err := spi.Read(ctx, d.store, spi.ReadRequest{Execution: contested, Limit: spi.MaxLimit})
	fmt.Fprint(&h, log.Events, err)
	head, err := spi.Head(ctx, d.store, spi.HeadRequest{Execution: contested})
	fmt.Fprint(&h, head, err, crashes)
	for _, n := range d.nodes {
		fmt.Fprint(&h, n.task.turns, n.task.done, n.crashed, n.told.Sum64())
	}
	return h.Sum64()
}

// judge looks at what has come of it. A park that nobody has answered, because they
// died, must still be there to be resumed.
func (d *duel) judge(ctx context.Context) error {
	log, err := spi.Read(ctx, d.store, spi.ReadRequest{Execution: contested, Limit: spi.MaxLimit})
	if err != nil {
		return err
	}
	resumes := 0
	for _, e := range log.Events {
		if e.Kind == spi.KindExecutionResumed {
			resumes++
		}
	}
	if resumes > 1 {
		return fmt.Errorf("at most one resume a park: there are %d", resumes)
	}
	if resumes == 1 {
		return nil
	}
	for _, n := range d.nodes {
		if n.won {
			return errors.New("a resume that was acknowledged is in the log")
		}
		if _, contended := errors.AsType[*resume.ContendedError](n.err); n.err != nil && !contended && !n.crashed {
			return fmt.Errorf("a resumer that lives resumes an open park or is contended: %w", n.err)
		}
	}
	r := resume.New(d.store, resume.WithEventIDs(d.ids.next))
	state, err := r.Fold(ctx, contested)
	if err != nil {
		return err
	}
	_, err = r.Resume(ctx, resume.Request{Execution: contested, FenceIfParkedAt: state.Park.Sequence})
	return err
}
