package postgres

import (
	"context"

	"github.com/loomgate/loomgate/spi"
)

// acquireLeaseSQL locks the lease's row by the upsert, which changes nothing if
// somebody else holds it. Whoever holds it already keeps the token.
const acquireLeaseSQL = `WITH ` + callSQL + `, u AS (
	INSERT INTO loomgate.leases AS l (name, slot, holder, token, expires_at)
	SELECT $3, c.slot, $4, nextval('loomgate.versions'), clock_timestamp() + $5::bigint * interval '1 microsecond' FROM c
	WHERE c.owned
	ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at,
		token = CASE WHEN l.expires_at > clock_timestamp() THEN l.token ELSE excluded.token END
	WHERE l.slot = excluded.slot AND (l.expires_at <= clock_timestamp() OR l.holder = excluded.holder)
	RETURNING token, expires_at
)
SELECT c.owned, c.state, c.slot_epoch, coalesce(l.slot = c.slot, true), coalesce(u.token, 0), coalesce(u.expires_at, l.expires_at, now()), CASE WHEN l.expires_at > clock_timestamp() THEN l.holder ELSE '' END
FROM c LEFT JOIN u ON true LEFT JOIN loomgate.leases l ON l.name = $3`

func (s *store) AcquireLease(ctx context.Context, req spi.AcquireLeaseRequest) (res spi.AcquireLeaseResponse, err error) {
	for range maxTries {
		var j judgement
		var same bool
		var holder string
		err := s.write(ctx, "", statement{
			acquireLeaseSQL,
			[]any{req.Route.Slot, req.Route.Epoch, string(req.Name), req.Holder, req.TTL.Microseconds()},
			one(append(j.into(), &same, &res.Token, &res.ExpiresAt, &holder)...),
		})
		res.ExpiresAt = res.ExpiresAt.UTC()
		if err != nil || res.Token > 0 {
			return res, err
		}
		if err := s.refuse(ctx, req.Route, j, same); err != nil {
			return res, err
		}
		if holder != "" && holder != req.Holder {
			return res, &spi.LeaseHeldError{Name: req.Name, Holder: holder, ExpiresAt: res.ExpiresAt}
		}
		// Somebody took it while this one looked: look again.
	}
	return res, &spi.UnavailableError{Cause: errBusy}
}

func (s *store) RenewLease(ctx context.Context, req spi.RenewLeaseRequest) (res spi.RenewLeaseResponse, err error) {
	var j judgement
	var same, held bool
	err = s.write(ctx, "", statement{
		`WITH ` + callSQL + `, u AS (
	UPDATE loomgate.leases l SET expires_at = clock_timestamp() + $5::bigint * interval '1 microsecond' FROM c
	WHERE l.name = $3 AND l.token = $4 AND l.expires_at > clock_timestamp() AND c.owned AND l.slot = c.slot
	RETURNING l.expires_at
)
SELECT c.owned, c.state, c.slot_epoch, NOT EXISTS (SELECT FROM loomgate.leases l WHERE l.name = $3 AND l.slot <> c.slot),
	EXISTS (SELECT FROM u), coalesce((SELECT expires_at FROM u), now())
FROM c`,
		[]any{req.Route.Slot, req.Route.Epoch, string(req.Name), req.Token, req.TTL.Microseconds()},
		one(append(j.into(), &same, &held, &res.ExpiresAt)...),
	})
	if err == nil {
		err = s.refuse(ctx, req.Route, j, same)
	}
	if err == nil && !held {
		err = &spi.LeaseLostError{Name: req.Name}
	}
	res.ExpiresAt = res.ExpiresAt.UTC()
	return res, err
}

func (s *store) ReleaseLease(ctx context.Context, req spi.ReleaseLeaseRequest) (res spi.ReleaseLeaseResponse, err error) {
	var j judgement
	var same bool
	err = s.write(ctx, "", statement{
		`WITH ` + callSQL + `, gone AS (
	DELETE FROM loomgate.leases l USING c
	WHERE l.name = $3 AND l.token = $4 AND c.owned AND l.slot = c.slot
	RETURNING l.expires_at > clock_timestamp() AS held
)
SELECT c.owned, c.state, c.slot_epoch, NOT EXISTS (SELECT FROM loomgate.leases l WHERE l.name = $3 AND l.slot <> c.slot),
	coalesce((SELECT held FROM gone), false)
FROM c`,
		[]any{req.Route.Slot, req.Route.Epoch, string(req.Name), req.Token},
		one(append(j.into(), &same, &res.Released)...),
	})
	if err == nil {
		err = s.refuse(ctx, req.Route, j, same)
	}
	return res, err
}
