// Package limits holds tenants to what they may use of this gateway: what the configuration
// says, and for a tenant that has limits of its own, what the control records say. Each
// gateway counts for itself.
//
// A tenant's limits stand over its view: behind the authentication, which says whose call
// it is, and before everything that a call costs. What they do is decorators/limits'.
package limits

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loomgate/loomgate/cmd/gateway/internal/config"
	"github.com/loomgate/loomgate/cmd/gateway/internal/control"
	"github.com/loomgate/loomgate/decorators/limits"
	"github.com/loomgate/loomgate/spi"
)

// Options are what limits are made of.
type Options struct {
	// Tenant returns what is known of a tenant; see [control.Records.Tenant].
	Tenant func(spi.TenantName) (control.TenantRecord, error)

	// View returns a tenant's view of the store.
	View func(spi.TenantName) (*spi.Store, error)

	Defaults config.TenantLimits
	Every    time.Duration // how often executions are counted
	Log      *slog.Logger
}

// Tenants are what tenants use, and may use. It is safe for concurrent use.
type Tenants struct {
	options  Options
	defaults atomic.Pointer[limits.Limits]

	mu       sync.Mutex
	accounts map[spi.TenantName]*limits.Account // of those that have a limit, since their first call

	count chan struct{} // holds one if somebody has to be counted soon
}

// New returns the limits of tenants that have used nothing.
func New(o Options) *Tenants {
	t := &Tenants{options: o, accounts: map[spi.TenantName]*limits.Account{}, count: make(chan struct{}, 1)}
	t.SetDefaults(o.Defaults)
	return t
}

// SetDefaults changes what tenants may use that have no limits of their own.
func (t *Tenants) SetDefaults(l config.TenantLimits) {
	t.defaults.Store(&limits.Limits{
		RequestsPerSecond: int64(l.RequestsPerSecond),
		BytesPerSecond:    int64(l.BytesPerSecond),
		EventsPerSecond:   int64(l.EventsPerSecond),
		InFlight:          int64(l.InFlight),
		Executions:        int64(l.Executions),
	})
}

// Store returns a tenant's view of the store, limited. A call under a context of
// [WithStream] takes the stream's place in flight first. The error is a
// [control.NotFoundError], an [spi.UnavailableError] or an [spi.ThrottledError].
func (t *Tenants) Store(ctx context.Context, name spi.TenantName) (*spi.Store, error) {
	view, err := t.options.View(name)
	if err != nil {
		return nil, err
	}
	account, err := t.account(name)
	if err != nil || account == nil {
		return view, err
	}
	if err := enterStream(ctx, account); err != nil {
		return nil, err
	}
	return limits.New(view, account)
}

// Limits returns what a tenant may use, and uses.
func (t *Tenants) Limits(name spi.TenantName) (limits.Limits, limits.Usage, error) {
	account, err := t.account(name)
	if err != nil || account == nil {
		return limits.None, limits.Usage{}, err
	}
	return account.Limits(), account.Usage(), nil
}

// account returns a tenant's, with the limits that it has now; nil where it has none, and
// nothing is counted.
func (t *Tenants) account(name spi.TenantName) (*limits.Account, error) {
	record, err := t.options.Tenant(name)
	if err != nil {
		return nil, err
	}
	now := effective(record.Limits, *t.defaults.Load())
	t.mu.Lock()
	defer t.mu.Unlock()
	account := t.accounts[name]
	switch {
	case account == nil && now == limits.None:
		return nil, nil
	case account == nil:
		account = limits.NewAccount(now)
		t.accounts[name] = account
	case account.Limits() == now:
		return account, nil
	default:
		account.Set(now)
	}
	if account.Usage().CountedAt.IsZero() && counts(now) {
		t.countSoon()
	}
	return account, nil
}

// effective returns what a tenant may use.
func effective(own control.TenantLimits, defaults limits.Limits) limits.Limits {
	for _, l := range []struct {
		own *int64
		is  *int64
	}{
		{own.RequestsPerSecond, &defaults.RequestsPerSecond},
		{own.BytesPerSecond, &defaults.BytesPerSecond},
		{own.EventsPerSecond, &defaults.EventsPerSecond},
		{own.InFlight, &defaults.InFlight},
		{own.Executions, &defaults.Executions},
	} {
		if l.own != nil {
			*l.is = *l.own
		}
	}
	return defaults
}

// forget drops the accounts of tenants that are no more.
func (t *Tenants) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name := range t.accounts {
		record, err := t.options.Tenant(name)
		if _, gone := errors.AsType[*control.NotFoundError](err); gone || err == nil && record.State == control.TenantPurged {
			delete(t.accounts, name)
		}
	}
}
