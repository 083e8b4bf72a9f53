package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/loomgate/loomgate/spi"
)

// lockRef waits for a ref's row, in a statement of its own: what the next one sees
// of it is current.
func lockRef(name spi.RefName) statement {
	return statement{sql: "SELECT FROM loomgate.refs WHERE name = $1 FOR UPDATE", args: []any{string(name)}}
}

// putRefSQL comes after lockRef. A row that was not there to be locked is not
// changed, for its place would not be the one that joins the lineage.
const putRefSQL = `WITH ` + callSQL + `, made AS (
	INSERT INTO loomgate.refs (name, slot, execution_id, sequence, version)
	SELECT $3, c.slot, $4, $5::bigint, nextval('loomgate.versions') FROM c
	WHERE c.owned AND $6::bigint <= 0 AND NOT EXISTS (SELECT FROM loomgate.refs r WHERE r.name = $3)
	ON CONFLICT DO NOTHING
	RETURNING version
), moved AS (
	UPDATE loomgate.refs r SET execution_id = $4, sequence = $5, version = nextval('loomgate.versions') FROM c
	WHERE r.name = $3 AND c.owned AND r.slot = c.slot AND ($6 < 0 OR r.version = $6) AND pg_current_xact_id_if_assigned() IS NOT NULL
	RETURNING r.version
), left_behind AS (
	INSERT INTO loomgate.lineage (name, version, execution_id, sequence)
	SELECT r.name, r.version, r.execution_id, r.sequence FROM loomgate.refs r, moved WHERE r.name = $3
)
SELECT c.owned, c.state, c.slot_epoch, coalesce(r.slot = c.slot, true), coalesce(r.version, 0), coalesce((SELECT version FROM made), (SELECT version FROM moved), 0)
FROM c LEFT JOIN loomgate.refs r ON r.name = $3`

func (s *store) PutRef(ctx context.Context, req spi.PutRefRequest) (res spi.PutRefResponse, err error) {
	for range maxTries {
		var j judgement
		var same bool
		var current, version int64
		err := s.write(ctx, "", lockRef(req.Name), statement{
			putRefSQL,
			[]any{req.Route.Slot, req.Route.Epoch, string(req.Name), string(req.Execution), req.Sequence, req.ExpectedVersion},
			one(append(j.into(), &same, &current, &version)...),
		})
		if err == nil && version == 0 {
			err = s.refuse(ctx, req.Route, j, same)
		}
		switch {
		case err != nil:
			return res, err
		case version > 0:
			return spi.PutRefResponse{Ref: spi.Ref{Name: req.Name, Execution: req.Execution, Sequence: req.Sequence, Version: version}}, nil
		case req.ExpectedVersion != spi.AnyVersion && req.ExpectedVersion != current:
			return res, &spi.RefVersionError{Name: req.Name, Current: current}
		}
		// Somebody made the ref after this one had looked for it to lock: look again.
	}
	return res, &spi.UnavailableError{Cause: errBusy}
}

// PromoteRef is PutRef with an expected version, which no name has that is not
// there.
func (s *store) PromoteRef(ctx context.Context, req spi.PromoteRefRequest) (spi.PromoteRefResponse, error) {
	res, err := s.PutRef(ctx, spi.PutRefRequest(req))
	return spi.PromoteRefResponse(res), err
}

// getRefSQL reads a ref and judges the route in one snapshot.
const getRefSQL = `WITH ` + callSQL + `
SELECT c.owned, c.state, c.slot_epoch, coalesce(r.slot = c.slot, true), $3, coalesce(r.execution_id, ''), coalesce(r.sequence, 0), coalesce(r.version, 0)
FROM c LEFT JOIN loomgate.refs r ON r.name = $3`

// ref returns the statement that reads a ref into r, and the check of what it read.
func (s *store) ref(ctx context.Context, route spi.Route, name spi.RefName, r *spi.Ref) (statement, func() error) {
	var j judgement
	var same bool
	st := statement{getRefSQL, []any{route.Slot, route.Epoch, string(name)}, one(append(j.into(), &same, &r.Name, &r.Execution, &r.Sequence, &r.Version)...)}
	return st, func() error {
		if err := s.refuse(ctx, route, j, same); err != nil {
			return err
		}
		if r.Version == 0 {
			return &spi.NotFoundError{What: "ref", Name: string(name)}
		}
		return nil
	}
}

