package sharded_test

import (
	"context"
	"errors"
	"testing"

	"github.com/loomgate/loomgate/decorators/sharded"
	"github.com/loomgate/loomgate/spi"
)

func TestSharesAreEvenAndLeaveNothingOut(t *testing.T) {
	for _, n := range []int{1, 2, 3, 7, 64, 4095, spi.HashSlots} {
		var covered []spi.SlotSet
		for i, share := range sharded.Share(n) {
			if len(share) < spi.HashSlots/n || len(share) > spi.HashSlots/n+1 {
				t.Errorf("share %d of %d has %d slots", i, n, len(share))
			}
			var slots []spi.Slot
			for _, r := range share {
				slots = append(slots, r.Slot)
			}
			covered = append(covered, spi.NewSlotSet(slots...))
		}
		if err := spi.CheckCoverage(spi.HashSlotSet(), covered...); err != nil {
			t.Errorf("of %d: %v", n, err)
		}
	}
}

func empties(t *testing.T, names ...string) (shards []sharded.Shard) {
	for _, name := range names {
		shards = append(shards, sharded.Shard{Name: name, Store: bare(t)})
	}
	return shards
}

// versions returns how often each shard's ownership has changed.
func versions(t *testing.T, shards []sharded.Shard) (all []int64) {
	for _, s := range shards {
		res, err := spi.GetOwnership(t.Context(), s.Store, spi.GetOwnershipRequest{})
		if err != nil {
			t.Fatal(err)
		}
		version := int64(0)
		for _, own := range res.Shards {
			version = own.Version
		}
		all = append(all, version)
	}
	return all
}

func TestInitMakesShardsThatOpenAndDoesNothingTheSecondTime(t *testing.T) {
	for _, p := range placements {
		shards := empties(t, "a", "b", "c")
		for range 2 {
			if err := sharded.Init(t.Context(), "cluster", p, shards); err != nil {
				t.Fatal(err)
			}
			for i, v := range versions(t, shards) {
				if v != 1 {
					t.Errorf("shard %d is at version %d", i, v)
				}
			}
		}
		if _, err := sharded.Open(t.Context(), shards, sharded.Options{Placement: p}); err != nil {
			t.Error(err)
		}
	}
}

func TestInitGoesOnWhereItWasInterrupted(t *testing.T) {
	shards := empties(t, "a", "b", "c")
	d, broken := newDouble(t, shards[1].Store)
	d.on(func(_ context.Context, method string, _ any) (any, error) {
		if method == "ChangeOwnership" {
			return nil, errBroken
		}
		return nil, nil
	})
	half := []sharded.Shard{shards[0], {Name: "b", Store: broken}, shards[2]}
	err := sharded.Init(t.Context(), "cluster", sharded.ByExecution, half)
	if wantShard(t, err, "b"); !errors.Is(err, errBroken) {
		t.Error(err)
	}
	if err := sharded.Init(t.Context(), "cluster", sharded.ByExecution, shards); err != nil {
		t.Fatal(err)
	}
	if _, err := sharded.Open(t.Context(), shards, sharded.Options{}); err != nil {
		t.Error(err)
	}
}

// What another process does between the look at a shard and its change.
func TestInitBesideAnotherMakesOneClusterOrSaysWhichShardItLost(t *testing.T) {
	for _, other := range []string{"cluster", "another"} {
		shards := empties(t, "a", "b")
		d, watched := newDouble(t, shards[1].Store)
		d.on(func(ctx context.Context, method string, _ any) (any, error) {
			if method == "ChangeOwnership" {
				return nil, sharded.Init(ctx, other, sharded.ByExecution, []sharded.Shard{{Name: "a", Store: bare(t)}, shards[1]})
			}
			return nil, nil
		})
		err := sharded.Init(t.Context(), "cluster", sharded.ByExecution, []sharded.Shard{shards[0], {Name: "b", Store: watched}})
		if other == "cluster" {
			if err != nil {
				t.Error(err)
			}
		} else if misfit, ok := errors.AsType[*sharded.IdentityError](err); !ok || misfit.Shard != "b" {
			t.Error(err)
		}
	}
}

func TestInitChangesNothingWhereAShardIsInUseOrAnotherOne(t *testing.T) {
	for what, first := range map[string]func(t *testing.T, s *spi.Store) error{
		"it has the share of fewer shards": func(t *testing.T, s *spi.Store) error {
			return sharded.Init(t.Context(), "cluster", sharded.ByExecution, []sharded.Shard{{Name: "b", Store: s}})
		},
		"it is of another cluster": func(t *testing.T, s *spi.Store) error {
			return sharded.Init(t.Context(), "another", sharded.ByExecution, []sharded.Shard{{Name: "a", Store: bare(t)}, {Name: "b", Store: s}})
		},
		"it was filled by another placement": func(t *testing.T, s *spi.Store) error {
			return sharded.Init(t.Context(), "cluster", sharded.ByTenant, []sharded.Shard{{Name: "a", Store: bare(t)}, {Name: "b", Store: s}})
		},
	} {
		t.Run(what, func(t *testing.T) {
			shards := empties(t, "a", "b")
			if err := first(t, shards[1].Store); err != nil {
				t.Fatal(err)
			}
			err := sharded.Init(t.Context(), "cluster", sharded.ByExecution, shards)
			if e := want[*sharded.IdentityError](t, err); e.Shard != "b" {
				t.Error(e)
			}
			if v := versions(t, shards); v[0] != 0 || v[1] != 1 {
				t.Errorf("the shards are at versions %v", v)
			}
		})
	}
}

func TestInitRefusesNamesBeforeItChangesAnything(t *testing.T) {
	shards := empties(t, "a", "")
	want[*spi.InvalidArgumentError](t, sharded.Init(t.Context(), "cluster", sharded.ByExecution, shards))
	if v := versions(t, shards); v[0] != 0 {
		t.Error("the first shard has its identity")
	}
}
