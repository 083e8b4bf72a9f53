package postgres

import (
	"context"

	"github.com/loomgate/loomgate/spi"
)

// acquireSQL raises the fence, or makes the row of an execution without events:
// one that is not live. The upsert locks the row FOR NO KEY UPDATE and works on its
// last version, so nothing has to be locked before it.
const acquireSQL = `WITH ` + callSQL + `, u AS (
	INSERT INTO loomgate.executions AS d (execution_id, slot, live, fence)
	SELECT $3, c.slot, false, 1 FROM c
	WHERE c.owned AND ($4::bigint <= 1 OR EXISTS (SELECT FROM loomgate.executions e WHERE e.execution_id = $3))
	ON CONFLICT (execution_id) DO UPDATE SET fence = d.fence + 1
	WHERE d.slot = excluded.slot AND ($4 = 0 OR d.incarnation = $4)
	RETURNING fence
)
SELECT ` + rowSQL + `, coalesce((SELECT fence FROM u), 0)
FROM c LEFT JOIN loomgate.executions d ON d.execution_id = $3`

func (s *store) AcquireFence(ctx context.Context, req spi.AcquireFenceRequest) (res spi.AcquireFenceResponse, err error) {
	for range maxTries {
		var row directoryRow
		err := s.write(ctx, req.Execution, statement{
			acquireSQL,
			[]any{req.Route.Slot, req.Route.Epoch, string(req.Execution), req.Incarnation},
			one(append(row.into(), &res.Token)...),
		})
		if err != nil || res.Token > 0 {
			return res, err
		}
		if err := s.refuseRow(ctx, req.Route, req.Execution, req.Incarnation, row); err != nil {
			return res, err
		}
		// The row that refused is not the one that was seen: look again.
	}
	return res, &spi.UnavailableError{Cause: errBusy}
}

// acquireIfSQL comes after a statement that locked the row, and so sees every
// answer that was committed before the lock was granted; an answer that comes later
// waits for the lock. A single statement would look at the log in a snapshot taken
// before it waited. A row that was not there to be locked must not win either: that
// this transaction has an id tells that the lock found one.
const acquireIfSQL = `WITH ` + callSQL + `, u AS (
	UPDATE loomgate.executions d SET fence = d.fence + 1 FROM c
	WHERE d.execution_id = $3 AND c.owned AND d.slot = c.slot AND pg_current_xact_id_if_assigned() IS NOT NULL
		AND ($4::bigint = 0 OR d.incarnation = $4) AND d.live AND d.fence = $5 AND d.floor <= $6
		AND EXISTS (SELECT FROM loomgate.events p WHERE p.execution_id = $3 AND p.sequence = $6 AND p.kind = '` + spi.KindExecutionSuspended + `')
		AND NOT EXISTS (SELECT FROM loomgate.events a WHERE a.execution_id = $3 AND a.sequence > $6 AND a.answering)
	RETURNING d.fence
)
SELECT ` + rowSQL + `, coalesce((SELECT fence FROM u), 0)
FROM c LEFT JOIN loomgate.executions d ON d.execution_id = $3`

func (s *store) AcquireFenceIf(ctx context.Context, req spi.AcquireFenceIfRequest) (res spi.AcquireFenceIfResponse, err error) {
	var row directoryRow
	var token int64
	err = s.write(ctx, req.Execution, lockRow(lockNoKeyUpdate, req.Execution), statement{
		acquireIfSQL,
		[]any{req.Route.Slot, req.Route.Epoch, string(req.Execution), req.Incarnation, req.Fence, req.ParkSeq},
		one(append(row.into(), &token)...),
	})
	switch {
	case err != nil:
		return res, err
	case token > 0:
		return spi.AcquireFenceIfResponse{Acquired: true, Token: token}, nil
	}
	return spi.AcquireFenceIfResponse{Token: row.fence}, s.refuseRow(ctx, req.Route, req.Execution, req.Incarnation, row)
}
