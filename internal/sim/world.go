package sim

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/runtime/resume"
	"github.com/loomgate/loomgate/spi"
)

// A Control breaks one thing on purpose, to see that the simulation finds it.
type Control struct {
	Name  string
	caps  spi.Caps // that the store lacks
	calls calls
}

// Controls are what the simulation must find.
var Controls = []Control{
	{Name: "the acquire is unconditional", caps: spi.CapAcquireFenceIf},
	{Name: "a retry compares the token alone", calls: calls{acquireFenceIf: tokenAlone}},
	{Name: "a redrive row is retired before the next is written", calls: calls{retireFirst: true}},
	{Name: "a redrive row is judged by its wake time", calls: calls{dueTimers: allPlain}},
}

func tokenAlone(ctx context.Context, s *spi.Store, req spi.AcquireFenceIfRequest) (res spi.AcquireFenceIfResponse, err error) {
	head, err := spi.Head(ctx, s, spi.HeadRequest{Execution: req.Execution})
	if err != nil || head.Fence != req.Fence || head.Head == 0 {
		return spi.AcquireFenceIf(ctx, s, req)
	}
	acquired, err := spi.AcquireFence(ctx, s, spi.AcquireFenceRequest{Execution: req.Execution, Incarnation: req.Incarnation})
	return spi.AcquireFenceIfResponse{Acquired: err == nil, Token: acquired.Token}, err
}

func allPlain(ctx context.Context, s *spi.Store, req spi.DueTimersRequest) (spi.DueTimersResponse, error) {
	res, err := spi.DueTimers(ctx, s, req)
	for i := range res.Timers {
		res.Timers[i].Redrive, res.Timers[i].Attempt = false, 0
	}
	return res, err
}

// A world is one run: a store, nodes that work on it, and what is checked.
type world struct {
	random *rand.Rand
	now    time.Time     // the clock of the store and of the nodes, which steps
	latest time.Time     // the latest that it has shown
	offset time.Duration // by which it is off
	quiet  bool          // no more faults

	contested bool // rivals that die of it are often just ahead of an acquire

	store   *spi.Store // as it is: for looking at
	altered *spi.Store // as nodes have it
	reader  *resume.Resumer
	nodes   []*node
	late    []func() // requests that arrive once more, or late

	parents   []spi.ExecutionID
	letters   []*letter
	owner     map[spi.ExecutionID]*task // who resumed, started or took over last
	exhausted map[spi.ExecutionID]bool  // those that were left to recovery
	redrive   map[rowKey]int            // the attempt of each redrive row
	err       error                     // the first sentence that is broken
}

const nodeCount = 5

// Run runs a seed, with nothing broken or with a control. The error is the first
// sentence that does not hold. The fingerprint is that of all logs in the end.
func Run(seed uint64, control Control) (fingerprint uint64, err error) {
	w := &world{
		random: rand.New(rand.NewPCG(seed, 0)), contested: seed%3 == 0,
		now: epoch, latest: epoch,
		owner: map[spi.ExecutionID]*task{}, redrive: map[rowKey]int{}, exhausted: map[spi.ExecutionID]bool{},
	}
	ctx := context.Background()
	if err := w.build(ctx, control); err != nil {
		return 0, err
	}
	for range 600 {
		w.advance()
		w.move(ctx)
	}
	if w.err == nil {
		w.settle(ctx)
	}
	for _, n := range w.nodes {
		n.crash()
	}
	if w.err != nil {
		return 0, fmt.Errorf("seed %d: %w", seed, w.err)
	}
	return w.fingerprint(ctx), nil
}

func (w *world) fingerprint(ctx context.Context) uint64 {
	h := fnv.New64()
	for id := range w.executions(ctx) {
		log, err := spi.Read(ctx, w.store, spi.ReadRequest{Execution: id, Limit: spi.MaxLimit})
		fmt.Fprint(h, id, log, err)
	}
	return h.Sum64()
}

