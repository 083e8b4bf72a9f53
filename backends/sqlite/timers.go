package sqlite

import (
	"context"

	"github.com/loomgate/loomgate/spi"
)

type timer struct {
	slot      spi.Slot
	spi.Timer // Version 0: there is none
}

// timer returns a row that a call with that route may work on, or a new one.
func (t *tx) timer(route spi.Route, named spi.Timer) (*timer, error) {
	e, err := t.execution(route, named.Execution)
	if err != nil {
		return nil, err
	}
	row := &timer{e.slot, spi.Timer{Execution: named.Execution, WakeAt: canonical(named.WakeAt)}}
	_, err = t.get(`SELECT slot, redrive, attempt, version FROM timers WHERE wake_at = ? AND execution_id = ?`,
		[]any{row.WakeAt.UnixMicro(), string(row.Execution)},
		&row.slot, &row.Redrive, &row.Attempt, &row.Version)
	if err != nil {
		return nil, err
	}
	return row, t.ownership.admit(route, row.slot)
}

func (t *tx) removeTimers(id spi.ExecutionID) error {
	_, err := t.exec(`DELETE FROM timers WHERE execution_id = ?`, string(id))
	return err
}

func (s *store) ScheduleTimer(ctx context.Context, req spi.ScheduleTimerRequest) (spi.ScheduleTimerResponse, error) {
	return on(ctx, s.write, (*tx).timer, req.Route, req.Timer, func(t *tx, row *timer) (res spi.ScheduleTimerResponse, err error) {
		if req.Timer.Redrive { // a plain one never takes the flag away
			row.Redrive, row.Attempt = true, req.Timer.Attempt
		}
		if row.Version, err = t.next(s.clock()); err != nil {
			return res, err
		}
		_, err = t.exec(`INSERT OR REPLACE INTO timers (wake_at, execution_id, slot, redrive, attempt, version) VALUES (?, ?, ?, ?, ?, ?)`,
			row.WakeAt.UnixMicro(), string(row.Execution), row.slot, row.Redrive, row.Attempt, row.Version)
		return spi.ScheduleTimerResponse{Timer: row.Timer}, err
	})
}

// The plus keeps the search to the order of times.
const dueTimers = `
	SELECT wake_at, execution_id, slot, redrive, attempt, version FROM timers
	WHERE wake_at <= ? AND +execution_id >= ? AND +execution_id < ? AND NOT (redrive AND ?)
	ORDER BY wake_at, execution_id`

func (s *store) DueTimers(ctx context.Context, req spi.DueTimersRequest) (res spi.DueTimersResponse, err error) {
	err = s.read(ctx, "", func(t *tx) error {
		res.Now = s.clock()
		part := seek(req.Prefix, "")
		args := []any{res.Now.UnixMicro(), part[0], part[2], req.ExcludeRedrive}
		return t.each(dueTimers, args, func(scan scan) (bool, error) {
			var row timer
			var wakeAt int64
			if err := scan(&wakeAt, &row.Execution, &row.slot, &row.Redrive, &row.Attempt, &row.Version); err != nil {
				return false, err
			}
			if t.ownership.lists(row.slot) {
				row.WakeAt = timeOf(wakeAt)
				res.Timers = append(res.Timers, row.Timer)
			}
			return len(res.Timers) < req.Limit, nil
		})
	})
	return res, err
}

func (s *store) CompleteTimer(ctx context.Context, req spi.CompleteTimerRequest) (spi.CompleteTimerResponse, error) {
	named := spi.Timer{Execution: req.Execution, WakeAt: req.WakeAt}
	return on(ctx, s.write, (*tx).timer, req.Route, named, func(t *tx, row *timer) (res spi.CompleteTimerResponse, err error) {
		if row.Version == req.Version {
			_, err = t.exec(`DELETE FROM timers WHERE wake_at = ? AND execution_id = ?`, row.WakeAt.UnixMicro(), string(row.Execution))
			res.Completed = true
		}
		return res, err
	})
}
