package merge_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/loomgate/loomgate/merge"
	"github.com/loomgate/loomgate/spi"
)

// rapidly checks a property that reports its complaint, with drawn choices.
func rapidly(t *testing.T, property func(choose) string) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		if complaint := property(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") }); complaint != "" {
			t.Fatal(complaint)
		}
	})
}

// collect ranges over everything, but at most n items.
func collect(ctx context.Context, m merge.Merge[string], cursor string, n int) (keys []string, complaint string, err error) {
	for key, e := range m.All(ctx, cursor) {
		switch {
		case err != nil:
			return keys, fmt.Sprintf("%q, %v after the error %v", key, e, err), err
		case e != nil && key != "":
			return keys, fmt.Sprintf("%q beside the error %v", key, e), e
		case e != nil:
			err = e
			continue
		}
		if keys = append(keys, key); len(keys) == n {
			break
		}
	}
	return keys, "", err
}

const everything = -1

func first(complaints ...string) string {
	for _, c := range complaints {
		if c != "" {
			return c
		}
	}
	return ""
}

func different(what string, got, want []string) string {
	return complaintIf(!slices.Equal(got, want), "%s: got %q, want %q", what, got, want)
}

// iterationIsExact: All gives out what it can know, in order, then the error.
func iterationIsExact(w *world, c choose) string {
	cursor := c.cursor(w.all)
	want, judge := w.expect(cursor)
	all := w.merge().All(context.Background(), cursor)
	for range 2 { // each range begins anew
		var got []string
		var err error
		for key, e := range all {
			if err != nil {
				return fmt.Sprintf("%q, %v after the error %v", key, e, err)
			}
			if err = e; err == nil {
				got = append(got, key)
			} else if key != "" {
				return fmt.Sprintf("%q beside the error %v", key, err)
			}
		}
		if bad := first(different("items", got, want), judge(err), w.ledger.verdict()); bad != "" {
			return fmt.Sprintf("after %q: %s", cursor, bad)
		}
	}
	if len(want) == 0 {
		return ""
	}
	n := 1 + c(len(want))
	got, bad, err := collect(context.Background(), w.merge(), cursor, n)
	return first(bad, different("until break", got, want[:n]), complaintIf(err != nil, "before break: %v", err), w.ledger.verdict())
}

// pagesAreExact: a walk over pages finds everything once, and each page is full,
// or the last, or an error without an item.
func pagesAreExact(w *world, c choose) string {
	cursor := c.cursor(w.all)
	for {
		limit := 1 + c(12)
		want, judge := w.expect(cursor)
		page, err := w.merge().Page(context.Background(), cursor, limit)
		if bad := w.ledger.verdict(); bad != "" {
			return bad
		}
		if len(want) < limit && judge(nil) != "" { // it needs what is behind the fault
			return first(judge(err), complaintIf(page.Items != nil || page.Next != "" || page.Receipt != nil, "%v beside the error", page))
		}
		wantNext := ""
		if len(want) >= limit {
			want, wantNext = want[:limit], want[limit-1]
		}
		if err != nil {
			return fmt.Sprintf("after %q: %v", cursor, err)
		}
		if bad := different(fmt.Sprintf("page of %d after %q", limit, cursor), page.Items, want); bad != "" {
			return bad
		}
		if page.Next == "" {
			rest, judge := w.expect(cursor)
			return complaintIf(len(rest) > len(want) || judge(nil) != "", "%q are missing and nobody says so", rest[len(want):])
		}
		if page.Next != wantNext {
			return fmt.Sprintf("next of a page of %d after %q is %q, want %q", limit, cursor, page.Next, wantNext)
		}
		cursor = page.Next
	}
}

func TestPagesTogetherAreEverythingSorted(t *testing.T) {
	rapidly(t, func(c choose) string { return pagesAreExact(c.world(false), c) })
}

func TestAnIterationIsEverythingSorted(t *testing.T) {
	rapidly(t, func(c choose) string { return iterationIsExact(c.world(false), c) })
}

func TestNoPageGoesPastAFault(t *testing.T) {
	rapidly(t, func(c choose) string { return pagesAreExact(c.world(true), c) })
}

