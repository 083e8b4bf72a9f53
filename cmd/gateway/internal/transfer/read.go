package transfer

import (
	"context"
	"iter"

	"github.com/loomgate/loomgate/spi"
)

// Limits on what is read at once. A single event may be larger.
const (
	pageEvents = 10_000
	pageBytes  = 1 << 20
)

// Executions yields the ids of executions that start with prefix and come after another,
// in code point order. The first error is the last thing that it yields.
func Executions(ctx context.Context, store *spi.Store, prefix, after string) iter.Seq2[spi.ExecutionID, error] {
	return listing{store: store, prefix: prefix, after: after}.ids(ctx)
}

// PartialExecutions is Executions of the shards that answer. In missing it leaves how many
// did not, at the most.
func PartialExecutions(ctx context.Context, store *spi.Store, prefix, after string, missing *int) iter.Seq2[spi.ExecutionID, error] {
	return listing{store: store, prefix: prefix, after: after, missing: missing}.ids(ctx)
}

// Events yields an execution's events past a sequence, up to the log's end as it is when
// that is reached. The first error is the last thing that it yields: a
// [ChangedError] if the log was deleted or truncated meanwhile, so that what was yielded
// and the rest are not one log, and a [GapError] if an event is missing.
func Events(ctx context.Context, store *spi.Store, id spi.ExecutionID, after int64) iter.Seq2[spi.Event, error] {
	return func(yield func(spi.Event, error) bool) {
		log := log{store: store, id: id, at: after}
		for more := true; more; {
			events, err := log.next(ctx)
			if err != nil {
				yield(spi.Event{}, err)
				return
			}
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
			}
			more = log.more
		}
	}
}

// A listing reads the executions of a store.
type listing struct {
	store  *spi.Store
	retry  Retry
	prefix string
	after  string

	missing *int // how many shards did not answer; nil: none may be missing
}

// pages yields what the store answers, as it is, until it ends, fails or does not go on.
func (l listing) pages(ctx context.Context) iter.Seq2[[]spi.ExecutionID, error] {
	return func(yield func([]spi.ExecutionID, error) bool) {
		for {
			var page spi.ListExecutionsResponse
			err := l.retry.do(ctx, func() (err error) {
				page, err = spi.ListExecutions(ctx, l.store, spi.ListExecutionsRequest{
					Prefix: l.prefix, After: l.after, Limit: spi.MaxLimit, AllowPartial: l.missing != nil,
				})
				return err
			})
			if l.missing != nil {
				*l.missing = max(*l.missing, len(page.Missing))
			}
			if err == nil && page.Next != "" && page.Next <= l.after {
				err = &OrderError{spi.ExecutionID(page.Next)}
			}
			if !yield(page.Executions, err) || err != nil || page.Next == "" {
				return
			}
			l.after = page.Next
		}
	}
}

// ids yields the executions of all pages, each once.
func (l listing) ids(ctx context.Context) iter.Seq2[spi.ExecutionID, error] {
	return func(yield func(spi.ExecutionID, error) bool) {
		last := l.after
		for page, err := range l.pages(ctx) {
			for _, id := range page {
				if string(id) <= last {
					yield("", &OrderError{id})
					return
				}
				last = string(id)
				if !yield(id, nil) {
					return
				}
			}
			if err != nil {
				yield("", err)
				return
			}
		}
	}
}

// A log is read forward, page by page.
type log struct {
	store *spi.Store
	retry Retry
	id    spi.ExecutionID
	at    int64 // the last sequence read

	incarnation int64 // of every page; 0 before the first
	floor       int64 // of the first page
	more        bool  // there are more events
}

// next returns the next page. If it is not of the log of the pages before, the error is a
// ChangedError; if an event is missing, a GapError.
func (l *log) next(ctx context.Context) ([]spi.Event, error) {
	var page spi.ReadResponse
	err := l.retry.do(ctx, func() (err error) {
		page, err = spi.Read(ctx, l.store, spi.ReadRequest{Execution: l.id, After: l.at, Limit: pageEvents, MaxBytes: pageBytes})
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case l.incarnation == 0:
		l.incarnation, l.floor = page.Incarnation, page.Floor
	case page.Incarnation != l.incarnation || page.Floor > max(l.floor, l.at+1):
		return nil, &ChangedError{l.id}
	case len(page.Events) == 0 && page.More:
		return nil, &GapError{l.id, l.at + 1}
	}
	for _, e := range page.Events {
		if e.Sequence <= l.at || e.Sequence > max(l.at+1, page.Floor) {
			return nil, &GapError{l.id, max(l.at+1, page.Floor)}
		}
		l.at = e.Sequence
	}
	l.more = page.More
	return page.Events, nil
}
