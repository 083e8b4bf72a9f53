package retention

import (
	"context"
	"errors"
	"iter"

	"github.com/loomgate/loomgate/spi"
)

// remove archives and deletes what is due, unless it is pinned.
func (r *run) remove(ctx context.Context, c Candidate) error {
	for _, pinned := range r.Pins {
		keep, err := pinned(ctx, c)
		if err != nil {
			return &Error{ActionPin, c.Execution, err}
		}
		if keep {
			r.report.Pinned++
			r.Decided(Decision{Action: ActionPin, Execution: c.Execution})
			return nil
		}
	}
	archive := r.Archive != nil && !c.Shredded
	action := ActionDelete
	if archive {
		action = ActionArchive
	}
	r.Decided(Decision{Action: action, Execution: c.Execution})
	if archive {
		if err := r.archive(ctx, &c); err != nil {
			return &Error{ActionArchive, c.Execution, err}
		}
		r.report.Archived++
	}
	deleted, err := r.delete(ctx, c)
	if err != nil {
		return &Error{ActionDelete, c.Execution, err}
	}
	if deleted {
		r.report.Deleted++
	}
	return nil
}

// archive stores a log as it is, again if somebody has noted something meanwhile.
func (r *run) archive(ctx context.Context, c *Candidate) error {
	if r.DryRun {
		return nil
	}
	for {
		if err := r.Archive(ctx, *c, r.log(ctx, *c)); err != nil {
			return err
		}
		head, err := spi.Head(ctx, r.store, spi.HeadRequest{Execution: c.Execution})
		if err != nil || head.Head == c.Head || head.Incarnation != c.Incarnation {
			return err
		}
		c.Head = head.Head
	}
}

// log yields a candidate's events; the last pair may hold an error in their place.
func (r *run) log(ctx context.Context, c Candidate) iter.Seq2[spi.Event, error] {
	return func(yield func(spi.Event, error) bool) {
		var after int64
		for {
			part, err := spi.Read(ctx, r.store, spi.ReadRequest{Execution: c.Execution, After: after, Until: c.Head, Limit: page})
			if err == nil && part.Incarnation != c.Incarnation {
				err = &spi.IncarnationError{Execution: c.Execution, Current: part.Incarnation}
			}
			if err != nil {
				yield(spi.Event{}, err)
				return
			}
			for _, e := range part.Events {
				if !yield(e, nil) {
					return
				}
				after = e.Sequence
			}
			if !part.More {
				return
			}
		}
	}
}

// delete reports whether the log is gone by this call. One that somebody has deleted
// meanwhile, or begun anew, is no longer what was due.
func (r *run) delete(ctx context.Context, c Candidate) (bool, error) {
	if r.DryRun {
		return true, nil
	}
	req := spi.DeleteExecutionRequest{Execution: c.Execution, Incarnation: c.Incarnation}
	res, err := spi.DeleteExecution(ctx, r.store, req)
	if _, ambiguous := errors.AsType[*spi.AmbiguousError](err); ambiguous {
		res, err = spi.DeleteExecution(ctx, r.store, req) // again changes nothing
	}
	if _, changed := errors.AsType[*spi.IncarnationError](err); changed {
		return false, nil
	}
	return res.Existed, err
}
