package mutants

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/spi"
)

var timers = []Mutant{
	{
		"redrive downgraded",
		"A plain timer that lands on a redrive one takes its flag away.",
		"timers/a plain schedule never clears the redrive flag",
		store(func(s sound) methods { return redriveDowngraded{s} }),
	},
	{
		"redrive dropped",
		"A redrive timer that lands on a plain one does nothing.",
		"timers/a redrive that lands on a plain timer marks it",
		store(func(s sound) methods { return redriveDropped{s} }),
	},
	{
		"complete removes a newer version",
		"A timer is completed by its place, whoever has scheduled it again since.",
		"timers/to complete removes only the version that was seen",
		store(func(s sound) methods { return completesAnyVersion{s} }),
	},
	{
		"redrive left out after the limit",
		"Redrive timers that are not wanted use the limit up.",
		"timers/redrive timers are left out before the limit is applied",
		store(func(s sound) methods { return redriveAfterLimit{s} }),
	},
	{
		"prefix after the limit",
		"Timers of other executions use the limit up.",
		"timers/the prefix is applied before the limit",
		store(func(s sound) methods { return timerPrefixAfterLimit{s} }),
	},
	{
		"due before its time",
		"The node's clock decides what is due, and it is fast.",
		"timers/the store's clock decides what is due, neither early nor late",
		store(func(s sound) methods { return earlyTimers{s} }, memory.WithClock(func() time.Time { return time.Now().Add(fast) })),
	},
	{
		"due by execution",
		"Due timers come by execution, and a late one may wait for good.",
		"timers/due timers come by time and then by execution in code point order",
		store(func(s sound) methods { return dueByExecution{s} }),
	},
}

// row returns a timer's row, if it is due.
func row(ctx context.Context, s *spi.Store, id spi.ExecutionID, at time.Time) (spi.Timer, bool) {
	res, _ := spi.DueTimers(ctx, s, spi.DueTimersRequest{Prefix: string(id), Limit: spi.MaxLimit})
	i := slices.IndexFunc(res.Timers, func(t spi.Timer) bool { return t.Execution == id && t.WakeAt.Equal(at) })
	if i < 0 {
		return spi.Timer{}, false
	}
	return res.Timers[i], true
}

type redriveDowngraded struct{ sound }

func (m redriveDowngraded) ScheduleTimer(ctx context.Context, req spi.ScheduleTimerRequest) (spi.ScheduleTimerResponse, error) {
	if old, found := row(ctx, m.Inner, req.Timer.Execution, req.Timer.WakeAt); found {
		_, _ = m.CompleteTimer(ctx, spi.CompleteTimerRequest{Route: req.Route, Execution: old.Execution, WakeAt: old.WakeAt, Version: old.Version})
	}
	return m.sound.ScheduleTimer(ctx, req)
}

type redriveDropped struct{ sound }

func (m redriveDropped) ScheduleTimer(ctx context.Context, req spi.ScheduleTimerRequest) (spi.ScheduleTimerResponse, error) {
	if old, found := row(ctx, m.Inner, req.Timer.Execution, req.Timer.WakeAt); found {
		return spi.ScheduleTimerResponse{Timer: old}, nil
	}
	return m.sound.ScheduleTimer(ctx, req)
}

type completesAnyVersion struct{ sound }

func (m completesAnyVersion) CompleteTimer(ctx context.Context, req spi.CompleteTimerRequest) (spi.CompleteTimerResponse, error) {
	if now, found := row(ctx, m.Inner, req.Execution, req.WakeAt); found {
		req.Version = now.Version
	}
	return m.sound.CompleteTimer(ctx, req)
}

type redriveAfterLimit struct{ sound }

func (m redriveAfterLimit) DueTimers(ctx context.Context, req spi.DueTimersRequest) (spi.DueTimersResponse, error) {
	without := req.ExcludeRedrive
	req.ExcludeRedrive = false
	res, err := m.sound.DueTimers(ctx, req)
	res.Timers = slices.DeleteFunc(res.Timers, func(t spi.Timer) bool { return without && t.Redrive })
	return res, err
}

type timerPrefixAfterLimit struct{ sound }

func (m timerPrefixAfterLimit) DueTimers(ctx context.Context, req spi.DueTimersRequest) (spi.DueTimersResponse, error) {
	prefix := req.Prefix
	req.Prefix = ""
	res, err := m.sound.DueTimers(ctx, req)
	res.Timers = slices.DeleteFunc(res.Timers, func(t spi.Timer) bool { return !strings.HasPrefix(string(t.Execution), prefix) })
	return res, err
}

// fast is how far the node's clock is ahead.
const fast = time.Minute

type earlyTimers struct{ sound }

func (m earlyTimers) DueTimers(ctx context.Context, req spi.DueTimersRequest) (spi.DueTimersResponse, error) {
	res, err := m.sound.DueTimers(ctx, req)
	res.Now = res.Now.Add(-fast)
	return res, err
}

type dueByExecution struct{ sound }

func (m dueByExecution) DueTimers(ctx context.Context, req spi.DueTimersRequest) (spi.DueTimersResponse, error) {
	limit := req.Limit
	req.Limit = spi.MaxLimit
	res, err := m.sound.DueTimers(ctx, req)
	slices.SortStableFunc(res.Timers, func(a, b spi.Timer) int { return spi.CompareIDs(a.Execution, b.Execution) })
	res.Timers = res.Timers[:min(limit, len(res.Timers))]
	return res, err
}
