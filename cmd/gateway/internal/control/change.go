package control

import (
	"context"
	"errors"
	"time"

	"github.com/loomgate/loomgate/spi"
)

// An Actor is who makes a change.
type Actor struct {
	// APIKey is the id of the API key, or what acts in its place: jwt:ISSUER:SUBJECT,
	// certificate:NAME, local:USER@HOST for a command beside the databases, "init".
	APIKey  string
	Address string // where the client is; "" if it is this process
}

// A decision is what a change comes to: a record of a kind, or nothing if the state is
// what was asked for.
type decision struct {
	kind string
	record
	restricts bool // it only takes away, so it may go past records of a newer gateway
}

// change appends what decide wants, given the state at the head, and returns when it
// happened. It decides again whenever somebody else was faster.
func (r *Records) change(ctx context.Context, by Actor, decide func(*state) (decision, error)) (when time.Time, err error) {
	if err := r.writing.take(ctx); err != nil {
		return when, err
	}
	defer r.writing.release()
	for {
		if err := r.Refresh(ctx); err != nil {
			return when, err
		}
		at := r.copy.Load()
		d, err := decide(&at.state)
		switch {
		case err != nil || d.kind == "":
			return when, err
		case at.unknown > 0 && !d.restricts:
			return when, &OutdatedError{at.unknown}
		}
		d.By, d.From = by.APIKey, by.Address
		event, err := d.event()
		if err != nil {
			return when, err
		}
		asOf := time.Now()
		res, err := r.append(ctx, spi.AppendRequest{
			Execution: Execution, ExpectedHead: at.head, Incarnation: at.incarnation, Events: []spi.Event{event},
		})
		if conflict, lost := errors.AsType[*spi.ConflictError](err); lost && conflict.Head > at.head {
			continue
		}
		if err == nil {
			r.sees(ctx, event, res, asOf)
		}
		return event.RecordedAt, err
	}
}

// How often, and after which pause, an append is sent again whose answer was lost. The
// pause doubles.
const (
	maxTries   = 6
	firstPause = 20 * time.Millisecond
)

// append sends a request until its outcome is known: the same event at the same head is
// stored at most once, and after a conflict it never will be. The outcome is unknown if the
// answers to all tries were lost.
func (r *Records) append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	var unknown error
	pause := r.pause
	for try := 1; ; try++ {
		res, err := spi.Append(ctx, r.store, req)
		_, conflict := errors.AsType[*spi.ConflictError](err)
		if err == nil || conflict {
			return res, err
		}
		if _, ambiguous := errors.AsType[*spi.AmbiguousError](err); ambiguous {
			unknown = err
		}
		if unknown == nil {
			return res, err // nothing was changed
		}
		if try == maxTries {
			return res, unknown
		}
		select {
		case <-time.After(pause):
			pause *= 2
		case <-ctx.Done():
			return res, unknown
		}
	}
}

// sees makes a writer see the event that it wrote, unless a look came first. The copy is
// then as good as when the append began, since it was at the log's end.
func (r *Records) sees(ctx context.Context, event spi.Event, res spi.AppendResponse, asOf time.Time) {
	if r.reading.take(context.WithoutCancel(ctx)) != nil {
		return
	}
	defer r.reading.release()
	event.Sequence = res.FirstSeq
	if r.folded.apply(&event) == nil { // it refuses one that is not the next
		r.folded.incarnation = res.Incarnation
		r.publish(asOf)
	}
}
