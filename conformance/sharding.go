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
// split puts the decorator over shards. It is called anew for each case.
func Sharding(t *testing.T, split func(shards ...*spi.Store) (*spi.Store, error)) {
	for _, c := range []struct {
		sentence string
		prove    func(*shards)
	}{
		{"each execution is on one shard, in a slot that the shard owns, and is found there", proveSpread},
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
		t.Run(c.sentence, func(t *testing.T) { c.prove(newShards(t, split)) })
	}
}

// shards is a decorator over shards of the kit's own.
type shards struct {
	*fixture
	each  []*shard
	split func(...*spi.Store) (*spi.Store, error)
}

// A shard is a store with an identity that can be made to misbehave.
type shard struct {
	passthrough.Backend
	name  string
	store *spi.Store // the shard as the decorator sees it

	err  error                             // what every call answers
	page func(*spi.ListExecutionsResponse) // what is done to each page
}

// shardCount is odd, so that a slot and its number share no factor.
const shardCount = 3

// ownerOf is the shard that owns a slot at first.
func ownerOf(slot spi.Slot) int { return int(slot) % shardCount }

func newShards(t *testing.T, split func(...*spi.Store) (*spi.Store, error)) *shards {
	s := &shards{split: split}
	for i := range shardCount {
		var slots []spi.SlotRecord
		for slot := range spi.Slot(spi.HashSlots) {
			if ownerOf(slot) == i {
				slots = append(slots, spi.SlotRecord{Slot: slot, State: spi.SlotOwned, Epoch: 1})
			}
		}
		s.each = append(s.each, newShard(t, fmt.Sprintf("shard-%c", 'a'+i), slots))
	}
	s.fixture = newFixture(t, func(t *testing.T) *spi.Store { return must(t)(split(s.stores()...)) })
	return s
}

func newShard(t *testing.T, name string, slots []spi.SlotRecord) *shard {
	s := &shard{Backend: passthrough.Backend{Inner: must(t)(memory.New())}, name: name}
	s.change(t, 0, slots...)
	s.store = must(t)(passthrough.Open(s, s.Inner))
	return s
}

