package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/conformance/internal/passthrough"
	"github.com/loomgate/loomgate/spi"
)

// Sharding runs the kit's cases about shards over a decorator that spreads one
// store over several. The shards are the kit's own: they have identities and
// slots, refuse what is not theirs, and fail when a case tells them to.
//
// split puts the decorator over shards, whose identities state fingerprint as their
// placement. It is called anew for each case.
func Sharding(t *testing.T, fingerprint string, split func(shards ...*spi.Store) (*spi.Store, error)) {
	for _, c := range []struct {
		sentence string
		prove    func(*shards)
	}{
		{"each execution is on one shard, in a slot that the shard owns, and is found there", proveSpread},
		{"every method goes to the shard that owns the name", proveWholeKit},
		{"the pages of all shards together are one listing in code point order", proveOneListing},
		{"a shard that fails fails the page with an error that names it, and no other execution", proveFailingShard},
		{"a shard whose page goes backwards, repeats or holds another shard's id fails the page", proveLyingShard},
		{"a page's receipt is what the snapshots of the shards said, and covers each slot once", proveReceipt},
		{"no page is given out whose slots nobody covers", proveUncovered},
		{"a call to a slot that has moved behind the caller's back is not done at the wrong shard", proveMoved},
		{"due timers name the shards that are missing, and come from all others", proveMissingTimers},
		{"a shard that fails fails only its own appends of a batch", proveBatchFailure},
		{"what one shard does not offer is not offered, or done without it", proveOffered},
		{"shards that leave a slot to nobody, or to two of them, are refused", proveCovered},
		{"a copy goes from one shard to another, all or none", proveCopies},
	} {
		t.Run(c.sentence, func(t *testing.T) { c.prove(newShards(t, fingerprint, split)) })
	}
}

// shards is a decorator over shards of the kit's own.
type shards struct {
	*fixture
	each        []*shard
	fingerprint string
	split       func(...*spi.Store) (*spi.Store, error)
}

// A shard is a store with an identity that can be made to misbehave.
type shard struct {
	passthrough.Backend
	name        string
	fingerprint string
	store       *spi.Store // the shard as the decorator sees it

	err error // what every call answers
	lie lie   // what is done to each page
}

// A lie is what a shard does to a page: it gets the places of its items, and returns
// them as it pleases.
type lie func(places []int) []int

func lied[T any](how lie, items []T) []T {
	if how == nil || len(items) == 0 {
		return items
	}
	places := make([]int, len(items))
	for i := range places {
		places[i] = i
	}
	var told []T
	for _, i := range how(places) {
		told = append(told, items[i])
	}
	return told
}

// shardCount is odd, so that a slot and its number share no factor.
const shardCount = 3

// ownerOf is the shard that owns a slot at first.
func ownerOf(slot spi.Slot) int { return int(slot) % shardCount }

func newShards(t *testing.T, fingerprint string, split func(...*spi.Store) (*spi.Store, error)) *shards {
	s := &shards{fingerprint: fingerprint, split: split}
	for i := range shardCount {
		var slots []spi.SlotRecord
		for slot := range spi.Slot(spi.HashSlots) {
			if ownerOf(slot) == i {
				slots = append(slots, spi.SlotRecord{Slot: slot, State: spi.SlotOwned, Epoch: 1})
			}
		}
		s.each = append(s.each, newShard(t, fmt.Sprintf("shard-%c", 'a'+i), fingerprint, slots))
	}
	s.fixture = newFixture(t, func(t *testing.T) *spi.Store { return must(t)(split(s.stores()...)) })
	return s
}

func newShard(t *testing.T, name, fingerprint string, slots []spi.SlotRecord) *shard {
	s := &shard{name: name, fingerprint: fingerprint}
	s.Backend = passthrough.Backend{Inner: must(t)(memory.New()), Fault: func() error { return s.err }}
	s.change(t, 0, slots...)
	s.store = must(t)(passthrough.Open(s, s.Inner))
	return s
}

