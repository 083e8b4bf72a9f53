package sim

import (
	"context"
	"slices"
	"time"

	"github.com/loomgate/loomgate/runtime/events"
	"github.com/loomgate/loomgate/runtime/resume"
	"github.com/loomgate/loomgate/runtime/timers"
	"github.com/loomgate/loomgate/spi"
)

type rowKey struct {
	execution spi.ExecutionID
	wakeAt    time.Time
}

// asked is what a re-driver found: a park that all it waits for has come to, or none.
type asked struct{ park int64 }

// watch judges what took effect just now.
func (w *world) watch(ctx context.Context, n *node, by *task, request, response any) {
	switch req := request.(type) {
	case spi.AppendRequest:
		if !response.(spi.AppendResponse).Duplicate {
			w.appended(ctx, by, req, response.(spi.AppendResponse))
		}
	case spi.AcquireFenceRequest:
		w.acquired(ctx, by, req.Execution)
	case spi.AcquireFenceIfRequest:
		if response.(spi.AcquireFenceIfResponse).Acquired {
			w.acquired(ctx, by, req.Execution)
		}
	case spi.DeleteExecutionRequest:
		if response.(spi.DeleteExecutionResponse).Existed {
			w.deleted(ctx, req.Execution)
		}
	case spi.ScheduleTimerRequest:
		if row := req.Timer; row.Redrive {
			w.redrive[rowKey{row.Execution, row.WakeAt}] = row.Attempt
		}
	case spi.CompleteTimerRequest:
		if response.(spi.CompleteTimerResponse).Completed {
			w.retired(ctx, n, rowKey{req.Execution, req.WakeAt})
		}
	}
}

// appended judges resumes: one a park, and none before its time.
func (w *world) appended(ctx context.Context, by *task, req spi.AppendRequest, res spi.AppendResponse) {
	i := slices.IndexFunc(req.Events, func(e spi.Event) bool {
		return e.Kind == spi.KindExecutionResumed || e.Kind == spi.KindExecutionStarted
	})
	if i < 0 {
		return
	}
	w.owner[req.Execution] = by
	if req.Events[i].Kind == spi.KindExecutionStarted {
		return
	}
	log, err := spi.Read(ctx, w.store, spi.ReadRequest{Execution: req.Execution, After: res.FirstSeq + int64(i), Backward: true, Limit: spi.MaxLimit})
	if err != nil {
		w.broken("a log is read: %w", err)
		return
	}
	for j := range log.Events {
		e := &log.Events[j]
		if !e.Answering() {
			continue
		}
		if e.Kind != spi.KindExecutionSuspended {
			w.broken("at most one resume a park: %s of %s follows %s", req.Events[i].Kind, req.Execution, e.Kind)
		}
		w.early(req.Execution, e, &req.Events[i])
		return
	}
	w.broken("a resume answers a park: there is none in %s", req.Execution)
}

func (w *world) early(id spi.ExecutionID, suspended, resumed *spi.Event) {
	park, err := events.Decode[events.Suspended](id, suspended)
	answer, failed := events.Decode[events.Resumed](id, resumed)
	if err != nil || failed != nil {
		w.broken("payloads are what the schema says: %w, %w", err, failed)
	}
	for _, wait := range park.Waits {
		if slices.Contains(answer.Waits, wait.ID) && wait.WakeAt.After(w.latest) {
			w.broken("no wake comes early: %s of %s is due at %v, and it is %v", wait.ID, id, wait.WakeAt, w.latest)
		}
	}
}

// acquired judges acquires: none fences out a body that runs.
func (w *world) acquired(ctx context.Context, by *task, id spi.ExecutionID) {
	state, err := w.reader.Fold(ctx, id)
	if err != nil {
		w.broken("a log is folded: %w", err)
		return
	}
	if owner := w.owner[id]; state.Status == resume.Running && by.takingOver != id && owner != nil && !owner.done {
		w.broken("a running body is never fenced out: that of %s is", id)
	}
}

// deleted judges retention: no child goes under a parked parent.
func (w *world) deleted(ctx context.Context, child spi.ExecutionID) {
	for _, id := range w.parents {
		parent, err := w.reader.Fold(ctx, id)
		if err != nil {
			w.broken("a log is folded: %w", err)
			return
		}
		if parent.Park == nil {
			continue
		}
		for _, wait := range parent.Park.Waits {
			if slices.ContainsFunc(wait.Children, func(c events.Child) bool { return c.Execution == child }) {
				w.broken("no child is removed under a parked parent: %s is", child)
			}
		}
	}
}

// ask is a re-driver that does nothing, and notes what there is for the others.
func (n *node) ask(ctx context.Context, id spi.ExecutionID) (timers.Outcome, error) {
	n.asked[id] = &asked{n.world.settledPark(ctx, id)}
	return timers.Noop, nil
}

// settledPark returns the park of a parent whose children have all settled, or 0.
func (w *world) settledPark(ctx context.Context, id spi.ExecutionID) int64 {
	parent, err := w.reader.Fold(ctx, id)
	if err != nil || parent.Park == nil {
		return 0
	}
	for _, wait := range parent.Park.Waits {
		for _, c := range wait.Children {
			if child, err := w.reader.Fold(ctx, c.Execution); err != nil || child.Status != resume.Ended {
				return 0
			}
		}
		if len(wait.Children) > 0 {
			return parent.Park.Sequence
		}
	}
	return 0
}

// retired judges redrive rows: a re-driver is asked, and what is contended has its
// next row, unless attempts have run out.
func (w *world) retired(ctx context.Context, n *node, row rowKey) {
	attempt, redrive := w.redrive[row]
	if !redrive {
		return
	}
	delete(w.redrive, row)
	found := n.asked[row.execution]
	if found == nil {
		w.broken("no re-drive is lost: the row of %s is retired and no re-driver asked", row.execution)
		return
	}
	if found.park == 0 || found.park != w.settledPark(ctx, row.execution) || attempt+1 >= mostAttempts {
		return
	}
	for other := range w.redrive {
		if other.execution == row.execution {
			return
		}
	}
	w.broken("no re-drive is lost: %s is contended at attempt %d and has no row", row.execution, attempt)
}

const mostAttempts = 8

// refused judges a refusal: the park is no longer open.
func (w *world) refused(ctx context.Context, id spi.ExecutionID, park int64, refusal *resume.RefusedError) {
	now, err := w.reader.LocatePark(ctx, id)
	if err == nil && now != nil && now.Sequence == park {
		w.broken("contention is never reported as refusal: %w, and the park at %d is open", refusal, park)
	}
}

// judge looks at what has come of everything.
func (w *world) judge(ctx context.Context) {
	for i, id := range w.parents {
		state, err := w.reader.Fold(ctx, id)
		if err != nil {
			w.broken("a log is folded: %w", err)
			return
		}
		if state.Status != resume.Ended {
			w.broken("no wake is lost: %s is %v on %v", id, state.Status, state.Waits)
		}
		log, err := spi.Read(ctx, w.store, spi.ReadRequest{Execution: id, Limit: spi.MaxLimit})
		if err != nil {
			w.broken("a log is read: %w", err)
		}
		count := map[string]int{}
		for _, e := range log.Events {
			count[e.Kind]++
		}
		if w.letters[i].acknowledged && (count[spi.KindMessageReceived] != 1 || count[spi.KindMessageConsumed] != 1) {
			w.broken("a message is delivered once: %s received %d and consumed %d", id, count[spi.KindMessageReceived], count[spi.KindMessageConsumed])
		}
	}
}
