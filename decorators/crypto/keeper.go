package crypto

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/tink-crypto/tink-go/v2/aead/subtle"
	"github.com/tink-crypto/tink-go/v2/tink"

	"github.com/loomgate/loomgate/spi"
)

const (
	// keySize is that of AES-256, for tenant keys and data keys.
	keySize = 32

	// ownVersion is the version of an execution's own data key.
	ownVersion = 1

	// firstTenantVersion leaves version 1 of a tenant's bare scope to an execution of
	// that name, which there can be above a tenant's view.
	firstTenantVersion = 2

	// kmsLife is how long a tenant key is used that the store still has, until the
	// KMS is asked again: a key that is revoked there stops working after it.
	kmsLife = 5 * time.Minute
)

// A keeper gets keys from the store and the KMS, and keeps them for a while.
type keeper struct {
	store    *spi.Store
	kms      KMS
	fallback spi.TenantName // of names that no scope made
	adopt    bool           // unencrypted executions go on

	data    *cache[spi.ExecutionID, *dataKey]
	tenants *cache[tenantVersion, *tenantKey]
	newest  *cache[spi.TenantName, int64] // version
}

func newKeeper(store *spi.Store, kms KMS, opts Options) (*keeper, error) {
	opts.Tenant = cmp.Or(opts.Tenant, DefaultTenant)
	opts.CacheLife = cmp.Or(opts.CacheLife, DefaultCacheLife)
	opts.CacheSize = cmp.Or(opts.CacheSize, DefaultCacheSize)
	if err := opts.Tenant.Validate(); err != nil {
		return nil, err
	}
	switch {
	case store == nil:
		return nil, &spi.InvalidArgumentError{Field: "inner", Rule: "is nil"}
	case kms == nil:
		return nil, &spi.InvalidArgumentError{Field: "kms", Rule: "is nil"}
	case opts.CacheLife < 0:
		return nil, &spi.InvalidArgumentError{Field: "cache life", Rule: "is negative"}
	case opts.CacheSize < 0:
		return nil, &spi.InvalidArgumentError{Field: "cache size", Rule: "is negative"}
	case !store.Offered().Has(spi.CapDataKeys):
		return nil, &spi.UnsupportedError{Cap: spi.CapDataKeys}
	}
	return &keeper{
		store:    store,
		kms:      kms,
		fallback: opts.Tenant,
		adopt:    opts.AllowUnencrypted,
		data:     newCache[spi.ExecutionID, *dataKey](opts.CacheSize, opts.CacheLife),
		tenants:  newCache[tenantVersion, *tenantKey](opts.CacheSize, opts.CacheLife),
		newest:   newCache[spi.TenantName, int64](opts.CacheSize, opts.CacheLife),
	}, nil
}

// tenantOf returns whose a name is.
func tenantOf[N ~string](k *keeper, name N) spi.TenantName {
	if tenant, _, scoped := spi.SplitScope(name); scoped {
		return tenant
	}
	return k.fallback
}

// newAEAD returns AES-256-GCM under a key.
func newAEAD(raw []byte) (tink.AEAD, error) {
	if len(raw) != keySize {
		return nil, fmt.Errorf("a key of %d bytes, not %d", len(raw), keySize)
	}
	return subtle.NewAESGCM(raw)
}

func newRawKey() []byte {
	raw := make([]byte, keySize)
	rand.Read(raw) // never fails: crypto/rand ends the program instead
	return raw
}

// newKeyID returns an id that no other key has.
func newKeyID() spi.KeyID { return spi.KeyID(spi.NewEventID()) }

// errNoKey says that an execution has no data key.
var errNoKey = errors.New("no data key")

// fetch loads the data key of an execution.
func (k *keeper) fetch(ctx context.Context, id spi.ExecutionID) (*dataKey, error) {
	res, err := spi.GetDataKey(ctx, k.store, spi.GetDataKeyRequest{Owner: spi.KeyOwner(id), Version: ownVersion})
	switch {
	case is[*spi.NotFoundError](err):
		return nil, errNoKey
	case err != nil:
		return nil, ofKey(err)
	}
	return k.unwrap(ctx, id, res.Key)
}

