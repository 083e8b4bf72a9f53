package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loomgate/loomgate/spi"
)

// scheduleSQL locks the timer's own row by the upsert. A plain wake that lands on a
// redrive row keeps its attempt.
const scheduleSQL = `WITH ` + callSQL + `, u AS (
	INSERT INTO loomgate.timers AS t (execution_id, wake_at, slot, redrive, version)
	SELECT $3, $4::timestamptz, c.slot, $5::integer, nextval('loomgate.versions') FROM c
	WHERE c.owned AND NOT EXISTS (SELECT FROM loomgate.executions d WHERE d.execution_id = $3 AND d.slot <> c.slot)
	ON CONFLICT (execution_id, wake_at) DO UPDATE SET redrive = coalesce(excluded.redrive, t.redrive), version = excluded.version
	WHERE t.slot = excluded.slot
	RETURNING redrive, version
)
SELECT c.owned, c.state, c.slot_epoch, u.redrive, coalesce(u.version, 0) FROM c LEFT JOIN u ON true`

func (s *store) ScheduleTimer(ctx context.Context, req spi.ScheduleTimerRequest) (res spi.ScheduleTimerResponse, err error) {
	t := req.Timer
	t.WakeAt = t.WakeAt.UTC()
	var redrive *int
	if t.Redrive {
		redrive = &t.Attempt
	}
	var j judgement
	err = s.write(ctx, t.Execution, statement{
		scheduleSQL,
		[]any{req.Route.Slot, req.Route.Epoch, string(t.Execution), t.WakeAt, redrive},
		one(append(j.into(), &redrive, &t.Version)...),
	})
	if err == nil && t.Version == 0 {
		err = s.refuse(ctx, req.Route, j, false)
	}
	if err != nil {
		return res, err
	}
	t.Redrive = redrive != nil
	if t.Redrive {
		t.Attempt = *redrive
	}
	return spi.ScheduleTimerResponse{Timer: t}, nil
}

func (s *store) DueTimers(ctx context.Context, req spi.DueTimersRequest) (res spi.DueTimersResponse, err error) {
	from, before := bounds(spi.Seek(req.Prefix, ""))
	err = s.read(ctx, statement{sql: "SELECT now()", rows: one(&res.Now)}, statement{
		`SELECT execution_id, wake_at, redrive, version FROM loomgate.timers
WHERE wake_at <= now() AND execution_id >= $1 COLLATE "C" AND execution_id < $2 COLLATE "C" AND (redrive IS NULL OR NOT $3::boolean) AND ` + listedSQL + `
ORDER BY wake_at, execution_id COLLATE "C" LIMIT $4`,
		[]any{from, before, req.ExcludeRedrive, req.Limit},
		func(rows pgx.Rows) error {
			for rows.Next() {
				var t spi.Timer
				var redrive *int
				if err := rows.Scan(&t.Execution, &t.WakeAt, &redrive, &t.Version); err != nil {
					return err
				}
				if t.WakeAt = t.WakeAt.UTC(); redrive != nil {
					t.Redrive, t.Attempt = true, *redrive
				}
				res.Timers = append(res.Timers, t)
			}
			return rows.Err()
		},
	})
	res.Now = res.Now.UTC().Truncate(time.Microsecond)
	return res, err
}

func (s *store) CompleteTimer(ctx context.Context, req spi.CompleteTimerRequest) (res spi.CompleteTimerResponse, err error) {
	var j judgement
	var same bool
	err = s.write(ctx, req.Execution, statement{
		`WITH ` + callSQL + `, t AS (
	DELETE FROM loomgate.timers t USING c
	WHERE t.execution_id = $3 AND t.wake_at = $4::timestamptz AND t.version = $5 AND c.owned AND t.slot = c.slot
	RETURNING 1
)
SELECT c.owned, c.state, c.slot_epoch, EXISTS (SELECT FROM t),
	NOT EXISTS (SELECT FROM loomgate.executions d WHERE d.execution_id = $3 AND d.slot <> c.slot)
	AND NOT EXISTS (SELECT FROM loomgate.timers o WHERE o.execution_id = $3 AND o.wake_at = $4 AND o.slot <> c.slot)
FROM c`,
		[]any{req.Route.Slot, req.Route.Epoch, string(req.Execution), req.WakeAt.UTC(), req.Version},
		one(append(j.into(), &res.Completed, &same)...),
	})
	if err == nil {
		err = s.refuse(ctx, req.Route, j, same)
	}
	return res, err
}
