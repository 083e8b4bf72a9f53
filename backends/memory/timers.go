package memory

import (
	"context"
	"encoding/binary"
	"strings"
	"time"

	"github.com/loomgate/loomgate/spi"
)

type timer struct {
	placed
	spi.Timer // Version 0: there is none
}

// wake returns a time as bytes in the order of times.
func wake(t time.Time) string {
	const sign = 1 << 63 // years before 1970 come first
	return string(binary.BigEndian.AppendUint64(nil, uint64(t.UnixMicro())^sign))
}

// timerKey is a timer's place in the tree by time.
func timerKey(id spi.ExecutionID, at time.Time) string { return wake(at) + string(id) }

// timerOfKey is a timer's place in the tree by execution. No id holds U+0000.
func timerOfKey(id spi.ExecutionID, at time.Time) string { return string(id) + "\x00" + wake(at) }

// timer returns a row that a call with that route may work on.
func (s *store) timer(route spi.Route, named spi.Timer) (*timer, error) {
	e, err := s.execution(route, named.Execution)
	if err != nil {
		return nil, err
	}
	t, found := s.timers.Get(timerKey(named.Execution, named.WakeAt))
	if !found {
		t = &timer{e.placed, spi.Timer{Execution: named.Execution, WakeAt: canonical(named.WakeAt)}}
	}
	return t, s.ownership.admit(route, t.slot)
}

func (s *store) removeTimer(t *timer) {
	s.timers.Delete(timerKey(t.Execution, t.WakeAt))
	s.timersOf.Delete(timerOfKey(t.Execution, t.WakeAt))
}

func (s *store) removeTimers(id spi.ExecutionID) {
	var remove []*timer // collected first: a tree must not change under a scan
	s.timersOf.Ascend(string(id)+"\x00", func(_ string, t *timer) bool {
		if t.Execution == id {
			remove = append(remove, t)
		}
		return t.Execution == id
	})
	for _, t := range remove {
		s.removeTimer(t)
	}
}

func (s *store) ScheduleTimer(ctx context.Context, req spi.ScheduleTimerRequest) (spi.ScheduleTimerResponse, error) {
	now := s.clock()
	return on(ctx, &s.mu, s.timer, req.Route, req.Timer, func(t *timer) (spi.ScheduleTimerResponse, error) {
		if t.Version == 0 {
			s.timers.Set(timerKey(t.Execution, t.WakeAt), t)
			s.timersOf.Set(timerOfKey(t.Execution, t.WakeAt), t)
		}
		if req.Timer.Redrive { // a plain one never takes the flag away
			t.Redrive, t.Attempt = true, req.Timer.Attempt
		}
		t.Version = s.next(now)
		return spi.ScheduleTimerResponse{Timer: t.Timer}, nil
	})
}

func (s *store) DueTimers(ctx context.Context, req spi.DueTimersRequest) (res spi.DueTimersResponse, err error) {
	res.Now = s.clock()
	if err := begin(ctx, s.mu.RLocker()); err != nil {
		return res, err
	}
	defer s.mu.RUnlock()
	s.timers.Scan(func(_ string, t *timer) bool {
		if t.WakeAt.After(res.Now) {
			return false
		}
		excluded := t.Redrive && req.ExcludeRedrive
		if !excluded && strings.HasPrefix(string(t.Execution), req.Prefix) && s.ownership.lists(t) {
			res.Timers = append(res.Timers, t.Timer)
		}
		return len(res.Timers) < req.Limit
	})
	return res, nil
}

func (s *store) CompleteTimer(ctx context.Context, req spi.CompleteTimerRequest) (spi.CompleteTimerResponse, error) {
	named := spi.Timer{Execution: req.Execution, WakeAt: req.WakeAt}
	return on(ctx, &s.mu, s.timer, req.Route, named, func(t *timer) (res spi.CompleteTimerResponse, err error) {
		if t.Version == req.Version {
			s.removeTimer(t)
			res.Completed = true
		}
		return res, nil
	})
}
