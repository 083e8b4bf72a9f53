// Package retention removes what has ended long enough ago, or is too many, shortens
// logs, and prunes branch refs that point at nothing.
package retention

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/loomgate/loomgate/runtime/resume"
	"github.com/loomgate/loomgate/spi"
)

// A Policy says what is due, and what becomes of it. The zero Policy does nothing.
type Policy struct {
	Prefix string // only executions and refs whose names start with it

	// MaxAge makes an execution due that ended at least so long ago; 0 is no rule.
	MaxAge time.Duration

	// MaxCount makes those due that ended before the newest MaxCount; 0 is no rule.
	// Memory grows with it.
	MaxCount int

	// Pins keep what is due; see [Pin].
	Pins []Pin

	// Archive stores what is due before it is deleted; nil deletes. An error stops
	// the run, and the log stays.
	Archive func(context.Context, Candidate, iter.Seq2[spi.Event, error]) error

	// Truncate returns the sequence before which a parked execution needs no events;
	// 0 for all. nil truncates nothing. Its start, the messages in its inbox and the
	// park stay whatever it returns.
	Truncate func(*resume.State) int64

	// PruneRefs removes branch refs whose place is not there.
	PruneRefs bool

	// SweepAfter forgets deletions that are so old, after which no writer of the
	// deleted log can be at work any more; 0 forgets none.
	SweepAfter time.Duration

	// DryRun decides, and changes nothing.
	DryRun bool

	// Decided is told of each decision, before it is carried out; nil is nobody.
	Decided func(Decision)

	Now func() time.Time // time.Now
}

// A Candidate is an execution that is due.
type Candidate struct {
	Execution   spi.ExecutionID
	Incarnation int64
	Head        int64
	EndedAt     time.Time // zero if it was shredded
	Shredded    bool      // its log cannot be read any more
}

// A Pin keeps an execution that is due. It is asked for no other. An error stops the
// run, and the log stays.
type Pin func(context.Context, Candidate) (bool, error)

// An Action is what becomes of something.
type Action string

// What a run decides.
const (
	ActionDelete   Action = "delete"
	ActionArchive  Action = "archive" // and delete
	ActionPin      Action = "pin"     // it is due and stays
	ActionTruncate Action = "truncate"
	ActionPrune    Action = "prune"
)

// A Decision is what becomes of an execution or of a ref.
type Decision struct {
	Action    Action
	Execution spi.ExecutionID
	Ref       spi.RefName // with ActionPrune
	Before    int64       // with ActionTruncate
}

// A Report counts what a run did, or in a dry run would do.
type Report struct {
	Executions int // that were listed
	Pinned     int
	Archived   int
	Deleted    int // the archived ones too
	Truncated  int // executions
	Refs       int // that were listed
	Pruned     int
	Swept      int // tombstones
}

// An Error says where a run stopped.
type Error struct {
	Action    Action
	Execution spi.ExecutionID
	Err       error
}

func (e *Error) Error() string {
	return fmt.Sprintf("retention: %s of execution %q: %v", e.Action, e.Execution, e.Err)
}

// Unwrap returns what went wrong.
func (e *Error) Unwrap() error { return e.Err }

// Validate returns an error unless the policy can be applied to a store.
func (p *Policy) Validate(store *spi.Store) error {
	need := spi.CapEvents
	if p.MaxAge > 0 || p.MaxCount > 0 {
		need |= spi.CapDeleteExecution
	}
	if p.Truncate != nil {
		need |= spi.CapTruncatePrefixKeeping
	}
	if p.PruneRefs {
		need |= spi.CapRefs
	}
	if p.SweepAfter > 0 {
		need |= spi.CapSweepTombstones
	}
	if missing := need &^ store.Offered(); missing != 0 {
		return &spi.UnsupportedError{Cap: missing}
	}
	if p.MaxAge < 0 {
		return &spi.InvalidArgumentError{Field: "max age", Rule: "is negative"}
	}
	if p.MaxCount < 0 {
		return &spi.InvalidArgumentError{Field: "max count", Rule: "is negative"}
	}
	if p.SweepAfter < 0 {
		return &spi.InvalidArgumentError{Field: "sweep after", Rule: "is negative"}
	}
	return nil
}

