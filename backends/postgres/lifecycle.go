package postgres

import (
	"context"

	"github.com/loomgate/loomgate/spi"
)

// truncateSQL comes after a statement that locked the row FOR UPDATE: no append is
// under way, so the head that it keeps is the head.
const truncateSQL = `WITH ` + callSQL + `, h AS (
	SELECT max(e.sequence) AS head FROM loomgate.events e WHERE e.execution_id = $3
), u AS (
	UPDATE loomgate.executions d SET floor = greatest(d.floor, least($5::bigint, h.head)) FROM c, h
	WHERE d.execution_id = $3 AND c.owned AND d.slot = c.slot AND pg_current_xact_id_if_assigned() IS NOT NULL
		AND d.incarnation = $4 AND d.live
	RETURNING d.floor
), gone AS (
	DELETE FROM loomgate.events e USING u, h
	WHERE e.execution_id = $3 AND e.sequence < least($5, h.head) AND e.sequence <> ALL ($6::bigint[])
	RETURNING 1
)
SELECT ` + rowSQL + `, coalesce((SELECT floor FROM u), 0), (SELECT count(*) FROM gone)
FROM c LEFT JOIN loomgate.executions d ON d.execution_id = $3`

func (s *store) TruncatePrefixKeeping(ctx context.Context, req spi.TruncatePrefixKeepingRequest) (res spi.TruncatePrefixKeepingResponse, err error) {
	keep := req.Keep
	if keep == nil {
		keep = []int64{}
	}
	var row directoryRow
	err = s.write(ctx, req.Execution, lockRow(lockUpdate, req.Execution), statement{
		truncateSQL,
		[]any{req.Route.Slot, req.Route.Epoch, string(req.Execution), req.Incarnation, req.Before, keep},
		one(append(row.into(), &res.Floor, &res.Dropped)...),
	})
	if err != nil || res.Floor > 0 {
		return res, err
	}
	if err := s.refuseRow(ctx, req.Route, req.Execution, req.Incarnation, row); err != nil {
		return res, err
	}
	return res, &spi.NotFoundError{What: "execution", Name: string(req.Execution)}
}

// deleteSQL comes after a statement that locked the row FOR UPDATE. A deletion of
// an incarnation without events takes what there may be beside them.
const deleteSQL = `WITH ` + callSQL + `, target AS (
	SELECT d.live FROM c JOIN loomgate.executions d ON d.execution_id = $3
	WHERE c.owned AND d.slot = c.slot AND d.incarnation = $4 AND pg_current_xact_id_if_assigned() IS NOT NULL
), u AS (
	UPDATE loomgate.executions d SET live = false, shredded = false, key_id = NULL,
		incarnation = d.incarnation + t.live::integer, fence = d.fence + (t.live AND d.fence > 0)::integer,
		floor = 1, deleted_at = CASE WHEN t.live THEN clock_timestamp() ELSE d.deleted_at END
	FROM target t WHERE d.execution_id = $3
	RETURNING d.incarnation
), e AS (
	DELETE FROM loomgate.events e USING target WHERE e.execution_id = $3
), t AS (
	DELETE FROM loomgate.timers t USING c
	WHERE t.execution_id = $3 AND c.owned AND (EXISTS (SELECT FROM target) OR $4 = 1 AND NOT EXISTS (SELECT FROM loomgate.executions d WHERE d.execution_id = $3))
), k AS (
	DELETE FROM loomgate.data_keys k USING target WHERE k.owner = $3 AND $5
)
SELECT ` + rowSQL + `, coalesce((SELECT incarnation FROM u), 0)
FROM c LEFT JOIN loomgate.executions d ON d.execution_id = $3`

func (s *store) DeleteExecution(ctx context.Context, req spi.DeleteExecutionRequest) (res spi.DeleteExecutionResponse, err error) {
	_, owns := spi.KeyOwner(req.Execution).Execution()
	for range maxTries {
		var row directoryRow
		err := s.write(ctx, req.Execution, lockRow(lockUpdate, req.Execution), statement{
			deleteSQL,
			[]any{req.Route.Slot, req.Route.Epoch, string(req.Execution), req.Incarnation, owns},
			one(append(row.into(), &res.Incarnation)...),
		})
		if err != nil {
			return res, err
		}
		if res.Incarnation > 0 {
			res.Existed = row.live
			return res, nil
		}
		deleted := !row.there || !row.live && req.Incarnation == row.incarnation-1
		stated := req.Incarnation
		if deleted {
			stated = 0 // whatever it was, it is gone
		}
		if err := s.refuseRow(ctx, req.Route, req.Execution, stated, row); err != nil || deleted {
			return spi.DeleteExecutionResponse{Incarnation: row.incarnation}, err
		}
		// The row was made after this one had looked for it to lock: look again.
	}
	return res, &spi.UnavailableError{Cause: errBusy}
}

// SweepTombstones leaves alone what somebody holds, what has a data key again and
// what lies in a slot that is not this shard's alone.
func (s *store) SweepTombstones(ctx context.Context, req spi.SweepTombstonesRequest) (res spi.SweepTombstonesResponse, err error) {
	from, before := bounds(spi.Seek(req.Prefix, ""))
	err = s.write(ctx, "", statement{
		`WITH old AS MATERIALIZED (
	SELECT d.execution_id FROM loomgate.executions d
	WHERE d.incarnation > 1 AND NOT d.live AND d.execution_id >= $1 COLLATE "C" AND d.execution_id < $2 COLLATE "C"
		AND d.deleted_at <= clock_timestamp() - $3::bigint * interval '1 microsecond'
		AND d.slot <> ALL (ARRAY(SELECT s.slot FROM loomgate.slots s WHERE s.state > 1))
		AND d.key_id IS NULL AND NOT d.shredded -- looked at again once the row is locked
	ORDER BY d.execution_id COLLATE "C" LIMIT $4
	FOR UPDATE OF d SKIP LOCKED
), gone AS (
	DELETE FROM loomgate.executions d USING old WHERE d.execution_id = old.execution_id
	RETURNING 1
)
SELECT count(*) FROM gone`,
		[]any{from, before, req.OlderThan.Microseconds(), req.Limit},
		one(&res.Swept),
	})
	return res, err
}
