package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/loomgate/loomgate/spi"
)

// ownsRow returns the statements that lock the row of an execution whose own key a
// call changes: alone, so that no append under the old key is under way. Other keys
// have no row to lock.
func ownsRow(owner spi.KeyOwner, version int64) (owns bool, locks []statement) {
	id, isExecution := owner.Execution()
	if !isExecution || version != 1 {
		return false, nil
	}
	return true, []statement{lockRow(lockUpdate, id)}
}

// createKeySQL makes a key, and puts an execution's own on the row, which it makes
// where there is none: not live. Only a row that was locked, or made here, gets one.
const createKeySQL = `WITH ` + callSQL + `, k AS MATERIALIZED (
	SELECT * FROM loomgate.data_keys k WHERE k.owner = $3 AND k.version = $4::bigint
), d AS MATERIALIZED (
	SELECT * FROM loomgate.executions d WHERE d.execution_id = $3 AND $8::boolean
), made AS (
	INSERT INTO loomgate.executions (execution_id, slot, live, key_id)
	SELECT $3, c.slot, false, $5::uuid FROM c
	WHERE c.owned AND $8 AND NOT EXISTS (SELECT FROM d) AND NOT EXISTS (SELECT FROM k)
	ON CONFLICT DO NOTHING
	RETURNING 1
), marked AS (
	UPDATE loomgate.executions x SET key_id = $5 FROM c, d
	WHERE x.execution_id = $3 AND c.owned AND d.slot = c.slot AND NOT d.live AND NOT EXISTS (SELECT FROM k)
		AND pg_current_xact_id_if_assigned() IS NOT NULL
	RETURNING 1
), created AS (
	INSERT INTO loomgate.data_keys (owner, version, slot, key_id, wrapped_by, wrapped)
	SELECT $3, $4, c.slot, $5, $6, $7::bytea FROM c
	WHERE c.owned AND NOT EXISTS (SELECT FROM k) AND (NOT $8 OR EXISTS (SELECT FROM made) OR EXISTS (SELECT FROM marked))
	ON CONFLICT DO NOTHING
	RETURNING 1
)
SELECT c.owned, c.state, c.slot_epoch,
	coalesce((SELECT slot FROM k), (SELECT slot FROM d), c.slot) = c.slot, EXISTS (SELECT FROM created), EXISTS (SELECT FROM k), coalesce((SELECT live FROM d), false),
	(SELECT key_id FROM k), coalesce((SELECT wrapped_by FROM k), ''), (SELECT wrapped FROM k),
	coalesce((SELECT max(e.sequence) FROM loomgate.events e WHERE e.execution_id = $3), 0)
FROM c`

func (s *store) CreateDataKey(ctx context.Context, req spi.CreateDataKeyRequest) (res spi.CreateDataKeyResponse, err error) {
	key := req.Key
	owns, locks := ownsRow(key.Owner, key.Version)
	for range maxTries {
		there := spi.DataKey{Owner: key.Owner, Version: key.Version}
		var j judgement
		var same, exists, live bool
		var id pgtype.UUID
		var head int64
		err := s.write(ctx, "", append(locks[:len(locks):len(locks)], statement{
			createKeySQL,
			[]any{req.Route.Slot, req.Route.Epoch, string(key.Owner), key.Version, keyUUID(key.ID), key.WrappedBy, key.Wrapped, owns},
			one(append(j.into(), &same, &res.Created, &exists, &live, &id, &there.WrappedBy, &there.Wrapped, &head)...),
		})...)
		if err == nil && !res.Created {
			err = s.refuse(ctx, req.Route, j, same)
		}
		switch {
		case err != nil:
			return spi.CreateDataKeyResponse{}, err
		case res.Created:
			res.Key = key
			res.Key.Wrapped = append([]byte(nil), key.Wrapped...)
			return res, nil
		case exists && there.Wrapped == nil:
			return res, &spi.ShreddedError{Owner: key.Owner}
		case exists:
			there.ID = id.Bytes
			return spi.CreateDataKeyResponse{Key: there}, nil
		case live:
			return res, &spi.ConflictError{Execution: spi.ExecutionID(key.Owner), Head: head}
		}
		// Somebody made it after this one had looked: look again.
	}
	return res, &spi.UnavailableError{Cause: errBusy}
}

func (s *store) GetDataKey(ctx context.Context, req spi.GetDataKeyRequest) (res spi.GetDataKeyResponse, err error) {
	var j judgement
	var same, exists bool
	var id pgtype.UUID
	key := spi.DataKey{Owner: req.Owner}
	err = s.read(ctx, statement{
		`WITH ` + callSQL + `
SELECT c.owned, c.state, c.slot_epoch, coalesce(k.slot = c.slot, true), k.owner IS NOT NULL, coalesce(k.version, 0), k.key_id, coalesce(k.wrapped_by, ''), k.wrapped
FROM c LEFT JOIN LATERAL (
	SELECT * FROM loomgate.data_keys k WHERE k.owner = $3 AND ($4::bigint = 0 OR k.version = $4) ORDER BY k.owner DESC, k.version DESC LIMIT 1
) k ON true`,
		[]any{req.Route.Slot, req.Route.Epoch, string(req.Owner), req.Version},
		one(append(j.into(), &same, &exists, &key.Version, &id, &key.WrappedBy, &key.Wrapped)...),
	})
	if err == nil {
		err = s.refuse(ctx, req.Route, j, same)
	}
	switch {
	case err != nil:
		return res, err
	case !exists:
		return res, &spi.NotFoundError{What: "data key", Name: string(req.Owner)}
	case key.Wrapped == nil:
		return res, &spi.ShreddedError{Owner: req.Owner}
	}
	key.ID = id.Bytes
	return spi.GetDataKeyResponse{Key: key}, nil
}

