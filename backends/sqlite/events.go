package sqlite

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"time"

	"github.com/loomgate/loomgate/spi"
)

// execution is the directory row of an execution.
type execution struct {
	id          spi.ExecutionID
	known       bool // there is a row
	slot        spi.Slot
	log         *int64 // nil: it has no events
	incarnation int64
	fence       int64
	floor       int64
	keyID       spi.KeyID
	shredded    bool
	deletedAt   time.Time

	head int64 // of the log
}

// execution returns a row that a call with that route may work on. One that is not
// there is made, but only save puts it into the directory.
func (t *tx) execution(route spi.Route, id spi.ExecutionID) (*execution, error) {
	e := &execution{id: id, slot: route.Slot, incarnation: 1, floor: 1}
	var keyID []byte
	var deletedAt int64
	var err error
	e.known, err = t.get(`
		SELECT slot, log, incarnation, fence, floor, key_id, shredded, deleted_at,
		       coalesce((SELECT max(sequence) FROM events WHERE events.log = executions.log), 0)
		FROM executions WHERE execution_id = ?`,
		[]any{string(id)},
		&e.slot, &e.log, &e.incarnation, &e.fence, &e.floor, &keyID, &e.shredded, &deletedAt, &e.head)
	if err != nil {
		return nil, err
	}
	copy(e.keyID[:], keyID)
	e.deletedAt = timeOf(deletedAt)
	return e, t.ownership.admit(route, e.slot)
}

func (t *tx) save(e *execution) error {
	var keyID []byte
	if e.keyID != (spi.KeyID{}) {
		keyID = e.keyID[:]
	}
	_, err := t.exec(`
		INSERT INTO executions (execution_id, slot, log, incarnation, fence, floor, key_id, shredded, deleted_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (execution_id) DO UPDATE SET
			log = excluded.log, incarnation = excluded.incarnation, fence = excluded.fence, floor = excluded.floor,
			key_id = excluded.key_id, shredded = excluded.shredded, deleted_at = excluded.deleted_at`,
		string(e.id), e.slot, e.log, e.incarnation, e.fence, e.floor, keyID, e.shredded, e.deletedAt.UnixMicro())
	return err
}

// live reports whether the execution has events in its current incarnation.
func (e *execution) live() bool { return e.log != nil }

// tombstone reports whether the execution was deleted and not written since.
func (e *execution) tombstone() bool { return e.incarnation > 1 && !e.live() }

func (e *execution) state() spi.LogState {
	return spi.LogState{
		Execution: e.id, Head: e.head, Fence: e.fence, Incarnation: e.incarnation, Floor: e.floor, KeyID: e.keyID, Shredded: e.shredded,
	}
}

// begin gives an execution a log, if it has none.
func (t *tx) begin(e *execution) error {
	if e.live() {
		return nil
	}
	log, err := t.nextLog()
	if err != nil {
		return err
	}
	e.log = &log
	return t.save(e)
}

func (s *store) Read(ctx context.Context, req spi.ReadRequest) (spi.ReadResponse, error) {
	return on(ctx, s.read, (*tx).execution, req.Route, req.Execution, func(t *tx, e *execution) (res spi.ReadResponse, err error) {
		res.Incarnation, res.Floor, res.Keyed, res.Shredded = e.incarnation, e.floor, e.keyID != spi.KeyID{}, e.shredded
		if !e.live() {
			return res, nil
		}
		first, last, n, more, err := t.fitting(*e.log, req)
		if err != nil || n == 0 {
			return res, err
		}
		res.More = more
		res.Events, err = t.events(*e.log, first, last, req.Backward, n)
		return res, err
	})
}

const (
	sizesForward  = `SELECT sequence, size FROM events WHERE log = ? AND sequence > ? AND sequence <= ? ORDER BY sequence`
	sizesBackward = sizesForward + ` DESC`
)

// fitting returns the lowest and the highest sequence of a read, how many events
// there are between them, and whether a limit ended it. It looks at sizes only: what
// does not fit is never loaded.
func (t *tx) fitting(log int64, req spi.ReadRequest) (first, last int64, n int, more bool, err error) {
	query := sizesForward
	after, until := req.After, cmp.Or(req.Until, math.MaxInt64)
	if req.Backward {
		query = sizesBackward
		after, until = req.Until-1, cmp.Or(req.After, math.MaxInt64)-1
	}
	maxBytes, size := cmp.Or(req.MaxBytes, spi.MaxReadBytes), 0
	first = math.MaxInt64
	err = t.each(query, []any{log, after, until}, func(scan scan) (bool, error) {
		var seq int64
		var bytes int
		if err := scan(&seq, &bytes); err != nil {
			return false, err
		}
		size += bytes
		if more = n == req.Limit || size > maxBytes && n > 0; more {
			return false, nil
		}
		first, last, n = min(first, seq), max(last, seq), n+1
		return true, nil
	})
	return first, last, n, more, err
}

const (
	readForward = `
		SELECT sequence, event_id, kind, kernel, fence, recorded_at, metadata, payload
		FROM events WHERE log = ? AND sequence >= ? AND sequence <= ? ORDER BY sequence`
	readBackward = readForward + ` DESC`
)

// events returns the n events from first to last.
func (t *tx) events(log, first, last int64, backward bool, n int) ([]spi.Event, error) {
	query := readForward
	if backward {
		query = readBackward
	}
	events := make([]spi.Event, 0, n)
	err := t.each(query, []any{log, first, last}, func(scan scan) (bool, error) {
		events = append(events, spi.Event{})
		e := &events[len(events)-1]
		var id, metadata []byte
		var recordedAt int64
		if err := scan(&e.Sequence, &id, &e.Kind, &e.Kernel, &e.Fence, &recordedAt, &metadata, &e.Payload); err != nil {
			return false, err
		}
		copy(e.ID[:], id)
		e.RecordedAt = timeOf(recordedAt)
		if metadata != nil {
			return true, json.Unmarshal(metadata, &e.Metadata)
		}
		return true, nil
	})
	return events, err
}

func (s *store) Head(ctx context.Context, req spi.HeadRequest) (spi.HeadResponse, error) {
	return on(ctx, s.read, (*tx).execution, req.Route, req.Execution, func(_ *tx, e *execution) (spi.HeadResponse, error) {
		return spi.HeadResponse{Head: e.head, Fence: e.fence, Incarnation: e.incarnation, Floor: e.floor}, nil
	})
}

const listExecutions = `
	SELECT execution_id, slot FROM executions INDEXED BY executions_live
	WHERE log IS NOT NULL AND execution_id >= ? AND execution_id <> ? AND execution_id < ?
	ORDER BY execution_id`

// ListExecutions reads nothing but the index, and of it no more than the page and
// what lies between that is another shard's.
func (s *store) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (res spi.ListExecutionsResponse, err error) {
	err = s.read(ctx, "", func(t *tx) error {
		res.Receipt = t.ownership.receipt(req.KnownOwnership)
		page := page{ownership: t.ownership, left: req.Limit}
		err := t.each(listExecutions, seek(req.Prefix, req.After), func(scan scan) (bool, error) {
			var id string
			var slot spi.Slot
			if err := scan(&id, &slot); err != nil {
				return false, err
			}
			return page.take(id, slot, func() { res.Executions = append(res.Executions, spi.ExecutionID(id)) }), nil
		})
		res.Next = page.cursor()
		return err
	})
	return res, err
}
