package memory

import (
	"context"
	"slices"
	"sort"

	"github.com/loomgate/loomgate/spi"
)

type ref struct {
	placed
	spi.Ref           // Version 0: there is none
	lineage []spi.Ref // its earlier places, oldest first
}

// ref returns a row that a call with that route may work on, or a new one.
func (s *store) ref(route spi.Route, name spi.RefName) (*ref, error) {
	r, found := s.refs.Get(string(name))
	if !found {
		r = &ref{placed: placed{route.Slot}, Ref: spi.Ref{Name: name}}
	}
	return r, s.ownership.admit(route, r.slot)
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
	now := s.clock()
	return on(ctx, &s.mu, s.ref, req.Route, req.Name, func(r *ref) (res spi.PutRefResponse, err error) {
		if err := r.expect(req.ExpectedVersion); err != nil {
			return res, err
		}
		if r.Version > 0 {
			r.lineage = append(r.lineage, r.Ref)
		}
		r.Ref = spi.Ref{Name: r.Name, Execution: req.Execution, Sequence: req.Sequence, Version: s.next(now)}
		s.refs.Set(string(r.Name), r)
		return spi.PutRefResponse{Ref: r.Ref}, nil
	})
}

// PromoteRef is PutRef with an expected version, which no name has that is not
// there.
func (s *store) PromoteRef(ctx context.Context, req spi.PromoteRefRequest) (spi.PromoteRefResponse, error) {
	res, err := s.PutRef(ctx, spi.PutRefRequest(req))
	return spi.PromoteRefResponse(res), err
}

func (s *store) GetRef(ctx context.Context, req spi.GetRefRequest) (spi.GetRefResponse, error) {
	return on(ctx, s.mu.RLocker(), s.ref, req.Route, req.Name, func(r *ref) (spi.GetRefResponse, error) {
		return spi.GetRefResponse{Ref: r.Ref}, r.exists()
	})
}

func (s *store) DeleteRef(ctx context.Context, req spi.DeleteRefRequest) (spi.DeleteRefResponse, error) {
	return on(ctx, &s.mu, s.ref, req.Route, req.Name, func(r *ref) (res spi.DeleteRefResponse, err error) {
		if err := r.expect(req.ExpectedVersion); err != nil {
			return res, err
		}
		_, res.Existed = s.refs.Delete(string(r.Name))
		return res, nil
	})
}

func (s *store) ListRefs(ctx context.Context, req spi.ListRefsRequest) (res spi.ListRefsResponse, err error) {
	if err := begin(ctx, s.mu.RLocker()); err != nil {
		return res, err
	}
	defer s.mu.RUnlock()
	res.Receipt = s.ownership.receipt(req.KnownOwnership)
	res.Next = list(s, &s.refs, req.Prefix, req.After, req.Limit, func(_ string, r *ref) {
		res.Refs = append(res.Refs, r.Ref)
	})
	return res, nil
}

func (s *store) RefLineage(ctx context.Context, req spi.RefLineageRequest) (spi.RefLineageResponse, error) {
	return on(ctx, s.mu.RLocker(), s.ref, req.Route, req.Name, func(r *ref) (res spi.RefLineageResponse, err error) {
		end := len(r.lineage)
		if req.Before > 0 {
			end = sort.Search(end, func(i int) bool { return r.lineage[i].Version >= req.Before })
		}
		begin := max(0, end-req.Limit)
		res.Refs = slices.Clone(r.lineage[begin:end])
		slices.Reverse(res.Refs)
		res.More = begin > 0
		return res, r.exists()
	})
}
