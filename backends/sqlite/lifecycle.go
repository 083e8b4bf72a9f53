package sqlite

import (
	"context"
	"math"

	"github.com/loomgate/loomgate/spi"
)

// Limits of what one transaction removes: some milliseconds.
const (
	maxRemoved      = 1_000 // events
	maxRemovedBytes = 8 << 20
)

// TruncatePrefixKeeping raises the floor first, then drops events in steps, so that
// no other write waits for all of them: below the floor, events may be missing.
func (s *store) TruncatePrefixKeeping(ctx context.Context, req spi.TruncatePrefixKeepingRequest) (res spi.TruncatePrefixKeepingResponse, err error) {
	keep := make(map[int64]bool, len(req.Keep))
	for _, seq := range req.Keep {
		keep[seq] = true
	}
	for last, more := int64(0), true; more; {
		begun, after := res, last // done again, a step begins where it began
		res, err = on(ctx, s.write, (*tx).execution, req.Route, req.Execution, func(t *tx, e *execution) (spi.TruncatePrefixKeepingResponse, error) {
			res := begun
			if err := e.state().CheckIncarnation(req.Incarnation); err != nil {
				return res, err
			}
			if !e.live() {
				return res, &spi.NotFoundError{What: "execution", Name: string(e.id)}
			}
			before := min(req.Before, e.head) // the last event stays
			if before > e.floor {
				e.floor = before
				if err := t.save(e); err != nil {
					return res, err
				}
			}
			var dropped int64
			var err error
			last, dropped, more, err = t.remove(*e.log, after, before, keep)
			res.Floor, res.Dropped = e.floor, res.Dropped+dropped
			return res, err
		})
		if err != nil && begun.Floor > 0 {
			return res, &spi.AmbiguousError{Execution: req.Execution, Cause: err} // some of it is done
		}
		if err != nil {
			return res, err
		}
	}
	return res, nil
}

// remove drops a part of a log's events between two sequences, both excluded, except
// those to keep. It returns how far it came, how many it dropped, and whether
// there are more.
func (t *tx) remove(log, after, before int64, keep map[int64]bool) (last, dropped int64, more bool, err error) {
	type run struct{ first, last int64 }
	var runs []run
	last = after
	seen, bytes := 0, 0
	err = t.each(`SELECT sequence, size FROM events WHERE log = ? AND sequence > ? AND sequence < ? ORDER BY sequence`,
		[]any{log, after, before}, func(scan scan) (bool, error) {
			if more = seen >= maxRemoved || bytes >= maxRemovedBytes; more {
				return false, nil
			}
			var seq int64
			var size int
			if err := scan(&seq, &size); err != nil {
				return false, err
			}
			seen, last = seen+1, seq
			if keep[seq] {
				return true, nil
			}
			bytes += size
			if n := len(runs); n > 0 && runs[n-1].last == seq-1 {
				runs[n-1].last = seq
			} else {
				runs = append(runs, run{seq, seq})
			}
			return true, nil
		})
	if err != nil {
		return 0, 0, false, err
	}
	for _, r := range runs {
		n, err := t.exec(`DELETE FROM events WHERE log = ? AND sequence >= ? AND sequence <= ?`, log, r.first, r.last)
		if err != nil {
			return 0, 0, false, err
		}
		dropped += n
	}
	return last, dropped, more, nil
}

// DeleteExecution leaves the events to the writer, which removes them by and by. No
// execution has their log any more, so nobody sees them meanwhile.
func (s *store) DeleteExecution(ctx context.Context, req spi.DeleteExecutionRequest) (spi.DeleteExecutionResponse, error) {
	return on(ctx, s.write, (*tx).execution, req.Route, req.Execution, func(t *tx, e *execution) (res spi.DeleteExecutionResponse, err error) {
		deleted := !e.known || e.tombstone() && req.Incarnation == e.incarnation-1
		switch {
		case req.Incarnation == e.incarnation:
			if err := t.removeTimers(e.id); err != nil {
				return res, err
			}
			if err := t.removeKeys(e); err != nil {
				return res, err
			}
		case !deleted: // what is there by now is another incarnation's
			return res, e.state().CheckIncarnation(req.Incarnation)
		}
		if e.live() {
			res.Existed = true
			if _, err := t.exec(`INSERT INTO graves VALUES (?)`, *e.log); err != nil {
				return res, err
			}
			s.writer.graves = true
			e.incarnation++
			if e.fence > 0 {
				e.fence++
			}
			e.floor, e.log, e.deletedAt = 1, nil, s.clock()
			if err := t.save(e); err != nil {
				return res, err
			}
		}
		res.Incarnation = e.incarnation
		return res, nil
	})
}

// bury removes some events of deleted logs, if nobody else is writing.
func (w *writer) bury() {
	if !w.graves || w.session == nil {
		return
	}
	if _, err := w.session.exec(`BEGIN IMMEDIATE`); err != nil {
		w.graves = busy(err) // then there is a next time
		return
	}
	t := &tx{session: w.session, ctx: w.ctx}
	more, err := t.bury()
	if err == nil {
		_, err = w.session.exec(`COMMIT`)
	}
	if err != nil {
		w.undo() // what it would have removed is invisible, so nobody has to know
		w.graves = false
		return
	}
	w.graves = more
}

func (t *tx) bury() (more bool, err error) {
	var log int64
	for removed := int64(0); removed < maxRemoved; {
		found, err := t.get(`SELECT log FROM graves LIMIT 1`, nil, &log)
		if err != nil || !found {
			return false, err
		}
		_, n, rest, err := t.remove(log, 0, math.MaxInt64, nil)
		if err != nil || rest {
			return true, err
		}
		if _, err := t.exec(`DELETE FROM graves WHERE log = ?`, log); err != nil {
			return true, err
		}
		removed += n + 1
	}
	return true, nil
}

// SweepTombstones leaves alone what has a data key again, since somebody is about
// to write it, and what lies in a slot that is another shard's or may be soon.
func (s *store) SweepTombstones(ctx context.Context, req spi.SweepTombstonesRequest) (res spi.SweepTombstonesResponse, err error) {
	err = s.write(ctx, "", func(t *tx) error {
		latest := s.clock().Add(-req.OlderThan)
		var sweep []string // collected first: a table must not change under a scan
		err := t.each(`
			SELECT execution_id, slot FROM executions INDEXED BY tombstones
			WHERE log IS NULL AND incarnation > 1 AND execution_id >= ? AND execution_id <> ? AND execution_id < ?
			AND deleted_at <= ? AND NOT EXISTS (SELECT 1 FROM data_keys WHERE owner = execution_id)
			ORDER BY execution_id`,
			append(seek(req.Prefix, ""), latest.UnixMicro()), func(scan scan) (bool, error) {
				var id string
				var slot spi.Slot
				if err := scan(&id, &slot); err != nil {
					return false, err
				}
				if t.ownership.owns(slot) {
					sweep = append(sweep, id)
				}
				return len(sweep) < req.Limit, nil
			})
		if err != nil {
			return err
		}
		for _, id := range sweep {
			if _, err := t.exec(`DELETE FROM executions WHERE execution_id = ?`, id); err != nil {
				return err
			}
		}
		res.Swept = len(sweep)
		return nil
	})
	return res, err
}
