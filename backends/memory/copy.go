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
		if err := to.state().CheckWriter(req.Incarnation); err != nil {
			return res, err
		}
		events, err := from.prefix(req.N)
		if err != nil {
			return res, err
		}
		if res.Duplicate = to.startsWith(events); !res.Duplicate {
			if err := to.state().CheckCopy(from.state()); err != nil {
				return res, err
			}
			s.write(to, slices.Clone(events), 0) // payloads never change: both have them
		}
		res.Head, res.Incarnation = to.head(), to.incarnation
		return res, nil
	})
}

// prefix returns the first n events, if they can be copied.
func (e *execution) prefix(n int64) ([]spi.Event, error) {
	if err := e.state().CheckPrefix(n); err != nil {
		return nil, err
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
