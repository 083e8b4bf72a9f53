package mutants

import (
	"context"
	"errors"
	"time"

	"github.com/loomgate/loomgate/spi"
)

var leases = []Mutant{
	{
		"lease that never expires",
		"A lease is told to end, and does not.",
		"leases/a lease that has expired goes to the next, and the old holder harms nobody",
		store(func(s sound) methods { return neverExpires{s} }),
	},
	{
		"lease that two hold",
		"Each holder has a lease of its own.",
		"leases/a lease that somebody else holds is refused, and says whose it is until when",
		store(func(s sound) methods { return twoHold{s} }),
	},
	{
		"lease that is renewed after its end",
		"A lease that has expired is renewed as if nothing had happened.",
		"leases/a lease that has expired is lost, though nobody took it",
		store(func(s sound) methods { return renewedAfterEnd{s} }),
	},
	{
		"lease released by anybody",
		"A release does not ask for the token.",
		"leases/to release what one no longer holds is no error and releases nothing",
		store(func(s sound) methods { return releasedByAnybody{s} }),
	},
}

type neverExpires struct{ sound }

func (m neverExpires) AcquireLease(ctx context.Context, req spi.AcquireLeaseRequest) (spi.AcquireLeaseResponse, error) {
	told := req.TTL
	req.TTL = spi.MaxLeaseTTL
	res, err := m.sound.AcquireLease(ctx, req)
	res.ExpiresAt = res.ExpiresAt.Add(told - spi.MaxLeaseTTL)
	return res, err
}

type twoHold struct{ sound }

func (m twoHold) AcquireLease(ctx context.Context, req spi.AcquireLeaseRequest) (spi.AcquireLeaseResponse, error) {
	req.Name += "/" + spi.LeaseName(req.Holder)
	return m.sound.AcquireLease(ctx, req)
}

type renewedAfterEnd struct{ sound }

func (m renewedAfterEnd) RenewLease(ctx context.Context, req spi.RenewLeaseRequest) (spi.RenewLeaseResponse, error) {
	res, err := m.sound.RenewLease(ctx, req)
	if _, lost := errors.AsType[*spi.LeaseLostError](err); lost {
		return spi.RenewLeaseResponse{ExpiresAt: time.Now().Add(req.TTL)}, nil
	}
	return res, err
}

type releasedByAnybody struct{ sound }

func (m releasedByAnybody) ReleaseLease(ctx context.Context, req spi.ReleaseLeaseRequest) (spi.ReleaseLeaseResponse, error) {
	_, err := m.AcquireLease(ctx, spi.AcquireLeaseRequest{Route: req.Route, Name: req.Name, Holder: "anybody", TTL: spi.MinLeaseTTL})
	if held, ok := errors.AsType[*spi.LeaseHeldError](err); ok {
		res, _ := m.AcquireLease(ctx, spi.AcquireLeaseRequest{Route: req.Route, Name: req.Name, Holder: held.Holder, TTL: time.Hour})
		req.Token = res.Token
	}
	return m.sound.ReleaseLease(ctx, req)
}
