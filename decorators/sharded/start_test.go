package sharded_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/decorators/sharded"
	"github.com/loomgate/loomgate/spi"
)

func bare(t *testing.T) *spi.Store { return must(t)(memory.New()) }

// identified returns a store with an identity.
func identified(t *testing.T, id spi.Identity, slots ...spi.SlotRecord) *spi.Store {
	s := bare(t)
	if _, err := spi.ChangeOwnership(t.Context(), s, spi.ChangeOwnershipRequest{Identity: id, Slots: slots}); err != nil {
		t.Fatal(err)
	}
	return s
}

// saying returns a store that says of itself what it is told to.
func saying(t *testing.T, shard string, slots ...spi.SlotRecord) *spi.Store {
	slices.SortFunc(slots, func(a, b spi.SlotRecord) int { return cmp.Compare(a.Slot, b.Slot) })
	d, s := newDouble(t, bare(t))
	d.on(func(_ context.Context, method string, _ any) (any, error) {
		if method != "GetOwnership" {
			return nil, nil
		}
		return spi.GetOwnershipResponse{Shards: []spi.ShardOwnership{{Identity: identity(shard), Version: 7, Slots: slots}}}, nil
	})
	return s
}

func identity(shard string) spi.Identity {
	return spi.Identity{Cluster: "cluster", Shard: shard, Fingerprint: sharded.ByExecution.Fingerprint()}
}

func record(slot spi.Slot, state spi.SlotState, epoch int64, peer string) spi.SlotRecord {
	return spi.SlotRecord{Slot: slot, State: state, Epoch: epoch, Peer: peer}
}

func pin(slot spi.Slot, tenant spi.TenantName) spi.SlotRecord {
	return spi.SlotRecord{Slot: slot, State: spi.SlotOwned, Epoch: 1, Tenant: tenant}
}

// TestAShardThatDoesNotBelongIsRefused is about what one shard says of itself.
func TestAShardThatDoesNotBelongIsRefused(t *testing.T) {
	halves := sharded.Share(2)
	a := func(t *testing.T) *spi.Store { return identified(t, identity("a"), halves[0]...) }
	b := func(t *testing.T) *spi.Store { return identified(t, identity("b"), halves[1]...) }
	with := func(change func(*spi.Identity)) func(t *testing.T) *spi.Store {
		return func(t *testing.T) *spi.Store {
			id := identity("b")
			change(&id)
			return identified(t, id, halves[1]...)
		}
	}
	for _, c := range []struct {
		what   string
		shards func(t *testing.T) []sharded.Shard
		opts   sharded.Options
		says   []string
	}{
		{
			"two shards are given with one name",
			func(t *testing.T) []sharded.Shard { return []sharded.Shard{{"a", a(t)}, {"a", b(t)}} },
			sharded.Options{},
			[]string{`"a"`, "twice"},
		},
		{
			"a store is given twice",
			func(t *testing.T) []sharded.Shard {
				s := a(t)
				return []sharded.Shard{{"a", s}, {"b", s}}
			},
			sharded.Options{},
			[]string{`"b"`, "twice"},
		},
		{
			"two stores lead to one database",
			func(t *testing.T) []sharded.Shard {
				_, again := newDouble(t, a(t))
				_, once := newDouble(t, a(t))
				return []sharded.Shard{{"", once}, {"", again}}
			},
			sharded.Options{},
			[]string{`"a"`, "twice"},
		},
		{
			"two stores lead to one database, by two names",
			func(t *testing.T) []sharded.Shard {
				_, again := newDouble(t, a(t))
				return []sharded.Shard{{"a", a(t)}, {"b", again}}
			},
			sharded.Options{},
			[]string{`"b"`, `"a"`},
		},
		{
			"shards are given in another order",
			func(t *testing.T) []sharded.Shard { return []sharded.Shard{{"a", b(t)}, {"b", a(t)}} },
			sharded.Options{},
			[]string{`"a"`, `"b"`, "order"},
		},
		{
			"a shard is of another cluster",
			func(t *testing.T) []sharded.Shard {
				return []sharded.Shard{{"a", a(t)}, {"b", with(func(id *spi.Identity) { id.Cluster = "staging" })(t)}}
			},
			sharded.Options{},
			[]string{`"b"`, `"staging"`, `"cluster"`, `"a"`},
		},
		{
			"a shard was filled by another placement",
			func(t *testing.T) []sharded.Shard {
				return []sharded.Shard{{"a", a(t)}, {"b", with(func(id *spi.Identity) { id.Fingerprint = "md5/7" })(t)}}
			},
			sharded.Options{},
			[]string{`"b"`, `"md5/7"`, sharded.ByExecution.Fingerprint()},
		},
		{
			"all shards were filled by another placement",
			func(t *testing.T) []sharded.Shard { return []sharded.Shard{{"a", a(t)}, {"b", b(t)}} },
			sharded.Options{Placement: sharded.ByTenant},
			[]string{`"a"`, sharded.ByExecution.Fingerprint(), sharded.ByTenant.Fingerprint()},
		},
		{
			"a shard has no identity",
			func(t *testing.T) []sharded.Shard { return []sharded.Shard{{"a", bare(t)}} },
			sharded.Options{},
			[]string{`"a"`, "no identity"},
		},
		{
			"a shard offers no ownership",
			func(t *testing.T) []sharded.Shard { return []sharded.Shard{{"a", spi.Only(a(t), ^spi.CapOwnership)}} },
			sharded.Options{},
			[]string{`"a"`, "no identity"},
		},
		{
			"the first shard has an identity and the second has none",
			func(t *testing.T) []sharded.Shard { return []sharded.Shard{{"a", a(t)}, {"b", bare(t)}} },
			sharded.Options{Exclusive: true},
			[]string{`"b" has no identity`, `"a"`},
		},
		{
			"the second shard has an identity and the first has none",
			func(t *testing.T) []sharded.Shard { return []sharded.Shard{{"a", bare(t)}, {"b", b(t)}} },
			sharded.Options{Exclusive: true},
			[]string{`"b" has an identity`, `"a"`},
		},
		{
			"a shard is a cluster",
			func(t *testing.T) []sharded.Shard {
				return []sharded.Shard{{"a", must(t)(sharded.New(t.Context(), shardsOf(a(t), b(t)), sharded.Options{}))}}
			},
			sharded.Options{},
			[]string{`"a"`, "2 shards"},
		},
		{
			"a shard has no store",
			func(t *testing.T) []sharded.Shard { return []sharded.Shard{{"a", a(t)}, {"b", nil}} },
			sharded.Options{},
			[]string{`"b"`, "no store"},
		},
	} {
		t.Run(c.what, func(t *testing.T) {
			for _, c.opts.AwaitMissing = range []bool{false, true} { // it is there, and wrong
				_, err := sharded.New(t.Context(), c.shards(t), c.opts)
				wantText(t, want[*sharded.IdentityError](t, err), c.says...)
			}
		})
	}
}

