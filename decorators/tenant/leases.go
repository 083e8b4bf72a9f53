package tenant

import (
	"context"

	"github.com/loomgate/loomgate/spi"
)

func (v *view) AcquireLease(ctx context.Context, req spi.AcquireLeaseRequest) (res spi.AcquireLeaseResponse, err error) {
	if err = in(v, leaseName, &req.Name); err != nil {
		return res, err
	}
	res, err = spi.AcquireLease(ctx, v.shared, req)
	return res, v.outError(err)
}

func (v *view) RenewLease(ctx context.Context, req spi.RenewLeaseRequest) (res spi.RenewLeaseResponse, err error) {
	if err = in(v, leaseName, &req.Name); err != nil {
		return res, err
	}
	res, err = spi.RenewLease(ctx, v.shared, req)
	return res, v.outError(err)
}

func (v *view) ReleaseLease(ctx context.Context, req spi.ReleaseLeaseRequest) (res spi.ReleaseLeaseResponse, err error) {
	if err = in(v, leaseName, &req.Name); err != nil {
		return res, err
	}
	res, err = spi.ReleaseLease(ctx, v.shared, req)
	return res, v.outError(err)
}
