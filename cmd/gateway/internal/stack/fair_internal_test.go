package stack

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/cmd/gateway/internal/config"
	"github.com/loomgate/loomgate/decorators/faults"
	"github.com/loomgate/loomgate/decorators/tenant"
	"github.com/loomgate/loomgate/spi"
)

// TestAFloodOfAppendsDelaysAnotherTenantsCallsByOneAndNoLease holds a thousand appends of
// one tenant in the database. What has to wait for them, and for how many, is counted:
// no clock is in it.
func TestAFloodOfAppendsDelaysAnotherTenantsCallsByOneAndNoLease(t *testing.T) {
	for _, c := range []struct {
		coalescing bool
		under      int  // appends, or batches of them, that are under way
		waits      bool // another tenant's read waits for one of them to end
	}{
		{true, writers, false}, // its connections are not theirs
		{false, 6, true},       // of eight, a quarter is for fences, timers and leases
	} {
		synctest.Test(t, func(t *testing.T) {
			hold := faults.NewGate()
			inner, err := memory.New()
			if err != nil {
				t.Fatal(err)
			}
			held, err := faults.New(inner, func(faults.Call) faults.Fault { return faults.Fault{Hold: hold} })
			if err != nil {
				t.Fatal(err)
			}
			s := &Shard{Name: "a", Backend: held}
			if err := s.compose(config.Shard{PoolSize: 8}, Options{Config: &config.Config{Coalescing: c.coalescing}}); err != nil {
				t.Fatal(err)
			}
			flood, calm := viewOf(t, s, "flood"), viewOf(t, s, "calm")
			for i := range 1000 {
				go func() {
					_, _ = spi.Append(t.Context(), flood, spi.AppendRequest{
						Execution: spi.ExecutionID(fmt.Sprint(i)), Events: []spi.Event{{ID: spi.NewEventID(), Kind: "k"}},
					})
				}()
			}
			synctest.Wait()
			under := underWay(t, hold)
			if len(under) != c.under {
				t.Fatalf("%d appends or batches are under way", len(under))
			}
			for name, view := range map[string]*spi.Store{"another": calm, "the same": flood} {
				go func() {
					_, _ = spi.AcquireLease(t.Context(), view, spi.AcquireLeaseRequest{Name: "l", Holder: "h", TTL: time.Second})
				}()
				synctest.Wait()
				if got := methodsOf(underWay(t, hold)); !slices.Equal(got, []string{"AcquireLease"}) {
					t.Errorf("coalescing %t: a lease of %s tenant waits: %q", c.coalescing, name, got)
				}
			}
			go func() { _, _ = spi.Head(t.Context(), calm, spi.HeadRequest{Execution: "mine"}) }()
			synctest.Wait()
			if c.waits {
				if got := methodsOf(underWay(t, hold)); len(got) > 0 {
					t.Errorf("%q is under way beside all that may be", got)
				}
				under[0].Pass()
				synctest.Wait()
			}
			if got := methodsOf(underWay(t, hold)); !slices.Equal(got, []string{"Head"}) {
				t.Errorf("coalescing %t: another tenant's read is not next: %q", c.coalescing, got)
			}
			hold.Open()
		})
	}
}

func viewOf(t *testing.T, s *Shard, name spi.TenantName) *spi.Store {
	t.Helper()
	view, err := tenant.New(name, s.store)
	if err != nil {
		t.Fatal(err)
	}
	return view
}

// underWay returns the calls that are held, and were not returned before.
func underWay(t *testing.T, hold *faults.Gate) (held []*faults.Held) {
	t.Helper()
	for {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond) // of a clock that goes on when all wait
		h, err := hold.Next(ctx)
		cancel()
		if err != nil {
			return held
		}
		held = append(held, h)
	}
}

func methodsOf(held []*faults.Held) (methods []string) {
	for _, h := range held {
		methods = append(methods, h.Call.Method)
	}
	return methods
}
