package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/loomgate/loomgate/spi"
)

func (s *store) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	return on(ctx, s.write, (*tx).execution, req.Route, req.Execution, func(t *tx, e *execution) (spi.AppendResponse, error) {
		return t.append(e, req, s.clock())
	})
}

func (s *store) AppendBatch(ctx context.Context, req spi.AppendBatchRequest) (res spi.AppendBatchResponse, err error) {
	err = s.write(ctx, "", func(t *tx) error {
		res.Results = make([]spi.AppendResult, len(req.Appends))
		now := s.clock()
		for i, item := range req.Appends {
			result := &res.Results[i]
			e, err := t.execution(item.Route, item.Execution)
			if err == nil {
				result.AppendResponse, err = t.append(e, item, now)
			}
			if failed(err) {
				return err
			}
			result.Err = err
		}
		return nil
	})
	if lost, ok := errors.AsType[*spi.AmbiguousError](err); ok {
		for i, item := range req.Appends {
			res.Results[i] = spi.AppendResult{Err: &spi.AmbiguousError{Execution: item.Execution, Cause: lost.Cause}}
		}
		err = nil
	}
	return res, err
}

func (s *store) AppendIfUnchanged(ctx context.Context, req spi.AppendIfUnchangedRequest) (res spi.AppendIfUnchangedResponse, err error) {
	res.AppendResponse, err = on(ctx, s.write, (*tx).execution, req.Route, req.Execution, func(t *tx, e *execution) (spi.AppendResponse, error) {
		res, err := e.state().AppendIfUnchanged(req, t.finder(e, req.Events))
		return t.carryOut(e, req.Events, 0, s.clock(), res, err)
	})
	return res, err
}

func (t *tx) append(e *execution, req spi.AppendRequest, now time.Time) (spi.AppendResponse, error) {
	res, err := e.state().Append(req, t.finder(e, req.Events))
	return t.carryOut(e, req.Events, req.Fence, now, res, err)
}

// carryOut does what an append came to.
func (t *tx) carryOut(e *execution, events []spi.Event, fence int64, now time.Time, res spi.AppendResponse, err error) (spi.AppendResponse, error) {
	if err != nil || res.Duplicate {
		return res, err
	}
	if err := t.begin(e); err != nil {
		return res, err
	}
	for i := 0; i < len(events); {
		n := 1
		if len(events)-i >= manyRows {
			n = manyRows
		}
		if err := t.insert(*e.log, res.FirstSeq+int64(i), fence, now, events[i:i+n]); err != nil {
			return res, err
		}
		i += n
	}
	return res, nil
}

// manyRows is how many events one statement inserts, where there are that many: a
// quarter faster than one by one.
const manyRows = 16

const insertRow = `
	INSERT INTO events (log, sequence, event_id, kind, kernel, fence, recorded_at, size, metadata, payload)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

var insertRows = insertRow + strings.Repeat(`, (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, manyRows-1)

// insert writes one event or manyRows, from a sequence on.
func (t *tx) insert(log, seq, fence int64, now time.Time, events []spi.Event) error {
	query, args := insertRow, make([]any, 0, 10*len(events))
	if len(events) == manyRows {
		query = insertRows
	}
	for i := range events {
		e := &events[i]
		at, size := e.RecordedAt, e.Size()
		if at.IsZero() {
			at = now
		}
		var metadata, payload any // NULL where there is none
		if len(e.Metadata) > 0 {
			text, err := json.Marshal(e.Metadata)
			if err != nil {
				return err // never: maps of strings have a form
			}
			metadata = string(text)
		}
		if len(e.Payload) > 0 {
			payload = e.Payload
		}
		args = append(args, log, seq+int64(i), e.ID[:], e.Kind, e.Kernel, fence, at.UnixMicro(), size, metadata, payload)
		t.written += size
	}
	_, err := t.exec(query, args...)
	return err
}

// finder finds events in a log.
func (t *tx) finder(e *execution, events []spi.Event) func(since int64) (spi.Found, error) {
	return func(since int64) (spi.Found, error) {
		sequences, err := t.recent.sequences(t, e, since)
		if err != nil {
			return spi.Found{}, err
		}
		return spi.FindEvents(events, since, func(id spi.EventID) int64 { return sequences[id] }), nil
	}
}

// recent remembers the event ids of logs that are searched again and again, since an
// append to any head looks back far. An index by event id would make every append
// pay for that. What it holds stays true: events from the floor on never change, and
// those that other processes add are read when they are needed. Only what a
// transaction wrote and then lost must be forgotten.
type recent struct {
	logs map[int64]*window
	size int
}

// A window is the ids of a log's events from one sequence to another.
type window struct {
	from, head int64
	sequences  map[spi.EventID]int64
}

const (
	fewEvents = 64      // up to here, a search just reads them
	maxRecent = 1 << 18 // ids, about 16 MiB
)

// sequences returns the sequences of the events from since on, and perhaps of
// earlier ones, by their ids.
func (r *recent) sequences(t *tx, e *execution, since int64) (map[spi.EventID]int64, error) {
	if since < e.floor || e.head-since < fewEvents {
		w := window{head: since - 1, sequences: map[spi.EventID]int64{}}
		return w.sequences, w.extend(t, *e.log)
	}
	if r.size > maxRecent {
		r.forget()
	}
	w := r.logs[*e.log]
	if w == nil || since < w.from {
		if r.logs == nil {
			r.logs = map[int64]*window{}
		}
		w = &window{from: since, head: since - 1, sequences: map[spi.EventID]int64{}}
		r.logs[*e.log] = w
	}
	r.size -= len(w.sequences)
	err := w.extend(t, *e.log)
	r.size += len(w.sequences)
	return w.sequences, err
}

// extend reads the ids past the window.
func (w *window) extend(t *tx, log int64) error {
	return t.each(`SELECT sequence, event_id FROM events WHERE log = ? AND sequence > ? ORDER BY sequence`,
		[]any{log, w.head}, func(scan scan) (bool, error) {
			var id [16]byte
			var raw []byte
			if err := scan(&w.head, &raw); err != nil {
				return false, err
			}
			copy(id[:], raw)
			w.sequences[id] = w.head
			return true, nil
		})
}

func (r *recent) forget() { *r = recent{} }
