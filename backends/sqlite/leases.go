package sqlite

import (
	"context"
	"time"

	"github.com/loomgate/loomgate/spi"
)

type lease struct {
	name      spi.LeaseName
	slot      spi.Slot
	holder    string
	token     int64
	expiresAt time.Time
}

// lease returns a row that a call with that route may work on, or a new one.
func (t *tx) lease(route spi.Route, name spi.LeaseName) (*lease, error) {
	l := &lease{name: name, slot: route.Slot}
	var expiresAt int64
	found, err := t.get(`SELECT slot, holder, token, expires_at FROM leases WHERE name = ?`, []any{string(name)},
		&l.slot, &l.holder, &l.token, &expiresAt)
	if err != nil {
		return nil, err
	}
	if found {
		l.expiresAt = timeOf(expiresAt)
	}
	return l, t.ownership.admit(route, l.slot)
}

func (t *tx) saveLease(l *lease) error {
	_, err := t.exec(`INSERT OR REPLACE INTO leases (name, slot, holder, token, expires_at) VALUES (?, ?, ?, ?, ?)`,
		string(l.name), l.slot, l.holder, l.token, l.expiresAt.UnixMicro())
	return err
}

// held reports whether the lease still runs.
func (l *lease) held(now time.Time) bool { return now.Before(l.expiresAt) }

func (s *store) AcquireLease(ctx context.Context, req spi.AcquireLeaseRequest) (spi.AcquireLeaseResponse, error) {
	return on(ctx, s.write, (*tx).lease, req.Route, req.Name, func(t *tx, l *lease) (res spi.AcquireLeaseResponse, err error) {
		now := s.clock()
		switch {
		case !l.held(now):
			l.holder = req.Holder
			if l.token, err = t.next(now); err != nil {
				return res, err
			}
		case l.holder != req.Holder:
			return res, &spi.LeaseHeldError{Name: l.name, Holder: l.holder, ExpiresAt: l.expiresAt}
		}
		l.expiresAt = now.Add(req.TTL)
		return spi.AcquireLeaseResponse{Token: l.token, ExpiresAt: l.expiresAt}, t.saveLease(l)
	})
}

func (s *store) RenewLease(ctx context.Context, req spi.RenewLeaseRequest) (spi.RenewLeaseResponse, error) {
	return on(ctx, s.write, (*tx).lease, req.Route, req.Name, func(t *tx, l *lease) (res spi.RenewLeaseResponse, err error) {
		now := s.clock()
		if !l.held(now) || l.token != req.Token {
			return res, &spi.LeaseLostError{Name: l.name}
		}
		l.expiresAt = now.Add(req.TTL)
		return spi.RenewLeaseResponse{ExpiresAt: l.expiresAt}, t.saveLease(l)
	})
}

func (s *store) ReleaseLease(ctx context.Context, req spi.ReleaseLeaseRequest) (spi.ReleaseLeaseResponse, error) {
	return on(ctx, s.write, (*tx).lease, req.Route, req.Name, func(t *tx, l *lease) (res spi.ReleaseLeaseResponse, err error) {
		if l.token == req.Token {
			_, err = t.exec(`DELETE FROM leases WHERE name = ?`, string(l.name))
			res.Released = l.held(s.clock())
		}
		return res, err
	})
}
