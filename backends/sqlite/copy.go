package sqlite

import (
	"context"

	"github.com/loomgate/loomgate/spi"
)

// CopyPrefix refuses executions with a data key: a copy needs a key of its own, so
// only a layer that encrypts can make it.
func (s *store) CopyPrefix(ctx context.Context, req spi.CopyPrefixRequest) (spi.CopyPrefixResponse, error) {
	return on(ctx, s.write, (*tx).execution, req.Route, req.To, func(t *tx, to *execution) (res spi.CopyPrefixResponse, err error) {
		from, err := t.execution(req.FromRoute, req.From)
		if err != nil {
			return res, err
		}
		if err := to.state().CheckWriter(req.Incarnation); err != nil {
			return res, err
		}
		if err := t.copyable(from, req.N); err != nil {
			return res, err
		}
		there, err := t.startsWith(to, from, req.N)
		switch {
		case err != nil:
			return res, err
		case there:
			res.Duplicate = true
		default:
			if err := to.state().CheckCopy(from.state()); err != nil {
				return res, err
			}
			if err := t.copy(from, to, req.N); err != nil {
				return res, err
			}
			to.head = req.N
		}
		res.Head, res.Incarnation = to.head, to.incarnation
		return res, nil
	})
}

// copyable returns an error unless the first n events can be copied.
func (t *tx) copyable(e *execution, n int64) error {
	if err := e.state().CheckPrefix(n); err != nil {
		return err
	}
	var size int64
	_, err := t.get(`SELECT sum(size) FROM events WHERE log = ? AND sequence <= ?`, []any{*e.log, n}, &size)
	if err == nil && size > spi.MaxAppendBytes {
		return &spi.TooLargeError{Execution: e.id}
	}
	return err
}

// startsWith reports whether a log begins with the first n events of another.
func (t *tx) startsWith(e, other *execution, n int64) (bool, error) {
	if e.floor > 1 || e.head < n {
		return false, nil
	}
	var same int64
	_, err := t.get(`
		SELECT count(*) FROM events AS a JOIN events AS b
		ON b.log = ? AND b.sequence = a.sequence AND b.event_id = a.event_id AND b.kind = a.kind
		WHERE a.log = ? AND a.sequence <= ?`,
		[]any{*e.log, *other.log, n}, &same)
	return same == n, err
}

func (t *tx) copy(from, to *execution, n int64) error {
	if err := t.begin(to); err != nil {
		return err
	}
	_, err := t.exec(`
		INSERT INTO events (log, sequence, event_id, kind, kernel, fence, recorded_at, size, metadata, payload)
		SELECT ?, sequence, event_id, kind, kernel, 0, recorded_at, size, metadata, payload
		FROM events WHERE log = ? AND sequence <= ? ORDER BY sequence`,
		*to.log, *from.log, n)
	return err
}
