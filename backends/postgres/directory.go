package postgres

import (
	"context"

	"github.com/loomgate/loomgate/spi"
)

// How a row of the directory is locked. The table in LOCKS.md says who takes which.
const (
	lockKeyShare int16 = iota
	lockNoKeyUpdate
	lockUpdate
)

// lockRow waits for a row's lock, in a statement of its own: the next one has a
// snapshot in which everything is committed that the lock waited for.
func lockRow(strength int16, id spi.ExecutionID) statement {
	sql := "SELECT FROM loomgate.executions WHERE execution_id = $1 FOR NO KEY UPDATE"
	if strength == lockUpdate {
		sql = "SELECT FROM loomgate.executions WHERE execution_id = $1 FOR UPDATE"
	}
	return statement{sql: sql, args: []any{string(id)}}
}

// A directoryRow is an execution's row as a statement saw it, and what the shard
// says of the call's route. Of an execution that is not there it is what the first
// append would find.
type directoryRow struct {
	judgement
	there                     bool
	slot                      spi.Slot
	fence, incarnation, floor int64
	live, keyed, shredded     bool
}

// rowSQL is a directoryRow's columns, of d beside c.
const rowSQL = `c.owned, c.state, c.slot_epoch, d.execution_id IS NOT NULL, coalesce(d.slot, c.slot), coalesce(d.fence, 0), coalesce(d.incarnation, 1), coalesce(d.floor, 1), coalesce(d.live, false), d.key_id IS NOT NULL, coalesce(d.shredded, false)`

// into returns where the columns go.
func (r *directoryRow) into() []any {
	return append(r.judgement.into(), &r.there, &r.slot, &r.fence, &r.incarnation, &r.floor, &r.live, &r.keyed, &r.shredded)
}

// refuseRow returns why a call may not work on the row, or nil. Incarnation 0
// states none.
func (s *store) refuseRow(ctx context.Context, route spi.Route, id spi.ExecutionID, incarnation int64, r directoryRow) error {
	if err := s.refuse(ctx, route, r.judgement, r.slot == route.Slot); err != nil {
		return err
	}
	if incarnation != 0 && incarnation != r.incarnation {
		return &spi.IncarnationError{Execution: id, Current: r.incarnation}
	}
	return nil
}
