// Package fair lets no more calls to a store be under way than it can do at once, and
// makes tenants take turns with them.
//
//	gate, err := fair.New(inner, fair.Options{Slots: 16})
//	store := gate.Store()
//
// A call takes a slot while it is under way. When all are taken, those that come wait,
// each in the queue of its tenant, and every slot that gets free goes to the tenant that
// has the fewest calls under way, in turn where several have. However many calls one tenant
// has, and however long they take, another that has none under way waits until one slot
// gets free, or as many as there are tenants before it that have none either.
//
// Fences, timers and leases are in a class of their own: neither they nor all other calls
// ever have the last quarter of the slots. So the one class never keeps the other out.
//
// A call whose context ends while it waits has changed nothing, and has the context's
// error. Calls that name no tenant's scope ([spi.SplitScope]) are nobody's, and take turns
// as one tenant; those about ownership never wait.
//
// The layer stands on a shard, below whatever routes: one shard that is slow keeps no
// slots of another's.
package fair

import (
	"context"
	"fmt"
	"sync"

	"github.com/loomgate/loomgate/spi"
)

// Options say how much may be under way.
type Options struct {
	// Slots is how many calls may be, from 1: such as the connections that there are.
	Slots int

	// Gathered says that the store below gathers appends of many callers, and is fair
	// to them itself: single appends pass, and take no slot.
	Gathered bool
}

// A Gate lets calls pass in turn. It is safe for concurrent use.
type Gate struct {
	store    *spi.Store
	gathered bool

	mu    sync.Mutex
	slots int
	lines [classes]line
	last  class // whose turn was last
}

// A class is a sort of calls that the other cannot keep out.
type class int

const (
	data         class = iota
	coordination       // fences, timers, leases
	classes
)

// New returns a gate before a store. Slots below 1 are an [spi.InvalidArgumentError].
func New(inner *spi.Store, o Options) (*Gate, error) {
	if o.Slots < 1 {
		return nil, &spi.InvalidArgumentError{Field: "slots", Rule: fmt.Sprintf("is %d, which is less than 1", o.Slots)}
	}
	g := &Gate{gathered: o.Gathered, slots: o.Slots}
	for c := range g.lines {
		g.lines[c].tenants = map[spi.TenantName]*party{}
	}
	var err error
	g.store, err = spi.Wrap(&fair{inner, g}, inner)
	return g, err
}

// Store returns the store behind the gate.
func (g *Gate) Store() *spi.Store { return g.store }

// Resize changes how many calls may be under way, to 1 at least. Those that are go on.
func (g *Gate) Resize(slots int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.slots = max(1, slots)
	g.admit()
}

// enter returns when the call of a tenant may be done, or the context's error. Whoever
// has entered leaves.
func (g *Gate) enter(ctx context.Context, c class, tenant spi.TenantName) (leave func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	g.mu.Lock()
	l := &g.lines[c]
	p := l.of(tenant)
	leave = func() { g.leave(c, p) }
	if len(l.turns) == 0 && g.free(c) { // nobody is before it
		l.enter(p)
		g.last = c
		g.mu.Unlock()
		return leave, nil
	}
	w := l.put(p)
	g.mu.Unlock()
	select {
	case <-w.entered:
		return leave, nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if l.remove(p, w) {
		return nil, ctx.Err()
	}
	return leave, nil // it has just entered
}

func (g *Gate) leave(c class, p *party) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lines[c].leave(p)
	g.admit()
}

// admit lets in who may enter now. It is called under the lock.
func (g *Gate) admit() {
	for {
		c := 1 - g.last // the two take turns, where both can
		if !g.ready(c) {
			c = g.last
		}
		if !g.ready(c) {
			return
		}
		g.lines[c].admit()
		g.last = c
	}
}

// ready reports whether somebody waits in a class, and may enter.
func (g *Gate) ready(c class) bool { return len(g.lines[c].turns) > 0 && g.free(c) }

// free reports whether there is a slot that a class may have.
func (g *Gate) free(c class) bool {
	all := g.lines[data].under + g.lines[coordination].under
	return all < g.slots && g.lines[c].under < g.slots-g.slots/4
}
