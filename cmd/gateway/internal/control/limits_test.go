package control

import (
	"math"
	"testing"

	"github.com/loomgate/loomgate/spi"
)

func TestATenantsLimitsAreThoseThatWereSetLast(t *testing.T) {
	store := newStore(t)
	r, other := gateway(t, store), gateway(t, store)
	must(t, r.CreateTenant(t.Context(), admin, "acme"))
	for i, step := range []struct {
		reset   bool
		set     TenantLimits
		want    TenantLimits
		records int64
	}{
		{false, TenantLimits{}, TenantLimits{}, 1},
		{false, TenantLimits{InFlight: new(int64(5))}, TenantLimits{InFlight: new(int64(5))}, 2},
		{false, TenantLimits{InFlight: new(int64(5))}, TenantLimits{InFlight: new(int64(5))}, 2}, // nothing has changed
		{false, TenantLimits{Executions: new(int64(0)), EventsPerSecond: new(int64(math.MaxInt64))}, TenantLimits{InFlight: new(int64(5)), Executions: new(int64(0)), EventsPerSecond: new(int64(math.MaxInt64))}, 3},
		{true, TenantLimits{BytesPerSecond: new(int64(7))}, TenantLimits{BytesPerSecond: new(int64(7))}, 4},
		{false, TenantLimits{RequestsPerSecond: new(int64(8))}, TenantLimits{BytesPerSecond: new(int64(7)), RequestsPerSecond: new(int64(8))}, 5},
		{true, TenantLimits{}, TenantLimits{}, 6},
	} {
		got, err := r.SetTenantLimits(t.Context(), admin, "acme", step.reset, step.set)
		if err != nil || !got.equal(step.want) {
			t.Errorf("step %d: %+v, %v", i, got, err)
		}
		refresh(t, other)
		for _, g := range []*Records{r, other, gateway(t, store)} {
			if tenant, err := g.Tenant("acme"); err != nil || !tenant.Limits.equal(step.want) {
				t.Errorf("step %d: %+v, %v", i, tenant, err)
			}
		}
		if got := count(t, store); got != step.records {
			t.Errorf("step %d: %d records", i, got)
		}
	}
	for action, err := range r.Audit(t.Context(), 5) {
		if err != nil || action.Kind != tenantLimits || action.By != admin || action.Tenant != "acme" {
			t.Errorf("%+v, %v", action, err)
		}
	}
}

func TestLimitsAreForATenantThatIsThereAndNotNegative(t *testing.T) {
	r := gateway(t, newStore(t))
	must(t, r.CreateTenant(t.Context(), admin, "gone"))
	must(t, r.DisableTenant(t.Context(), admin, "gone"))
	must(t, r.MarkPurged(t.Context(), admin, "gone"))
	set := func(name spi.TenantName, l TenantLimits) error {
		_, err := r.SetTenantLimits(t.Context(), admin, name, false, l)
		return err
	}
	if err := set("acme", TenantLimits{}); !is[*NotFoundError](err) {
		t.Error(err)
	}
	if err := set("gone", TenantLimits{}); !is[*TenantStateError](err) {
		t.Error(err)
	}
	for _, l := range []TenantLimits{
		{RequestsPerSecond: new(int64(-1))}, {BytesPerSecond: new(int64(-1))}, {EventsPerSecond: new(int64(-1))}, {InFlight: new(int64(-1))}, {Executions: new(int64(math.MinInt64))},
	} {
		if err := set("acme", l); !is[*spi.InvalidArgumentError](err) {
			t.Errorf("%+v: %v", l, err)
		}
	}
}

// TestEveryKindThatThisBuildWritesIsKnownToIt finds one that would be taken for a newer
// gateway's, over which nothing can be created.
func TestEveryKindThatThisBuildWritesIsKnownToIt(t *testing.T) {
	r := gateway(t, newStore(t))
	must(t, r.CreateTenant(t.Context(), admin, "acme"))
	for _, kind := range []NoteKind{TenantKeyRotated, TenantShredded, ExecutionShredded, ConfigReloaded, KeyringRotated, ShardRecovered, ShardMigrated} {
		must(t, r.Note(t.Context(), admin, kind, "acme", ""))
		if err := r.CreateTenant(t.Context(), admin, spi.TenantName(kind)); err != nil {
			t.Errorf("after %s: %v", kind, err)
		}
	}
}
