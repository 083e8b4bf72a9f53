package crypto

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tink-crypto/tink-go/v2/tink"

	"github.com/loomgate/loomgate/spi"
)

// A tenantKey is one version of a tenant's key. It wraps data keys.
type tenantKey struct {
	tenant  spi.TenantName
	version int64
	id      spi.KeyID
	aead    tink.AEAD
	asked   time.Time // when the KMS was
}

type tenantVersion struct {
	tenant  spi.TenantName
	version int64
}

// tenantKeyName begins the name of a tenant key in the data keys that it wraps.
const tenantKeyName = "tenant/"

func (t *tenantKey) name() string { return tenantKeyNameOf(t.version) }

func tenantKeyNameOf(version int64) string { return tenantKeyName + strconv.FormatInt(version, 10) }

func parseTenantKeyName(name string) (version int64, ok bool) {
	digits, found := strings.CutPrefix(name, tenantKeyName)
	version, err := strconv.ParseInt(digits, 10, 64)
	return version, found && err == nil && version >= firstTenantVersion
}

func (t *tenantKey) wrap(id spi.ExecutionID, keyID spi.KeyID, raw []byte) ([]byte, error) {
	return t.aead.Encrypt(raw, associate("loomgate data key", t.tenant, id, keyID))
}

func (t *tenantKey) unwrap(id spi.ExecutionID, keyID spi.KeyID, wrapped []byte) ([]byte, error) {
	return t.aead.Decrypt(wrapped, associate("loomgate data key", t.tenant, id, keyID))
}

// associateTenant binds a tenant key to its tenant, version and id at the KMS.
func associateTenant(t tenantVersion, id spi.KeyID) []byte {
	return appendField(associate("loomgate tenant key", t.tenant, "", id), strconv.FormatInt(t.version, 10))
}

// ownerOf returns whose a tenant's keys are in the store.
func ownerOf(tenant spi.TenantName) (spi.KeyOwner, error) {
	scope, err := spi.ScopeOf(tenant)
	return spi.KeyOwner(scope.Prefix()), err
}

// newestKey returns the key that wraps a tenant's new data keys, and until when that may
// be taken for the newest. A tenant without gets its first.
func (k *keeper) newestKey(ctx context.Context, tenant spi.TenantName) (*tenantKey, time.Time, error) {
	version, until, err := k.newest.get(ctx, tenant, func(ctx context.Context, _ int64) (int64, error) {
		version, err := k.newestVersion(ctx, tenant)
		if is[*spi.NotFoundError](err) {
			return firstTenantVersion, k.createTenantKey(ctx, tenantVersion{tenant, firstTenantVersion})
		}
		return version, err
	})
	if err != nil {
		return nil, until, err
	}
	key, err := k.tenantKey(ctx, tenant, version)
	return key, until, err
}

// newestVersion asks the store.
func (k *keeper) newestVersion(ctx context.Context, tenant spi.TenantName) (int64, error) {
	owner, err := ownerOf(tenant)
	if err != nil {
		return 0, err
	}
	res, err := spi.GetDataKey(ctx, k.store, spi.GetDataKeyRequest{Owner: owner})
	return res.Key.Version, err
}

// createTenantKey makes a version of a tenant's key, unless somebody else does.
func (k *keeper) createTenantKey(ctx context.Context, at tenantVersion) error {
	owner, err := ownerOf(at.tenant)
	if err != nil {
		return err
	}
	raw := newRawKey()
	defer clear(raw)
	key := spi.DataKey{Owner: owner, Version: at.version, ID: newKeyID()}
	begun := time.Now()
	if key.Wrapped, key.WrappedBy, err = k.kms.Wrap(ctx, raw, associateTenant(at, key.ID)); err != nil {
		return kmsFailed(ctx, err)
	}
	res, err := spi.CreateDataKey(ctx, k.store, spi.CreateDataKeyRequest{Key: key})
	if err != nil || !res.Created {
		return err
	}
	aead, err := newAEAD(raw)
	if err == nil {
		k.tenants.set(at, &tenantKey{at.tenant, at.version, key.ID, aead, begun}, begun)
	}
	return err
}

// tenantKey returns a version of a tenant's key. As long as the store has it the KMS
// is asked only now and then.
func (k *keeper) tenantKey(ctx context.Context, tenant spi.TenantName, version int64) (*tenantKey, error) {
	at := tenantVersion{tenant, version}
	key, _, err := k.tenants.get(ctx, at, func(ctx context.Context, expired *tenantKey) (*tenantKey, error) {
		owner, err := ownerOf(tenant)
		if err != nil {
			return nil, err
		}
		res, err := spi.GetDataKey(ctx, k.store, spi.GetDataKeyRequest{Owner: owner, Version: version})
		switch {
		case is[*spi.NotFoundError](err):
			return nil, &KeyLostError{Owner: owner, Reason: fmt.Sprintf("tenant key %d is not in the store", version)}
		case is[*spi.ShreddedError](err):
			return nil, k.destroyed(ctx, at, owner)
		case err != nil:
			return nil, err
		case expired != nil && expired.id == res.Key.ID && time.Since(expired.asked) < kmsLife:
			return expired, nil
		}
		return k.unwrapTenantKey(ctx, at, res.Key)
	})
	return key, err
}

// destroyed tells a tenant that was shredded, whose newest key is gone, from an older
// version that was retired although something still needs it.
func (k *keeper) destroyed(ctx context.Context, at tenantVersion, owner spi.KeyOwner) error {
	if _, err := k.newestVersion(ctx, at.tenant); err != nil {
		return err
	}
	return &KeyLostError{Owner: owner, Reason: fmt.Sprintf("tenant key %d was retired", at.version)}
}

func (k *keeper) unwrapTenantKey(ctx context.Context, at tenantVersion, key spi.DataKey) (*tenantKey, error) {
	asked := time.Now()
	raw, err := k.askKMS(ctx, at, key)
	if err != nil {
		return nil, err
	}
	defer clear(raw)
	aead, err := newAEAD(raw)
	return &tenantKey{at.tenant, at.version, key.ID, aead, asked}, err
}

// askKMS unwraps a tenant key.
func (k *keeper) askKMS(ctx context.Context, at tenantVersion, key spi.DataKey) ([]byte, error) {
	raw, err := k.kms.Unwrap(ctx, key.WrappedBy, key.Wrapped, associateTenant(at, key.ID))
	if err == nil && len(raw) != keySize {
		err = fmt.Errorf("%w: it has %d bytes, not %d", ErrCannotUnwrap, len(raw), keySize)
	}
	switch {
	case errors.Is(err, ErrCannotUnwrap):
		return nil, &KeyLostError{key.Owner, fmt.Sprintf("tenant key %d is not opened by %q", at.version, key.WrappedBy), err}
	case err != nil:
		return nil, kmsFailed(ctx, err)
	}
	return raw, nil
}

// kmsFailed returns the error of a call of the KMS that failed for now.
func kmsFailed(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	return &spi.UnavailableError{Cause: err}
}
