package retry

import (
	"context"
	"errors"
	"time"

	"github.com/loomgate/loomgate/spi"
)

// AppendBatch sends again those appends of a batch that are not settled.
func (r *retry) AppendBatch(ctx context.Context, req spi.AppendBatchRequest) (spi.AppendBatchResponse, error) {
	b := newBatch(req)
	tries := tries{Options: &r.options}
	for {
		res, err := spi.AppendBatch(ctx, r.inner, b.rest())
		b.see(res.Results, err)
		if len(b.open) == 0 {
			break
		}
		if err := tries.next(ctx, b.tooEarly()); err != nil {
			b.giveUp(err)
			break
		}
	}
	return b.answer()
}

// A batch is what the tries so far say of its appends.
type batch struct {
	req     spi.AppendBatchRequest
	results []spi.AppendResult // of the appends that succeeded
	fates   []fate             // of the others
	open    []int              // those to send again, by their place

	// Until a try has told the appends apart, the batch is one: its fate is that of
	// the calls.
	apart bool
	whole fate
}

func newBatch(req spi.AppendBatchRequest) *batch {
	n := len(req.Appends)
	b := &batch{req: req, results: make([]spi.AppendResult, n), fates: make([]fate, n), open: make([]int, n)}
	for i := range b.open {
		b.open[i] = i
	}
	return b
}

// rest returns what is to be sent.
func (b *batch) rest() spi.AppendBatchRequest {
	rest := spi.AppendBatchRequest{Appends: make([]spi.AppendRequest, len(b.open))}
	for k, i := range b.open {
		rest.Appends[k] = b.req.Item(i)
	}
	return rest
}

// see takes in what sending the open appends came to.
func (b *batch) see(results []spi.AppendResult, err error) {
	b.whole.last = err
	b.apart = b.apart || err == nil || is[*spi.AmbiguousError](err)
	sent := b.open
	b.open = nil
	for k, i := range sent {
		if err == nil {
			b.seeOne(i, results[k])
		} else {
			b.seeOne(i, spi.AppendResult{Err: ofOne(err, b.req.Appends[i].Execution)})
		}
	}
}

func (b *batch) seeOne(i int, res spi.AppendResult) {
	rule, f := ruleOfAppend(b.req.Appends[i]), &b.fates[i]
	switch {
	case res.Err == nil:
		if f.lost != nil {
			rule.settle(&res.AppendResponse)
		}
		b.results[i], b.fates[i] = res, fate{}
	case f.see(res.Err, rule.again, rule.settles):
		b.open = append(b.open, i)
	}
}

// tooEarly returns how long some open append would be refused again for sure.
func (b *batch) tooEarly() (longest time.Duration) {
	for _, i := range b.open {
		longest = max(longest, tooEarly(b.fates[i].last))
	}
	return longest
}

// ofOne returns what an error of a whole batch means for one of its appends.
func ofOne(err error, id spi.ExecutionID) error {
	if lost, ok := errors.AsType[*spi.AmbiguousError](err); ok {
		return &spi.AmbiguousError{Execution: id, Cause: lost.Cause}
	}
	return spi.WithoutOp(err)
}

// giveUp takes in why the open appends are not sent again.
func (b *batch) giveUp(err error) {
	b.whole.giveUp(err)
	for _, i := range b.open {
		b.fates[i].giveUp(err)
	}
}

func (b *batch) answer() (spi.AppendBatchResponse, error) {
	if !b.apart {
		return spi.AppendBatchResponse{}, b.whole.last
	}
	for i := range b.fates {
		if err := b.fates[i].err(); err != nil {
			b.results[i].Err = err
		}
	}
	return spi.AppendBatchResponse{Results: b.results}, nil
}
