package sqlite

import (
	"context"
	"math"

	"github.com/loomgate/loomgate/spi"
)

// keyring is where the keys of one owner are.
type keyring struct {
	owner spi.KeyOwner
	slot  spi.Slot

	// execution is the owner's row; nil if the owner is a tenant.
	execution *execution
}

// keyring returns a row that a call with that route may work on.
func (t *tx) keyring(route spi.Route, owner spi.KeyOwner) (*keyring, error) {
	k := &keyring{owner: owner, slot: route.Slot}
	_, err := t.get(`SELECT slot FROM data_keys WHERE owner = ? LIMIT 1`, []any{string(owner)}, &k.slot)
	if err != nil {
		return nil, err
	}
	if err := t.ownership.admit(route, k.slot); err != nil {
		return nil, err
	}
	if id, ok := owner.Execution(); ok {
		k.execution, err = t.execution(route, id)
	}
	return k, err
}

// findKey returns a key that is there or was destroyed. Version 0 is the newest, also
// if that was destroyed: an older one is no substitute.
func (t *tx) findKey(k *keyring, version int64) (key spi.DataKey, found bool, err error) {
	key.Owner = k.owner
	lowest, highest := version, version
	if version == 0 {
		highest = math.MaxInt64
	}
	var id []byte
	found, err = t.get(`
		SELECT version, key_id, wrapped_by, wrapped FROM data_keys
		WHERE owner = ? AND version >= ? AND version <= ? ORDER BY version DESC LIMIT 1`,
		[]any{string(k.owner), lowest, highest}, &key.Version, &id, &key.WrappedBy, &key.Wrapped)
	copy(key.ID[:], id)
	return key, found, err
}

// key returns a key that is there.
func (t *tx) key(k *keyring, version int64) (spi.DataKey, error) {
	key, found, err := t.findKey(k, version)
	switch {
	case err != nil:
		return key, err
	case !found:
		return key, &spi.NotFoundError{What: "data key", Name: string(k.owner)}
	case key.Wrapped == nil:
		return key, &spi.ShreddedError{Owner: k.owner}
	}
	return key, nil
}

// removeKeys removes an execution's own key and every trace of it.
func (t *tx) removeKeys(e *execution) error {
	owner := spi.KeyOwner(e.id)
	if _, ok := owner.Execution(); !ok {
		return nil
	}
	if _, err := t.exec(`DELETE FROM data_keys WHERE owner = ?`, string(owner)); err != nil {
		return err
	}
	if e.keyID == (spi.KeyID{}) && !e.shredded {
		return nil
	}
	e.keyID, e.shredded = spi.KeyID{}, false
	return t.save(e)
}

func (s *store) CreateDataKey(ctx context.Context, req spi.CreateDataKeyRequest) (spi.CreateDataKeyResponse, error) {
	return on(ctx, s.write, (*tx).keyring, req.Route, req.Key.Owner, func(t *tx, k *keyring) (res spi.CreateDataKeyResponse, err error) {
		key, found, err := t.findKey(k, req.Key.Version)
		switch {
		case err != nil:
			return res, err
		case found && key.Wrapped == nil:
			return res, &spi.ShreddedError{Owner: k.owner}
		case found:
			return spi.CreateDataKeyResponse{Key: key}, nil
		}
		if e := k.execution; e != nil {
			if req.Key.Version == 1 {
				if e.live() {
					return res, &spi.ConflictError{Execution: e.id, Head: e.head}
				}
				e.keyID = req.Key.ID
			}
			if err := t.save(e); err != nil {
				return res, err
			}
		}
		key = req.Key
		_, err = t.exec(`INSERT INTO data_keys (owner, version, slot, key_id, wrapped_by, wrapped) VALUES (?, ?, ?, ?, ?, ?)`,
			string(k.owner), key.Version, k.slot, key.ID[:], key.WrappedBy, key.Wrapped)
		key.Wrapped = append([]byte(nil), key.Wrapped...) // the caller's and the answer's are two
		return spi.CreateDataKeyResponse{Key: key, Created: true}, err
	})
}

