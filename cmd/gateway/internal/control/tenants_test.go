package control

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loomgate/loomgate/spi"
)

func TestATenantsNameIsNeverUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t)
		r := gateway(t, store)
		create := func() error { return r.CreateTenant(t.Context(), admin, "acme") }
		disable := func() error { return r.DisableTenant(t.Context(), admin, "acme") }
		purged := func() error { return r.MarkPurged(t.Context(), admin, "acme") }
		isNotFound, isTaken, isState := is[*NotFoundError], is[*TakenError], is[*TenantStateError]
		fine := func(err error) bool { return err == nil }
		for i, step := range []struct {
			do      func() error
			want    func(error) bool
			state   TenantState
			records int64
		}{
			{disable, isNotFound, 0, 0},
			{purged, isNotFound, 0, 0},
			{create, fine, TenantActive, 1},
			{create, isTaken, TenantActive, 1},
			{purged, isState, TenantActive, 1},
			{disable, fine, TenantDisabled, 2},
			{disable, fine, TenantDisabled, 2},
			{create, isTaken, TenantDisabled, 2},
			{purged, fine, TenantPurged, 3},
			{purged, fine, TenantPurged, 3},
			{disable, isState, TenantPurged, 3},
			{create, isTaken, TenantPurged, 3},
		} {
			if err := step.do(); !step.want(err) {
				t.Errorf("step %d: %v", i, err)
			}
			for _, g := range []*Records{r, gateway(t, store)} {
				if tenant, err := g.Tenant("acme"); tenant.State != step.state || (err != nil) != (step.state == 0) || tenant.Usable() != (step.state == TenantActive) {
					t.Errorf("step %d: %+v, %v", i, tenant, err)
				}
			}
			if got := count(t, store); got != step.records {
				t.Errorf("step %d: %d records", i, got)
			}
			time.Sleep(time.Minute)
		}
		tenant, err := r.Tenant("acme")
		must(t, err)
		began := time.Now().UTC().Add(-12 * time.Minute)
		if want := (TenantRecord{Name: "acme", State: TenantPurged, CreatedAt: began.Add(2 * time.Minute), DisabledAt: began.Add(5 * time.Minute), PurgedAt: began.Add(8 * time.Minute)}); tenant != want {
			t.Errorf("%+v, want %+v", tenant, want)
		}
	})
}

func TestNamesThatNoTenantCanHave(t *testing.T) {
	store := newStore(t)
	r := gateway(t, store)
	for name, field := range map[string]string{
		"empty": "", "long": strings.Repeat("x", 129), "reserved": "loomgate/x", "bad UTF-8": "\xff", "NUL": "a\x00b", "line": "a\nb", "tab": "a\tb",
		"escape": "\x1b[31m", "right to left": "a\u202eb", "no width": "a\u200bb", "private": "\ue000", "leading space": " a", "trailing space": "a ", "other space": "a\u00a0b",
	} {
		if err := r.CreateTenant(t.Context(), admin, spi.TenantName(field)); !is[*spi.InvalidArgumentError](err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []spi.TenantName{"a", "A", "loomgate", "Loomgate/x", "Müller & Söhne", "日本", "\U0001F600", "a/b:c%20", spi.TenantName(strings.Repeat("x", 128))} {
		if err := r.CreateTenant(t.Context(), admin, name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	if got := count(t, store); got != 9 {
		t.Errorf("%d records", got)
	}
}

func TestTenantsAreListedInCodePointOrder(t *testing.T) {
	r := gateway(t, newStore(t))
	names := []spi.TenantName{"\U0001F600", "b", "a", "\uffee", "Z", "ab", "é"}
	for _, name := range names {
		must(t, r.CreateTenant(t.Context(), admin, name))
	}
	slices.SortFunc(names, spi.CompareIDs)
	for limit := 1; limit <= len(names)+1; limit++ {
		var listed []spi.TenantName
		var after spi.TenantName
		pages := 0
		for {
			pages++
			page, next, err := r.ListTenants(after, limit)
			must(t, err)
			if len(page) > limit {
				t.Fatalf("%d on a page of %d", len(page), limit)
			}
			for _, tenant := range page {
				listed = append(listed, tenant.Name)
			}
			if after = next; after == "" {
				break
			}
			if len(page) == 0 || next != page[len(page)-1].Name {
				t.Fatalf("next is %q after %v", next, page)
			}
		}
		if want := (len(names) + limit - 1) / limit; !slices.Equal(listed, names) || pages != want {
			t.Errorf("%d pages of %d: %q", pages, limit, listed)
		}
	}
	if page, _, err := r.ListTenants("ac", 1); err != nil || page[0].Name != "b" {
		t.Errorf("after a name that there is not: %v, %v", page, err)
	}
	for _, limit := range []int{0, -1, spi.MaxLimit + 1} {
		if _, _, err := r.ListTenants("", limit); !is[*spi.InvalidArgumentError](err) {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
}
