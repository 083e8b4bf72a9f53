package merge_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"testing"

	"github.com/loomgate/loomgate/merge"
	"github.com/loomgate/loomgate/spi"
)

const (
	slots  = 6
	nobody = -1
)

var want = spi.SlotSet{{First: 0, Last: slots - 1}}

// A cluster is shards that pass slots between them while they are read. A shard
// lists what it owns at that instant, as one snapshot.
type cluster struct {
	mu       sync.Mutex
	live     []string // sorted
	owners   [slots]int
	versions []int64
	events   []event // what happens before the reads to come
	reads    int
	perChunk int
	terse    bool // only a cursor's first chunk states the slots
	ledger   *ledger
}

// An event is a step of a move, an insertion or a deletion.
type event struct {
	read int // how many reads come before it
	do   func(*cluster)
}

func slotOf(key string) int {
	h := fnv.New32a()
	h.Write([]byte(key))
	return int(h.Sum32() % slots)
}

func (cl *cluster) give(slot, to int) {
	if from := cl.owners[slot]; from != nobody {
		cl.versions[from]++
	}
	if to != nobody {
		cl.versions[to]++
	}
	cl.owners[slot] = to
}

func (cl *cluster) read(shard int, first bool, cursor string, limit int) merge.Chunk[string] {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	for len(cl.events) > 0 && cl.events[0].read <= cl.reads {
		cl.events[0].do(cl)
		cl.events = cl.events[1:]
	}
	cl.reads++
	receipt := spi.ShardReceipt{Shard: fmt.Sprint("s", shard), Version: cl.versions[shard]}
	if first || !cl.terse {
		var owned []spi.Slot
		for slot, owner := range cl.owners {
			if owner == shard {
				owned = append(owned, spi.Slot(slot))
			}
		}
		receipt.Slots = spi.NewSlotSet(owned...)
	}
	chunk := merge.Chunk[string]{Receipt: spi.Receipt{receipt}, Done: true}
	for _, key := range after(cl.live, cursor) {
		if cl.owners[slotOf(key)] != shard {
			continue
		}
		if len(chunk.Items) == min(limit, cl.perChunk) {
			chunk.Done = false
			break
		}
		chunk.Items = append(chunk.Items, key)
	}
	return chunk
}

// shardCursor reads a shard of a cluster in steps.
type shardCursor struct {
	*cluster
	shard int
	after string
	first bool
}

func (s *shardCursor) Next(ctx context.Context, limit int) (merge.Chunk[string], error) {
	c := s.read(s.shard, s.first, s.after, limit)
	s.first = false
	if n := len(c.Items); n > 0 {
		s.after = c.Items[n-1]
	}
	return c, ctx.Err()
}

func (s *shardCursor) Close() { s.ledger.closed.Add(1) }

func (cl *cluster) merge() merge.Merge[string] {
	m := merge.Merge[string]{Key: self, Want: want}
	for shard := range cl.versions {
		m.Sources = append(m.Sources, merge.Source[string]{
			Name: fmt.Sprint("s", shard),
			Open: func(_ context.Context, after string) (merge.Cursor[string], error) {
				cl.ledger.opened.Add(1)
				return &shardCursor{cl, shard, after, true}, nil
			},
		})
	}
	return m
}

// cluster returns two to four shards, what will happen to them, and the keys that
// are live throughout and at some time. In a calm one, three steps at most spoil a
// try, so that no merge may give up.
func (c choose) cluster(calm bool) (cl *cluster, always, ever []string) {
	cl = &cluster{versions: make([]int64, 2+c(3)), perChunk: 1 + c(4), terse: c(2) == 0, ledger: &ledger{}}
	for slot := range cl.owners {
		cl.owners[slot] = c(len(cl.versions))
	}
	for range c(40) {
		if key := c.key(); !slices.Contains(cl.live, key) {
			cl.live = append(cl.live, key)
		}
	}
	slices.SortFunc(cl.live, spi.CompareIDs)
	always, ever = slices.Clone(cl.live), slices.Clone(cl.live)

	steps := c(16)
	if calm {
		steps = c(4)
	}
	for steps > 0 {
		read, slot, to := c(30), c(slots), c(len(cl.versions))
		if steps >= 2 && c(2) == 0 { // nobody's in between
			gap := 2
			if !calm {
				gap += c(20)
			}
			cl.events = append(cl.events, event{read, func(cl *cluster) { cl.give(slot, nobody) }}, event{read + gap, func(cl *cluster) { cl.give(slot, to) }})
			steps -= 2
		} else {
			cl.events = append(cl.events, event{read, func(cl *cluster) { cl.give(slot, to) }})
			steps--
		}
	}
	for range c(4) {
		key, read := c.key(), c(30)
		ever = append(ever, key)
		if i := slices.Index(always, key); i >= 0 {
			always = slices.Delete(always, i, i+1)
		}
		cl.events = append(cl.events, event{read, func(cl *cluster) {
			i, found := slices.BinarySearch(cl.live, key)
			if found {
				cl.live = slices.Delete(slices.Clone(cl.live), i, i+1)
			} else {
				cl.live = slices.Insert(slices.Clone(cl.live), i, key)
			}
		}})
	}
	slices.SortStableFunc(cl.events, func(a, b event) int { return a.read - b.read })
	return cl, always, ever
}

