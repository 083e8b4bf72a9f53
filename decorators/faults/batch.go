package faults

import (
	"context"

	"github.com/loomgate/loomgate/spi"
)

func (f *faults) AppendBatch(ctx context.Context, req spi.AppendBatchRequest) (res spi.AppendBatchResponse, err error) {
	if err := ctx.Err(); err != nil {
		return res, err
	}
	c, fault := f.next("AppendBatch", "", req)
	if fault.Only != nil {
		return f.appendSome(ctx, c, fault, req)
	}
	if err := fault.before(ctx, c); err != nil {
		return res, err
	}
	answer, err := spi.AppendBatch(ctx, f.inner, req)
	switch cause := fault.after(ctx, c); {
	case cause == nil || err != nil:
		return answer, err
	case fault.Whole:
		return res, &spi.AmbiguousError{Cause: cause}
	default:
		for i, a := range req.Appends {
			lose(&answer.Results[i], a.Execution, cause)
		}
		return answer, nil
	}
}

// lose loses what an append of a batch has done.
func lose(r *spi.AppendResult, id spi.ExecutionID, cause error) {
	if r.Err == nil {
		*r = spi.AppendResult{Err: &spi.AmbiguousError{Execution: id, Cause: cause}}
	}
}

// appendSome does a batch of which a fault hits some appends.
func (f *faults) appendSome(ctx context.Context, c Call, fault Fault, req spi.AppendBatchRequest) (res spi.AppendBatchResponse, err error) {
	refuse := fault.Refuse
	fault.Refuse = nil // it does not refuse the call
	if err := fault.before(ctx, c); err != nil {
		return res, err
	}
	res.Results = make([]spi.AppendResult, len(req.Appends))
	var rest spi.AppendBatchRequest
	var places []int
	for i, a := range req.Appends {
		if refuse != nil && fault.Only(a.Execution) {
			res.Results[i].Err = refuse
		} else {
			rest.Appends, places = append(rest.Appends, req.Item(i)), append(places, i)
		}
	}
	if len(places) > 0 {
		answer, err := spi.AppendBatch(ctx, f.inner, rest)
		if err != nil {
			answer.Results = make([]spi.AppendResult, len(places))
			for k := range answer.Results {
				answer.Results[k].Err = spi.WithoutOp(err)
			}
		}
		for k, i := range places {
			res.Results[i] = answer.Results[k]
		}
	}
	if cause := fault.after(ctx, c); cause != nil {
		for _, i := range places {
			if a := req.Appends[i]; fault.Only(a.Execution) {
				lose(&res.Results[i], a.Execution, cause)
			}
		}
	}
	return res, nil
}
