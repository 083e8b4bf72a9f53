package memory

import (
	"context"
	"time"

	"github.com/loomgate/loomgate/spi"
)

type lease struct {
	placed
	name      spi.LeaseName
	holder    string
	token     int64
	expiresAt time.Time
}

// lease returns a row that a call with that route may work on, or a new one.
func (s *store) lease(route spi.Route, name spi.LeaseName) (*lease, error) {
	l, found := s.leases[name]
	if !found {
		l = &lease{placed: placed{route.Slot}, name: name}
	}
	return l, s.ownership.admit(route, l.slot)
}

// held reports whether the lease still runs.
func (l *lease) held(now time.Time) bool { return now.Before(l.expiresAt) }

func (s *store) AcquireLease(ctx context.Context, req spi.AcquireLeaseRequest) (spi.AcquireLeaseResponse, error) {
	now := s.clock()
	return on(ctx, &s.mu, s.lease, req.Route, req.Name, func(l *lease) (res spi.AcquireLeaseResponse, err error) {
		switch {
		case !l.held(now):
			l.token, l.holder = s.next(now), req.Holder
			s.leases[l.name] = l
		case l.holder != req.Holder:
			return res, &spi.LeaseHeldError{Name: l.name, Holder: l.holder, ExpiresAt: l.expiresAt}
		}
		l.expiresAt = now.Add(req.TTL)
		return spi.AcquireLeaseResponse{Token: l.token, ExpiresAt: l.expiresAt}, nil
	})
}

func (s *store) RenewLease(ctx context.Context, req spi.RenewLeaseRequest) (spi.RenewLeaseResponse, error) {
	now := s.clock()
	return on(ctx, &s.mu, s.lease, req.Route, req.Name, func(l *lease) (res spi.RenewLeaseResponse, err error) {
		if !l.held(now) || l.token != req.Token {
			return res, &spi.LeaseLostError{Name: l.name}
		}
		l.expiresAt = now.Add(req.TTL)
		return spi.RenewLeaseResponse{ExpiresAt: l.expiresAt}, nil
	})
}

func (s *store) ReleaseLease(ctx context.Context, req spi.ReleaseLeaseRequest) (spi.ReleaseLeaseResponse, error) {
	now := s.clock()
	return on(ctx, &s.mu, s.lease, req.Route, req.Name, func(l *lease) (res spi.ReleaseLeaseResponse, err error) {
		if l.token == req.Token {
			delete(s.leases, l.name)
			res.Released = l.held(now)
		}
		return res, nil
	})
}