// ofKey makes the error of a call about a key one of a call about the execution. That a
// key may have been made leaves nothing open: whoever comes next takes the one there is.
func ofKey(err error) error {
	if invalid, ok := errors.AsType[*spi.InvalidArgumentError](err); ok && invalid.Field == "key owner" {
		return &spi.InvalidArgumentError{Field: "execution id", Rule: invalid.Rule}
	}
	if ambiguous, ok := errors.AsType[*spi.AmbiguousError](err); ok {
		return &spi.UnavailableError{Cause: ambiguous.Cause}
	}
	return err
}

// create makes the data key of an execution that has none, or returns the one that
// somebody else has made. One that has events already goes on without.
func (k *keeper) create(ctx context.Context, id spi.ExecutionID) (*dataKey, error) {
	raw := newRawKey()
	defer clear(raw)
	by, until, err := k.newestKey(ctx, tenantOf(k, id))
	if err != nil {
		return nil, concerning(id, ofKey(err))
	}
	key := spi.DataKey{Owner: spi.KeyOwner(id), Version: ownVersion, ID: newKeyID(), WrappedBy: by.name()}
	if key.Wrapped, err = by.wrap(id, key.ID, raw); err != nil {
		return nil, err
	}
	res, err := spi.CreateDataKey(ctx, k.store, spi.CreateDataKeyRequest{Key: key})
	switch {
	case is[*spi.ConflictError](err):
		return k.unencrypted(ctx, id)
	case err != nil:
		return nil, ofKey(err)
	case !res.Created:
		return k.unwrap(ctx, id, res.Key)
	}
	if err := k.confirm(ctx, key, raw, by, until); err != nil {
		return nil, concerning(id, ofKey(err))
	}
	return newDataKey(by.tenant, id, key.ID, raw)
}

// confirm returns when a data key that the store has is wrapped by a key that was the
// tenant's newest after the store had it. Where the store took long to answer, by may
// have been retired before the data key was there to be seen.
func (k *keeper) confirm(ctx context.Context, key spi.DataKey, raw []byte, by *tenantKey, until time.Time) error {
	for !time.Now().Before(until) {
		old := by.name()
		var err error
		if by, until, err = k.newestKey(ctx, by.tenant); err != nil {
			return err
		}
		if by.name() == old {
			continue
		}
		if _, err = k.rewrap(ctx, key, raw, old, by); err != nil {
			return err
		}
	}
	return nil
}

// rewrap replaces what wraps a data key, if that still is old.
func (k *keeper) rewrap(ctx context.Context, key spi.DataKey, raw []byte, old string, by *tenantKey) (bool, error) {
	wrapped, err := by.wrap(spi.ExecutionID(key.Owner), key.ID, raw)
	if err != nil {
		return false, err
	}
	res, err := spi.RewrapDataKey(ctx, k.store, spi.RewrapDataKeyRequest{
		Owner: key.Owner, Version: key.Version, OldWrappedBy: old, WrappedBy: by.name(), Wrapped: wrapped,
	})
	if is[*spi.NotFoundError](err) { // deleted meanwhile
		return false, errNoKey
	}
	return res.Rewrapped, err
}

// unencrypted returns the state of an execution that has events and no key. It holds
// for this incarnation only.
func (k *keeper) unencrypted(ctx context.Context, id spi.ExecutionID) (*dataKey, error) {
	res, err := spi.Read(ctx, k.store, spi.ReadRequest{Execution: id, Limit: 1, MaxBytes: 1})
	switch {
	case err != nil:
		return nil, err
	case res.Keyed:
		return nil, lostInStore(id)
	case len(res.Events) == 0: // deleted meanwhile
		return nil, errNoKey
	case !k.adopt:
		return nil, &UnencryptedError{id}
	}
	return &dataKey{incarnation: res.Incarnation}, nil
}

