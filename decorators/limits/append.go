package limits

import (
	"context"

	"github.com/loomgate/loomgate/spi"
)

// costOf returns what appending events uses.
func costOf(events []spi.Event) cost {
	c := cost{events: int64(len(events))}
	for i := range events {
		c.bytes += int64(events[i].Size())
	}
	return c
}

func (l *limited) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	return do(ctx, l, data, costOf(req.Events), req, func(ctx context.Context, s *spi.Store, req spi.AppendRequest) (res spi.AppendResponse, err error) {
		if err := l.checkStart(ctx, req.Route, req.Execution, req.ExpectedHead); err != nil {
			return res, err
		}
		res, err = spi.Append(ctx, s, req)
		if err == nil {
			l.appended(res)
		}
		return res, err
	}, nil)
}

func (l *limited) AppendIfUnchanged(ctx context.Context, req spi.AppendIfUnchangedRequest) (spi.AppendIfUnchangedResponse, error) {
	return do(ctx, l, data, costOf(req.Events), req, func(ctx context.Context, s *spi.Store, req spi.AppendIfUnchangedRequest) (res spi.AppendIfUnchangedResponse, err error) {
		if err := l.checkStart(ctx, req.Route, req.Execution, req.Head); err != nil {
			return res, err
		}
		res, err = spi.AppendIfUnchanged(ctx, s, req)
		if err == nil {
			l.appended(res.AppendResponse)
		}
		return res, err
	}, nil)
}

// AppendBatch refuses those of its appends that would start an execution too many, and
// does the others.
func (l *limited) AppendBatch(ctx context.Context, req spi.AppendBatchRequest) (spi.AppendBatchResponse, error) {
	var use cost
	for i := range req.Appends {
		c := costOf(req.Appends[i].Events)
		use.events += c.events
		use.bytes += c.bytes
	}
	return do(ctx, l, data, use, req, func(ctx context.Context, s *spi.Store, req spi.AppendBatchRequest) (spi.AppendBatchResponse, error) {
		results := make([]spi.AppendResult, len(req.Appends))
		var rest spi.AppendBatchRequest
		var places []int // of what is left, in the request
		for i := range req.Appends {
			item := req.Item(i)
			if err := l.checkStart(ctx, item.Route, item.Execution, item.ExpectedHead); err != nil {
				results[i].Err = spi.WithoutOp(err)
				continue
			}
			rest.Appends, places = append(rest.Appends, item), append(places, i)
		}
		if len(places) == 0 {
			return spi.AppendBatchResponse{Results: results}, nil
		}
		res, err := spi.AppendBatch(ctx, s, rest)
		if err != nil {
			return res, err
		}
		for k, i := range places {
			results[i] = res.Results[k]
			if results[i].Err == nil {
				l.appended(results[i].AppendResponse)
			}
		}
		return spi.AppendBatchResponse{Results: results}, nil
	}, nil)
}

// CopyPrefix counts the events that it copies, and not their bytes, which nobody here
// sees.
func (l *limited) CopyPrefix(ctx context.Context, req spi.CopyPrefixRequest) (spi.CopyPrefixResponse, error) {
	return do(ctx, l, data, cost{events: min(req.N, spi.MaxEvents)}, req, func(ctx context.Context, s *spi.Store, req spi.CopyPrefixRequest) (res spi.CopyPrefixResponse, err error) {
		if err := l.checkStart(ctx, req.Route, req.To, 0); err != nil {
			return res, err
		}
		res, err = spi.CopyPrefix(ctx, s, req)
		if err == nil && !res.Duplicate {
			l.account.began(1)
		}
		return res, err
	}, nil)
}

func (l *limited) DeleteExecution(ctx context.Context, req spi.DeleteExecutionRequest) (spi.DeleteExecutionResponse, error) {
	return do(ctx, l, data, cost{}, req, func(ctx context.Context, s *spi.Store, req spi.DeleteExecutionRequest) (spi.DeleteExecutionResponse, error) {
		res, err := spi.DeleteExecution(ctx, s, req)
		if err == nil && res.Existed {
			l.account.began(-1)
		}
		return res, err
	}, nil)
}

// checkStart refuses an append that would start an execution where there may be no more.
// It looks only then: an append at a later head starts none.
func (l *limited) checkStart(ctx context.Context, route spi.Route, id spi.ExecutionID, head int64) error {
	if head > 0 || l.account.mayStart() {
		return nil
	}
	at, err := spi.Head(ctx, l.inner, spi.HeadRequest{Route: route, Execution: id})
	if err == nil && at.Head == 0 {
		err = &spi.ThrottledError{Limit: executionsStored, RetryAfter: closed}
	}
	return err
}

// appended takes in what an append has come to.
func (l *limited) appended(res spi.AppendResponse) {
	if res.FirstSeq == 1 && !res.Duplicate {
		l.account.began(1)
	}
}
