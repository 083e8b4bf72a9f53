package limits

import (
	"context"
	"time"

	"github.com/loomgate/loomgate/decorators/limits"
	"github.com/loomgate/loomgate/spi"
)

// share is the part of the time that counting takes at most: one in so many.
const share = 10

// pageTimeout is how long a page of executions may take to be counted.
const pageTimeout = 30 * time.Second

// counts reports whether executions have to be counted for a limit.
func counts(l limits.Limits) bool { return l.Executions > 0 && l.Executions < limits.Unlimited }

// countSoon lets Run count those that were never counted, without waiting.
func (t *Tenants) countSoon() {
	select {
	case t.count <- struct{}{}:
	default:
	}
}

// Run counts the executions of tenants that have a limit of them, until ctx ends: every
// so often, but never for more than a tenth of the time.
func (t *Tenants) Run(ctx context.Context) {
	timer := time.NewTimer(t.options.Every)
	defer timer.Stop()
	for {
		all := true
		select {
		case <-ctx.Done():
			return
		case <-t.count:
			all = false
		case <-timer.C:
		}
		begun := time.Now()
		t.countAll(ctx, all)
		if all {
			t.forget()
			timer.Reset(max(t.options.Every, (share-1)*time.Since(begun)))
		}
	}
}

// countAll counts one tenant after another: all of them, or those that never were.
func (t *Tenants) countAll(ctx context.Context, all bool) {
	t.mu.Lock()
	due := map[spi.TenantName]*limits.Account{}
	for name, account := range t.accounts {
		if counts(account.Limits()) && (all || account.Usage().CountedAt.IsZero()) {
			due[name] = account
		}
	}
	t.mu.Unlock()
	for name, account := range due {
		n, err := t.countOf(ctx, name)
		switch {
		case err == nil:
			account.Counted(n)
		case ctx.Err() != nil:
			return
		default:
			t.options.Log.WarnContext(ctx, "a tenant's executions could not be counted; the last count holds", "tenant", name, "error", err)
		}
	}
}

// countOf returns how many executions a tenant has. It goes through the tenant's own view,
// in the tenant's own turn.
func (t *Tenants) countOf(ctx context.Context, name spi.TenantName) (n int64, err error) {
	view, err := t.options.View(name)
	if err != nil {
		return 0, err
	}
	for after := ""; ; {
		page, err := countPage(ctx, view, after)
		if err != nil {
			return 0, err
		}
		n += int64(len(page.Executions))
		if after = page.Next; after == "" {
			return n, nil
		}
	}
}

func countPage(ctx context.Context, view *spi.Store, after string) (spi.ListExecutionsResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	return spi.ListExecutions(ctx, view, spi.ListExecutionsRequest{After: after, Limit: spi.MaxLimit})
}
