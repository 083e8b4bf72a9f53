package crypto

import (
	"context"
	"slices"
	"sync"

	"github.com/loomgate/loomgate/spi"
)

// ShredExecution destroys the data key of an execution: what was written is gone for
// good, and nothing more can be. It returns when no node has the key in memory, after
// the cache's life. Ended before, it has destroyed the key and promises nothing: call it
// again.
//
// An execution without a key is [spi.NotFoundError], one that was written unencrypted
// [UnencryptedError]. Its deletion is another matter: that drops the key too, at once.
func (k *Keys) ShredExecution(ctx context.Context, id spi.ExecutionID) error {
	_, err := spi.DestroyDataKey(ctx, k.keeper.store, spi.DestroyDataKeyRequest{Owner: spi.KeyOwner(id), Version: ownVersion})
	if is[*spi.NotFoundError](err) {
		if state, verifyErr := k.VerifyExecution(ctx, id); verifyErr == nil && state == Unencrypted {
			return &UnencryptedError{id}
		}
	}
	if err != nil {
		return ofKey(err)
	}
	return k.wait(ctx)
}

// ShredTenant destroys every version of a tenant's key and the data keys of all its
// executions, for good: the tenant can write nothing any more. It returns when no node
// has any of them in memory, after twice the cache's life, with what it then finds. A
// tenant that never had a key is [spi.NotFoundError].
func (k *Keys) ShredTenant(ctx context.Context, tenant spi.TenantName) (Report, error) {
	if _, err := k.keeper.newestVersion(ctx, tenant); err != nil && !is[*spi.ShreddedError](err) {
		return Report{}, err
	}
	if err := k.destroyTenantKeys(ctx, tenant); err != nil {
		return Report{}, err
	}
	// From here on no node makes or unwraps a data key of the tenant's, but some may
	// hold those that they have unwrapped.
	if err := k.wait(ctx); err != nil {
		return Report{}, err
	}
	if err := k.destroyTenantKeys(ctx, tenant); err != nil { // a rotation was under way
		return Report{}, err
	}
	err := each(ctx, k.keys(ctx, tenant), func(ctx context.Context, key spi.DataKey) error {
		_, err := spi.DestroyDataKey(ctx, k.keeper.store, spi.DestroyDataKeyRequest{Owner: key.Owner, Version: key.Version})
		if is[*spi.NotFoundError](err) { // deleted meanwhile
			return nil
		}
		return err
	})
	if err != nil {
		return Report{}, err
	}
	if err := k.wait(ctx); err != nil {
		return Report{}, err
	}
	return k.Verify(ctx, tenant)
}

// destroyTenantKeys begins with the newest, without which the others wrap nothing new.
func (k *Keys) destroyTenantKeys(ctx context.Context, tenant spi.TenantName) error {
	keys, err := k.tenantKeys(ctx, tenant)
	if err != nil {
		return err
	}
	for _, key := range slices.Backward(keys) {
		if _, err := spi.DestroyDataKey(ctx, k.keeper.store, spi.DestroyDataKeyRequest{Owner: key.Owner, Version: key.Version}); err != nil {
			return err
		}
	}
	return nil
}

// tenantKeys returns the versions of a tenant's key that are there, ascending.
func (k *Keys) tenantKeys(ctx context.Context, tenant spi.TenantName) ([]spi.DataKey, error) {
	owner, err := ownerOf(tenant)
	if err != nil {
		return nil, err
	}
	res, err := spi.ListDataKeys(ctx, k.keeper.store, spi.ListDataKeysRequest{Prefix: string(owner), Limit: 1})
	return slices.DeleteFunc(res.Keys, func(key spi.DataKey) bool { return key.Owner != owner || !isTenantKey(key) }), err
}

// A State is what has become of what an execution held.
type State int

// The states.
const (
	Absent      State = iota // there are no events
	Encrypted                // the key is there and opens
	Unencrypted              // written without this layer
	Shredded                 // the key was destroyed
	Lost                     // the key cannot be had
)

func (s State) String() string {
	return [...]string{"absent", "encrypted", "unencrypted", "shredded", "lost"}[s]
}

// VerifyExecution asks the store and the KMS, past any key in memory, whether what an
// execution held can still be read.
func (k *Keys) VerifyExecution(ctx context.Context, id spi.ExecutionID) (State, error) {
	res, err := spi.Read(ctx, k.keeper.store, spi.ReadRequest{Execution: id, Limit: 1, MaxBytes: 1})
	switch {
	case err != nil:
		return Absent, err
	case res.Shredded:
		return Shredded, nil
	case len(res.Events) == 0:
		return Absent, nil
	case !res.Keyed:
		return Unencrypted, nil
	}
	_, err = k.keeper.fetch(ctx, id)
	switch {
	case err == nil:
		return Encrypted, nil
	case is[*spi.ShreddedError](err):
		return Shredded, nil
	case final(err) || err == errNoKey: //nolint:errorlint // as fetch returns it
		return Lost, nil
	}
	return Absent, err
}

// A Report says what is left of a tenant.
type Report struct {
	Tenant     spi.TenantName
	TenantKeys []int64 // the versions that are there, ascending

	// Executions counts those that have events, by state.
	Executions map[State]int
}

// Undecryptable reports whether nothing that the tenant has written can be read with
// what this store and the KMS hold. Backups and logs of the store are not looked at.
func (r Report) Undecryptable() bool {
	return len(r.TenantKeys) == 0 && r.Executions[Encrypted] == 0 && r.Executions[Unencrypted] == 0
}

// Verify verifies each execution of a tenant.
func (k *Keys) Verify(ctx context.Context, tenant spi.TenantName) (Report, error) {
	keys, err := k.tenantKeys(ctx, tenant)
	if err != nil {
		return Report{}, err
	}
	report := Report{Tenant: tenant, Executions: map[State]int{}}
	for _, key := range keys {
		report.TenantKeys = append(report.TenantKeys, key.Version)
	}
	var mu sync.Mutex
	err = each(ctx, k.executions(ctx, tenant), func(ctx context.Context, id spi.ExecutionID) error {
		state, err := k.VerifyExecution(ctx, id)
		if err != nil || state == Absent { // deleted meanwhile
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		report.Executions[state]++
		return nil
	})
	return report, err
}
