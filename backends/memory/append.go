package memory

import (
	"context"
	"slices"

	"github.com/loomgate/loomgate/spi"
)

func (s *store) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	req.Events = s.own(req.Events)
	return on(ctx, &s.mu, s.execution, req.Route, req.Execution, func(e *execution) (spi.AppendResponse, error) {
		return s.append(e, req)
	})
}

func (s *store) AppendBatch(ctx context.Context, req spi.AppendBatchRequest) (res spi.AppendBatchResponse, err error) {
	appends := slices.Clone(req.Appends)
	for i := range appends {
		appends[i].Events = s.own(appends[i].Events)
	}
	if err := begin(ctx, &s.mu); err != nil {
		return res, err
	}
	defer s.mu.Unlock()
	res.Results = make([]spi.AppendResult, len(appends))
	for i, item := range appends {
		result := &res.Results[i]
		e, err := s.execution(item.Route, item.Execution)
		if result.Err = err; err == nil {
			result.AppendResponse, result.Err = s.append(e, item)
		}
	}
	return res, nil
}

func (s *store) AppendIfUnchanged(ctx context.Context, req spi.AppendIfUnchangedRequest) (res spi.AppendIfUnchangedResponse, err error) {
	req.Events = s.own(req.Events)
	res.AppendResponse, err = on(ctx, &s.mu, s.execution, req.Route, req.Execution, func(e *execution) (spi.AppendResponse, error) {
		res, err := e.state().AppendIfUnchanged(req, e.finder(req.Events))
		return s.carryOut(e, req.Events, 0, res, err)
	})
	return res, err
}

// own returns a caller's events as the store keeps them.
func (s *store) own(events []spi.Event) []spi.Event {
	events, now := cloneEvents(events), s.clock()
	for i := range events {
		at := &events[i].RecordedAt
		if at.IsZero() {
			*at = now
		} else {
			*at = canonical(*at)
		}
	}
	return events
}

// append does an append whose events are the store's own.
func (s *store) append(e *execution, req spi.AppendRequest) (spi.AppendResponse, error) {
	res, err := e.state().Append(req, e.finder(req.Events))
	return s.carryOut(e, req.Events, req.Fence, res, err)
}

// carryOut does what an append came to.
func (s *store) carryOut(e *execution, events []spi.Event, fence int64, res spi.AppendResponse, err error) (spi.AppendResponse, error) {
	if err == nil && !res.Duplicate {
		s.write(e, events, fence)
	}
	return res, err
}

// finder finds events in the log.
func (e *execution) finder(events []spi.Event) func(since int64) (spi.Found, error) {
	return func(since int64) (spi.Found, error) {
		if e.sequences == nil {
			e.sequences = make(map[spi.EventID]int64, len(e.events))
			for i := range e.events {
				e.sequences[e.events[i].ID] = e.events[i].Sequence
			}
		}
		return spi.FindEvents(events, since, func(id spi.EventID) int64 { return e.sequences[id] }), nil
	}
}