// Apply carries a policy out, and returns what was done, also beside an error. It
// may be run again at any time, and by several at once.
func Apply(ctx context.Context, resumer *resume.Resumer, policy Policy) (Report, error) {
	store := resumer.Store()
	if err := policy.Validate(store); err != nil {
		return Report{}, err
	}
	if policy.Now == nil {
		policy.Now = time.Now
	}
	if policy.Decided == nil {
		policy.Decided = func(Decision) {}
	}
	r := &run{store: store, resumer: resumer, Policy: policy, newest: newest{most: policy.MaxCount}}
	for _, part := range []func(context.Context) error{r.executions, r.refs, r.tombstones} {
		if err := part(ctx); err != nil {
			return r.report, err
		}
	}
	return r.report, nil
}

// run is one application of a policy.
type run struct {
	Policy
	store   *spi.Store
	resumer *resume.Resumer
	newest  newest
	report  Report
}

// page is how many names one listing asks for.
const page = 1_000

func (r *run) executions(ctx context.Context) error {
	if r.MaxAge == 0 && r.MaxCount == 0 && r.Truncate == nil {
		return nil
	}
	var after string
	for {
		listed, err := spi.ListExecutions(ctx, r.store, spi.ListExecutionsRequest{Prefix: r.Prefix, After: after, Limit: page})
		if err != nil {
			return err
		}
		for _, id := range listed.Executions {
			r.report.Executions++
			if err := r.execution(ctx, id); err != nil {
				return err
			}
		}
		if after = listed.Next; after == "" {
			return nil
		}
	}
}

func (r *run) execution(ctx context.Context, id spi.ExecutionID) error {
	candidate, ended, err := r.end(ctx, id)
	switch {
	case err != nil:
		return &Error{ActionDelete, id, err}
	case !ended && r.Truncate != nil:
		return r.truncate(ctx, id)
	case !ended || r.MaxAge == 0 && r.MaxCount == 0:
		return nil
	case candidate.Shredded || r.MaxAge > 0 && r.Now().Sub(candidate.EndedAt) >= r.MaxAge:
		return r.remove(ctx, candidate)
	case r.MaxCount > 0:
		if oldest, full := r.newest.add(candidate); full {
			return r.remove(ctx, oldest)
		}
	}
	return nil
}

// endPage is how many events are read to find out whether a log has ended: what
// follows the end of an execution is little.
const endPage = 16

// end reads the end of a log. One that was shredded takes no more events, and counts
// as ended before all others.
func (r *run) end(ctx context.Context, id spi.ExecutionID) (c Candidate, ended bool, err error) {
	c.Execution = id
	var before int64
	for {
		tail, err := spi.Read(ctx, r.store, spi.ReadRequest{Execution: id, After: before, Backward: true, Limit: endPage})
		if _, shredded := errors.AsType[*spi.ShreddedError](err); shredded {
			head, err := spi.Head(ctx, r.store, spi.HeadRequest{Execution: id})
			return Candidate{Execution: id, Incarnation: head.Incarnation, Head: head.Head, Shredded: true}, err == nil, err
		}
		if err != nil || len(tail.Events) == 0 {
			return c, false, err
		}
		if before == 0 {
			c.Incarnation, c.Head = tail.Incarnation, tail.Events[0].Sequence
		}
		for i := range tail.Events {
			e := &tail.Events[i]
			if ends(e.Kind) {
				c.EndedAt = e.RecordedAt
				return c, true, nil
			}
			if e.Answering() {
				return c, false, nil
			}
			before = e.Sequence
		}
		if !tail.More || before <= 1 {
			return c, false, nil
		}
	}
}

func ends(kind string) bool {
	switch kind {
	case spi.KindExecutionCompleted, spi.KindExecutionFailed, spi.KindExecutionCancelled, spi.KindExecutionContinued:
		return true
	}
	return false
}
