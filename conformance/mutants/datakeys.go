package mutants

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/loomgate/loomgate/spi"
)

var dataKeys = []Mutant{
	{
		"the loser's key",
		"A creator that comes second gets its own key back, and encrypts under it.",
		"data keys/a second creator gets the key of the first",
		store(func(s sound) methods { return losersKey{s} }),
	},
	{
		"append under a shredded key",
		"A key is destroyed where keys are kept, and the execution's row does not know.",
		"data keys/an execution whose key was destroyed takes no more events (invariant 13)",
		store(func(s sound) methods { return &appendAfterShred{sound: s} }),
	},
	{
		"shredding that forgets",
		"A destroyed key is as one that never was.",
		"data keys/a destroyed key is shredded for whoever gets or creates it",
		store(func(s sound) methods { return shredForgets{s} }),
	},
	{
		"append under any key",
		"An append is not held to the execution's key.",
		"data keys/an append under another key, or under none, is refused and stores nothing",
		store(func(s sound) methods { return appendUnderAnyKey{s} }),
	},
	{
		"batch under any key",
		"The appends of a batch are not held to the executions' keys.",
		"data keys/an append in a batch is judged by its key",
		store(func(s sound) methods { return batchUnderAnyKey{s} }),
	},
	{
		"keys cut by the limit",
		"A page of owners ends between two keys of one.",
		"data keys/an owner is listed with all its versions on one page, and the limit counts owners",
		store(func(s sound) methods { return keysCutByLimit{s} }),
	},
	{
		"rewrapping without compare",
		"A rewrapping replaces what another rewrapping has just written.",
		"data keys/a key is rewrapped if it is still wrapped by what was seen",
		store(func(s sound) methods { return rewrapsAlways{s} }),
	},
}

type losersKey struct{ sound }

func (m losersKey) CreateDataKey(ctx context.Context, req spi.CreateDataKeyRequest) (spi.CreateDataKeyResponse, error) {
	res, err := m.sound.CreateDataKey(ctx, req)
	res.Key = req.Key
	return res, err
}

type appendAfterShred struct {
	sound
	destroyed sync.Map
}

func (m *appendAfterShred) DestroyDataKey(ctx context.Context, req spi.DestroyDataKeyRequest) (spi.DestroyDataKeyResponse, error) {
	if _, err := m.sound.GetDataKey(ctx, spi.GetDataKeyRequest(req)); err != nil {
		return spi.DestroyDataKeyResponse{}, err
	}
	_, before := m.destroyed.Swap(req.Owner, true)
	return spi.DestroyDataKeyResponse{Destroyed: !before}, nil
}

func (m *appendAfterShred) GetDataKey(ctx context.Context, req spi.GetDataKeyRequest) (spi.GetDataKeyResponse, error) {
	if _, gone := m.destroyed.Load(req.Owner); gone {
		return spi.GetDataKeyResponse{}, &spi.ShreddedError{Owner: req.Owner}
	}
	return m.sound.GetDataKey(ctx, req)
}

type shredForgets struct{ sound }

func (m shredForgets) GetDataKey(ctx context.Context, req spi.GetDataKeyRequest) (spi.GetDataKeyResponse, error) {
	res, err := m.sound.GetDataKey(ctx, req)
	if _, shredded := errors.AsType[*spi.ShreddedError](err); shredded {
		return res, &spi.NotFoundError{What: "data key", Name: string(req.Owner)}
	}
	return res, err
}

// underItsKey makes an append one under the execution's key.
func underItsKey(ctx context.Context, s *spi.Store, req *spi.AppendRequest) {
	res, _ := spi.GetDataKey(ctx, s, spi.GetDataKeyRequest{Route: req.Route, Owner: spi.KeyOwner(req.Execution), Version: 1})
	req.KeyID = res.Key.ID
}

type appendUnderAnyKey struct{ sound }

func (m appendUnderAnyKey) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	underItsKey(ctx, m.Inner, &req)
	return m.sound.Append(ctx, req)
}

type batchUnderAnyKey struct{ sound }

func (m batchUnderAnyKey) AppendBatch(ctx context.Context, req spi.AppendBatchRequest) (spi.AppendBatchResponse, error) {
	req.Appends = slices.Clone(req.Appends)
	for i := range req.Appends {
		underItsKey(ctx, m.Inner, &req.Appends[i])
	}
	return m.sound.AppendBatch(ctx, req)
}

type keysCutByLimit struct{ sound }

func (m keysCutByLimit) ListDataKeys(ctx context.Context, req spi.ListDataKeysRequest) (spi.ListDataKeysResponse, error) {
	res, err := m.sound.ListDataKeys(ctx, req)
	if len(res.Keys) > req.Limit {
		res.Keys = res.Keys[:req.Limit]
		res.Next = string(res.Keys[req.Limit-1].Owner)
	}
	return res, err
}

type rewrapsAlways struct{ sound }

func (m rewrapsAlways) RewrapDataKey(ctx context.Context, req spi.RewrapDataKeyRequest) (spi.RewrapDataKeyResponse, error) {
	if now, err := m.GetDataKey(ctx, spi.GetDataKeyRequest{Route: req.Route, Owner: req.Owner, Version: req.Version}); err == nil {
		req.OldWrappedBy = now.Key.WrappedBy
	}
	return m.sound.RewrapDataKey(ctx, req)
}