// change changes what a shard owns, behind the decorator's back.
func (s *shard) change(t *testing.T, version int64, slots ...spi.SlotRecord) {
	t.Helper()
	_, err := spi.ChangeOwnership(t.Context(), s.Inner, spi.ChangeOwnershipRequest{
		ExpectedVersion: version, Slots: slots,
		Identity: spi.Identity{Cluster: "kit", Shard: s.name, Fingerprint: "kit"},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (s *shard) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	if s.err != nil {
		return spi.ListExecutionsResponse{}, s.err
	}
	res, err := s.Backend.ListExecutions(ctx, req)
	if s.page != nil {
		s.page(&res)
	}
	return res, err
}

func (s *shard) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	if s.err != nil {
		return spi.AppendResponse{}, s.err
	}
	return s.Backend.Append(ctx, req)
}

func (s *shard) AppendBatch(ctx context.Context, req spi.AppendBatchRequest) (spi.AppendBatchResponse, error) {
	if s.err != nil {
		return spi.AppendBatchResponse{}, s.err
	}
	return s.Backend.AppendBatch(ctx, req)
}

func (s *shard) DueTimers(ctx context.Context, req spi.DueTimersRequest) (spi.DueTimersResponse, error) {
	if s.err != nil {
		return spi.DueTimersResponse{}, s.err
	}
	return s.Backend.DueTimers(ctx, req)
}

func (s *shard) Head(ctx context.Context, req spi.HeadRequest) (spi.HeadResponse, error) {
	if s.err != nil {
		return spi.HeadResponse{}, s.err
	}
	return s.Backend.Head(ctx, req)
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

// spread writes numbered executions until each shard has some, and returns them
// by shard.
func (s *shards) spread() [shardCount][]spi.ExecutionID {
	s.Helper()
	for i := range 60 {
		s.appendN(id("e%02d", i), 0, 1)
	}
	var by [shardCount][]spi.ExecutionID
	for i := range s.each {
		for _, name := range s.holds(i) {
			by[i] = append(by[i], spi.ExecutionID(name))
		}
		if len(by[i]) == 0 {
			s.Fatalf("shard %d holds none of 60 executions", i)
		}
	}
	return by
}

// listAll asks for everything at once.
func (s *shards) listAll() (spi.ListExecutionsResponse, error) {
	return spi.ListExecutions(s.ctx, s.store, spi.ListExecutionsRequest{Limit: spi.MaxLimit})
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
	equal(s.fixture, "the number of executions on all shards", total, 60)
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
		res, err := s.listAll()
		s.wantShardError(err, i)
		if !errors.Is(err, errBroken) || len(res.Executions) > 0 || res.Next != "" {
			s.Errorf("the page is %+v (%v)", res, err)
		}
		for other, ids := range by {
			_, err := spi.Append(s.ctx, s.store, spi.AppendRequest{Execution: ids[0], ExpectedHead: spi.AnyHead, Events: events(1)})
			if (err != nil) != (other == i) {
				s.Errorf("with %s broken, an append at %s answers %v", s.each[i].name, s.each[other].name, err)
			}
		}
		s.each[i].err = nil
		if res, err := s.listAll(); err != nil || len(res.Executions) != 60 {
			s.Errorf("when it is mended the page holds %d (%v)", len(res.Executions), err)
		}
	}
}

func proveLyingShard(s *shards) {
	by := s.spread()
	for what, lie := range map[string]func(*spi.ListExecutionsResponse){
		"goes backwards": func(res *spi.ListExecutionsResponse) { slices.Reverse(res.Executions) },
		"repeats": func(res *spi.ListExecutionsResponse) {
			res.Executions = slices.Insert(res.Executions, 1, res.Executions[0])
		},
		"holds another's id": func(res *spi.ListExecutionsResponse) {
			res.Executions = append(res.Executions, by[1]...)
			slices.Sort(res.Executions)
		},
		"begins at its cursor": func(res *spi.ListExecutionsResponse) {
			res.Executions = slices.Insert(res.Executions, 0, "a")
		},
	} {
		s.each[0].page = lie
		res, err := spi.ListExecutions(s.ctx, s.store, spi.ListExecutionsRequest{After: "a", Limit: 1000})
		if err == nil || len(res.Executions) > 0 {
			s.Errorf("a shard that %s: the page holds %d (%v)", what, len(res.Executions), err)
		}
	}
}

func proveReceipt(s *shards) {
	s.spread()
	for _, limit := range []int{1, 7, 1000} {
		res, err := spi.ListExecutions(s.ctx, s.store, spi.ListExecutionsRequest{Limit: limit})
		if err != nil {
			s.Fatal(err)
		}
		s.wantReceipt(res.Receipt)
	}
	// One shard takes a pin that the decorator has not heard of.
	s.each[1].change(s.T, 1, spi.SlotRecord{Slot: spi.FirstPin + 7, State: spi.SlotOwned, Epoch: 1, Tenant: "t"})
	res, err := s.listAll()
	if err != nil {
		return // a decorator may well insist on looking again first
	}
	s.wantReceipt(res.Receipt)
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
	if res, err := s.listAll(); err == nil && len(res.Executions) != 60 {
		s.Errorf("while a slot is frozen the page holds %d", len(res.Executions))
	}
	s.each[0].change(s.T, 2, spi.SlotRecord{Slot: slot, State: spi.SlotReleased, Epoch: 2, Peer: s.each[1].name})
	for _, limit := range []int{1, 1000} {
		res, err := spi.ListExecutions(s.ctx, s.store, spi.ListExecutionsRequest{Limit: limit})
		if err == nil || len(res.Executions) > 0 {
			s.Errorf("while nobody owns slot %d the page holds %d (%v)", slot, len(res.Executions), err)
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
	page, err := s.listAll()
	if err == nil {
		s.wantReceipt(page.Receipt)
		equal(s.fixture, "the number of executions", len(page.Executions), 60)
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
			some := newShards(t, s.split)
			some.each[1].store = spi.Only(some.each[1].store, ^c)
			some.store = must(t)(s.split(some.stores()...))
			for _, claim := range claims.cases {
				claim.prove(some.fixture)
			}
		})
	}
}

func proveCovered(s *shards) {
	twice := newShard(s.T, "shard-twice", []spi.SlotRecord{{Slot: 0, State: spi.SlotOwned, Epoch: 1}})
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
