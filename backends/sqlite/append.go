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
		return t.append(e, req, s.clock(), outdated)
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
				result.AppendResponse, err = t.append(e, item, now, outdated)
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
	plain := spi.AppendRequest{
		ExpectedHead: req.Head,
		Incarnation:  req.Incarnation,
		SinceSeq:     req.SinceSeq,
		KeyID:        req.KeyID,
		Events:       req.Events,
	}
	res.AppendResponse, err = on(ctx, s.write, (*tx).execution, req.Route, req.Execution, func(t *tx, e *execution) (spi.AppendResponse, error) {
		return t.append(e, plain, s.clock(), func(*execution, spi.AppendRequest) bool { return e.fence != req.Fence })
	})
	return res, err
}

// outdated reports whether an append's token no longer counts.
func outdated(e *execution, req spi.AppendRequest) bool {
	return req.Fence < e.fence && (req.Fence > 0 || spi.AnyAnswering(req.Events))
}

// append does an append. The order of its checks is that of [spi.EventBackend]; no
// check follows the first write.
func (t *tx) append(e *execution, req spi.AppendRequest, now time.Time, stale func(*execution, spi.AppendRequest) bool) (res spi.AppendResponse, err error) {
	if err := e.meansToWrite(req.Incarnation); err != nil {
		return res, err
	}
	head, since := e.head, e.since(req)
	first, whole, some, err := t.find(e, req.Events, since)
	expected := req.ExpectedHead == head || req.ExpectedHead == spi.AnyHead && since-1 <= head
	switch {
	case err != nil:
		return res, err
	case whole:
		return spi.AppendResponse{FirstSeq: first, Head: head, Incarnation: e.incarnation, Floor: e.floor, Duplicate: true}, nil
	case since < e.floor:
		return res, &spi.TruncatedError{Execution: e.id, Floor: e.floor}
	case some:
		return res, &spi.ConflictError{Execution: e.id, Head: head, Reused: true}
	case e.shredded:
		return res, &spi.ShreddedError{Owner: spi.KeyOwner(e.id)}
	case req.KeyID != e.keyID:
		return res, &spi.KeyMismatchError{Execution: e.id}
	case stale(e, req):
		return res, &spi.StaleFenceError{Execution: e.id, Current: e.fence}
	case !expected:
		return res, &spi.ConflictError{Execution: e.id, Head: head}
	}
	if err := t.begin(e); err != nil {
		return res, err
	}
	for i := 0; i < len(req.Events); {
		n := 1
		if len(req.Events)-i >= manyRows {
			n = manyRows
		}
		if err := t.insert(*e.log, head+int64(i)+1, req.Fence, now, req.Events[i:i+n]); err != nil {
			return res, err
		}
		i += n
	}
	return spi.AppendResponse{FirstSeq: head + 1, Head: head + int64(len(req.Events)), Incarnation: e.incarnation, Floor: e.floor}, nil
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

// since returns where a duplicate of the append can begin.
func (e *execution) since(req spi.AppendRequest) int64 {
	switch {
	case req.SinceSeq > 0:
		return req.SinceSeq
	case req.ExpectedHead == spi.AnyHead:
		return max(e.floor, e.head-spi.DuplicateWindow+1)
	}
	return min(req.ExpectedHead, e.head) + 1 // past the head there is nothing to find
}

// find looks for events at or after since: where they begin if they are there in
// one piece, and whether some of them are there at all.
func (t *tx) find(e *execution, events []spi.Event, since int64) (first int64, whole, some bool, err error) {
	if since > e.head {
		return 0, false, false, nil
	}
	sequences, err := t.recent.sequences(t, e, since)
	if err != nil {
		return 0, false, false, err
	}
	first, whole = sequences[events[0].ID], true
	for i := range events {
		seq := sequences[events[i].ID]
		there := seq >= since
		some = some || there
		whole = whole && there && seq == first+int64(i)
	}
	return first, whole, some, nil
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
