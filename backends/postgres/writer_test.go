package postgres_test

import (
	"errors"
	"testing"

	"github.com/loomgate/loomgate/backends/postgres"
	"github.com/loomgate/loomgate/internal/pgtest"
	"github.com/loomgate/loomgate/spi"
)

// TestAnOlderWriterIsRefusedWithoutARouterAbove raises the minimum as a router does, with
// the epoch.
func TestAnOlderWriterIsRefusedWithoutARouterAbove(t *testing.T) {
	db := migrated.Fresh(t, pgtest.ICU)
	ran := open(t, db).Store()
	own, err := spi.ChangeOwnership(t.Context(), ran, spi.ChangeOwnershipRequest{
		Identity: spi.Identity{Cluster: "c", Shard: "a", Fingerprint: "f", MinWriter: spi.Versions()[spi.Events]},
		Slots:    []spi.SlotRecord{{Slot: 0, State: spi.SlotOwned, Epoch: 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	appendAt := func(s *spi.Store, epoch int64) error {
		_, err := spi.Append(t.Context(), s, spi.AppendRequest{
			Route: spi.Route{Epoch: epoch}, Execution: "e", ExpectedHead: spi.AnyHead, Events: noted(1),
		})
		return err
	}
	if err := appendAt(ran, 1); err != nil {
		t.Fatal(err)
	}
	now := own.Ownership.Identity.MinWriter
	next := spi.Version{Major: now.Major, Minor: now.Minor + 1}
	newer, err := postgres.Open(t.Context(), db.DSN, postgres.WritesAs(next))
	if err != nil {
		t.Fatal(err)
	}
	defer newer.Close()
	raise := spi.ChangeOwnershipRequest{
		ExpectedVersion: own.Ownership.Version, Identity: own.Ownership.Identity,
		Slots: []spi.SlotRecord{{Slot: 0, State: spi.SlotOwned, Epoch: 2}},
	}
	raise.Identity.MinWriter = next
	if _, err := spi.ChangeOwnership(t.Context(), newer.Store(), raise); err != nil {
		t.Fatal(err)
	}
	want[*spi.MisroutedError](t, appendAt(ran, 1))
	if _, err := spi.GetOwnership(t.Context(), ran, spi.GetOwnershipRequest{}); err != nil { // without it there is no epoch to state
		t.Fatal(err)
	}
	started := open(t, db).Store()
	for name, s := range map[string]*spi.Store{"one that ran": ran, "one that has started": started} {
		err := appendAt(s, 2)
		if want[*spi.UnavailableError](t, err); !errors.Is(err, postgres.ErrOldWriter) {
			t.Errorf("%s: %v", name, err)
		}
		if res, err := spi.Read(t.Context(), s, spi.ReadRequest{Route: spi.Route{Epoch: 2}, Execution: "e", Limit: 10}); err != nil || len(res.Events) != 1 {
			t.Errorf("%s reads %d events, %v", name, len(res.Events), err)
		}
	}
	if err := appendAt(newer.Store(), 2); err != nil {
		t.Error(err)
	}
}
