package sharded

import (
	"cmp"
	"errors"
	"iter"
	"slices"

	"github.com/loomgate/loomgate/spi"
)

// A table is the map as the shards have told it. It never changes.
type table struct {
	*placer
	shards []said

	hash   [spi.HashSlots]place
	pinned map[spi.Slot]place
	pins   map[spi.TenantName]spi.Slot // whose they are; empty where the shards are one tenant's views
	own    spi.Slot                    // that tenant's pin; 0 if it has none

	// want is what a page has to cover: the hash slots and every pin that a shard
	// knows of. It is empty where the shards have no identity.
	want spi.SlotSet

	// fault is why Open refuses the shards, or nil.
	fault error
}

// A said is what a shard has said of itself.
type said struct {
	name   string
	named  bool               // the name is no stopgap
	known  bool               // it has answered
	err    error              // why it is not known
	own    spi.ShardOwnership // version 0: it has no identity
	listed spi.SlotSet        // the slots that are on its pages

	refuses *WriterError // why it takes no writes from here; nil: it does
}

// A place is the shard that has a slot, by its index, and the route to it.
type place struct {
	shard int
	route spi.Route
	owned bool // the shard has said that it serves the slot
}

// nobody is the shard of a slot that no known shard has.
const nobody = -1

// find returns the place of a name. It is on the path of every call.
func (t *table) find(name string) place {
	slot := t.slot(name)
	if slot < spi.FirstPin {
		return t.hash[slot]
	}
	return t.pinned[slot]
}

// slot returns the slot of a name.
func (t *table) slot(name string) spi.Slot {
	if t.own != 0 {
		return t.own
	}
	if len(t.pins) > 0 {
		if tenant, _, scoped := spi.SplitScope(name); scoped {
			if pin, ok := t.pins[tenant]; ok {
				return pin
			}
		}
	}
	return t.hashSlot(name)
}

// newTable makes a table of what the shards have said.
func newTable(p *placer, shards []said) *table {
	t := &table{placer: p, shards: shards}
	for i := range t.hash {
		t.hash[i] = place{shard: nobody, route: spi.Route{Slot: spi.Slot(i)}}
	}
	if t.identified() {
		t.assign()
	} else {
		t.shareOut()
	}
	return t
}

// identified reports whether the shards have identities, as far as they are known.
func (t *table) identified() bool {
	return !slices.ContainsFunc(t.shards, func(s said) bool { return s.known && s.own.Version == 0 })
}

// shareOut gives each shard its share by its place in the list.
func (t *table) shareOut() {
	for i, share := range Share(len(t.shards)) {
		for _, record := range share {
			if t.shards[i].known {
				t.hash[record.Slot] = place{shard: i, owned: true}
			}
		}
	}
}

// assign gives each slot to the shard that has it by the shards' own word.
func (t *table) assign() {
	t.pinned, t.pins = map[spi.Slot]place{}, map[spi.TenantName]spi.Slot{}
	var wanted, covered, twice []spi.Slot
	for slot := range spi.Slot(spi.HashSlots) {
		wanted = append(wanted, slot)
	}
	for slot, claims := range t.claims() {
		at, rivals := t.decide(slot, claims)
		if rivals {
			twice = append(twice, slot)
		}
		if rivals || at.shard != nobody {
			covered = append(covered, slot)
		}
		if slot < spi.FirstPin {
			t.hash[slot] = at
			continue
		}
		wanted = append(wanted, slot)
		tenant := claims[0].Tenant
		if other, ok := t.pins[tenant]; ok {
			t.fault = &PinError{tenant, [2]spi.Slot{other, slot}}
			at.shard = nobody
		}
		t.pinned[slot], t.pins[tenant] = at, slot
	}
	t.want = spi.NewSlotSet(wanted...)
	if t.tenant != "" {
		t.own, t.pins = t.pins[t.tenant], nil
	}
	if t.fault == nil {
		t.fault = t.uncovered(spi.NewSlotSet(covered...), spi.NewSlotSet(twice...))
	}
}

