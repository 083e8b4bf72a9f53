package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loomgate/loomgate/spi"
)

// Backfill makes the directory's rows of an adopted database, one for each of the
// older executions, in batches of a short transaction each. It may be stopped and
// called again: it goes on where it was. It returns how many executions it went
// through. An adoption that made the database a shard has to be given again.
//
// Until it is done pages read events, which takes one look into an index for each
// name; the first call on each older execution makes its row; and no slot can be
// given away.
func (m Migration) Backfill(ctx context.Context, dsn string) (executions int64, err error) {
	err = m.alone(ctx, dsn, func(s *session) error {
		executions, err = s.fill(ctx)
		return err
	})
	if err != nil {
		return executions, fmt.Errorf("postgres: backfill: %w", err)
	}
	return executions, nil
}

// backfillBatch is how many executions one transaction goes through at most. Calls on
// them wait for its end, so logs that are long make it less.
const (
	backfillBatch = 1000
	backfillTime  = 250 * time.Millisecond
)

// batchStep is what a plan says of the batches.
var batchStep = Step{
	Name:       fmt.Sprintf("fill the directory, up to %d executions a transaction; $1 to $3 are ids, slots and epochs", backfillBatch),
	Statements: []string{plantOlderSQL("true"), reviveOlderSQL},
}

// vacuumStep leaves the directory as pages want it: with statistics, and known to
// hold nothing that is not visible to all, so that they need not look into its rows.
var vacuumStep = Step{
	Name:       "vacuum the directory",
	Statements: []string{"VACUUM (ANALYZE) loomgate.executions"},
	outside:    true,
}

// endStep ends it. That the table is gone is the marker that the directory is
// complete.
var endStep = Step{
	Name:       "end the backfill",
	Locks:      []string{"loomgate.older_fences ACCESS EXCLUSIVE", "loomgate.backfill ACCESS EXCLUSIVE"},
	Statements: []string{"DROP TABLE loomgate.older_fences", "DROP TABLE loomgate.backfill"},
}

// around returns the steps before and after the batches. Where the primary key of
// events is not in the order of names, because the step that gives it that order was
// skipped, each look would read the whole table: an index is built for the time of
// the backfill, beside the writes under way. Nothing needs it later.
func (s *session) around(ctx context.Context) (before, after []Step, err error) {
	tables, err := s.tables(ctx, "loomgate")
	if c, there := tables["events"]["execution_id"]; there && c.collation != "C" {
		drop := Step{Name: "drop the index", Statements: []string{"DROP INDEX CONCURRENTLY IF EXISTS loomgate.events_backfill"}, outside: true}
		build := Step{
			Name:       "build an index for the backfill",
			Statements: []string{`CREATE INDEX CONCURRENTLY events_backfill ON loomgate.events (execution_id COLLATE pg_catalog."C")`},
			outside:    true,
		}
		before, after = []Step{drop, build}, []Step{drop} // first what is left of one that was interrupted
	}
	return before, append(after, vacuumStep, endStep), err
}

// plantOlderSQL makes the rows of older executions that have none. They are not
// live yet. In an adopted database events without a row are older ones: whoever
// appends makes the row first.
func plantOlderSQL(owned string) string {
	return `INSERT INTO loomgate.executions (execution_id, slot, fence, live)
SELECT i.id, i.slot, coalesce(f.token, 0), false
FROM unnest($1::text[], $2::integer[], $3::bigint[]) AS i(id, slot, epoch) ` + slotProbeSQL + `
LEFT JOIN loomgate.older_fences f ON f.execution_id = i.id
WHERE ` + owned + ` AND NOT EXISTS (SELECT FROM loomgate.executions d WHERE d.execution_id = i.id)
	AND (f.execution_id IS NOT NULL OR EXISTS (SELECT FROM loomgate.events e WHERE e.execution_id = i.id))
ORDER BY i.id COLLATE "C"
ON CONFLICT DO NOTHING`
}

// reviveOlderSQL comes after plantOlderSQL, in a statement of its own: the rows that
// the transaction made are locked by it, so what this one sees of the log stays. In
// the snapshot of the first an execution may still have had events whose row was
// deleted and swept before this row could be made: it would be listed for ever.
//
// The floor is above the last sequence that is missing.
const reviveOlderSQL = `UPDATE loomgate.executions d SET live = true, floor = coalesce((
	SELECT max(g.sequence) FROM (
		SELECT e.sequence, lag(e.sequence, 1, 0::bigint) OVER (ORDER BY e.sequence) AS before
		FROM loomgate.events e WHERE e.execution_id = d.execution_id
	) g WHERE g.sequence <> g.before + 1), 1)
WHERE d.execution_id = ANY ($1) AND d.xmin = pg_current_xact_id_if_assigned()::xid
	AND EXISTS (SELECT FROM loomgate.events e WHERE e.execution_id = d.execution_id)`

