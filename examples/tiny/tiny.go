// Package tiny is an example of a backend: the least that passes the kit. It keeps
// events in a map, offers no optional method and no group but events, and says so
// by not having them.
package tiny

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/loomgate/loomgate/spi"
)

type tiny struct {
	mu   sync.Mutex
	logs map[spi.ExecutionID][]spi.Event
}

// New returns an empty store.
func New() (*spi.Store, error) {
	return spi.Open(spi.Backend{Events: &tiny{logs: map[spi.ExecutionID][]spi.Event{}}})
}

// Append leaves the rules to [spi.LogState]: nothing here is ever deleted, truncated,
// encrypted or fenced.
func (s *tiny) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	if err := ctx.Err(); err != nil {
		return spi.AppendResponse{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	log := s.logs[req.Execution]
	state := spi.LogState{Execution: req.Execution, Head: int64(len(log)), Incarnation: 1, Floor: 1}
	res, err := state.Append(req, func(since int64) (spi.Found, error) {
		place := map[spi.EventID]int64{}
		for _, e := range log[since-1:] {
			place[e.ID] = e.Sequence
		}
		return spi.FindEvents(req.Events, since, func(id spi.EventID) int64 { return place[id] }), nil
	})
	if err != nil || res.Duplicate {
		return res, err
	}
	for i, e := range clone(req.Events) {
		e.Sequence, e.Fence = res.FirstSeq+int64(i), req.Fence
		if e.RecordedAt.IsZero() {
			e.RecordedAt = time.Now().Truncate(time.Microsecond)
		}
		e.RecordedAt = e.RecordedAt.UTC()
		log = append(log, e)
	}
	s.logs[req.Execution] = log
	return res, nil
}

func (s *tiny) Read(ctx context.Context, req spi.ReadRequest) (spi.ReadResponse, error) {
	if err := ctx.Err(); err != nil {
		return spi.ReadResponse{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	log := slices.Clone(s.logs[req.Execution])
	inRange := func(seq int64) bool { return seq > req.After && (req.Until == 0 || seq <= req.Until) }
	if req.Backward {
		slices.Reverse(log)
		inRange = func(seq int64) bool { return (req.After == 0 || seq < req.After) && seq >= req.Until }
	}
	res := spi.ReadResponse{Incarnation: 1, Floor: 1}
	size, most := 0, req.MaxBytes
	if most == 0 {
		most = spi.MaxReadBytes
	}
	for i := range log {
		if !inRange(log[i].Sequence) {
			continue
		}
		size += log[i].Size()
		if n := len(res.Events); n == req.Limit || n > 0 && size > most {
			res.More = true
			break
		}
		res.Events = append(res.Events, log[i])
	}
	res.Events = clone(res.Events)
	return res, nil
}

func (s *tiny) Head(ctx context.Context, req spi.HeadRequest) (spi.HeadResponse, error) {
	if err := ctx.Err(); err != nil {
		return spi.HeadResponse{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return spi.HeadResponse{Head: int64(len(s.logs[req.Execution])), Incarnation: 1, Floor: 1}, nil
}

func (s *tiny) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	if err := ctx.Err(); err != nil {
		return spi.ListExecutionsResponse{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var res spi.ListExecutionsResponse
	part := spi.Seek(req.Prefix, req.After)
	for _, id := range slices.Sorted(maps.Keys(s.logs)) { // strings sort by bytes: code point order
		if !part.Contains(string(id)) {
			continue
		}
		if len(res.Executions) == req.Limit {
			res.Next = string(res.Executions[req.Limit-1])
			break
		}
		res.Executions = append(res.Executions, id)
	}
	return res, nil
}

// clone returns events that share nothing with the caller's.
func clone(events []spi.Event) []spi.Event {
	events = slices.Clone(events)
	for i := range events {
		e := &events[i]
		e.Payload, e.Metadata = append([]byte(nil), e.Payload...), maps.Clone(e.Metadata)
		if len(e.Metadata) == 0 {
			e.Metadata = nil
		}
	}
	return events
}