// unsteady reports whether an error only says that somebody is moving slots.
func unsteady(err error) bool {
	_, coverage := errors.AsType[*spi.CoverageError](err)
	_, changed := errors.AsType[*merge.ChangedError](err)
	return coverage || changed
}

// listingIsExact: what is live throughout is listed once, in order, and nothing is
// that never was live. read returns some keys after a cursor, and the next cursor.
func listingIsExact(c choose, calm bool, read func(m merge.Merge[string], cursor string) (keys []string, next string, err error)) string {
	cl, always, ever := c.cluster(calm)
	var got []string
	for cursor := ""; ; {
		keys, next, err := read(cl.merge(), cursor)
		if bad := cl.ledger.verdict(); bad != "" {
			return bad
		}
		if err != nil && (calm || !unsteady(err)) {
			return fmt.Sprintf("after %q: %v", cursor, err)
		}
		if got = append(got, keys...); len(got) > 0 {
			cursor = got[len(got)-1]
		}
		if err == nil && next == "" {
			break
		}
	}
	for i, key := range got {
		if i > 0 && key <= got[i-1] {
			return fmt.Sprintf("%q came after %q", key, got[i-1])
		}
		if !slices.Contains(ever, key) {
			return fmt.Sprintf("%q was never live", key)
		}
	}
	for _, key := range always {
		if !slices.Contains(got, key) {
			return fmt.Sprintf("%q is missing from %q", key, got)
		}
	}
	return ""
}

func TestPagesListWhatIsLiveOnceWhileSlotsMove(t *testing.T) {
	rapidly(t, func(c choose) string {
		return listingIsExact(c, c(2) == 0, func(m merge.Merge[string], cursor string) ([]string, string, error) {
			page, err := m.Page(t.Context(), cursor, 1+c(12))
			if err == nil {
				var covered []spi.SlotSet
				for _, shard := range page.Receipt {
					covered = append(covered, shard.Slots)
				}
				err = spi.CheckCoverage(want, covered...)
				if err != nil {
					err = errors.New("the receipt of a page: " + err.Error())
				}
			}
			return page.Items, page.Next, err
		})
	})
}

func TestAnIterationListsWhatIsLiveOnceWhileSlotsMove(t *testing.T) {
	rapidly(t, func(c choose) string {
		return listingIsExact(c, c(2) == 0, func(m merge.Merge[string], cursor string) ([]string, string, error) {
			keys, bad, err := collect(t.Context(), m, cursor, everything)
			if bad != "" {
				err = errors.New(bad)
			}
			return keys, "", err
		})
	})
}

// owning makes every chunk of a fake carry a receipt.
func (f *fake) owning(receipt func(opened int64, call int) spi.ShardReceipt) {
	f.receipt = func(call int) spi.Receipt { return spi.Receipt{receipt(f.ledger.opened.Load(), call)} }
}

// owned is a fixed receipt.
func owned(shard string, version int64, s ...spi.Slot) func(int64, int) spi.ShardReceipt {
	return func(int64, int) spi.ShardReceipt {
		return spi.ShardReceipt{Shard: shard, Version: version, Slots: spi.NewSlotSet(s...)}
	}
}

func TestSlotsThatStayUncoveredOrCoveredTwiceEndInThatErrorAfterThreeRestarts(t *testing.T) {
	forms(t, func(t *testing.T, read func(context.Context, merge.Merge[string]) ([]string, error)) {
		w := fakes([]string{"a"}, []string{"b"})
		w.fakes[0].owning(owned("s0", 1, 0, 1, 2))
		w.fakes[1].owning(owned("s1", 1, 2, 3, 5))
		m := w.merge()
		m.Want = want
		got, err := read(t.Context(), m)
		coverage, ok := errors.AsType[*spi.CoverageError](err)
		if !ok || coverage.Missing.String() != "4" || coverage.Twice.String() != "2" || len(got) > 0 {
			t.Errorf("got %q, %v", got, err)
		}
		if n := w.ledger.opened.Load(); n != 2*4 || w.ledger.verdict() != "" {
			t.Errorf("opened %d: %s", n, w.ledger.verdict())
		}
	})
}

