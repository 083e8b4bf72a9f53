package tenant_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/loomgate/loomgate/decorators/sharded"
	"github.com/loomgate/loomgate/spi"
)

// TestAPinnedTenantIsOneAboveShardingAndBelow writes through a view of all shards, and
// through all views of one shard, and finds everything from either side.
func TestAPinnedTenantIsOneAboveShardingAndBelow(t *testing.T) {
	ctx := t.Context()
	var shards, views []sharded.Shard
	for _, name := range []string{"a", "b", "c"} {
		shards = append(shards, sharded.Shard{Name: name, Store: inMemory(t)})
	}
	if err := sharded.Init(ctx, "cluster", sharded.ByExecution, shards); err != nil {
		t.Fatal(err)
	}
	for i, owner := range []spi.TenantName{"other", "acme", "acm"} {
		res, err := spi.GetOwnership(ctx, shards[i].Store, spi.GetOwnershipRequest{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = spi.ChangeOwnership(ctx, shards[i].Store, spi.ChangeOwnershipRequest{
			ExpectedVersion: res.Shards[0].Version,
			Slots:           []spi.SlotRecord{{Slot: spi.FirstPin + spi.Slot(i), State: spi.SlotOwned, Epoch: 1, Tenant: owner}},
		})
		if err != nil {
			t.Fatal(err)
		}
		views = append(views, sharded.Shard{Name: shards[i].Name, Store: view(t, "acme", shards[i].Store)})
	}
	cluster, err := sharded.New(ctx, shards, sharded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	below, err := sharded.New(ctx, views, sharded.Options{Tenant: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	above := view(t, "acme", cluster)
	var want []spi.ExecutionID
	for i := range 20 {
		id := spi.ExecutionID(fmt.Sprintf("e%02d", i))
		want = append(want, id)
		if _, err := spi.Append(ctx, []*spi.Store{above, below}[i%2], batch(id).Appends[0]); err != nil {
			t.Fatal(err)
		}
		if _, err := spi.Append(ctx, view(t, "other", cluster), batch(id).Appends[0]); err != nil {
			t.Fatal(err)
		}
	}
	for side, s := range map[string]*spi.Store{"above": above, "below": below} {
		res, err := spi.ListExecutions(ctx, s, spi.ListExecutionsRequest{Limit: 100})
		if err != nil || !slices.Equal(res.Executions, want) {
			t.Errorf("%s it has %q (%v)", side, res.Executions, err)
		}
		for _, shard := range res.Receipt {
			for pin := spi.FirstPin; pin < spi.FirstPin+3; pin++ {
				if own := side == "below" && pin == spi.FirstPin+1 && shard.Shard == "b"; shard.Slots.Contains(pin) != own {
					t.Errorf("%s, the receipt of %s is %v", side, shard.Shard, shard.Slots)
				}
			}
		}
	}
}
