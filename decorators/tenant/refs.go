package tenant

import (
	"context"

	"github.com/loomgate/loomgate/spi"
)

// outRef takes the scope off both names of a ref.
func (v *view) outRef(r *spi.Ref) error {
	if err := out(v, refName, &r.Name); err != nil {
		return err
	}
	return out(v, executionID, &r.Execution)
}

func (v *view) PutRef(ctx context.Context, req spi.PutRefRequest) (res spi.PutRefResponse, err error) {
	if err = in(v, refName, &req.Name); err != nil {
		return res, err
	}
	if err = in(v, executionID, &req.Execution); err != nil {
		return res, err
	}
	if res, err = spi.PutRef(ctx, v.shared, req); err != nil {
		return res, v.outError(err)
	}
	return res, unsure(v.outRef(&res.Ref))
}

func (v *view) GetRef(ctx context.Context, req spi.GetRefRequest) (res spi.GetRefResponse, err error) {
	if err = in(v, refName, &req.Name); err != nil {
		return res, err
	}
	if res, err = spi.GetRef(ctx, v.shared, req); err != nil {
		return res, v.outError(err)
	}
	return res, v.outRef(&res.Ref)
}

func (v *view) DeleteRef(ctx context.Context, req spi.DeleteRefRequest) (res spi.DeleteRefResponse, err error) {
	if err = in(v, refName, &req.Name); err != nil {
		return res, err
	}
	res, err = spi.DeleteRef(ctx, v.shared, req)
	return res, v.outError(err)
}

func (v *view) ListRefs(ctx context.Context, req spi.ListRefsRequest) (res spi.ListRefsResponse, err error) {
	if err = v.inPage(&req.Prefix, &req.After); err != nil {
		return res, err
	}
	if res, err = spi.ListRefs(ctx, v.shared, req); err != nil {
		return res, v.outError(err)
	}
	for i := range res.Refs {
		if err = v.outRef(&res.Refs[i]); err != nil {
			return res, err
		}
	}
	if err = v.outNext(&res.Next); err != nil {
		return res, err
	}
	return res, v.outReceipt(ctx, res.Receipt)
}

func (v *view) PromoteRef(ctx context.Context, req spi.PromoteRefRequest) (res spi.PromoteRefResponse, err error) {
	if err = in(v, refName, &req.Name); err != nil {
		return res, err
	}
	if err = in(v, executionID, &req.Execution); err != nil {
		return res, err
	}
	if res, err = spi.PromoteRef(ctx, v.shared, req); err != nil {
		return res, v.outError(err)
	}
	return res, unsure(v.outRef(&res.Ref))
}

func (v *view) RefLineage(ctx context.Context, req spi.RefLineageRequest) (res spi.RefLineageResponse, err error) {
	if err = in(v, refName, &req.Name); err != nil {
		return res, err
	}
	if res, err = spi.RefLineage(ctx, v.shared, req); err != nil {
		return res, v.outError(err)
	}
	for i := range res.Refs {
		if err = v.outRef(&res.Refs[i]); err != nil {
			return res, err
		}
	}
	return res, nil
}