func wantText(t *testing.T, err error, says ...string) {
	t.Helper()
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%q does not say %s", err, s)
		}
	}
}

// TestAMapIsRefusedUnlessEachSlotIsOwnedOnceOrMoves is about what shards say together.
func TestAMapIsRefusedUnlessEachSlotIsOwnedOnceOrMoves(t *testing.T) {
	const moved = spi.Slot(100)
	halves := sharded.Share(2)
	without := slices.DeleteFunc(slices.Clone(halves[0]), func(r spi.SlotRecord) bool { return r.Slot == moved })
	for _, c := range []struct {
		what    string
		a, b    []spi.SlotRecord // beside the other slots
		missing string
		twice   string
	}{
		{"owned", []spi.SlotRecord{record(moved, spi.SlotOwned, 1, "")}, nil, "", ""},
		{"nobody's", nil, nil, "100", ""},
		{"owned twice", []spi.SlotRecord{record(moved, spi.SlotOwned, 1, "")}, []spi.SlotRecord{record(moved, spi.SlotOwned, 1, "")}, "", "100"},
		{"owned twice, once as of earlier", []spi.SlotRecord{record(moved, spi.SlotOwned, 1, "")}, []spi.SlotRecord{record(moved, spi.SlotOwned, 2, "")}, "", "100"},
		{"owned and frozen", []spi.SlotRecord{record(moved, spi.SlotFrozen, 1, "b")}, []spi.SlotRecord{record(moved, spi.SlotOwned, 2, "")}, "", "100"},
		{"owned and prepared", []spi.SlotRecord{record(moved, spi.SlotOwned, 1, "")}, []spi.SlotRecord{record(moved, spi.SlotReceiving, 1, "a")}, "", ""},
		{"frozen", []spi.SlotRecord{record(moved, spi.SlotFrozen, 1, "b")}, []spi.SlotRecord{record(moved, spi.SlotReceiving, 1, "a")}, "", ""},
		{"released and receiving", []spi.SlotRecord{record(moved, spi.SlotReleased, 2, "b")}, []spi.SlotRecord{record(moved, spi.SlotReceiving, 1, "a")}, "", ""},
		{"released to nobody in particular", []spi.SlotRecord{record(moved, spi.SlotReleased, 2, "")}, []spi.SlotRecord{record(moved, spi.SlotReceiving, 1, "")}, "", ""},
		{"released, and not heard of at its peer yet", []spi.SlotRecord{record(moved, spi.SlotReleased, 2, "b")}, nil, "", ""},
		{"moved", []spi.SlotRecord{record(moved, spi.SlotReleased, 2, "b")}, []spi.SlotRecord{record(moved, spi.SlotOwned, 2, "")}, "", ""},
		{"not moved after all", []spi.SlotRecord{record(moved, spi.SlotOwned, 1, "")}, []spi.SlotRecord{record(moved, spi.SlotReleased, 1, "a")}, "", ""},
		{"released to a shard that is not here", []spi.SlotRecord{record(moved, spi.SlotReleased, 2, "c")}, nil, "100", ""},
		{"received from a shard that is not here", nil, []spi.SlotRecord{record(moved, spi.SlotReceiving, 1, "c")}, "100", ""},
		{"a pin owned twice", []spi.SlotRecord{record(moved, spi.SlotOwned, 1, ""), pin(5000, "acme")}, []spi.SlotRecord{pin(5000, "acme")}, "", "5000"},
	} {
		t.Run(c.what, func(t *testing.T) {
			a := saying(t, "a", slices.Concat(without, c.a)...)
			b := saying(t, "b", slices.Concat(halves[1], c.b)...)
			_, err := sharded.New(t.Context(), shardsOf(a, b), sharded.Options{})
			if c.missing+c.twice == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			e := want[*spi.CoverageError](t, err)
			if missing := cmp.Or(c.missing, "none"); e.Missing.String() != missing {
				t.Errorf("missing is %v, not %s", e.Missing, missing)
			}
			if twice := cmp.Or(c.twice, "none"); e.Twice.String() != twice {
				t.Errorf("twice is %v, not %s", e.Twice, twice)
			}
			if c.twice != "" {
				if o := want[*sharded.OverlapError](t, err); !slices.Equal(o.Shards, []string{"a", "b"}) {
					t.Errorf("the holders are %q", o.Shards)
				}
			}
		})
	}
}

