package memory

import (
	"context"
	"slices"

	"github.com/loomgate/loomgate/spi"
)

func (s *store) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	req.Events = s.own(req.Events)
	return on(ctx, &s.mu, s.execution, req.Route, req.Execution, func(e *execution) (spi.AppendResponse, error) {
		return s.append(e, req, outdated)
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
			result.AppendResponse, result.Err = s.append(e, item, outdated)
		}
	}
	return res, nil
}

func (s *store) AppendIfUnchanged(ctx context.Context, req spi.AppendIfUnchangedRequest) (res spi.AppendIfUnchangedResponse, err error) {
	plain := spi.AppendRequest{
		ExpectedHead: req.Head,
		Incarnation:  req.Incarnation,
		SinceSeq:     req.SinceSeq,
		KeyID:        req.KeyID,
		Events:       s.own(req.Events),
	}
	res.AppendResponse, err = on(ctx, &s.mu, s.execution, req.Route, req.Execution, func(e *execution) (spi.AppendResponse, error) {
		return s.append(e, plain, func(*execution, spi.AppendRequest) bool { return e.fence != req.Fence })
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

// outdated reports whether an append's token no longer counts.
func outdated(e *execution, req spi.AppendRequest) bool {
	return req.Fence < e.fence && (req.Fence > 0 || spi.AnyAnswering(req.Events))
}

// append does an append whose events are the store's own. The order of its checks
// is that of [spi.EventBackend].
func (s *store) append(e *execution, req spi.AppendRequest, stale func(*execution, spi.AppendRequest) bool) (res spi.AppendResponse, err error) {
	if err := e.meansToWrite(req.Incarnation); err != nil {
		return res, err
	}
	head, since := e.head(), e.since(req)
	first, whole, some := e.find(req.Events, since)
	expected := req.ExpectedHead == head || req.ExpectedHead == spi.AnyHead && since-1 <= head
	switch {
	case whole:
		return spi.AppendResponse{FirstSeq: first, Head: head, Incarnation: e.incarnation, Floor: e.floor, Duplicate: true}, nil
	case since < e.floor:
		return res, &spi.TruncatedError{Execution: e.id, Floor: e.floor}
	case some:
		return res, &spi.ConflictError{Execution: e.id, Head: head, Reused: true}
	case e.shredded:
		return res, &spi.ShreddedError{Owner: spi.KeyOwner(e.id)}
	case req.KeyID != e.keyID:
		return res, &spi.KeyMismatchError{Execution: e.id}
	case stale(e, req):
		return res, &spi.StaleFenceError{Execution: e.id, Current: e.fence}
	case !expected:
		return res, &spi.ConflictError{Execution: e.id, Head: head}
	}
	s.write(e, req.Events, req.Fence)
	return spi.AppendResponse{FirstSeq: head + 1, Head: e.head(), Incarnation: e.incarnation, Floor: e.floor}, nil
}

// since returns where a duplicate of the append can begin.
func (e *execution) since(req spi.AppendRequest) int64 {
	switch {
	case req.SinceSeq > 0:
		return req.SinceSeq
	case req.ExpectedHead == spi.AnyHead:
		return max(e.floor, e.head()-spi.DuplicateWindow+1)
	}
	return min(req.ExpectedHead, e.head()) + 1 // past the head there is nothing to find
}

// find looks for events at or after since: where they begin if they are there in
// one piece, and whether some of them are there at all.
func (e *execution) find(events []spi.Event, since int64) (first int64, whole, some bool) {
	if since > e.head() {
		return 0, false, false
	}
	if e.sequences == nil {
		e.sequences = make(map[spi.EventID]int64, len(e.events))
		for i := range e.events {
			e.sequences[e.events[i].ID] = e.events[i].Sequence
		}
	}
	first, whole = e.sequences[events[0].ID], true
	for i := range events {
		seq := e.sequences[events[i].ID]
		there := seq >= since
		some = some || there
		whole = whole && there && seq == first+int64(i)
	}
	return first, whole, some
}
