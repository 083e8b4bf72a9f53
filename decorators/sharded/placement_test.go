package sharded_test

import (
	"context"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/loomgate/loomgate/conformance/small"
	"github.com/loomgate/loomgate/decorators/sharded"
	"github.com/loomgate/loomgate/decorators/tenant"
	"github.com/loomgate/loomgate/spi"
)

// TestASlotIsTheHashModulo4096 holds placement, which outlives every process, to the
// test vectors that xxHash's authors publish.
func TestASlotIsTheHashModulo4096(t *testing.T) {
	for name, hash := range map[string]uint64{
		"a":   0xd24ec4f1a98c6e5b,
		"abc": 0x44bc2cf5ad770999,
	} {
		for _, p := range placements {
			if slot := p.Slot(name); slot != spi.Slot(hash%spi.HashSlots) {
				t.Errorf("by %v, %q is in slot %d, not %d", p, name, slot, hash%spi.HashSlots)
			}
		}
	}
}

func TestByTenantATenantIsInOneSlotAndOthersAreInOthers(t *testing.T) {
	slots := map[spi.Slot]bool{}
	for _, name := range []spi.TenantName{"acme", "acme2", "Acme", "é", "a/b", "4:acme/"} {
		scope, err := spi.ScopeOf(name)
		if err != nil {
			t.Fatal(err)
		}
		of := sharded.ByTenant.Slot(scope.Prefix())
		slots[of] = true
		for _, outer := range []string{"a", "b/c", "4:acme/x", "\U0010FFFF"} {
			if slot := sharded.ByTenant.Slot(scope.Prefix() + outer); slot != of {
				t.Errorf("%q of %q is in slot %d, the tenant in %d", outer, name, slot, of)
			}
		}
	}
	if len(slots) < 5 { // two may meet
		t.Errorf("six tenants are in %d slots", len(slots))
	}
}

func TestPlacementsDifferInTheirFingerprints(t *testing.T) {
	seen := map[string]sharded.Placement{}
	for _, p := range placements {
		if other, ok := seen[p.Fingerprint()]; ok {
			t.Errorf("%v and %v are both %q", p, other, p.Fingerprint())
		}
		seen[p.Fingerprint()] = p
	}
}

// A sighting is where a call has arrived.
type sighting struct {
	shard string
	route spi.Route
}

// TestANameIsInOnePlaceInBothOrders compares a tenant's view of a sharded store with a
// sharded store over the tenant's views.
func TestANameIsInOnePlaceInBothOrders(t *testing.T) {
	for _, p := range placements {
		t.Run(p.String(), func(t *testing.T) {
			for _, view := range []struct {
				name string
				of   func(spi.TenantName, *spi.Store) (*spi.Store, error)
			}{{"small", small.Prefix}, {"tenant", tenant.New}} {
				t.Run(view.name, func(t *testing.T) {
					f := newShards(t, p, 3)
					f.pin(1, 1, "pinned")
					f.open(sharded.Options{})
					var seen []sighting
					for i, d := range f.doubles {
						d.on(func(_ context.Context, method string, req any) (any, error) {
							if route, ok := routeOf(req); ok {
								seen = append(seen, sighting{shardName(i), route})
							}
							return nil, nil
						})
					}
					rapid.Check(t, func(rt *rapid.T) {
						name := rapid.OneOf(rapid.Just[spi.TenantName]("pinned"), tenants()).Draw(rt, "tenant")
						above := must(t)(view.of(name, f.store))
						var views []sharded.Shard
						for _, shard := range f.shards {
							views = append(views, sharded.Shard{Name: shard.Name, Store: must(t)(view.of(name, shard.Store))})
						}
						below := must(t)(sharded.New(t.Context(), views, sharded.Options{Placement: p, Tenant: name}))
						outer := outerNames().Draw(rt, "name")
						for what, ask := range questions {
							seen = nil
							errs := errors.Join(ask(t.Context(), above, outer), ask(t.Context(), below, outer))
							if len(seen) != 2 || seen[0] != seen[1] {
								rt.Fatalf("%s of %q is seen at %+v (%v)", what, outer, seen, errs)
							}
							if name == "pinned" && (seen[0].shard != shardName(1) || seen[0].route.Slot != spi.FirstPin+1) {
								rt.Errorf("%s of a pinned tenant is seen at %+v", what, seen[0])
							}
						}
					})
				})
			}
		})
	}
}