// lostInStore is the error where an execution has a data key that the store does not.
func lostInStore(id spi.ExecutionID) *KeyLostError {
	return &KeyLostError{Owner: spi.KeyOwner(id), Reason: "it is not in the store"}
}

// unwrap opens a wrapped data key.
func (k *keeper) unwrap(ctx context.Context, id spi.ExecutionID, key spi.DataKey) (*dataKey, error) {
	raw, err := k.unwrapRaw(ctx, id, key)
	if err != nil {
		return nil, err
	}
	defer clear(raw)
	return newDataKey(tenantOf(k, id), id, key.ID, raw)
}

func (k *keeper) unwrapRaw(ctx context.Context, id spi.ExecutionID, key spi.DataKey) ([]byte, error) {
	version, ok := parseTenantKeyName(key.WrappedBy)
	if !ok {
		return nil, &TamperedError{Execution: id, Field: "data key"}
	}
	by, err := k.tenantKey(ctx, tenantOf(k, id), version)
	if err != nil {
		return nil, concerning(id, err)
	}
	raw, err := by.unwrap(id, key.ID, key.Wrapped)
	if err != nil || len(raw) != keySize {
		return nil, &TamperedError{Execution: id, Field: "data key"}
	}
	return raw, nil
}

// concerning makes an error about a tenant's key one about the execution whose key
// it wraps.
func concerning(id spi.ExecutionID, err error) error {
	if lost, ok := errors.AsType[*KeyLostError](err); ok {
		return &KeyLostError{spi.KeyOwner(id), lost.Reason, lost.Cause}
	}
	if is[*spi.ShreddedError](err) {
		return &spi.ShreddedError{Owner: spi.KeyOwner(id)}
	}
	return err
}

// forAppend returns the key to encrypt an append under. An execution that has none
// gets one, unless the append means another incarnation: a key would keep the tombstone
// from being swept. first says that the execution is expected to be new.
func (k *keeper) forAppend(ctx context.Context, id spi.ExecutionID, incarnation int64, first bool) (*dataKey, error) {
	for range maxTries {
		key, err := k.find(ctx, id, first)
		for errors.Is(err, errNoKey) { // again if others were looking for it: each of them looks once
			key, err = k.make(ctx, id, incarnation)
		}
		switch {
		case err != nil:
			return nil, err
		case key.aead == nil && incarnation != 0 && incarnation != key.incarnation:
			k.data.drop(id, key)
		default:
			return key, nil
		}
	}
	return nil, &spi.UnavailableError{Cause: errDisturbed}
}

// find returns the key of an execution, or errNoKey. For one that is expected to be new
// it asks nobody.
func (k *keeper) find(ctx context.Context, id spi.ExecutionID, first bool) (*dataKey, error) {
	if key, there := k.data.peek(id); there {
		return key, nil
	}
	if first {
		return nil, errNoKey
	}
	key, _, err := k.data.get(ctx, id, func(ctx context.Context, _ *dataKey) (*dataKey, error) { return k.fetch(ctx, id) })
	return key, err
}

// make creates a key for whoever means the incarnation that the execution is in.
func (k *keeper) make(ctx context.Context, id spi.ExecutionID, incarnation int64) (*dataKey, error) {
	if err := k.checkWriter(ctx, id, incarnation); err != nil {
		return nil, err
	}
	key, _, err := k.data.get(ctx, id, func(ctx context.Context, _ *dataKey) (*dataKey, error) { return k.create(ctx, id) })
	return key, err
}

// checkWriter returns an [spi.IncarnationError] unless the execution is in the
// incarnation that an append states.
func (k *keeper) checkWriter(ctx context.Context, id spi.ExecutionID, incarnation int64) error {
	head, err := spi.Head(ctx, k.store, spi.HeadRequest{Execution: id})
	if err != nil {
		return err
	}
	return spi.LogState{Execution: id, Head: head.Head, Incarnation: head.Incarnation}.CheckWriter(incarnation)
}
