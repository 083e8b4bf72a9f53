package tenant

import (
	"context"

	"github.com/loomgate/loomgate/spi"
)

// The owners that a tenant can name are its executions. Its own keys, whose owner is
// its bare scope, are for a layer below the view: no method here reaches them.

func (v *view) CreateDataKey(ctx context.Context, req spi.CreateDataKeyRequest) (res spi.CreateDataKeyResponse, err error) {
	if err = in(v, keyOwner, &req.Key.Owner); err != nil {
		return res, err
	}
	if res, err = spi.CreateDataKey(ctx, v.shared, req); err != nil {
		return res, v.outError(err)
	}
	return res, unsure(out(v, keyOwner, &res.Key.Owner))
}

func (v *view) GetDataKey(ctx context.Context, req spi.GetDataKeyRequest) (res spi.GetDataKeyResponse, err error) {
	if err = in(v, keyOwner, &req.Owner); err != nil {
		return res, err
	}
	if res, err = spi.GetDataKey(ctx, v.shared, req); err != nil {
		return res, v.outError(err)
	}
	return res, out(v, keyOwner, &res.Key.Owner)
}

func (v *view) DestroyDataKey(ctx context.Context, req spi.DestroyDataKeyRequest) (res spi.DestroyDataKeyResponse, err error) {
	if err = in(v, keyOwner, &req.Owner); err != nil {
		return res, err
	}
	res, err = spi.DestroyDataKey(ctx, v.shared, req)
	return res, v.outError(err)
}

func (v *view) ListDataKeys(ctx context.Context, req spi.ListDataKeysRequest) (res spi.ListDataKeysResponse, err error) {
	if err = v.inPage(&req.Prefix, &req.After); err != nil {
		return res, err
	}
	if res, err = spi.ListDataKeys(ctx, v.shared, req); err != nil {
		return res, v.outError(err)
	}
	for i := range res.Keys {
		if err = out(v, keyOwner, &res.Keys[i].Owner); err != nil {
			return res, err
		}
	}
	if err = v.outNext(&res.Next); err != nil {
		return res, err
	}
	return res, v.outReceipt(ctx, res.Receipt)
}

func (v *view) RewrapDataKey(ctx context.Context, req spi.RewrapDataKeyRequest) (res spi.RewrapDataKeyResponse, err error) {
	if err = in(v, keyOwner, &req.Owner); err != nil {
		return res, err
	}
	res, err = spi.RewrapDataKey(ctx, v.shared, req)
	return res, v.outError(err)
}