func (s *store) GetRef(ctx context.Context, req spi.GetRefRequest) (res spi.GetRefResponse, err error) {
	read, check := s.ref(ctx, req.Route, req.Name, &res.Ref)
	if err := s.read(ctx, read); err != nil {
		return res, err
	}
	return res, check()
}

func (s *store) RefLineage(ctx context.Context, req spi.RefLineageRequest) (res spi.RefLineageResponse, err error) {
	var now spi.Ref
	read, check := s.ref(ctx, req.Route, req.Name, &now)
	err = s.read(ctx, read, statement{
		`SELECT name, execution_id, sequence, version FROM loomgate.lineage
WHERE name = $1 AND ($2::bigint = 0 OR version < $2)
ORDER BY name DESC, version DESC LIMIT $3::bigint + 1`,
		[]any{string(req.Name), req.Before, req.Limit},
		func(rows pgx.Rows) error {
			res.Refs, err = pgx.CollectRows(rows, pgx.RowToStructByPos[spi.Ref])
			return err
		},
	})
	if err == nil {
		err = check()
	}
	if err != nil {
		return spi.RefLineageResponse{}, err
	}
	if res.More = len(res.Refs) > req.Limit; res.More {
		res.Refs = res.Refs[:req.Limit]
	}
	return res, nil
}

func (s *store) DeleteRef(ctx context.Context, req spi.DeleteRefRequest) (res spi.DeleteRefResponse, err error) {
	for range maxTries {
		var j judgement
		var same bool
		var current int64
		err := s.write(ctx, "", lockRef(req.Name), statement{
			`WITH ` + callSQL + `, gone AS (
	DELETE FROM loomgate.refs r USING c
	WHERE r.name = $3 AND c.owned AND r.slot = c.slot AND ($4::bigint < 0 OR r.version = $4) AND pg_current_xact_id_if_assigned() IS NOT NULL
	RETURNING r.name
), lineage AS (
	DELETE FROM loomgate.lineage l USING gone WHERE l.name = $3
)
SELECT c.owned, c.state, c.slot_epoch, coalesce(r.slot = c.slot, true), coalesce(r.version, 0), EXISTS (SELECT FROM gone)
FROM c LEFT JOIN loomgate.refs r ON r.name = $3`,
			[]any{req.Route.Slot, req.Route.Epoch, string(req.Name), req.ExpectedVersion},
			one(append(j.into(), &same, &current, &res.Existed)...),
		})
		if err == nil && !res.Existed {
			err = s.refuse(ctx, req.Route, j, same)
		}
		switch {
		case err != nil:
			return spi.DeleteRefResponse{}, err
		case res.Existed, req.ExpectedVersion == spi.AnyVersion && current == 0:
			return res, nil
		case req.ExpectedVersion != spi.AnyVersion && req.ExpectedVersion != current:
			return res, &spi.RefVersionError{Name: req.Name, Current: current}
		}
	}
	return res, &spi.UnavailableError{Cause: errBusy}
}

func (s *store) ListRefs(ctx context.Context, req spi.ListRefsRequest) (res spi.ListRefsResponse, err error) {
	from, before := bounds(spi.Seek(req.Prefix, req.After))
	err = s.read(ctx, s.receipt(req.KnownOwnership, &res.Receipt), statement{
		`SELECT name, execution_id, sequence, version FROM loomgate.refs
WHERE name >= $1 COLLATE "C" AND name < $2 COLLATE "C" AND ` + listedSQL + `
ORDER BY name COLLATE "C" LIMIT $3::bigint + 1`,
		[]any{from, before, req.Limit},
		func(rows pgx.Rows) error {
			res.Refs, err = pgx.CollectRows(rows, pgx.RowToStructByPos[spi.Ref])
			return err
		},
	})
	if len(res.Refs) > req.Limit {
		res.Refs = res.Refs[:req.Limit]
		res.Next = string(res.Refs[req.Limit-1].Name)
	}
	return res, err
}
