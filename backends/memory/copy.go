package memory

import (
	"context"
	"slices"

	"github.com/loomgate/loomgate/spi"
)

// CopyPrefix refuses executions with a data key: a copy needs a key of its own, so
// only a layer that encrypts can make it.
func (s *store) CopyPrefix(ctx context.Context, req spi.CopyPrefixRequest) (spi.CopyPrefixResponse, error) {
	return on(ctx, &s.mu, s.execution, req.Route, req.To, func(to *execution) (res spi.CopyPrefixResponse, err error) {
		from, err := s.execution(req.FromRoute, req.From)
		if err != nil {
			return res, err
		}
		if err := to.meansToWrite(req.Incarnation); err != nil {
			return res, err
		}
		events, err := from.prefix(req.N)
		if err != nil {
			return res, err
		}
		switch {
		case to.startsWith(events):
			res.Duplicate = true
		case from.shredded:
			return res, &spi.ShreddedError{Owner: spi.KeyOwner(from.id)}
		case to.shredded:
			return res, &spi.ShreddedError{Owner: spi.KeyOwner(to.id)}
		case from.keyID != spi.KeyID{} || to.keyID != spi.KeyID{}:
			return res, &spi.KeyMismatchError{Execution: to.id}
		case to.live():
			return res, &spi.ConflictError{Execution: to.id, Head: to.head()}
		default:
			s.write(to, slices.Clone(events), 0) // payloads never change: both have them
		}
		res.Head, res.Incarnation = to.head(), to.incarnation
		return res, nil
	})
}

// prefix returns the first n events, if they can be copied.
func (e *execution) prefix(n int64) ([]spi.Event, error) {
	switch {
	case n > e.head():
		return nil, &spi.RangeError{Execution: e.id, Head: e.head()}
	case e.floor > 1:
		return nil, &spi.TruncatedError{Execution: e.id, Floor: e.floor}
	case n > spi.MaxEvents:
		return nil, &spi.TooLargeError{Execution: e.id}
	}
	size := 0
	for i := range e.events[:n] {
		size += e.events[i].Size()
	}
	if size > spi.MaxAppendBytes {
		return nil, &spi.TooLargeError{Execution: e.id}
	}
	return e.events[:n], nil
}

// startsWith reports whether the log begins with events.
func (e *execution) startsWith(events []spi.Event) bool {
	return e.floor == 1 && len(e.events) >= len(events) &&
		slices.EqualFunc(e.events[:len(events)], events, func(a, b spi.Event) bool {
			return a.ID == b.ID && a.Kind == b.Kind
		})
}