func TestAPageWhoseSourceKeepsChangingEndsInAnErrorThatNamesIt(t *testing.T) {
	w := fakes(numbered("b", 20), numbered("a", 6))
	w.fakes[1].chunks = []int{1}
	w.fakes[0].owning(owned("s0", 1, 0, 1, 2))
	version := int64(0)
	w.fakes[1].owning(func(int64, int) spi.ShardReceipt {
		version++
		return spi.ShardReceipt{Shard: "s1", Version: version, Slots: spi.NewSlotSet(3, 4, 5)}
	})
	m := w.merge()
	m.Want = want
	page, err := m.Page(t.Context(), "", 20)
	changed, ok := errors.AsType[*merge.ChangedError](err)
	if !ok || changed.Is[0].Version != changed.Was[0].Version+1 {
		t.Errorf("got %q, %v", page.Items, err)
	}
	if _, ok := errors.AsType[*spi.UnavailableError](err); !ok {
		t.Errorf("%v does not say that another try is worth it", err)
	}
	if shard, ok := errors.AsType[*spi.ShardError](err); !ok || shard.Shard != "s1" {
		t.Errorf("%v does not name s1", err)
	}
	if n := w.ledger.opened.Load(); n != 2*4 || w.ledger.verdict() != "" {
		t.Errorf("opened %d: %s", n, w.ledger.verdict())
	}
}

func TestAnIterationMayStartAgainAnyNumberOfTimesIfItGetsOn(t *testing.T) {
	w := fakes(numbered("k", 30))
	w.fakes[0].chunks = []int{1}
	w.fakes[0].owning(func(opened int64, call int) spi.ShardReceipt { // a change after every chunk
		return spi.ShardReceipt{Shard: "s0", Version: opened + int64(call), Slots: want}
	})
	m := w.merge()
	m.Want = want
	got, _, err := collect(t.Context(), m, "", everything)
	if err != nil || !slices.Equal(got, w.all) || w.ledger.opened.Load() != 30 {
		t.Errorf("got %q, %v, %d opened", got, err, w.ledger.opened.Load())
	}
}

func TestWhatCountsAsAChangeOfOwnership(t *testing.T) {
	a := spi.ShardReceipt{Shard: "a", Version: 1, Slots: spi.NewSlotSet(0)}
	b := spi.ShardReceipt{Shard: "b", Version: 1, Slots: spi.NewSlotSet(1)}
	as := func(r spi.ShardReceipt, edit func(*spi.ShardReceipt)) spi.ShardReceipt { edit(&r); return r }
	for _, test := range []struct {
		name   string
		later  spi.Receipt
		change bool
	}{
		{"the same", spi.Receipt{a, b}, false},
		{"slots left out", spi.Receipt{as(a, func(r *spi.ShardReceipt) { r.Slots = nil }), b}, false},
		{"another version", spi.Receipt{a, as(b, func(r *spi.ShardReceipt) { r.Version = 2 })}, true},
		{"an older version", spi.Receipt{a, as(b, func(r *spi.ShardReceipt) { r.Version = 0 })}, true},
		{"other slots under the same version", spi.Receipt{a, as(b, func(r *spi.ShardReceipt) { r.Slots = spi.NewSlotSet(1, 2) })}, true},
		{"another shard", spi.Receipt{a, as(b, func(r *spi.ShardReceipt) { r.Shard = "c" })}, true},
		{"a shard less", spi.Receipt{a}, true},
		{"no receipt", nil, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := fakes([]string{"a", "b"})
			w.fakes[0].chunks = []int{1}
			w.fakes[0].receipt = func(call int) spi.Receipt {
				if call == 0 {
					return spi.Receipt{a, b}
				}
				return test.later
			}
			m := w.merge()
			m.Want = spi.NewSlotSet(0, 1)
			page, err := m.Page(t.Context(), "", 2)
			if changed := unsteady(err); changed != test.change || !test.change && err != nil {
				t.Errorf("got %v, %v", page.Items, err)
			}
			if !test.change && page.Receipt[0].Slots == nil {
				t.Error("the page's receipt lacks the slots that the first chunk stated")
			}
		})
	}
}

func TestASourcesOwnCoverageErrorIsNoReasonToStartAgain(t *testing.T) {
	w := fakes([]string{"a"})
	inner := merge.Merge[string]{Key: self, Sources: w.merge().Sources, Want: want}
	m := merge.Merge[string]{Key: self, Sources: []merge.Source[string]{
		merge.Paged("inner", self, func(ctx context.Context, after string, limit int) (merge.Chunk[string], error) {
			page, err := inner.Page(ctx, after, limit)
			return merge.Chunk[string]{Items: page.Items, Done: page.Next == "", Receipt: page.Receipt}, err
		}),
	}}
	_, err := m.Page(t.Context(), "", 5)
	if shard, ok := errors.AsType[*spi.ShardError](err); !ok || shard.Shard != "inner" || !unsteady(err) || w.ledger.opened.Load() != 4 {
		t.Errorf("got %v, %d opened", err, w.ledger.opened.Load())
	}
}
