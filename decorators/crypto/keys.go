package crypto

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/loomgate/loomgate/spi"
)

// Keys is the operator's side of the layer: it rotates, shreds and tells what is left.
// Each method may be called again after an error, and goes on where it was.
type Keys struct {
	keeper *keeper
	life   time.Duration
}

// NewKeys returns the keys in inner, the store below [New], under the same options.
func NewKeys(inner *spi.Store, kms KMS, opts Options) (*Keys, error) {
	keeper, err := newKeeper(inner, kms, opts)
	if err != nil {
		return nil, err
	}
	return &Keys{keeper, keeper.data.life}, nil
}

// margin is for calls that are under way when a key's life ends, and for clocks that
// do not run alike.
const margin = time.Second

// wait returns when no node uses what the store no longer has.
func (k *Keys) wait(ctx context.Context) error {
	life := time.NewTimer(k.life + margin)
	defer life.Stop()
	select {
	case <-life.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("done, but nodes may have keys in memory: %w", ctx.Err())
	}
}

// RotateTenant makes the next version of a tenant's key, and returns it. It wraps the
// data keys of executions that are new from now on, on every node after the cache's
// life; those that are there keep theirs until [Keys.Rewrap]. A tenant that never had a
// key is [spi.NotFoundError].
func (k *Keys) RotateTenant(ctx context.Context, tenant spi.TenantName) (version int64, err error) {
	if err := k.canRewrap(); err != nil {
		return 0, err
	}
	newest, err := k.keeper.newestVersion(ctx, tenant)
	if err != nil {
		return 0, err
	}
	return newest + 1, k.keeper.createTenantKey(ctx, tenantVersion{tenant, newest + 1})
}

// canRewrap returns an error where old versions of tenant keys could never go.
func (k *Keys) canRewrap() error {
	if !k.keeper.store.Offered().Has(spi.CapRewrapDataKey) {
		return &spi.UnsupportedError{Cap: spi.CapRewrapDataKey}
	}
	return nil
}

// Rewrapped says what a [Keys.Rewrap] has done.
type Rewrapped struct {
	TenantKeys int // wrapped anew by the KMS
	DataKeys   int // wrapped anew by the newest tenant key
	Lost       int // that cannot be unwrapped, and stay as they are
}

// Rewrap wraps a tenant's keys by the KMS's present key, and its data keys by the newest
// of the tenant's. The keys stay the same, so no event is written anew.
func (k *Keys) Rewrap(ctx context.Context, tenant spi.TenantName) (Rewrapped, error) {
	if err := k.canRewrap(); err != nil {
		return Rewrapped{}, err
	}
	if _, err := k.keeper.newestVersion(ctx, tenant); err != nil {
		return Rewrapped{}, err
	}
	k.keeper.newest.forget(tenant)
	if _, _, err := k.keeper.newestKey(ctx, tenant); err != nil {
		return Rewrapped{}, err
	}
	var tenantKeys, dataKeys, lost atomic.Int64
	err := each(ctx, k.keys(ctx, tenant), func(ctx context.Context, key spi.DataKey) error {
		count, rewrap := &dataKeys, k.rewrapDataKey
		if isTenantKey(key) {
			count, rewrap = &tenantKeys, k.rewrapTenantKey
		}
		changed, err := rewrap(ctx, tenant, key)
		switch {
		case err != nil && final(err):
			lost.Add(1)
			return nil
		case errors.Is(err, errNoKey): // deleted meanwhile
			return nil
		case changed:
			count.Add(1)
		}
		return err
	})
	return Rewrapped{int(tenantKeys.Load()), int(dataKeys.Load()), int(lost.Load())}, err
}

func (k *Keys) rewrapDataKey(ctx context.Context, tenant spi.TenantName, key spi.DataKey) (bool, error) {
	by, until, err := k.keeper.newestKey(ctx, tenant)
	if err != nil || key.WrappedBy == by.name() {
		return false, err
	}
	raw, err := k.keeper.unwrapRaw(ctx, spi.ExecutionID(key.Owner), key)
	if err != nil {
		return false, err
	}
	defer clear(raw)
	changed, err := k.keeper.rewrap(ctx, key, raw, key.WrappedBy, by)
	if err != nil || !changed {
		return false, err
	}
	return true, k.keeper.confirm(ctx, key, raw, by, until)
}