func TestAPinnedTenantsPagesAreWholeInBothOrders(t *testing.T) {
	f := newShards(t, sharded.ByExecution, 3)
	f.pin(1, 1, "pinned")
	f.pin(2, 2, "another")
	f.open(sharded.Options{})
	above := must(t)(tenant.New("pinned", f.store))
	var views []sharded.Shard
	for _, shard := range f.shards {
		views = append(views, sharded.Shard{Name: shard.Name, Store: must(t)(tenant.New("pinned", shard.Store))})
	}
	below := must(t)(sharded.New(t.Context(), views, sharded.Options{Tenant: "pinned"}))
	for i, s := range []*spi.Store{above, below} {
		if _, err := spi.Append(t.Context(), s, spi.AppendRequest{Execution: spi.ExecutionID(shardName(i)), Events: events(1)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []*spi.Store{above, below} {
		res, err := spi.ListExecutions(t.Context(), s, spi.ListExecutionsRequest{Limit: 10})
		if err != nil || len(res.Executions) != 2 {
			t.Errorf("the page is %q, %v", res.Executions, err)
		}
		for _, r := range res.Receipt {
			if r.Slots.Contains(spi.FirstPin + 2) {
				t.Errorf("the receipt shows the pin of another tenant: %v", r.Slots)
			}
		}
	}
}

// questions is a call a kind of name, which changes nothing.
var questions = map[string]func(ctx context.Context, s *spi.Store, name string) error{
	"an execution": func(ctx context.Context, s *spi.Store, name string) error {
		_, err := spi.Head(ctx, s, spi.HeadRequest{Execution: spi.ExecutionID(name)})
		return err
	},
	"a timer": func(ctx context.Context, s *spi.Store, name string) error {
		_, err := spi.CompleteTimer(ctx, s, spi.CompleteTimerRequest{Execution: spi.ExecutionID(name), WakeAt: longAgo, Version: 1})
		return err
	},
	"a ref": func(ctx context.Context, s *spi.Store, name string) error {
		_, err := spi.GetRef(ctx, s, spi.GetRefRequest{Name: spi.RefName(name)})
		return err
	},
	"a lease": func(ctx context.Context, s *spi.Store, name string) error {
		_, err := spi.ReleaseLease(ctx, s, spi.ReleaseLeaseRequest{Name: spi.LeaseName(name), Token: 1})
		return err
	},
	"a data key": func(ctx context.Context, s *spi.Store, name string) error {
		_, err := spi.GetDataKey(ctx, s, spi.GetDataKeyRequest{Owner: spi.KeyOwner(name)})
		return err
	},
}

// routeOf returns the route that a call of questions states.
func routeOf(req any) (spi.Route, bool) {
	switch req := req.(type) {
	case spi.HeadRequest:
		return req.Route, true
	case spi.CompleteTimerRequest:
		return req.Route, true
	case spi.GetRefRequest:
		return req.Route, true
	case spi.ReleaseLeaseRequest:
		return req.Route, true
	case spi.GetDataKeyRequest:
		return req.Route, true
	}
	return spi.Route{}, false
}

func tenants() *rapid.Generator[spi.TenantName] {
	return rapid.Custom(func(rt *rapid.T) spi.TenantName {
		return spi.TenantName(rapid.StringOfN(rapid.SampledFrom([]rune("a1:/é\U0010FFFF")), 1, 12, spi.MaxTenantName).Draw(rt, "name"))
	})
}

// outerNames are names as a tenant chooses them, also such as look like scopes.
func outerNames() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringOfN(rapid.SampledFrom([]rune("a1:/é\U0010FFFF")), 1, 40, spi.MaxOuterID),
		rapid.SampledFrom([]string{"4:acme/", "4:acme/x", "6:pinned/x", "1:a/1:a/"}),
	)
}
