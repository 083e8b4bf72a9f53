package coalescing

import (
	"slices"

	"github.com/loomgate/loomgate/spi"
)

// A queue holds the appends that wait. The first one to each execution is ready, unless
// one is under way; tenants take turns with those.
type queue struct {
	// behind has the executions that have an append ready or under way, with those
	// that wait until it has ended.
	behind map[spi.ExecutionID][]*waiter

	ready map[spi.TenantName][]*waiter // "" has those that no scope names
	turns []spi.TenantName             // of those in ready
}

func newQueue() queue {
	return queue{behind: map[spi.ExecutionID][]*waiter{}, ready: map[spi.TenantName][]*waiter{}}
}

// claim makes an append the only one to its execution, unless there is another.
func (q *queue) claim(id spi.ExecutionID) bool {
	if _, busy := q.behind[id]; busy {
		return false
	}
	q.behind[id] = nil
	return true
}

// put adds an append.
func (q *queue) put(w *waiter) {
	if id := w.req.Execution; q.claim(id) {
		q.makeReady(w)
	} else {
		q.behind[id] = append(q.behind[id], w)
	}
}

func (q *queue) makeReady(w *waiter) {
	w.ready = true
	tenant, _, _ := spi.SplitScope(w.req.Execution)
	if len(q.ready[tenant]) == 0 {
		q.turns = append(q.turns, tenant)
	}
	q.ready[tenant] = append(q.ready[tenant], w)
}

// take returns the next batch: one append of each tenant in turn, until the batch is
// full or the next append would make it too large.
func (q *queue) take() []*waiter {
	var batch []*waiter
	for size := 0; len(q.turns) > 0 && len(batch) < MaxAppends; {
		tenant := q.turns[0]
		waiting := q.ready[tenant]
		w := waiting[0]
		if size += w.size; size > MaxBytes && len(batch) > 0 {
			break
		}
		batch = append(batch, w)
		w.taken = true
		waiting[0] = nil // the array stays for a while
		q.turns = q.turns[1:]
		if q.setReady(tenant, waiting[1:]) {
			q.turns = append(q.turns, tenant)
		}
	}
	return batch
}

// setReady sets what a tenant has ready, and reports whether that is anything.
func (q *queue) setReady(tenant spi.TenantName, waiting []*waiter) bool {
	if len(waiting) == 0 {
		delete(q.ready, tenant)
		return false
	}
	q.ready[tenant] = waiting
	return true
}

// end makes the next append to an execution ready, when one has ended.
func (q *queue) end(id spi.ExecutionID) {
	waiting := q.behind[id]
	if len(waiting) == 0 {
		delete(q.behind, id)
		return
	}
	next := waiting[0]
	q.behind[id] = slices.Delete(waiting, 0, 1)
	q.makeReady(next)
}

// remove takes out an append that no writer has taken.
func (q *queue) remove(w *waiter) {
	id := w.req.Execution
	if !w.ready {
		q.behind[id] = without(q.behind[id], w)
		return
	}
	tenant, _, _ := spi.SplitScope(id)
	if !q.setReady(tenant, without(q.ready[tenant], w)) {
		q.turns = without(q.turns, tenant)
	}
	q.end(id)
}

// without takes out v, which is there once.
func without[V comparable](all []V, v V) []V {
	i := slices.Index(all, v)
	return slices.Delete(all, i, i+1)
}
