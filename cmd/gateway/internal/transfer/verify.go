package transfer

import (
	"context"
	"fmt"
	"iter"
	"sync"

	"github.com/loomgate/loomgate/spi"
)

// VerifyOptions say what to verify, and how.
type VerifyOptions struct {
	Prefix string // only executions whose id starts with it
	After  string // only executions after that one: where an earlier walk got to
	Retry  Retry

	// Found is called with each problem, in the order of the executions, by one
	// goroutine at a time, and so is Progress, if there is one, after each execution.
	// Neither is called beside Retry.Notify.
	Found    func(Problem)
	Progress func(VerifyReport)
}

// A Problem is something that ought not to be.
type Problem struct {
	Execution spi.ExecutionID
	Sequence  int64 // 0: it is not about one event
	Reason    string
	Err       error // of an event that cannot be read; nil otherwise
}

func (p Problem) String() string {
	if p.Sequence == 0 {
		return fmt.Sprintf("execution %q %s", p.Execution, p.Reason)
	}
	return fmt.Sprintf("execution %q, sequence %d: %s", p.Execution, p.Sequence, p.Reason)
}

// A VerifyReport counts what was looked at.
type VerifyReport struct {
	Executions int64
	Truncated  int64 // those of them that have lost events to a truncation
	Shredded   int64 // those whose data key was destroyed, so that no payload opens
	Events     int64
	Bytes      int64 // of the events, by spi.Event.Size
	Problems   int64
	Last       string // the last execution: the After of a walk that goes on
}

// Verify walks every execution and reads every event. It looks whether the ids ascend, each
// once; whether each log has every event that it has to have, once and in order; whether
// each payload opens; and whether the head is the last event's. It goes on after a problem.
//
// The error says that the walk itself could not go on: the store cannot answer, or ctx
// ended. What others write, truncate and delete meanwhile is no problem.
func Verify(ctx context.Context, store *spi.Store, opts VerifyOptions) (VerifyReport, error) {
	v := &verifier{opts: opts, report: VerifyReport{Last: opts.After}}
	all := listing{store: store, retry: opts.Retry.under(&v.mu), prefix: opts.Prefix, after: opts.After}
	for c := range ahead(ctx, readAhead, all.checks(ctx), runCheck) {
		if c.err != nil {
			return v.report, c.err
		}
		v.take(c)
	}
	return v.report, ctx.Err()
}

type verifier struct {
	opts VerifyOptions

	mu     sync.Mutex // held while the caller's functions run
	report VerifyReport
}

// checks yields a check for each execution, with what is wrong with its place in the
// listing.
func (l listing) checks(ctx context.Context) iter.Seq[*check] {
	return func(yield func(*check) bool) {
		last := l.after
		for page, err := range l.pages(ctx) {
			for _, id := range page {
				c := &check{store: l.store, retry: l.retry, id: id}
				if string(id) <= last {
					c.problem(0, fmt.Sprintf("is listed after %q", last), nil)
				}
				last = max(last, string(id))
				if !yield(c) {
					return
				}
			}
			if err != nil {
				yield(&check{err: err})
				return
			}
		}
	}
}

func runCheck(ctx context.Context, c *check) *check {
	if c.err == nil {
		c.err = c.log(ctx)
	}
	return c
}

// take counts an execution, and tells the caller.
func (v *verifier) take(c *check) {
	v.mu.Lock()
	defer v.mu.Unlock()
	r := &v.report
	r.Last = max(r.Last, string(c.id))
	r.Problems += int64(len(c.problems))
	r.Events += c.events
	r.Bytes += c.bytes
	if c.events > 0 || len(c.problems) > 0 || c.shredded {
		r.Executions++
	}
	if c.floor > 1 {
		r.Truncated++
	}
	if c.shredded {
		r.Shredded++
	}
	if v.opts.Found != nil {
		for _, p := range c.problems {
			v.opts.Found(p)
		}
	}
	if v.opts.Progress != nil {
		v.opts.Progress(v.report)
	}
}