func TestAnIterationGoesExactlyUpToTheFirstFaultAndNamesIt(t *testing.T) {
	rapidly(t, func(c choose) string { return iterationIsExact(c.world(true), c) })
}

// FuzzMerge reads a world, faults and all, from the input, a byte a choice.
func FuzzMerge(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x03\x00\x01\x02\x03\x01\x00\x01\x01\x01\x02\x04\x04\x04\x04\x00\x01\x20 the quick brown fox jumps over the lazy dog, twice, and back again"))
	for seed := range 16 {
		input := make([]byte, 400)
		for i := range input {
			input[i] = byte((i*i + 7*i*seed + seed*seed*31) >> (seed % 5))
		}
		f.Add(input)
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		c := choose(func(n int) int {
			if len(input) == 0 {
				return 0
			}
			b := input[0]
			input = input[1:]
			return int(b) % n
		})
		w := c.world(true)
		if bad := first(iterationIsExact(w, c), pagesAreExact(w, c)); bad != "" {
			t.Fatal(bad)
		}
	})
}

// fakes returns a merge over sources with these keys.
func fakes(keys ...[]string) *world {
	w := &world{ledger: &ledger{}}
	for i, k := range keys {
		w.fakes = append(w.fakes, &fake{name: fmt.Sprint("s", i), keys: k, ledger: w.ledger})
		w.all = append(w.all, k...)
	}
	slices.SortFunc(w.all, spi.CompareIDs)
	return w
}

// numbered returns n keys with a prefix.
func numbered(prefix string, n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("%s%06d", prefix, i)
	}
	return keys
}

// spread deals n keys out to sources in turn.
func spread(sources, n int) [][]string {
	dealt := make([][]string, sources)
	for i, key := range numbered("k", n) {
		dealt[i%sources] = append(dealt[i%sources], key)
	}
	return dealt
}