func (s *store) GetDataKey(ctx context.Context, req spi.GetDataKeyRequest) (spi.GetDataKeyResponse, error) {
	return on(ctx, s.read, (*tx).keyring, req.Route, req.Owner, func(t *tx, k *keyring) (spi.GetDataKeyResponse, error) {
		key, err := t.key(k, req.Version)
		return spi.GetDataKeyResponse{Key: key}, err
	})
}

// DestroyDataKey overwrites the row that held the wrapped key. Copies of it stay in
// FILE-wal until that is emptied, in pages that were freed, and in backups.
func (s *store) DestroyDataKey(ctx context.Context, req spi.DestroyDataKeyRequest) (spi.DestroyDataKeyResponse, error) {
	return on(ctx, s.write, (*tx).keyring, req.Route, req.Owner, func(t *tx, k *keyring) (res spi.DestroyDataKeyResponse, err error) {
		key, found, err := t.findKey(k, req.Version)
		switch {
		case err != nil:
			return res, err
		case !found:
			return res, &spi.NotFoundError{What: "data key", Name: string(k.owner)}
		case key.Wrapped == nil: // destroyed already
			return res, nil
		}
		_, err = t.exec(`UPDATE data_keys SET key_id = x'', wrapped_by = '', wrapped = NULL WHERE owner = ? AND version = ?`,
			string(k.owner), req.Version)
		if err != nil {
			return res, err
		}
		if k.execution != nil && req.Version == 1 {
			k.execution.keyID, k.execution.shredded = spi.KeyID{}, true
			if err := t.save(k.execution); err != nil {
				return res, err
			}
		}
		return spi.DestroyDataKeyResponse{Destroyed: true}, nil
	})
}

const listDataKeys = `
	SELECT owner, version, slot, key_id, wrapped_by, wrapped FROM data_keys INDEXED BY data_keys_there
	WHERE wrapped IS NOT NULL AND owner >= ? AND owner <> ? AND owner < ? ORDER BY owner, version`

func (s *store) ListDataKeys(ctx context.Context, req spi.ListDataKeysRequest) (res spi.ListDataKeysResponse, err error) {
	err = s.read(ctx, "", func(t *tx) error {
		res.Receipt = t.ownership.receipt(req.KnownOwnership)
		page := page{ownership: t.ownership, left: req.Limit}
		err := t.each(listDataKeys, seek(req.Prefix, req.After), func(scan scan) (bool, error) {
			var key spi.DataKey
			var slot spi.Slot
			var id []byte
			if err := scan(&key.Owner, &key.Version, &slot, &id, &key.WrappedBy, &key.Wrapped); err != nil {
				return false, err
			}
			copy(key.ID[:], id)
			emit := func() { res.Keys = append(res.Keys, key) }
			if n := len(res.Keys); n > 0 && res.Keys[n-1].Owner == key.Owner {
				emit() // another version of the owner that the page counted
				return true, nil
			}
			return page.take(string(key.Owner), slot, emit), nil
		})
		res.Next = page.cursor()
		return err
	})
	return res, err
}

func (s *store) RewrapDataKey(ctx context.Context, req spi.RewrapDataKeyRequest) (spi.RewrapDataKeyResponse, error) {
	return on(ctx, s.write, (*tx).keyring, req.Route, req.Owner, func(t *tx, k *keyring) (res spi.RewrapDataKeyResponse, err error) {
		key, err := t.key(k, req.Version)
		if err != nil || key.WrappedBy != req.OldWrappedBy {
			return res, err
		}
		res.Rewrapped = true
		_, err = t.exec(`UPDATE data_keys SET wrapped_by = ?, wrapped = ? WHERE owner = ? AND version = ?`,
			req.WrappedBy, req.Wrapped, string(k.owner), req.Version)
		return res, err
	})
}
