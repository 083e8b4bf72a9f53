package remote

import (
	"context"
	"errors"
	"fmt"

	"github.com/loomgate/loomgate/api"
	"github.com/loomgate/loomgate/spi"
)

// AppendBatch sends a batch whose answer is lost again, and then each append that is
// still open by itself, until one stays so.
func (b backend) AppendBatch(ctx context.Context, req spi.AppendBatchRequest) (spi.AppendBatchResponse, error) {
	resolves := resolverOf(req.Appends...)
	res, open, err := deliver(ctx, b.Client, api.AppendBatch, req, resolves, nil)
	if err == nil && len(res.Results) != len(req.Appends) {
		err = fmt.Errorf("%d appends have %d results", len(req.Appends), len(res.Results))
		open = err
	}
	switch {
	case err == nil:
		b.resolve(ctx, req, res.Results, resolves, open)
	case open == nil:
		return spi.AppendBatchResponse{}, err
	default:
		res.Results = make([]spi.AppendResult, len(req.Appends))
		for i := range res.Results {
			res.Results[i].Err = &spi.AmbiguousError{Execution: req.Appends[i].Execution, Cause: open}
		}
	}
	return res, nil
}

// resolve finds out about the appends of a batch that are open, by their results;
// open is why they all were before that answer, or nil.
func (b backend) resolve(ctx context.Context, req spi.AppendBatchRequest, results []spi.AppendResult, resolves resolver, open error) {
	for i := range results {
		cause := openBy(results[i].Err, open)
		if cause == nil {
			continue
		}
		id := req.Appends[i].Execution
		if resolves != nil {
			appended, still, err := deliver(ctx, b.Client, api.Append, req.Item(i), resolves, cause)
			if err == nil || still == nil {
				results[i] = spi.AppendResult{AppendResponse: appended, Err: spi.WithoutOp(err)}
				continue
			}
			resolves = nil // the next ones would fare no better, and each takes its time
		}
		results[i].Err = &spi.AmbiguousError{Execution: id, Cause: cause}
	}
}

// openBy returns why an append is open whose result in a batch has that error; before
// is why it was before the batch was answered.
func openBy(err, before error) error {
	if ambiguous, ok := errors.AsType[*spi.AmbiguousError](err); ok {
		return ambiguous.Cause
	}
	if err == nil || resolvesAppend(err) {
		return nil
	}
	return before
}
