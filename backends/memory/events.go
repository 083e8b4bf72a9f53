package memory

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/loomgate/loomgate/spi"
)

// execution is the directory row of an execution, and its log.
type execution struct {
	placed
	id          spi.ExecutionID
	incarnation int64
	fence       int64
	floor       int64
	keyID       spi.KeyID
	shredded    bool
	deletedAt   time.Time

	// events are in ascending order, without gaps from the floor on. An event and
	// its place in the array are never changed once written, so a reader may go
	// on with its part of the slice after it let the lock go.
	events []spi.Event

	// sequences finds events by id; nil until the first search that needs it.
	sequences map[spi.EventID]int64
}

// execution returns a row that a call with that route may work on. One that is not
// there is made, but only plant puts it into the directory.
func (s *store) execution(route spi.Route, id spi.ExecutionID) (*execution, error) {
	e, ok := s.executions[id]
	if !ok {
		e = &execution{placed: placed{route.Slot}, id: id, incarnation: 1, floor: 1}
	}
	return e, s.ownership.admit(route, e.slot)
}

func (s *store) plant(e *execution) { s.executions[e.id] = e }

// live reports whether the execution has events in its current incarnation.
func (e *execution) live() bool { return len(e.events) > 0 }

// tombstone reports whether the execution was deleted and not written since.
func (e *execution) tombstone() bool { return e.incarnation > 1 && !e.live() }

func (e *execution) head() int64 {
	if !e.live() {
		return 0
	}
	return e.events[len(e.events)-1].Sequence
}

// after returns the index of the first event past seq.
func (e *execution) after(seq int64) int {
	return sort.Search(len(e.events), func(i int) bool { return e.events[i].Sequence > seq })
}

func (e *execution) state() spi.LogState {
	return spi.LogState{
		Execution: e.id, Head: e.head(), Fence: e.fence, Incarnation: e.incarnation, Floor: e.floor, KeyID: e.keyID, Shredded: e.shredded,
	}
}

// write adds events that are the store's own at the end of a log.
func (s *store) write(e *execution, events []spi.Event, fence int64) {
	if !e.live() {
		s.plant(e)
		s.live.Set(string(e.id), e)
		s.tombstones.Delete(string(e.id))
	}
	head := e.head()
	for i := range events {
		event := &events[i]
		event.Sequence, event.Fence = head+int64(i)+1, fence
		if e.sequences != nil {
			e.sequences[event.ID] = event.Sequence
		}
	}
	e.events = append(e.events, events...)
}

// cloneEvents returns a copy that shares nothing which can change.
func cloneEvents(events []spi.Event) []spi.Event {
	events = append([]spi.Event(nil), events...)
	for i := range events {
		e := &events[i]
		e.Payload = append([]byte(nil), e.Payload...)
		if e.Metadata = maps.Clone(e.Metadata); len(e.Metadata) == 0 {
			e.Metadata = nil
		}
	}
	return events
}

func (s *store) Read(ctx context.Context, req spi.ReadRequest) (spi.ReadResponse, error) {
	res, err := on(ctx, s.mu.RLocker(), s.execution, req.Route, req.Execution, func(e *execution) (spi.ReadResponse, error) {
		return spi.ReadResponse{Events: e.part(req), Incarnation: e.incarnation, Floor: e.floor, Keyed: e.keyID != spi.KeyID{}, Shredded: e.shredded}, nil
	})
	all := res.Events
	events := all[:min(len(all), req.Limit)]
	if req.Backward {
		events = slices.Clone(all[len(all)-len(events):])
		slices.Reverse(events)
	}
	maxBytes, size := cmp.Or(req.MaxBytes, spi.MaxReadBytes), 0
	for i := range events {
		if size += events[i].Size(); size > maxBytes && i > 0 {
			events = events[:i]
			break
		}
	}
	res.More = len(events) < len(all)
	res.Events = cloneEvents(events)
	return res, err
}

// part returns all the events that req names, in ascending order.
func (e *execution) part(req spi.ReadRequest) []spi.Event {
	after, until := req.After, cmp.Or(req.Until, math.MaxInt64)
	if req.Backward {
		after, until = req.Until-1, cmp.Or(req.After, math.MaxInt64)-1
	}
	first := e.after(after)
	return e.events[first:max(first, e.after(until))]
}

func (s *store) Head(ctx context.Context, req spi.HeadRequest) (spi.HeadResponse, error) {
	return on(ctx, s.mu.RLocker(), s.execution, req.Route, req.Execution, func(e *execution) (spi.HeadResponse, error) {
		return spi.HeadResponse{Head: e.head(), Fence: e.fence, Incarnation: e.incarnation, Floor: e.floor}, nil
	})
}

func (s *store) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (res spi.ListExecutionsResponse, err error) {
	if err := begin(ctx, s.mu.RLocker()); err != nil {
		return res, err
	}
	defer s.mu.RUnlock()
	res.Receipt = s.ownership.receipt(req.KnownOwnership)
	res.Next = list(s, &s.live, req.Prefix, req.After, req.Limit, func(id string, _ *execution) {
		res.Executions = append(res.Executions, spi.ExecutionID(id))
	})
	return res, nil
}
