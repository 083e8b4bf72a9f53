package memory

import (
	"context"
	"strings"

	"github.com/loomgate/loomgate/spi"
)

func (s *store) TruncatePrefixKeeping(ctx context.Context, req spi.TruncatePrefixKeepingRequest) (spi.TruncatePrefixKeepingResponse, error) {
	keep := make(map[int64]bool, len(req.Keep))
	for _, seq := range req.Keep {
		keep[seq] = true
	}
	return on(ctx, &s.mu, s.execution, req.Route, req.Execution, func(e *execution) (res spi.TruncatePrefixKeepingResponse, err error) {
		if err := e.state().CheckIncarnation(req.Incarnation); err != nil {
			return res, err
		}
		if !e.live() {
			return res, &spi.NotFoundError{What: "execution", Name: string(e.id)}
		}
		before := min(req.Before, e.head()) // the last event stays
		gone := e.after(before - 1)
		var rest []spi.Event // a new array: a reader may hold the old one
		for _, event := range e.events[:gone] {
			if keep[event.Sequence] {
				rest = append(rest, event)
			}
		}
		if dropped := gone - len(rest); dropped > 0 {
			res.Dropped = int64(dropped)
			e.events, e.sequences = append(rest, e.events[gone:]...), nil
		}
		e.floor = max(e.floor, before)
		res.Floor = e.floor
		return res, nil
	})
}

func (s *store) DeleteExecution(ctx context.Context, req spi.DeleteExecutionRequest) (spi.DeleteExecutionResponse, error) {
	now := s.clock()
	return on(ctx, &s.mu, s.execution, req.Route, req.Execution, func(e *execution) (res spi.DeleteExecutionResponse, err error) {
		_, known := s.executions[e.id]
		deleted := !known || e.tombstone() && req.Incarnation == e.incarnation-1
		switch {
		case req.Incarnation == e.incarnation:
			s.removeTimers(e.id)
			s.removeKeys(e)
		case !deleted: // what is there by now is another incarnation's
			return res, e.state().CheckIncarnation(req.Incarnation)
		}
		if e.live() {
			res.Existed = true
			e.incarnation++
			if e.fence > 0 {
				e.fence++
			}
			e.floor, e.events, e.sequences, e.deletedAt = 1, nil, nil, now
			s.live.Delete(string(e.id))
			s.tombstones.Set(string(e.id), e)
		}
		res.Incarnation = e.incarnation
		return res, nil
	})
}

// SweepTombstones leaves alone what has a data key again, since somebody is about
// to write it, and what lies in a slot that is another shard's or may be soon.
func (s *store) SweepTombstones(ctx context.Context, req spi.SweepTombstonesRequest) (res spi.SweepTombstonesResponse, err error) {
	latest := s.clock().Add(-req.OlderThan)
	if err := begin(ctx, &s.mu); err != nil {
		return res, err
	}
	defer s.mu.Unlock()
	var sweep []*execution // collected first: a tree must not change under a scan
	s.tombstones.Ascend(req.Prefix, func(id string, e *execution) bool {
		if !strings.HasPrefix(id, req.Prefix) {
			return false
		}
		_, keyed := s.keyrings[spi.KeyOwner(id)]
		if !keyed && !e.deletedAt.After(latest) && s.ownership.owns(e) {
			sweep = append(sweep, e)
		}
		return len(sweep) < req.Limit
	})
	for _, e := range sweep {
		s.tombstones.Delete(string(e.id))
		delete(s.executions, e.id)
	}
	return spi.SweepTombstonesResponse{Swept: len(sweep)}, nil
}