// destroyKeySQL marks an execution's own key on the row, which has to be locked: an
// append under the key may be under way.
const destroyKeySQL = `WITH ` + callSQL + `, gone AS (
	UPDATE loomgate.data_keys k SET wrapped = NULL, wrapped_by = '' FROM c
	WHERE k.owner = $3 AND k.version = $4::bigint AND k.wrapped IS NOT NULL AND c.owned AND k.slot = c.slot
		AND (NOT $5::boolean OR pg_current_xact_id_if_assigned() IS NOT NULL)
	RETURNING 1
), marked AS (
	UPDATE loomgate.executions d SET key_id = NULL, shredded = true FROM gone WHERE d.execution_id = $3 AND $5
)
SELECT c.owned, c.state, c.slot_epoch, coalesce(k.slot = c.slot, true), k.owner IS NOT NULL, k.wrapped IS NOT NULL, EXISTS (SELECT FROM gone)
FROM c LEFT JOIN loomgate.data_keys k ON k.owner = $3 AND k.version = $4`

func (s *store) DestroyDataKey(ctx context.Context, req spi.DestroyDataKeyRequest) (res spi.DestroyDataKeyResponse, err error) {
	owns, locks := ownsRow(req.Owner, req.Version)
	for range maxTries {
		var j judgement
		var same, exists, intact bool
		err := s.write(ctx, "", append(locks[:len(locks):len(locks)], statement{
			destroyKeySQL,
			[]any{req.Route.Slot, req.Route.Epoch, string(req.Owner), req.Version, owns},
			one(append(j.into(), &same, &exists, &intact, &res.Destroyed)...),
		})...)
		if err == nil {
			err = s.refuse(ctx, req.Route, j, same)
		}
		switch {
		case err != nil:
			return res, err
		case !exists:
			return res, &spi.NotFoundError{What: "data key", Name: string(req.Owner)}
		case res.Destroyed || !intact:
			return res, nil
		}
		// The row was made after this one had looked for it to lock: look again.
	}
	return res, &spi.UnavailableError{Cause: errBusy}
}

func (s *store) RewrapDataKey(ctx context.Context, req spi.RewrapDataKeyRequest) (res spi.RewrapDataKeyResponse, err error) {
	var j judgement
	var same, exists, destroyed bool
	err = s.write(ctx, "", statement{
		`WITH ` + callSQL + `, u AS (
	UPDATE loomgate.data_keys k SET wrapped_by = $6, wrapped = $7::bytea FROM c
	WHERE k.owner = $3 AND k.version = $4::bigint AND k.wrapped IS NOT NULL AND k.wrapped_by = $5 AND c.owned AND k.slot = c.slot
	RETURNING 1
)
SELECT c.owned, c.state, c.slot_epoch, coalesce(k.slot = c.slot, true), k.owner IS NOT NULL, k.owner IS NOT NULL AND k.wrapped IS NULL, EXISTS (SELECT FROM u)
FROM c LEFT JOIN loomgate.data_keys k ON k.owner = $3 AND k.version = $4`,
		[]any{req.Route.Slot, req.Route.Epoch, string(req.Owner), req.Version, req.OldWrappedBy, req.WrappedBy, req.Wrapped},
		one(append(j.into(), &same, &exists, &destroyed, &res.Rewrapped)...),
	})
	if err == nil {
		err = s.refuse(ctx, req.Route, j, same)
	}
	switch {
	case err != nil:
		return res, err
	case !exists:
		return res, &spi.NotFoundError{What: "data key", Name: string(req.Owner)}
	case destroyed:
		return res, &spi.ShreddedError{Owner: req.Owner}
	}
	return res, nil
}

func (s *store) ListDataKeys(ctx context.Context, req spi.ListDataKeysRequest) (res spi.ListDataKeysResponse, err error) {
	from, before := bounds(spi.Seek(req.Prefix, req.After))
	owners := 0
	err = s.read(ctx, s.receipt(req.KnownOwnership, &res.Receipt), statement{
		`WITH o AS MATERIALIZED (
	SELECT owner FROM loomgate.data_keys
	WHERE wrapped IS NOT NULL AND owner >= $1 COLLATE "C" AND owner < $2 COLLATE "C" AND ` + listedSQL + `
	GROUP BY owner ORDER BY owner COLLATE "C" LIMIT $3::bigint + 1
)
SELECT k.owner, k.version, k.key_id, k.wrapped_by, k.wrapped
FROM o JOIN loomgate.data_keys k ON k.owner = o.owner AND k.wrapped IS NOT NULL
ORDER BY k.owner COLLATE "C", k.version`,
		[]any{from, before, req.Limit},
		func(rows pgx.Rows) error {
			for rows.Next() {
				var k spi.DataKey
				var id pgtype.UUID
				if err := rows.Scan(&k.Owner, &k.Version, &id, &k.WrappedBy, &k.Wrapped); err != nil {
					return err
				}
				k.ID = id.Bytes
				if n := len(res.Keys); n == 0 || res.Keys[n-1].Owner != k.Owner {
					owners++
				}
				if owners > req.Limit {
					res.Next = string(res.Keys[len(res.Keys)-1].Owner)
					continue // the rows have to be read to their end
				}
				res.Keys = append(res.Keys, k)
			}
			return rows.Err()
		},
	})
	return res, err
}