// change changes what a shard owns, behind the decorator's back.
func (s *shard) change(t *testing.T, version int64, slots ...spi.SlotRecord) {
	t.Helper()
	_, err := spi.ChangeOwnership(t.Context(), s.Inner, spi.ChangeOwnershipRequest{
		ExpectedVersion: version, Slots: slots,
		Identity: spi.Identity{Cluster: "kit", Shard: s.name, Fingerprint: s.fingerprint},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (s *shard) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	res, err := s.Backend.ListExecutions(ctx, req)
	res.Executions = lied(s.lie, res.Executions)
	return res, err
}

func (s *shard) ListRefs(ctx context.Context, req spi.ListRefsRequest) (spi.ListRefsResponse, error) {
	res, err := s.Backend.ListRefs(ctx, req)
	res.Refs = lied(s.lie, res.Refs)
	return res, err
}

func (s *shard) ListDataKeys(ctx context.Context, req spi.ListDataKeysRequest) (spi.ListDataKeysResponse, error) {
	res, err := s.Backend.ListDataKeys(ctx, req)
	res.Keys = lied(s.lie, res.Keys)
	return res, err
}

func (s *shards) stores() []*spi.Store {
	var all []*spi.Store
	for _, shard := range s.each {
		all = append(all, shard.store)
	}
	return all
}

// holds returns the ids that a shard lists by itself.
func (s *shards) holds(i int) []string {
	s.Helper()
	on := *s.fixture
	on.store = s.each[i].Inner
	return on.list("", spi.MaxLimit)
}

// spreadCount is how many executions, refs and keys a case spreads.
const spreadCount = 60

// spread writes executions until each shard has some, and returns them by shard. Each
// is of another tenant, since a decorator may keep a tenant's together. There are as
// many refs and keys.
func (s *shards) spread() [shardCount][]spi.ExecutionID {
	s.Helper()
	for i := range spreadCount {
		scope, err := spi.ScopeOf(spi.TenantName(fmt.Sprintf("t%02d", i)))
		if err != nil {
			s.Fatal(err)
		}
		e := spi.ExecutionID(scope.Prefix() + "e")
		s.appendN(e, 0, 1)
		if s.store.Offered().Has(spi.CapRefs) {
			if _, err := spi.PutRef(s.ctx, s.store, spi.PutRefRequest{Name: spi.RefName(e), Execution: e}); err != nil {
				s.Fatal(err)
			}
		}
		if s.store.Offered().Has(spi.CapDataKeys) {
			key := spi.DataKey{Owner: spi.KeyOwner(scope.Prefix() + "k"), Version: 1, ID: spi.KeyID(spi.NewEventID()), WrappedBy: "kms", Wrapped: []byte{1}}
			if _, err := spi.CreateDataKey(s.ctx, s.store, spi.CreateDataKeyRequest{Key: key}); err != nil {
				s.Fatal(err)
			}
		}
	}
	var by [shardCount][]spi.ExecutionID
	for i := range s.each {
		for _, name := range s.holds(i) {
			by[i] = append(by[i], spi.ExecutionID(name))
		}
		if len(by[i]) == 0 {
			s.Fatalf("shard %d holds none of %d executions", i, spreadCount)
		}
	}
	return by
}

// A listed is one of the listings that go over all shards.
type listed struct {
	what string
	page func(after string, limit int) (names []string, receipt spi.Receipt, err error)
}

// listings returns those that the store offers.
func (s *shards) listings() []listed {
	all := []listed{{"executions", func(after string, limit int) ([]string, spi.Receipt, error) {
		res, err := spi.ListExecutions(s.ctx, s.store, spi.ListExecutionsRequest{After: after, Limit: limit})
		return plain(res.Executions), res.Receipt, err
	}}}
	if s.store.Offered().Has(spi.CapRefs) {
		all = append(all, listed{"refs", func(after string, limit int) (names []string, _ spi.Receipt, _ error) {
			res, err := spi.ListRefs(s.ctx, s.store, spi.ListRefsRequest{After: after, Limit: limit})
			for _, r := range res.Refs {
				names = append(names, string(r.Name))
			}
			return names, res.Receipt, err
		}})
	}
	if s.store.Offered().Has(spi.CapDataKeys) {
		all = append(all, listed{"data keys", func(after string, limit int) (names []string, _ spi.Receipt, _ error) {
			res, err := spi.ListDataKeys(s.ctx, s.store, spi.ListDataKeysRequest{After: after, Limit: limit})
			for _, k := range res.Keys {
				names = append(names, string(k.Owner))
			}
			return names, res.Receipt, err
		}})
	}
	return all
}

// wantShardError checks that an error names a shard.
func (s *shards) wantShardError(err error, i int) {
	s.Helper()
	equal(s.fixture, "the shard that is named", wantError[*spi.ShardError](s.fixture, err).Shard, s.each[i].name)
}

var errBroken = errors.New("the disk is on fire")

func proveSpread(s *shards) {
	by := s.spread()
	total := 0
	for _, ids := range by {
		total += len(ids)
		for _, e := range ids {
			s.wantLog(e, 1)
		}
	}
	equal(s.fixture, "the number of executions on all shards", total, spreadCount)
}

// proveWholeKit runs the cases of [Store] over shards, each with shards of its own.
func proveWholeKit(s *shards) {
	stores := PerTest(func(t *testing.T) []*spi.Store { return newShards(t, s.fingerprint, s.split).stores() })
	run(s.T, func(t *testing.T) *spi.Store { return must(t)(s.split(stores(t)...)) })
}

func proveOneListing(s *shards) {
	s.fill(awkwardNames)
	for _, size := range []int{1, 2, 5, len(awkwardNames), spi.MaxLimit} {
		s.wantNames(fmt.Sprintf("in pages of %d", size), s.list("", size), awkwardNames)
	}
	for _, cursor := range awkwardCursors() {
		page, _ := s.page("", cursor, 3)
		want := matching(awkwardNames, "", cursor)
		s.wantNames(fmt.Sprintf("after %.40q", cursor), page, want[:min(3, len(want))])
	}
}

func proveFailingShard(s *shards) {
	by := s.spread()
	for i := range s.each {
		s.each[i].err = errBroken
		for _, l := range s.listings() {
			names, _, err := l.page("", spi.MaxLimit)
			s.wantShardError(err, i)
			if !errors.Is(err, errBroken) || len(names) > 0 {
				s.Errorf("the page of %s holds %d (%v)", l.what, len(names), err)
			}
		}
		if s.store.Offered().Has(spi.CapSweepTombstones) {
			if _, err := spi.SweepTombstones(s.ctx, s.store, spi.SweepTombstonesRequest{Limit: 10}); !errors.Is(err, errBroken) {
				s.Errorf("a sweep answers %v", err)
			}
		}
		for other, ids := range by {
			_, err := spi.Append(s.ctx, s.store, spi.AppendRequest{Execution: ids[0], ExpectedHead: spi.AnyHead, Events: events(1)})
			if (err != nil) != (other == i) {
				s.Errorf("with %s broken, an append at %s answers %v", s.each[i].name, s.each[other].name, err)
			}
		}
		s.each[i].err = nil
		for _, l := range s.listings() {
			if names, _, err := l.page("", spi.MaxLimit); err != nil || len(names) != spreadCount {
				s.Errorf("when it is mended the page of %s holds %d (%v)", l.what, len(names), err)
			}
		}
	}
}

func proveLyingShard(s *shards) {
	s.spread()
	for what, how := range map[string]lie{
		"goes backwards": func(places []int) []int {
			slices.Reverse(places)
			return places
		},
		"repeats": func(places []int) []int { return slices.Insert(places, 1, places[0]) },
	} {
		s.each[0].lie = how
		for _, l := range s.listings() {
			if names, _, err := l.page("", 1000); err == nil || len(names) > 0 {
				s.Errorf("a shard that %s: the page of %s holds %d (%v)", what, l.what, len(names), err)
			}
		}
	}
	s.each[0].lie = nil
	// What another shard holds, and what is at the cursor, a shard can be made to tell
	// only by holding it.
	foreign := &shard{Backend: passthrough.Backend{Inner: s.each[1].Inner}}
	s.each[0].Inner = foreign.Inner
	for _, l := range s.listings() {
		if names, _, err := l.page("", 1000); err == nil || len(names) > 0 {
			s.Errorf("a shard that holds another's names: the page of %s holds %d (%v)", l.what, len(names), err)
		}
	}
}

func proveReceipt(s *shards) {
	s.spread()
	for _, l := range s.listings() {
		for _, limit := range []int{1, 7, 1000} {
			_, receipt, err := l.page("", limit)
			if err != nil {
				s.Fatal(err)
			}
			s.wantReceipt(receipt)
		}
	}
	// One shard takes a pin that the decorator has not heard of.
	s.each[1].change(s.T, 1, spi.SlotRecord{Slot: spi.FirstPin + 7, State: spi.SlotOwned, Epoch: 1, Tenant: "t"})
	for _, l := range s.listings() {
		_, receipt, err := l.page("", 1000)
		if err == nil { // a decorator may well insist on looking again first
			s.wantReceipt(receipt)
		}
	}
	// Another shard takes the same pin: whose the tenant's names are, nobody can tell.
	s.each[2].change(s.T, 1, spi.SlotRecord{Slot: spi.FirstPin + 7, State: spi.SlotOwned, Epoch: 1, Tenant: "t"})
	for _, l := range s.listings() {
		if names, _, err := l.page("", 1000); err == nil {
			s.Errorf("with a pin that two shards own the page of %s holds %d", l.what, len(names))
		}
	}
}

// wantReceipt checks a receipt against what the shards say of themselves.
func (s *shards) wantReceipt(receipt spi.Receipt) {
	s.Helper()
	var covered []spi.SlotSet
	for _, r := range receipt {
		covered = append(covered, r.Slots)
	}
	if err := spi.CheckCoverage(spi.HashSlotSet(), covered...); err != nil {
		s.Error(err)
	}
	for _, shard := range s.each {
		now, err := spi.GetOwnership(s.ctx, shard.Inner, spi.GetOwnershipRequest{})
		if err != nil {
			s.Fatal(err)
		}
		i := slices.IndexFunc(receipt, func(r spi.ShardReceipt) bool { return r.Shard == shard.name })
		if i < 0 {
			s.Fatalf("the receipt %v leaves %s out", receipt, shard.name)
		}
		equal(s.fixture, "the version of "+shard.name, receipt[i].Version, now.Shards[0].Version)
		for _, r := range now.Shards[0].Slots {
			if receipt[i].Slots.Contains(r.Slot) != r.State.Lists() {
				s.Fatalf("the receipt of %s does not tell slot %d, which is %v", shard.name, r.Slot, r.State)
			}
		}
	}
}

// proveUncovered takes a slot from its shard and gives it to nobody yet.
func proveUncovered(s *shards) {
	by := s.spread()
	slot := s.slotOf(by[0][0])
	s.each[0].change(s.T, 1, spi.SlotRecord{Slot: slot, State: spi.SlotFrozen, Epoch: 1, Peer: s.each[1].name})
	for _, l := range s.listings() {
		if names, _, err := l.page("", spi.MaxLimit); err == nil && len(names) != spreadCount {
			s.Errorf("while a slot is frozen the page of %s holds %d", l.what, len(names))
		}
	}
	s.each[0].change(s.T, 2, spi.SlotRecord{Slot: slot, State: spi.SlotReleased, Epoch: 2, Peer: s.each[1].name})
	for _, l := range s.listings() {
		for _, limit := range []int{1, 1000} {
			if names, _, err := l.page("", limit); err == nil || len(names) > 0 {
				s.Errorf("while nobody owns slot %d the page of %s holds %d (%v)", slot, l.what, len(names), err)
			}
		}
	}
}

// slotOf finds the slot of an execution: the one whose loss makes its shard leave
// the execution out.
func (s *shards) slotOf(e spi.ExecutionID) spi.Slot {
	s.Helper()
	for slot := range spi.Slot(spi.HashSlots) {
		i := ownerOf(slot)
		_, err := spi.Head(s.ctx, s.each[i].Inner, spi.HeadRequest{Execution: e, Route: spi.Route{Slot: slot, Epoch: 1}})
		if err != nil || !slices.Contains(s.holds(i), string(e)) {
			continue
		}
		return slot
	}
	s.Fatalf("no shard has %q", e)
	return 0
}

// proveMoved gives a slot to another shard, data and all, without telling.
func proveMoved(s *shards) {
	by := s.spread()
	e := by[0][0]
	slot := s.slotOf(e)
	log := s.read(e)
	s.each[0].change(s.T, 1, spi.SlotRecord{Slot: slot, State: spi.SlotFrozen, Epoch: 1})
	s.each[0].change(s.T, 2, spi.SlotRecord{Slot: slot, State: spi.SlotReleased, Epoch: 2})
	s.each[1].change(s.T, 1, spi.SlotRecord{Slot: slot, State: spi.SlotReceiving, Epoch: 1})
	s.each[1].change(s.T, 2, spi.SlotRecord{Slot: slot, State: spi.SlotOwned, Epoch: 2})
	moved := spi.AppendRequest{Execution: e, Route: spi.Route{Slot: slot, Epoch: 2}, Events: log}
	for i := range moved.Events {
		moved.Events[i].Sequence, moved.Events[i].Fence = 0, 0
	}
	if _, err := spi.Append(s.ctx, s.each[1].Inner, moved); err != nil {
		s.Fatal(err)
	}
	_, err := spi.Append(s.ctx, s.store, spi.AppendRequest{Execution: e, ExpectedHead: 1, Events: events(1)})
	if err != nil {
		_, misrouted := errors.AsType[*spi.MisroutedError](err)
		_, moving := errors.AsType[*spi.SlotMovingError](err)
		if !misrouted && !moving {
			s.Errorf("the append answers %v", err)
		}
	}
	at, headErr := spi.Head(s.ctx, s.each[1].Inner, spi.HeadRequest{Execution: e, Route: moved.Route})
	if want := int64(1); headErr != nil || (err == nil) != (at.Head == want+1) {
		s.Errorf("the append answers %v, and the slot's new shard is at %d (%v)", err, at.Head, headErr)
	}
	names, receipt, err := s.listings()[0].page("", spi.MaxLimit)
	if err == nil {
		s.wantReceipt(receipt)
		equal(s.fixture, "the number of executions", len(names), spreadCount)
	}
}

func proveMissingTimers(s *shards) {
	if !s.store.Offered().Has(spi.CapTimers) {
		return
	}
	by := s.spread()
	for _, ids := range by {
		for _, e := range ids {
			if _, err := spi.ScheduleTimer(s.ctx, s.store, spi.ScheduleTimerRequest{Timer: spi.Timer{Execution: e, WakeAt: longAgo}}); err != nil {
				s.Fatal(err)
			}
		}
	}
	s.each[1].err = errBroken
	res, err := spi.DueTimers(s.ctx, s.store, spi.DueTimersRequest{Limit: 100})
	if err != nil || !slices.Equal(res.Missing, []string{s.each[1].name}) {
		s.Errorf("missing are %q (%v)", res.Missing, err)
	}
	var due []spi.ExecutionID
	for _, t := range res.Timers {
		due = append(due, t.Execution)
	}
	want := slices.Sorted(slices.Values(slices.Concat(by[0], by[2])))
	if !slices.Equal(due, want) {
		s.Errorf("due are %q, not %q", due, want)
	}
}

func proveBatchFailure(s *shards) {
	if !s.store.Offered().Has(spi.CapAppendBatch) {
		return
	}
	by := s.spread()
	s.each[1].err = errBroken
	var appends []spi.AppendRequest
	for i := range by[1] {
		for _, ids := range by {
			if i < len(ids) {
				appends = append(appends, spi.AppendRequest{Execution: ids[i], ExpectedHead: 1, Events: events(1)})
			}
		}
	}
	for i, res := range s.batch(appends...) {
		broken := slices.Contains(by[1], appends[i].Execution)
		switch {
		case !broken && (res.Err != nil || res.FirstSeq != 2):
			s.Errorf("an append at a sound shard is %+v", res)
		case broken && !errors.Is(res.Err, errBroken):
			s.Errorf("an append at the broken shard is %+v", res)
		}
	}
}

func proveOffered(s *shards) {
	for _, c := range strippable {
		if c == spi.CapOwnership {
			continue // a shard without ownership may be refused
		}
		s.Run("without "+c.String(), func(t *testing.T) {
			some := newShards(t, s.fingerprint, s.split)
			some.each[1].store = spi.Only(some.each[1].store, ^c)
			some.store = must(t)(s.split(some.stores()...))
			for _, claim := range claims.cases {
				claim.prove(some.fixture)
			}
		})
	}
}

func proveCovered(s *shards) {
	twice := newShard(s.T, "shard-twice", s.fingerprint, []spi.SlotRecord{{Slot: 0, State: spi.SlotOwned, Epoch: 1}})
	for what, stores := range map[string][]*spi.Store{
		"a shard is missing":    s.stores()[:shardCount-1],
		"a slot is owned twice": append(s.stores(), twice.store),
	} {
		if _, err := s.split(stores...); err == nil {
			s.Errorf("%s, and nobody objects", what)
		} else if _, ok := errors.AsType[*spi.CoverageError](err); !ok {
			s.Errorf("%s: %v", what, err)
		}
	}
}

func proveCopies(s *shards) {
	if !s.store.Offered().Has(spi.CapCopyPrefix) {
		return
	}
	by := s.spread()
	from := by[0][0]
	s.mustAppend(spi.AppendRequest{Execution: from, ExpectedHead: 1, Events: []spi.Event{event(spi.KindExecutionSuspended), event("Noted")}})
	for i := range 12 { // some of which are on other shards
		to := id("copy-%d", i)
		s.copyPrefix(from, to, 2)
		s.wantLog(to, 1, 2)
		if !sameIDs(s.read(to), s.read(from)[:2]) {
			s.Errorf("%q is no copy", to)
		}
	}
}
