package sqlite

import (
	"cmp"
	"context"
	"math"

	"github.com/loomgate/loomgate/spi"
)

type ref struct {
	slot    spi.Slot
	spi.Ref // Version 0: there is none
}

// ref returns a row that a call with that route may work on, or a new one.
func (t *tx) ref(route spi.Route, name spi.RefName) (*ref, error) {
	r := &ref{route.Slot, spi.Ref{Name: name}}
	_, err := t.get(`SELECT slot, execution_id, sequence, version FROM refs WHERE name = ?`, []any{string(name)},
		&r.slot, &r.Execution, &r.Sequence, &r.Version)
	if err != nil {
		return nil, err
	}
	return r, t.ownership.admit(route, r.slot)
}

// exists returns an error if there is no such ref.
func (r *ref) exists() error {
	if r.Version == 0 {
		return &spi.NotFoundError{What: "ref", Name: string(r.Name)}
	}
	return nil
}

// expect returns an error unless the ref is at that version.
func (r *ref) expect(version int64) error {
	if version != spi.AnyVersion && version != r.Version {
		return &spi.RefVersionError{Name: r.Name, Current: r.Version}
	}
	return nil
}

func (s *store) PutRef(ctx context.Context, req spi.PutRefRequest) (spi.PutRefResponse, error) {
	return on(ctx, s.write, (*tx).ref, req.Route, req.Name, func(t *tx, r *ref) (res spi.PutRefResponse, err error) {
		if err := r.expect(req.ExpectedVersion); err != nil {
			return res, err
		}
		if r.Version > 0 {
			_, err := t.exec(`INSERT INTO ref_lineage (name, version, execution_id, sequence) VALUES (?, ?, ?, ?)`,
				string(r.Name), r.Version, string(r.Execution), r.Sequence)
			if err != nil {
				return res, err
			}
		}
		r.Execution, r.Sequence = req.Execution, req.Sequence
		if r.Version, err = t.next(s.clock()); err != nil {
			return res, err
		}
		_, err = t.exec(`INSERT OR REPLACE INTO refs (name, slot, execution_id, sequence, version) VALUES (?, ?, ?, ?, ?)`,
			string(r.Name), r.slot, string(r.Execution), r.Sequence, r.Version)
		return spi.PutRefResponse{Ref: r.Ref}, err
	})
}

// PromoteRef is PutRef with an expected version, which no name has that is not
// there.
func (s *store) PromoteRef(ctx context.Context, req spi.PromoteRefRequest) (spi.PromoteRefResponse, error) {
	res, err := s.PutRef(ctx, spi.PutRefRequest(req))
	return spi.PromoteRefResponse(res), err
}

func (s *store) GetRef(ctx context.Context, req spi.GetRefRequest) (spi.GetRefResponse, error) {
	return on(ctx, s.read, (*tx).ref, req.Route, req.Name, func(_ *tx, r *ref) (spi.GetRefResponse, error) {
		return spi.GetRefResponse{Ref: r.Ref}, r.exists()
	})
}

func (s *store) DeleteRef(ctx context.Context, req spi.DeleteRefRequest) (spi.DeleteRefResponse, error) {
	return on(ctx, s.write, (*tx).ref, req.Route, req.Name, func(t *tx, r *ref) (res spi.DeleteRefResponse, err error) {
		if err := r.expect(req.ExpectedVersion); err != nil {
			return res, err
		}
		if _, err := t.exec(`DELETE FROM ref_lineage WHERE name = ?`, string(r.Name)); err != nil {
			return res, err
		}
		n, err := t.exec(`DELETE FROM refs WHERE name = ?`, string(r.Name))
		res.Existed = n > 0
		return res, err
	})
}

const listRefs = `
	SELECT name, slot, execution_id, sequence, version FROM refs
	WHERE name >= ? AND name <> ? AND name < ? ORDER BY name`

func (s *store) ListRefs(ctx context.Context, req spi.ListRefsRequest) (res spi.ListRefsResponse, err error) {
	err = s.read(ctx, "", func(t *tx) error {
		res.Receipt = t.ownership.receipt(req.KnownOwnership)
		page := page{ownership: t.ownership, left: req.Limit}
		err := t.each(listRefs, seek(req.Prefix, req.After), func(scan scan) (bool, error) {
			var r ref
			if err := scan(&r.Name, &r.slot, &r.Execution, &r.Sequence, &r.Version); err != nil {
				return false, err
			}
			return page.take(string(r.Name), r.slot, func() { res.Refs = append(res.Refs, r.Ref) }), nil
		})
		res.Next = page.cursor()
		return err
	})
	return res, err
}

func (s *store) RefLineage(ctx context.Context, req spi.RefLineageRequest) (spi.RefLineageResponse, error) {
	return on(ctx, s.read, (*tx).ref, req.Route, req.Name, func(t *tx, r *ref) (res spi.RefLineageResponse, err error) {
		if err := r.exists(); err != nil {
			return res, err
		}
		err = t.each(`SELECT version, execution_id, sequence FROM ref_lineage WHERE name = ? AND version < ? ORDER BY version DESC`,
			[]any{string(r.Name), cmp.Or(req.Before, math.MaxInt64)}, func(scan scan) (bool, error) {
				if res.More = len(res.Refs) == req.Limit; res.More {
					return false, nil
				}
				earlier := spi.Ref{Name: r.Name}
				if err := scan(&earlier.Version, &earlier.Execution, &earlier.Sequence); err != nil {
					return false, err
				}
				res.Refs = append(res.Refs, earlier)
				return true, nil
			})
		return res, err
	})
}