func (w *world) build(ctx context.Context, control Control) (err error) {
	if w.store, err = memory.New(memory.WithClock(func() time.Time { return w.now })); err != nil {
		return err
	}
	w.altered = spi.Only(w.store, spi.AllCaps&^control.caps)
	w.reader = resume.New(w.store)
	for i := range nodeCount {
		n, err := newNode(ctx, w, i, control.calls)
		if err != nil {
			return err
		}
		w.nodes = append(w.nodes, n)
	}
	for i := range 2 {
		parent := spi.ExecutionID(fmt.Sprintf("parent-%d", i))
		w.parents = append(w.parents, parent)
		w.letters = append(w.letters, newLetter(parent, i))
	}
	return nil
}

// advance lets time pass, and at times step by an hour and back.
func (w *world) advance() {
	w.now = w.now.Add(time.Duration(w.random.Int64N(int64(40 * time.Millisecond)))).Truncate(time.Microsecond)
	if w.offset == 0 && w.random.IntN(150) == 0 {
		w.step([]time.Duration{-time.Hour, time.Hour}[w.random.IntN(2)])
	} else if w.offset != 0 && w.random.IntN(20) == 0 {
		w.step(-w.offset)
	}
	if w.now.After(w.latest) {
		w.latest = w.now
	}
}

func (w *world) step(by time.Duration) { w.now, w.offset = w.now.Add(by), w.offset+by }

// move does one thing: a call of a node, a crash, or a request that arrives late.
func (w *world) move(ctx context.Context) {
	if w.err != nil {
		return
	}
	if len(w.late) > 0 && w.random.IntN(6) == 0 {
		w.arrive(w.random.IntN(len(w.late)))
		return
	}
	n := w.nodes[w.random.IntN(len(w.nodes))]
	if w.random.IntN(100) == 0 {
		n.crash()
		return
	}
	n.move(ctx)
}

func (w *world) arrive(i int) {
	request := w.late[i]
	w.late = append(w.late[:i:i], w.late[i+1:]...)
	request()
}

// settle lets everything come to rest without faults, and looks for what was lost.
func (w *world) settle(ctx context.Context) {
	w.quiet = true
	for len(w.late) > 0 {
		w.arrive(0)
	}
	for range 40 {
		for _, n := range w.nodes {
			for n.task != nil && !n.task.done {
				n.task.run()
			}
		}
		if w.finished(ctx) || w.err != nil {
			break
		}
		w.now = w.now.Add(time.Hour)
		w.latest = later(w.latest, w.now)
		n := w.nodes[0]
		n.begin("settle", n.everything)
		for !n.task.done {
			n.task.run()
		}
	}
	w.judge(ctx)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func (w *world) finished(ctx context.Context) bool {
	for _, id := range w.parents {
		if state, err := w.reader.Fold(ctx, id); err != nil || state.Status != resume.Ended {
			return false
		}
	}
	for _, l := range w.letters {
		if !l.acknowledged {
			return false
		}
	}
	return true
}

// broken notes the first sentence that does not hold.
func (w *world) broken(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

// faults are what becomes of a node's calls.
func (w *world) fault(write bool) fault {
	if w.quiet {
		return none
	}
	switch r := w.random.IntN(100); {
	case r < 2:
		return refused
	case r < 5 && write:
		return lostReply
	case r < 7 && write:
		return arrivesLater
	case r < 9 && write:
		return twice
	}
	return none
}

func isOne[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// contend lets a rival acquire a parent's park just ahead of a node that resumes it,
// and die.
func (w *world) contend(ctx context.Context, request any) {
	if !w.contested || w.quiet || w.random.IntN(10) == 0 {
		return
	}
	var id spi.ExecutionID
	switch req := request.(type) {
	case spi.AcquireFenceIfRequest:
		id = req.Execution
	case spi.AppendRequest:
		if spi.AnyAnswering(req.Events) {
			id = req.Execution
		}
	}
	if id == "" || w.settledPark(ctx, id) == 0 {
		return
	}
	park, err := w.reader.LocatePark(ctx, id)
	if err != nil {
		w.broken("a park is located: %w", err)
		return
	}
	head, err := spi.Head(ctx, w.store, spi.HeadRequest{Execution: id})
	if err != nil {
		w.broken("a head is read: %w", err)
		return
	}
	if _, err := spi.AcquireFenceIf(ctx, w.store, spi.AcquireFenceIfRequest{Execution: id, Fence: head.Fence, ParkSeq: park.Sequence}); err != nil {
		w.broken("a rival acquires: %w", err)
	}
}
