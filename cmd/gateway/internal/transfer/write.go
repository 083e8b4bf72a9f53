package transfer

import (
	"context"
	"errors"
	"iter"

	"github.com/loomgate/loomgate/spi"
)

// batches cuts runs into what one call may hold.
func batches(runs []*run) iter.Seq[[]*run] {
	return func(yield func([]*run) bool) {
		for begin, end := 0, 0; begin < len(runs); begin = end {
			size := 0
			for end = begin; end < len(runs) && end-begin < batchAppends; end++ {
				if size += runs[end].size; size > batchBytes && end > begin {
					break
				}
			}
			if !yield(runs[begin:end]) {
				return
			}
		}
	}
}

// writeBatch stores runs of different executions and reports whether all are stored.
// What cannot be stored has its error.
func (im *importer) writeBatch(ctx context.Context, batch []*run) bool {
	stored := true
	err := im.opts.Retry.do(ctx, func() (again error) {
		runs := batch
		batch = nil // but for those to send again
		for i, answer := range im.send(ctx, runs) {
			r := runs[i]
			switch err := im.settle(ctx, r, answer.AppendResponse, answer.Err); {
			case err == nil:
			case passing(err):
				batch, again = append(batch, r), err
			default:
				r.err, stored = err, false
			}
		}
		return again
	})
	for _, r := range batch {
		r.err, stored = err, false
	}
	return stored
}

// send asks for each run's append once.
func (im *importer) send(ctx context.Context, runs []*run) []spi.AppendResult {
	if len(runs) > 1 && im.store.Offered().Has(spi.CapAppendBatch) {
		req := spi.AppendBatchRequest{Appends: make([]spi.AppendRequest, len(runs))}
		for i, r := range runs {
			req.Appends[i] = r.AppendRequest
		}
		res, err := spi.AppendBatch(ctx, im.store, req)
		switch {
		case err == nil:
			return res.Results
		case passing(err):
			results := make([]spi.AppendResult, len(runs))
			for i := range results {
				results[i].Err = err
			}
			return results
		}
		// One of them is refused: each alone tells which.
	}
	results := make([]spi.AppendResult, len(runs))
	for i, r := range runs {
		results[i].AppendResponse, results[i].Err = spi.Append(ctx, im.store, r.AppendRequest)
	}
	return results
}

// settle goes on from the answer to a run's append until its events are stored. An
// event's place is its line's in the execution: whatever of the run is stored already,
// by another call or an earlier import, stands exactly there.
func (im *importer) settle(ctx context.Context, r *run, res spi.AppendResponse, err error) error {
	for {
		conflict, met := errors.AsType[*spi.ConflictError](err)
		deleted, gone := errors.AsType[*spi.IncarnationError](err)
		switch {
		case err == nil && res.Duplicate && res.FirstSeq != r.ExpectedHead+1:
			return &ForeignError{r.Execution, r.ExpectedHead + 1}
		case err == nil:
			im.count(r, len(r.Events), res.Duplicate)
			return nil
		case met:
			if err := im.skip(ctx, r, conflict); err != nil || len(r.Events) == 0 {
				return err
			}
		case gone && r.ExpectedHead == 0 && r.Incarnation == 0:
			r.Incarnation = deleted.Current
		default:
			return err
		}
		res, err = spi.Append(ctx, im.store, r.AppendRequest)
	}
}

// skip takes those events off a run that its execution has already. Any other event
// where they belong is foreign.
func (im *importer) skip(ctx context.Context, r *run, conflict error) error {
	log, err := spi.Read(ctx, im.store, spi.ReadRequest{
		Execution: r.Execution, After: r.ExpectedHead, Until: r.ExpectedHead + int64(len(r.Events)), Limit: len(r.Events),
	})
	switch {
	case err != nil:
		return err
	case log.Floor > r.ExpectedHead+1:
		return &spi.TruncatedError{Execution: r.Execution, Floor: log.Floor}
	case len(log.Events) == 0:
		return conflict // the log is shorter than it was
	}
	n := 0
	for n < len(log.Events) && log.Events[n].Sequence == r.ExpectedHead+int64(n)+1 && log.Events[n].ID == r.Events[n].ID {
		n++
	}
	foreign := n < len(log.Events)
	if im.count(r, n, true); foreign {
		return &ForeignError{r.Execution, r.ExpectedHead + 1}
	}
	return nil
}

// count takes the first n events of a run as stored.
func (im *importer) count(r *run, n int, present bool) {
	if n == 0 {
		return
	}
	im.mu.Lock()
	defer im.mu.Unlock()
	im.report.Lines += int64(n)
	for _, p := range r.lines[:n] {
		im.report.Bytes += int64(p.size)
	}
	if present {
		im.report.Present += int64(n)
	} else {
		im.report.New += int64(n)
	}
	if r.begin {
		im.report.Executions++
	}
	r.Events, r.lines, r.ExpectedHead, r.begin = r.Events[n:], r.lines[n:], r.ExpectedHead+int64(n), false
	if im.opts.Progress != nil {
		im.opts.Progress(im.report)
	}
}