// uncovered returns an error unless every slot is covered, as far as the shards are
// known, and none twice.
func (t *table) uncovered(covered, twice spi.SlotSet) error {
	err := &spi.CoverageError{Twice: twice}
	if missing, ok := errors.AsType[*spi.CoverageError](spi.CheckCoverage(t.want, covered)); ok && len(t.unread()) == 0 {
		err.Missing = missing.Missing
	}
	if len(err.Missing)+len(err.Twice) == 0 {
		return nil
	}
	return t.overlap(err)
}

// A claim is what one shard says about a slot.
type claim struct {
	*spi.SlotRecord
	shard int
}

// outranks reports whether c was said later than d, or says that the shard has the
// slot where d does not.
func (c claim) outranks(d claim) bool {
	return cmp.Or(cmp.Compare(c.Epoch, d.Epoch), cmp.Compare(d.State, c.State)) > 0
}

// claims yields the slots that shards speak of, ascending, and what they say.
func (t *table) claims() iter.Seq2[spi.Slot, []claim] {
	return func(yield func(spi.Slot, []claim) bool) {
		rest := make([][]spi.SlotRecord, len(t.shards))
		for i, s := range t.shards {
			rest[i] = s.own.Slots
		}
		for {
			var claims []claim
			for i, records := range rest {
				if len(records) == 0 || len(claims) > 0 && records[0].Slot > claims[0].Slot {
					continue
				}
				if len(claims) > 0 && records[0].Slot < claims[0].Slot {
					claims = claims[:0]
				}
				claims = append(claims, claim{&records[0], i})
			}
			for _, c := range claims {
				rest[c.shard] = rest[c.shard][1:]
			}
			if len(claims) == 0 || !yield(claims[0].Slot, claims) {
				return
			}
		}
	}
}

// decide returns the place of a slot, and whether shards contradict each other about
// having it. What was said at the highest epoch counts: a shard that says less was
// asked before the slot left it, or has been restored from a copy of that time.
func (t *table) decide(slot spi.Slot, claims []claim) (at place, rivals bool) {
	at = place{shard: nobody, route: spi.Route{Slot: slot}}
	var last claim
	receiver := nobody
	for _, c := range claims {
		if c.State == spi.SlotReceiving {
			receiver = c.shard
		} else if last.SlotRecord == nil || c.outranks(last) {
			last = c
		}
	}
	if last.SlotRecord == nil {
		return at, false // nobody, or a shard that is not here, is giving it away
	}
	at.route.Epoch = last.Epoch
	if last.State.Lists() {
		at.shard, at.owned = last.shard, last.State == spi.SlotOwned
	} else if at.shard = t.index(last.Peer); at.shard == nobody {
		at.shard = receiver
	} else if !t.shards[at.shard].known {
		at.shard = nobody // it may be another than it is taken for
	}
	for _, c := range claims {
		if c.State.Lists() && c != last {
			rivals = true
			if c.Epoch == last.Epoch {
				at.shard = nobody // whoever is asked, the other may have been as well
			}
		}
	}
	return at, rivals
}

// index returns a shard's place in the list, or nobody.
func (t *table) index(name string) int {
	return slices.IndexFunc(t.shards, func(s said) bool { return s.name == name })
}

// unread returns the shards that are not known.
func (t *table) unread() (names []string) {
	for _, s := range t.shards {
		if !s.known {
			names = append(names, s.name)
		}
	}
	return names
}

// overlap names the shards that hold the slots covered twice, if there are any.
func (t *table) overlap(err *spi.CoverageError) error {
	var holders []string
	for _, s := range t.shards {
		if spi.CheckCoverage(nil, s.listed, err.Twice) != nil {
			holders = append(holders, s.name)
		}
	}
	if len(holders) == 0 {
		return err
	}
	return &OverlapError{holders, err}
}