func TestTheOrderIsThatOfCodePoints(t *testing.T) {
	w := fakes([]string{"B", "a", "\uFFFF"}, []string{"A", "e\u0301", "\U00010000"}, []string{"b", "é", "\uFFFD"})
	got, _, err := collect(t.Context(), w.merge(), "", everything)
	if want := []string{"A", "B", "a", "b", "e\u0301", "é", "\uFFFD", "\uFFFF", "\U00010000"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestNoSourcesIsAnEmptyEnd(t *testing.T) {
	page, err := merge.Merge[string]{Key: self}.Page(t.Context(), "x", 10)
	if err != nil || len(page.Items) != 0 || page.Next != "" {
		t.Errorf("got %v, %v", page, err)
	}
	_, err = merge.Merge[string]{Key: self, Want: spi.HashSlotSet()}.Page(t.Context(), "x", 10)
	if coverage, ok := errors.AsType[*spi.CoverageError](err); !ok || len(coverage.Missing) != 1 {
		t.Errorf("without sources that should cover something: %v", err)
	}
}

func TestALimitOutOfRangeIsRefusedBeforeAnythingIsOpened(t *testing.T) {
	for _, limit := range []int{-1, 0, spi.MaxLimit + 1} {
		w := fakes([]string{"a"})
		_, err := w.merge().Page(t.Context(), "", limit)
		if _, ok := errors.AsType[*spi.InvalidArgumentError](err); !ok || w.ledger.opened.Load() != 0 {
			t.Errorf("limit %d: %v, %d opened", limit, err, w.ledger.opened.Load())
		}
	}
}

func TestAPageAsksForALittleMoreThanAShareAndAgainOnlyWhereItRanDry(t *testing.T) {
	even := spread(4, 1200)
	for _, test := range []struct {
		name    string
		sources [][]string
		asked   [][]int
	}{
		{"evenly spread", even, [][]int{{316}, {316}, {316}, {316}}},                                                                       // 1000/4*1.2+16
		{"a source that holds more", append(even[:3:3], append(numbered("a", 800), even[3]...)), [][]int{{316}, {316}, {316}, {316, 632}}}, // twice as much
		{"a source that holds all", [][]string{numbered("k", 2000), nil}, [][]int{{616, 384}, {616}}},                                      // not more than the rest
	} {
		w := fakes(test.sources...)
		page, err := w.merge().Page(t.Context(), "", 1000)
		if err != nil || len(page.Items) != 1000 {
			t.Errorf("%s: %d, %v", test.name, len(page.Items), err)
		}
		for i, f := range w.fakes {
			if !slices.Equal(f.asked, test.asked[i]) {
				t.Errorf("%s: %s was asked for %v, want %v", test.name, f.name, f.asked, test.asked[i])
			}
		}
	}
	for _, limit := range []int{1, 16, 50} { // never more than the limit
		w := fakes(spread(2, 200)...)
		if _, err := w.merge().Page(t.Context(), "", limit); err != nil || w.fakes[0].asked[0] > limit {
			t.Errorf("limit %d: asked for %d, %v", limit, w.fakes[0].asked[0], err)
		}
	}
}

func TestAnIterationReadsOneChunkAheadAndNoMore(t *testing.T) {
	w := fakes(spread(3, 30_000)...)
	_, _, err := collect(t.Context(), w.merge(), "", 1)
	if bad := w.ledger.verdict(); err != nil || bad != "" {
		t.Fatal(err, bad)
	}
	for _, f := range w.fakes {
		if !slices.Equal(f.asked, []int{1000, 1000}) {
			t.Errorf("%s was asked for %v", f.name, f.asked)
		}
	}
}

func TestSourcesAreAskedConcurrently(t *testing.T) {
	forms(t, func(t *testing.T, read func(context.Context, merge.Merge[string]) ([]string, error)) {
		w := fakes(spread(8, 80)...)
		var all sync.WaitGroup
		all.Add(len(w.fakes))
		for _, f := range w.fakes {
			f.before = sync.OnceFunc(func() { all.Done(); all.Wait() }) // waits for ever if they take turns
		}
		if got, err := read(t.Context(), w.merge()); err != nil || !slices.Equal(got, w.all) {
			t.Error(got, err)
		}
	})
}

// forms runs a test with both forms of a merge.
func forms(t *testing.T, test func(t *testing.T, read func(context.Context, merge.Merge[string]) ([]string, error))) {
	t.Run("Page", func(t *testing.T) {
		test(t, func(ctx context.Context, m merge.Merge[string]) ([]string, error) {
			page, err := m.Page(ctx, "", spi.MaxLimit)
			return page.Items, err
		})
	})
	t.Run("All", func(t *testing.T) {
		test(t, func(ctx context.Context, m merge.Merge[string]) ([]string, error) {
			keys, complaint, err := collect(ctx, m, "", everything)
			if complaint != "" {
				t.Error(complaint)
			}
			return keys, err
		})
	})
}

// blocked is a source that answers only when it is canceled, as is its due.
func blocked(name string, asked func()) merge.Source[string] {
	return merge.Paged(name, self, func(ctx context.Context, _ string, _ int) (merge.Chunk[string], error) {
		asked()
		<-ctx.Done()
		return merge.Chunk[string]{}, fmt.Errorf("interrupted: %w", ctx.Err())
	})
}

func TestTheFirstFailureIsReportedNotTheCancellationThatItCaused(t *testing.T) {
	forms(t, func(t *testing.T, read func(context.Context, merge.Merge[string]) ([]string, error)) {
		w := fakes([]string{"a"}, []string{"b"})
		m := w.merge()
		var asked sync.WaitGroup
		asked.Add(2)
		w.fakes[1].before = asked.Wait // it fails when the others are under way
		w.fakes[1].fault = fails
		m.Sources = append([]merge.Source[string]{blocked("hangs", asked.Done), blocked("hangs too", asked.Done)}, m.Sources...)
		got, err := read(t.Context(), m)
		shard, ok := errors.AsType[*spi.ShardError](err)
		if !ok || shard.Shard != "s1" || !errors.Is(err, errFake) || len(got) > 0 {
			t.Errorf("got %q, %v", got, err)
		}
		if bad := w.ledger.verdict(); bad != "" {
			t.Error(bad)
		}
	})
}

func TestACanceledCallerGetsTheContextsErrorAndNoSourceIsBlamed(t *testing.T) {
	forms(t, func(t *testing.T, read func(context.Context, merge.Merge[string]) ([]string, error)) {
		w := fakes([]string{"a"}, []string{"b"})
		ctx, cancel := context.WithCancel(t.Context())
		m := w.merge()
		m.Sources = append(m.Sources, blocked("hangs", cancel))
		if got, err := read(ctx, m); err != context.Canceled || len(got) > 0 { //nolint:errorlint // itself, not wrapped
			t.Errorf("got %q, %v", got, err)
		}
		before := w.ledger.opened.Load()
		if got, err := read(ctx, m); err != context.Canceled || len(got) > 0 || w.ledger.opened.Load() != before { //nolint:errorlint // likewise
			t.Errorf("canceled before the start: got %q, %v", got, err)
		}
		if bad := w.ledger.verdict(); bad != "" {
			t.Error(bad)
		}
	})
}

func TestADeadlineNamesTheSourceThatWasWaitedFor(t *testing.T) {
	forms(t, func(t *testing.T, read func(context.Context, merge.Merge[string]) ([]string, error)) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		m := fakes([]string{"a"}, []string{"b"}).merge()
		m.Sources = append(m.Sources, blocked("hangs", func() {}))
		_, err := read(ctx, m)
		if shard, ok := errors.AsType[*spi.ShardError](err); !ok || shard.Shard != "hangs" || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

func TestACancellationEndsAnIterationThatHasEverythingAtHand(t *testing.T) {
	w := fakes([]string{"a", "c"}, []string{"b", "d"})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var got []string
	var err error
	for key, e := range w.merge().All(ctx, "") {
		if err = e; err == nil {
			got = append(got, key)
		}
		if key == "b" {
			cancel()
		}
	}
	if !slices.Equal(got, []string{"a", "b"}) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestAPanicInTheLoopLeavesNothingOpen(t *testing.T) {
	w := fakes(spread(3, 6000)...)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		for key, err := range w.merge().All(t.Context(), "") {
			panic(fmt.Sprint(key, err))
		}
	}()
	if bad := w.ledger.verdict(); bad != "" || w.ledger.opened.Load() != 3 {
		t.Errorf("%d opened: %s", w.ledger.opened.Load(), bad)
	}
}

func TestAPagedSourceGoesOnAfterTheLastKey(t *testing.T) {
	keys := numbered("k", 25)
	var cursors []string
	m := merge.Merge[string]{Key: self, Sources: []merge.Source[string]{
		merge.Paged("pages", self, func(_ context.Context, cursor string, limit int) (merge.Chunk[string], error) {
			cursors = append(cursors, cursor)
			rest := after(keys, cursor)
			n := min(limit, 10, len(rest))
			return merge.Chunk[string]{Items: rest[:n], Done: n == len(rest)}, nil
		}),
	}}
	got, _, err := collect(t.Context(), m, "k000001", everything)
	if err != nil || !slices.Equal(got, keys[2:]) || !slices.Equal(cursors, []string{"k000001", "k000011", "k000021"}) {
		t.Errorf("got %q, %v by way of %q", got, err, cursors)
	}
}

func TestErrorsQuoteKeysAndSourcesAndStayHiddenFromTenants(t *testing.T) {
	for text, err := range map[string]error{
		`"a" came after "b"`:                   &merge.OrderError{Key: "a", After: "b"},
		`"a" is at "s0" and at "s1"`:           &merge.DuplicateError{Key: "a", Sources: [2]string{"s0", "s1"}},
		`11 items for a limit of 10`:           &merge.ChunkError{Items: 11, Limit: 10},
		`an empty chunk that was not the last`: &merge.ChunkError{Limit: 10},
		`ownership changed while it was read`:  &merge.ChangedError{},
	} {
		if err.Error() != text {
			t.Errorf("got %q, want %q", err, text)
		}
		if _, hidden := errors.AsType[*spi.InternalError](spi.RenameError(err, self)); !hidden {
			t.Errorf("%v is shown to a tenant", err)
		}
	}
}