// olderIDsSQL returns the ids that have events, from $1 on and before $2, at most $3,
// by one look into the primary key for each: it does not read their events.
const olderIDsSQL = `WITH RECURSIVE ids AS (
	(SELECT e.execution_id COLLATE "C" AS id, 1 AS n FROM loomgate.events e
	WHERE e.execution_id >= $1 COLLATE "C" AND e.execution_id < $2 COLLATE "C"
	ORDER BY e.execution_id COLLATE "C" LIMIT 1)
	UNION ALL
	SELECT (SELECT e.execution_id COLLATE "C" FROM loomgate.events e
		WHERE e.execution_id > ids.id COLLATE "C" AND e.execution_id < $2 COLLATE "C"
		ORDER BY e.execution_id COLLATE "C" LIMIT 1), ids.n + 1
	FROM ids WHERE ids.id IS NOT NULL AND ids.n < $3
)
SELECT id FROM ids WHERE id IS NOT NULL ORDER BY n`

// fill makes the rows that are missing, and ends the backfill.
func (s *session) fill(ctx context.Context) (executions int64, err error) {
	open, err := s.exists(ctx, "loomgate.backfill")
	if err != nil || !open {
		return 0, err
	}
	if err := s.checkPlacement(ctx); err != nil {
		return 0, err
	}
	before, after, err := s.around(ctx)
	if err == nil {
		err = s.runAll(ctx, before, &Report{})
	}
	for n, limit := 1, backfillBatch; n > 0 && err == nil; {
		start := time.Now()
		n, err = s.fillBatch(ctx, limit)
		executions += int64(n)
		if time.Since(start) > backfillTime {
			limit = max(limit/2, 1)
		} else {
			limit = min(limit*2, backfillBatch)
		}
	}
	if err == nil {
		err = s.runAll(ctx, after, &Report{})
	}
	return executions, err
}

// checkPlacement refuses a backfill whose rows no call would find.
func (s *session) checkPlacement(ctx context.Context) error {
	var shard bool
	if err := s.conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM loomgate.identity)").Scan(&shard); err != nil {
		return err
	}
	places := s.Adopt != nil && s.Adopt.SlotOf != nil
	switch {
	case shard && !places:
		return errors.New("the database is a shard: say which slots its executions are in (Adoption.SlotOf)")
	case places && !shard:
		return errors.New("the database is no shard: its executions have no slots (Adoption.SlotOf)")
	}
	return nil
}

// fillBatch makes the next batch's rows and returns how many executions it saw.
func (s *session) fillBatch(ctx context.Context, limit int) (n int, err error) {
	err = pgx.BeginTxFunc(ctx, s.conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		// Missing statistics must not make each look read the whole table.
		if _, err := tx.Exec(ctx, "SELECT set_config('enable_seqscan', 'off', true), set_config('statement_timeout', '0', true)"); err != nil {
			return err
		}
		var after string
		if err := tx.QueryRow(ctx, "SELECT after FROM loomgate.backfill").Scan(&after); err != nil {
			return err
		}
		from, before := bounds(spi.Seek("", after))
		ids, err := olderIDs(ctx, tx, from, before, limit)
		if n = len(ids); err != nil || n == 0 {
			return err
		}
		if _, err := tx.Exec(ctx, plantOlderSQL("true"), ids, s.Adopt.slots(ids), make([]int64, n)); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, reviveOlderSQL, ids); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "UPDATE loomgate.backfill SET after = $1", ids[n-1])
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("%s: %w", batchStep.Name, err)
	}
	return n, nil
}

// olderIDs returns the next ids that have events, a fence or both.
func olderIDs(ctx context.Context, tx pgx.Tx, from, before string, limit int) (ids []string, err error) {
	const fenced = `SELECT execution_id FROM loomgate.older_fences
WHERE execution_id >= $1 COLLATE "C" AND execution_id < $2 COLLATE "C" ORDER BY execution_id COLLATE "C" LIMIT $3`
	for _, sql := range []string{olderIDsSQL, fenced} {
		rows, err := tx.Query(ctx, sql, from, before, limit)
		if err != nil {
			return nil, err
		}
		if ids, err = pgx.AppendRows(ids, rows, pgx.RowTo[string]); err != nil {
			return nil, err
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	return ids[:min(len(ids), limit)], nil
}

// unbounded runs a statement that no transaction can hold, and that waits for older
// transactions without holding anybody up.
func (s *session) unbounded(ctx context.Context, sql string) error {
	const set = "SELECT pg_catalog.set_config('statement_timeout', $1, false), pg_catalog.set_config('lock_timeout', $2, false)"
	var statementTimeout, lockTimeout string
	if err := s.conn.QueryRow(ctx, "SELECT pg_catalog.current_setting('statement_timeout'), pg_catalog.current_setting('lock_timeout')").Scan(&statementTimeout, &lockTimeout); err != nil {
		return err
	}
	if _, err := s.conn.Exec(ctx, set, "0", "0"); err != nil {
		return err
	}
	if _, err := s.conn.Exec(ctx, sql); err != nil {
		return err // the connection ends here
	}
	_, err := s.conn.Exec(ctx, set, statementTimeout, lockTimeout)
	return err
}
