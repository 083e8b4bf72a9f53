package tenant

import (
	"context"
	"slices"

	"github.com/loomgate/loomgate/spi"
)

func (v *view) Append(ctx context.Context, req spi.AppendRequest) (res spi.AppendResponse, err error) {
	if err = in(v, executionID, &req.Execution); err != nil {
		return res, err
	}
	res, err = spi.Append(ctx, v.shared, req)
	return res, v.outError(err)
}

func (v *view) Read(ctx context.Context, req spi.ReadRequest) (res spi.ReadResponse, err error) {
	if err = in(v, executionID, &req.Execution); err != nil {
		return res, err
	}
	res, err = spi.Read(ctx, v.shared, req)
	return res, v.outError(err)
}

func (v *view) Head(ctx context.Context, req spi.HeadRequest) (res spi.HeadResponse, err error) {
	if err = in(v, executionID, &req.Execution); err != nil {
		return res, err
	}
	res, err = spi.Head(ctx, v.shared, req)
	return res, v.outError(err)
}

func (v *view) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (res spi.ListExecutionsResponse, err error) {
	if err = v.inPage(&req.Prefix, &req.After); err != nil {
		return res, err
	}
	if res, err = spi.ListExecutions(ctx, v.shared, req); err != nil {
		return res, v.outError(err)
	}
	for i := range res.Executions {
		if err = out(v, executionID, &res.Executions[i]); err != nil {
			return res, err
		}
	}
	if err = v.outNext(&res.Next); err != nil {
		return res, err
	}
	return res, v.outReceipt(ctx, res.Receipt)
}

// AppendBatch scopes each append, in a slice of its own: the request's is the
// caller's.
func (v *view) AppendBatch(ctx context.Context, req spi.AppendBatchRequest) (res spi.AppendBatchResponse, err error) {
	req.Appends = slices.Clone(req.Appends)
	for i := range req.Appends {
		if err = in(v, executionID, &req.Appends[i].Execution); err != nil {
			return res, err
		}
	}
	if res, err = spi.AppendBatch(ctx, v.shared, req); err != nil {
		return res, v.outError(err)
	}
	for i := range res.Results {
		res.Results[i].Err = v.outError(res.Results[i].Err)
	}
	return res, nil
}

func (v *view) AcquireFence(ctx context.Context, req spi.AcquireFenceRequest) (res spi.AcquireFenceResponse, err error) {
	if err = in(v, executionID, &req.Execution); err != nil {
		return res, err
	}
	res, err = spi.AcquireFence(ctx, v.shared, req)
	return res, v.outError(err)
}

func (v *view) AcquireFenceIf(ctx context.Context, req spi.AcquireFenceIfRequest) (res spi.AcquireFenceIfResponse, err error) {
	if err = in(v, executionID, &req.Execution); err != nil {
		return res, err
	}
	res, err = spi.AcquireFenceIf(ctx, v.shared, req)
	return res, v.outError(err)
}

func (v *view) AppendIfUnchanged(ctx context.Context, req spi.AppendIfUnchangedRequest) (res spi.AppendIfUnchangedResponse, err error) {
	if err = in(v, executionID, &req.Execution); err != nil {
		return res, err
	}
	res, err = spi.AppendIfUnchanged(ctx, v.shared, req)
	return res, v.outError(err)
}

// CopyPrefix copies from the tenant's own executions only.
func (v *view) CopyPrefix(ctx context.Context, req spi.CopyPrefixRequest) (res spi.CopyPrefixResponse, err error) {
	if err = in(v, executionID, &req.From); err != nil {
		return res, err
	}
	if err = in(v, executionID, &req.To); err != nil {
		return res, err
	}
	res, err = spi.CopyPrefix(ctx, v.shared, req)
	return res, v.outError(err)
}

func (v *view) TruncatePrefixKeeping(ctx context.Context, req spi.TruncatePrefixKeepingRequest) (res spi.TruncatePrefixKeepingResponse, err error) {
	if err = in(v, executionID, &req.Execution); err != nil {
		return res, err
	}
	res, err = spi.TruncatePrefixKeeping(ctx, v.shared, req)
	return res, v.outError(err)
}

func (v *view) DeleteExecution(ctx context.Context, req spi.DeleteExecutionRequest) (res spi.DeleteExecutionResponse, err error) {
	if err = in(v, executionID, &req.Execution); err != nil {
		return res, err
	}
	res, err = spi.DeleteExecution(ctx, v.shared, req)
	return res, v.outError(err)
}

// SweepTombstones forgets the tenant's own deletions only.
func (v *view) SweepTombstones(ctx context.Context, req spi.SweepTombstonesRequest) (res spi.SweepTombstonesResponse, err error) {
	if err = v.inPrefix(&req.Prefix); err != nil {
		return res, err
	}
	res, err = spi.SweepTombstones(ctx, v.shared, req)
	return res, v.outError(err)
}
