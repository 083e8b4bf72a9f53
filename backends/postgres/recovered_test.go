package postgres_test

import (
	"testing"

	"github.com/loomgate/loomgate/backends/postgres"
	"github.com/loomgate/loomgate/internal/pgtest"
	"github.com/loomgate/loomgate/spi"
)

func TestARecoveredShardGivesNoTokenOutTwice(t *testing.T) {
	db := migrated.Fresh(t, pgtest.ICU)
	s := open(t, db).Store()
	_, err := spi.ChangeOwnership(t.Context(), s, spi.ChangeOwnershipRequest{
		Identity: spi.Identity{Cluster: "c", Shard: "a", Fingerprint: "f"},
		Slots:    []spi.SlotRecord{{Slot: 0, State: spi.SlotOwned, Epoch: 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	route := spi.Route{Epoch: 1}
	at := func(id spi.ExecutionID) spi.AcquireFenceRequest {
		return spi.AcquireFenceRequest{Route: route, Execution: id}
	}
	first, err := spi.AcquireFence(t.Context(), s, at("fenced"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := spi.Append(t.Context(), s, spi.AppendRequest{Route: route, Execution: "plain", Events: noted(1)}); err != nil {
		t.Fatal(err)
	}
	lease, err := spi.AcquireLease(t.Context(), s, spi.AcquireLeaseRequest{Route: route, Name: "l", Holder: "h", TTL: spi.MinLeaseTTL})
	if err != nil {
		t.Fatal(err)
	}
	lost := first.Token + 3 // given out meanwhile, and forgotten

	r, err := postgres.Recovered(t.Context(), db.Direct, false)
	if err != nil || r != (postgres.Recovery{Executions: 1, Slots: 1}) {
		t.Fatal(r, err)
	}
	_, err = spi.AcquireFence(t.Context(), s, at("fenced"))
	want[*spi.MisroutedError](t, err)
	own, err := spi.GetOwnership(t.Context(), s, spi.GetOwnershipRequest{})
	if err != nil {
		t.Fatal(err)
	}
	route.Epoch = own.Shards[0].Slots[0].Epoch
	stale := noted(1)
	stale[0].Kind, stale[0].Kernel = spi.KindExecutionResumed, true
	_, err = spi.Append(t.Context(), s, spi.AppendRequest{Route: route, Execution: "fenced", Fence: lost, Events: stale})
	want[*spi.StaleFenceError](t, err)
	next, err := spi.AcquireFence(t.Context(), s, at("fenced"))
	if err != nil || next.Token <= lost {
		t.Errorf("token %d after %d was given out (%v)", next.Token, lost, err)
	}
	again, err := spi.AcquireLease(t.Context(), s, spi.AcquireLeaseRequest{Route: route, Name: "m", Holder: "h", TTL: spi.MinLeaseTTL})
	if err != nil || again.Token < lease.Token+postgres.RecoveryJump {
		t.Errorf("a lease's token is %d, was %d (%v)", again.Token, lease.Token, err)
	}
	_, err = spi.Append(t.Context(), s, spi.AppendRequest{Route: route, Execution: "plain", ExpectedHead: 1, Events: stale})
	if err != nil {
		t.Errorf("an execution that was never fenced: %v", err)
	}
	if r, err := postgres.Recovered(t.Context(), db.Direct, true); err != nil || r.Executions != 2 {
		t.Errorf("with those that were never fenced: %+v (%v)", r, err)
	}
}
