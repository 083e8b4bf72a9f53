package memory

import (
	"cmp"
	"context"
	"slices"

	"github.com/loomgate/loomgate/spi"
)

// keyring is the keys of one owner, by version. A key without its wrapped bytes
// was destroyed.
type keyring struct {
	placed
	owner spi.KeyOwner
	keys  []spi.DataKey

	// execution is the owner's row, which stays as long as the ring does; nil if
	// the owner is a tenant.
	execution *execution
}

// find returns where a version is, or would be.
func (k *keyring) find(version int64) (int, bool) {
	return slices.BinarySearchFunc(k.keys, version, func(key spi.DataKey, v int64) int { return cmp.Compare(key.Version, v) })
}

// get returns a key that is there.
func (k *keyring) get(version int64) (*spi.DataKey, error) {
	i, found := k.find(version)
	switch {
	case !found:
		return nil, &spi.NotFoundError{What: "data key", Name: string(k.owner)}
	case k.keys[i].Wrapped == nil:
		return nil, &spi.ShreddedError{Owner: k.owner}
	}
	return &k.keys[i], nil
}

func cloneKey(key spi.DataKey) spi.DataKey {
	key.Wrapped = slices.Clone(key.Wrapped)
	return key
}

// keyring returns a row that a call with that route may work on.
func (s *store) keyring(route spi.Route, owner spi.KeyOwner) (*keyring, error) {
	if k, found := s.keyrings[owner]; found {
		return k, s.ownership.admit(route, k.slot)
	}
	k := &keyring{placed: placed{route.Slot}, owner: owner}
	id, ok := owner.Execution()
	if !ok {
		return k, s.ownership.admit(route, k.slot)
	}
	var err error
	k.execution, err = s.execution(route, id)
	return k, err
}

// removeKeys removes an execution's own key and every trace of it.
func (s *store) removeKeys(e *execution) {
	owner := spi.KeyOwner(e.id)
	if _, ok := owner.Execution(); ok {
		delete(s.keyrings, owner)
		s.keyOwners.Delete(string(owner))
		e.keyID, e.shredded = spi.KeyID{}, false
	}
}

func (s *store) CreateDataKey(ctx context.Context, req spi.CreateDataKeyRequest) (spi.CreateDataKeyResponse, error) {
	return on(ctx, &s.mu, s.keyring, req.Route, req.Key.Owner, func(k *keyring) (res spi.CreateDataKeyResponse, err error) {
		i, found := k.find(req.Key.Version)
		if found {
			there, err := k.get(req.Key.Version)
			if err != nil {
				return res, err
			}
			return spi.CreateDataKeyResponse{Key: cloneKey(*there)}, nil
		}
		if e := k.execution; e != nil {
			if req.Key.Version == 1 {
				if e.live() {
					return res, &spi.ConflictError{Execution: e.id, Head: e.head()}
				}
				e.keyID = req.Key.ID
			}
			s.plant(e)
		}
		k.keys = slices.Insert(k.keys, i, cloneKey(req.Key))
		s.keyrings[k.owner] = k
		s.keyOwners.Set(string(k.owner), k)
		return spi.CreateDataKeyResponse{Key: cloneKey(req.Key), Created: true}, nil
	})
}

func (s *store) GetDataKey(ctx context.Context, req spi.GetDataKeyRequest) (spi.GetDataKeyResponse, error) {
	return on(ctx, s.mu.RLocker(), s.keyring, req.Route, req.Owner, func(k *keyring) (res spi.GetDataKeyResponse, err error) {
		version := req.Version
		if n := len(k.keys); version == 0 && n > 0 {
			version = k.keys[n-1].Version // also if destroyed: an older one is no substitute
		}
		key, err := k.get(version)
		if err != nil {
			return res, err
		}
		return spi.GetDataKeyResponse{Key: cloneKey(*key)}, nil
	})
}

func (s *store) DestroyDataKey(ctx context.Context, req spi.DestroyDataKeyRequest) (spi.DestroyDataKeyResponse, error) {
	return on(ctx, &s.mu, s.keyring, req.Route, req.Owner, func(k *keyring) (res spi.DestroyDataKeyResponse, err error) {
		key, err := k.get(req.Version)
		if _, found := k.find(req.Version); found && err != nil {
			return res, nil // destroyed already
		}
		if err != nil {
			return res, err
		}
		*key = spi.DataKey{Owner: k.owner, Version: req.Version}
		if k.execution != nil && req.Version == 1 {
			k.execution.keyID, k.execution.shredded = spi.KeyID{}, true
		}
		if !slices.ContainsFunc(k.keys, func(key spi.DataKey) bool { return key.Wrapped != nil }) {
			s.keyOwners.Delete(string(k.owner))
		}
		return spi.DestroyDataKeyResponse{Destroyed: true}, nil
	})
}

func (s *store) ListDataKeys(ctx context.Context, req spi.ListDataKeysRequest) (res spi.ListDataKeysResponse, err error) {
	if err := begin(ctx, s.mu.RLocker()); err != nil {
		return res, err
	}
	defer s.mu.RUnlock()
	res.Receipt = s.ownership.receipt(req.KnownOwnership)
	res.Next = list(s, &s.keyOwners, req.Prefix, req.After, req.Limit, func(_ string, k *keyring) {
		for _, key := range k.keys {
			if key.Wrapped != nil {
				res.Keys = append(res.Keys, cloneKey(key))
			}
		}
	})
	return res, nil
}

func (s *store) RewrapDataKey(ctx context.Context, req spi.RewrapDataKeyRequest) (spi.RewrapDataKeyResponse, error) {
	return on(ctx, &s.mu, s.keyring, req.Route, req.Owner, func(k *keyring) (res spi.RewrapDataKeyResponse, err error) {
		key, err := k.get(req.Version)
		if err != nil {
			return res, err
		}
		if key.WrappedBy == req.OldWrappedBy {
			key.WrappedBy, key.Wrapped = req.WrappedBy, slices.Clone(req.Wrapped)
			res.Rewrapped = true
		}
		return res, nil
	})
}