func (k *Keys) rewrapTenantKey(ctx context.Context, tenant spi.TenantName, key spi.DataKey) (bool, error) {
	at := tenantVersion{tenant, key.Version}
	raw, err := k.keeper.askKMS(ctx, at, key)
	if err != nil {
		return false, err
	}
	defer clear(raw)
	wrapped, by, err := k.keeper.kms.Wrap(ctx, raw, associateTenant(at, key.ID))
	if err != nil {
		return false, kmsFailed(ctx, err)
	}
	if by == key.WrappedBy {
		return false, nil
	}
	res, err := spi.RewrapDataKey(ctx, k.keeper.store, spi.RewrapDataKeyRequest{
		Owner: key.Owner, Version: key.Version, OldWrappedBy: key.WrappedBy, WrappedBy: by, Wrapped: wrapped,
	})
	return res.Rewrapped, err
}

// Retirement says what a [Keys.Retire] has done.
type Retirement struct {
	Versions []int64 // that are gone, ascending
	InUse    int     // data keys that older versions still wrap
}

// Retire destroys the older versions of a tenant's key that no data key is wrapped by.
// It takes as long as the cache's life: until then nodes may wrap by an older version.
func (k *Keys) Retire(ctx context.Context, tenant spi.TenantName) (Retirement, error) {
	if err := k.canRewrap(); err != nil {
		return Retirement{}, err
	}
	newest, err := k.keeper.newestVersion(ctx, tenant)
	if err != nil {
		return Retirement{}, err
	}
	if err := k.wait(ctx); err != nil {
		return Retirement{}, err
	}
	var older []spi.DataKey
	inUse := map[string]int{} // by the name of what wraps
	for key, err := range k.keys(ctx, tenant) {
		switch {
		case err != nil:
			return Retirement{}, err
		case !isTenantKey(key):
			inUse[key.WrappedBy]++
		case key.Version < newest:
			older = append(older, key)
		}
	}
	var done Retirement
	for _, key := range older {
		if n := inUse[tenantKeyNameOf(key.Version)]; n > 0 {
			done.InUse += n
			continue
		}
		if _, err := spi.DestroyDataKey(ctx, k.keeper.store, spi.DestroyDataKeyRequest{Owner: key.Owner, Version: key.Version}); err != nil {
			return done, err
		}
		done.Versions = append(done.Versions, key.Version)
	}
	return done, nil
}

// isTenantKey reports whether a key of the store is a tenant's, and not an execution's.
func isTenantKey(key spi.DataKey) bool {
	_, isExecution := key.Owner.Execution()
	return !isExecution && key.Version >= firstTenantVersion
}

// scanPage is how many names a scan asks for at a time.
const scanPage = 1000

// prefixOf returns what the names of a tenant begin with. Those that no scope made begin
// with anything.
func (k *Keys) prefixOf(tenant spi.TenantName) (string, error) {
	scope, err := spi.ScopeOf(tenant)
	if tenant == k.keeper.fallback {
		return "", err
	}
	return scope.Prefix(), err
}

// keys yields the keys of a tenant and of its executions.
func (k *Keys) keys(ctx context.Context, tenant spi.TenantName) iter.Seq2[spi.DataKey, error] {
	return pages(func(after string) ([]spi.DataKey, string, error) {
		prefix, err := k.prefixOf(tenant)
		if err != nil {
			return nil, "", err
		}
		res, err := spi.ListDataKeys(ctx, k.keeper.store, spi.ListDataKeysRequest{Prefix: prefix, After: after, Limit: scanPage})
		return slices.DeleteFunc(res.Keys, func(key spi.DataKey) bool { return tenantOf(k.keeper, key.Owner) != tenant }), res.Next, err
	})
}

// executions yields the executions of a tenant.
func (k *Keys) executions(ctx context.Context, tenant spi.TenantName) iter.Seq2[spi.ExecutionID, error] {
	return pages(func(after string) ([]spi.ExecutionID, string, error) {
		prefix, err := k.prefixOf(tenant)
		if err != nil {
			return nil, "", err
		}
		res, err := spi.ListExecutions(ctx, k.keeper.store, spi.ListExecutionsRequest{Prefix: prefix, After: after, Limit: scanPage})
		return slices.DeleteFunc(res.Executions, func(id spi.ExecutionID) bool { return tenantOf(k.keeper, id) != tenant }), res.Next, err
	})
}

// pages yields the items of all pages, and the error that ends them.
func pages[T any](page func(after string) (items []T, next string, err error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for after := ""; ; {
			items, next, err := page(after)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
			if after = next; after == "" {
				return
			}
		}
	}
}

// each calls do with each item, several at once. The first error ends it.
func each[T any](ctx context.Context, items iter.Seq2[T, error], do func(context.Context, T) error) error {
	group, working := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for item, err := range items {
		if err != nil {
			group.Go(func() error { return err })
			break
		}
		if working.Err() != nil {
			break
		}
		group.Go(func() error { return do(working, item) })
	}
	return cmp.Or(group.Wait(), ctx.Err()) // canceled between two items, nothing has failed
}