func TestATenantThatIsPinnedTwiceIsRefused(t *testing.T) {
	halves := sharded.Share(2)
	a := saying(t, "a", append(halves[0], pin(5000, "acme"))...)
	b := saying(t, "b", append(halves[1], pin(5001, "acme"))...)
	_, err := sharded.New(t.Context(), shardsOf(a, b), sharded.Options{})
	wantText(t, want[*sharded.PinError](t, err), `"acme"`, "5000", "5001")
}

func TestBadOptionsAreRefusedByTheFieldAndTheRule(t *testing.T) {
	one := func(t *testing.T) []sharded.Shard { return shardsOf(bare(t)) }
	for _, c := range []struct {
		field  string
		shards []sharded.Shard
		opts   sharded.Options
	}{
		{"shards", nil, sharded.Options{Exclusive: true}},
		{"shards", make([]sharded.Shard, spi.HashSlots+1), sharded.Options{Exclusive: true}},
		{"placement", one(t), sharded.Options{Exclusive: true, Placement: sharded.ByTenant + 1}},
		{"call timeout", one(t), sharded.Options{Exclusive: true, CallTimeout: -1}},
		{"tenant name", one(t), sharded.Options{Exclusive: true, Tenant: "\x00"}},
	} {
		_, err := sharded.New(t.Context(), c.shards, c.opts)
		if e := want[*spi.InvalidArgumentError](t, err); e.Field != c.field {
			t.Errorf("the field is %q, not %q", e.Field, c.field)
		}
	}
}

// TestAMapThatIsReadWhileASlotMovesIsReadAgain asks one shard before a slot leaves it
// and the other after.
func TestAMapThatIsReadWhileASlotMovesIsReadAgain(t *testing.T) {
	f := newShards(t, sharded.ByExecution, 2)
	early, err := spi.GetOwnership(t.Context(), f.doubles[0].inner, spi.GetOwnershipRequest{})
	if err != nil {
		t.Fatal(err)
	}
	f.move(0, 0, 1, "")
	asked := 0
	f.doubles[0].on(func(_ context.Context, method string, _ any) (any, error) {
		if asked++; asked == 1 {
			return early, nil
		}
		return nil, nil
	})
	f.open(sharded.Options{})
	if asked != 2 {
		t.Errorf("it was read %d times", asked)
	}
}

func TestAShardThatDoesNotAnswerIsNamedAtStart(t *testing.T) {
	f := newShards(t, sharded.ByExecution, 3)
	f.doubles[1].on(failing)
	_, err := sharded.New(t.Context(), f.shards, sharded.Options{})
	wantShard(t, err, shardName(1))
	if !errors.Is(err, errBroken) {
		t.Error(err)
	}
}

func TestExclusiveStoresShareTheSlotsOutByTheirPlace(t *testing.T) {
	stores := []*spi.Store{bare(t), bare(t)}
	cluster, err := sharded.Open(t.Context(), shardsOf(stores...), sharded.Options{Exclusive: true})
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for i := range 200 {
		at, err := cluster.Where(string(rune('a' + i)))
		if err != nil || at.Route != (spi.Route{}) {
			t.Fatal(at, err)
		}
		counts[at.Shard]++
	}
	if len(counts) != 2 || counts["shard-1"] < 50 || counts["shard-2"] < 50 {
		t.Errorf("200 names are spread as %v", counts)
	}
}
