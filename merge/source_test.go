package merge_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/loomgate/loomgate/merge"
	"github.com/loomgate/loomgate/spi"
)

func self(s string) string { return s }

// choose returns a number from 0 to n-1. Property tests draw it, the fuzz target
// reads it from its input.
type choose func(n int) int

func (c choose) one(of ...string) string { return of[c(len(of))] }

// key returns a key of up to four parts that are easy to order wrongly.
func (c choose) key() string {
	var b strings.Builder
	for range 1 + c(4) {
		b.WriteString(c.one("a", "b", "A", "-", "~", "1", "10", "é", "e\u0301", "\x01", "\uD7FF", "\uE000", "\uFFFD", "\uFFFF", "\U00010000", "\U0010FFFF"))
	}
	return b.String()
}

// cursor returns a key, what is right beside a key, or anything else.
func (c choose) cursor(keys []string) string {
	near := c.key()
	if len(keys) > 0 && c(2) == 0 {
		near = keys[c(len(keys))]
	}
	switch c(5) {
	case 0:
		return ""
	case 1:
		return near
	case 2:
		return near + "\x00"
	case 3:
		return near + "\x00" + c.key()
	}
	return near[:c(len(near))] // may end within a character
}

// A fault is what a source does wrong.
type fault int

const (
	none         fault = iota
	fails              // Next returns an error
	failsToOpen        // Open does
	repeats            // a chunk begins with the key before it
	goesBackward       // a chunk goes back to an earlier key
	turnsWithin        // a chunk descends
	overfills          // a chunk is longer than the limit
	stalls             // a chunk is empty and not the last
	faults
)

var errFake = errors.New("fake failure")

// A fake is a source with known keys and at most one fault. Next after Done or an
// error, two calls at once, a second Close: each is in the ledger's complaints.
type fake struct {
	name    string
	keys    []string // ascending
	chunks  []int    // sizes to return at most, in turn; none: the limit
	doneOwn bool     // says that it is done only in a chunk of its own
	cutsNUL bool     // seeks as a store does: what follows U+0000 does not count

	fault fault
	at    int // after how many of the keys; a chunk ends there

	ledger  *ledger
	asked   []int  // the limits, in order
	before  func() // called by each Next
	receipt func(call int) spi.Receipt
}

// A ledger counts what the cursors of a test do.
type ledger struct {
	opened, closed, active atomic.Int64

	mu         sync.Mutex
	complaints []string
}

func (l *ledger) complain(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.complaints = append(l.complaints, fmt.Sprintf(format, args...))
}

// verdict returns what is wrong once no merge is under way, or "".
func (l *ledger) verdict() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o, c := l.opened.Load(), l.closed.Load(); o != c {
		l.complaints = append(l.complaints, fmt.Sprintf("%d opened, %d closed", o, c))
	}
	if n := l.active.Load(); n != 0 {
		l.complaints = append(l.complaints, fmt.Sprintf("%d calls still under way", n))
	}
	return strings.Join(l.complaints, "; ")
}

func (f *fake) source() merge.Source[string] {
	return merge.Source[string]{Name: f.name, Open: func(_ context.Context, after string) (merge.Cursor[string], error) {
		f.ledger.active.Add(1)
		defer f.ledger.active.Add(-1)
		seek := after
		if f.cutsNUL {
			seek, _, _ = strings.Cut(after, "\x00")
		}
		c := &cursor{fake: f, after: after}
		c.pos, _ = slices.BinarySearchFunc(f.keys, seek, func(key, seek string) int {
			if key <= seek {
				return -1
			}
			return 1
		})
		c.from = c.pos
		if f.fault == failsToOpen && c.pos <= f.at {
			return nil, errFake
		}
		f.ledger.opened.Add(1)
		return c, nil
	}}
}

type cursor struct {
	*fake
	after     string
	from, pos int
	calls     int
	ended     bool
	busy      atomic.Bool
	closed    atomic.Bool
}

func (c *cursor) Close() {
	if c.busy.Load() {
		c.ledger.complain("%s: Close during Next", c.name)
	}
	if c.closed.Swap(true) {
		c.ledger.complain("%s: closed twice", c.name)
	}
	c.ledger.closed.Add(1)
}

func (c *cursor) Next(ctx context.Context, limit int) (chunk merge.Chunk[string], err error) {
	c.ledger.active.Add(1)
	defer c.ledger.active.Add(-1)
	if c.busy.Swap(true) || c.closed.Load() || c.ended || limit < 1 {
		c.ledger.complain("%s: Next(limit %d) while busy, closed %v or ended %v", c.name, limit, c.closed.Load(), c.ended)
	}
	defer c.busy.Store(false)
	defer func() { c.ended = err != nil || chunk.Done }()
	c.asked = append(c.asked, limit)
	if c.before != nil {
		c.before()
	}
	if err := ctx.Err(); err != nil {
		return merge.Chunk[string]{}, err
	}
	if c.receipt != nil {
		chunk.Receipt = c.receipt(c.calls)
	}
	size := limit
	if len(c.chunks) > 0 {
		size = min(limit, c.chunks[c.calls%len(c.chunks)])
	}
	c.calls++
	end := min(len(c.keys), c.pos+size)
	if c.fault != none && c.pos <= c.at {
		if c.pos == c.at {
			return c.misbehave(limit)
		}
		end = min(end, c.at)
	}
	chunk.Items = slices.Clone(c.keys[c.pos:end])
	chunk.Done = end == len(c.keys) && (c.fault == none || c.from > c.at) && (!c.doneOwn || c.pos == end)
	c.pos = end
	return chunk, nil
}

func (c *cursor) misbehave(limit int) (merge.Chunk[string], error) {
	last := c.after
	if c.pos > c.from {
		last = c.keys[c.pos-1]
	}
	switch c.fault {
	case repeats:
		return merge.Chunk[string]{Items: []string{last}, Done: true}, nil
	case goesBackward:
		return merge.Chunk[string]{Items: []string{"", last + "x"}[:min(limit, 2)]}, nil
	case turnsWithin:
		return merge.Chunk[string]{Items: []string{last + "x", last + "x"}[2-min(limit, 2):]}, c.unless(limit >= 2)
	case overfills:
		items := make([]string, limit+1)
		for i := range items {
			items[i] = last + fmt.Sprintf("x%06d", i)
		}
		return merge.Chunk[string]{Items: items}, nil
	case stalls:
		return merge.Chunk[string]{}, nil
	}
	return merge.Chunk[string]{Items: []string{last + "x"}}, errFake // items beside an error do not count
}

// unless returns a plain failure where a limit leaves no room for the fault.
func (c *cursor) unless(room bool) error {
	if room {
		return nil
	}
	return errFake
}

// matches reports whether an error is what the fault has to lead to.
func (f fault) matches(err error) bool {
	switch f {
	case repeats, goesBackward:
		_, ok := errors.AsType[*merge.OrderError](err)
		return ok
	case turnsWithin:
		_, ok := errors.AsType[*merge.OrderError](err)
		return ok || errors.Is(err, errFake)
	case overfills, stalls:
		_, ok := errors.AsType[*merge.ChunkError](err)
		return ok
	}
	return errors.Is(err, errFake)
}

// A world is some fakes and what a merge of them has to find.
type world struct {
	fakes  []*fake
	ledger *ledger
	all    []string // every key, sorted, each once
}

func (w *world) merge() merge.Merge[string] {
	m := merge.Merge[string]{Key: self}
	for _, f := range w.fakes {
		m.Sources = append(m.Sources, f.source())
	}
	return m
}

// world returns up to six sources that share some keys out. With faulty, some have
// a fault, and some keys may be at two sources.
func (c choose) world(faulty bool) *world {
	w := &world{ledger: &ledger{}}
	for i := range c(7) {
		f := &fake{name: fmt.Sprint("s", i), ledger: w.ledger, doneOwn: c(2) == 0, cutsNUL: c(2) == 0}
		for range c(4) {
			f.chunks = append(f.chunks, 1+c(5))
		}
		w.fakes = append(w.fakes, f)
	}
	if len(w.fakes) == 0 {
		return w
	}
	for range c(40) {
		if key := c.key(); !slices.Contains(w.all, key) {
			w.all = append(w.all, key)
			f := w.fakes[c(len(w.fakes))]
			f.keys = append(f.keys, key)
		}
	}
	slices.SortFunc(w.all, spi.CompareIDs)
	if faulty && len(w.fakes) > 1 && len(w.all) > 0 && c(3) == 0 {
		key := w.all[c(len(w.all))]
		for _, f := range w.fakes[:2] {
			if !slices.Contains(f.keys, key) {
				f.keys = append(f.keys, key)
			}
		}
	}
	for _, f := range w.fakes {
		slices.SortFunc(f.keys, spi.CompareIDs)
		if faulty && c(3) == 0 {
			f.fault, f.at = fault(c(int(faults))), c(len(f.keys)+1)
		}
	}
	return w
}

// after returns the keys after a cursor.
func after(keys []string, cursor string) []string {
	i := 0
	for i < len(keys) && keys[i] <= cursor {
		i++
	}
	return keys[i:]
}

// expect returns the keys after a cursor that are to be given out before the
// error, and judges that error; nil stands for none.
func (w *world) expect(cursor string) (keys []string, judge func(error) string) {
	type end struct {
		key  string // the last key given out; of a duplicate, the first that is not
		kind int    // -1: nothing is given out, 0: a duplicate, 1: a fault after key
		f    *fake
	}
	var ends []end
	for _, f := range w.fakes {
		pos := len(f.keys) - len(after(f.keys, cursor))
		switch {
		case f.fault == none || pos > f.at:
		case pos == f.at || f.fault == failsToOpen:
			ends = append(ends, end{"", -1, f})
		default:
			ends = append(ends, end{f.keys[f.at-1], 1, f})
		}
	}
	holders := map[string][]string{}
	for _, f := range w.fakes {
		limit := len(f.keys)
		if f.fault != none && len(f.keys)-len(after(f.keys, cursor)) <= f.at {
			limit = f.at
		}
		for _, key := range after(f.keys[:limit], cursor) {
			holders[key] = append(holders[key], f.name)
		}
	}
	for key, names := range holders {
		if len(names) > 1 {
			ends = append(ends, end{key, 0, nil})
		}
	}
	keys = after(w.all, cursor)
	if len(ends) == 0 {
		return keys, func(err error) string { return complaintIf(err != nil, "unexpected error: %v", err) }
	}
	slices.SortFunc(ends, func(a, b end) int {
		if a.kind < 0 || b.kind < 0 {
			return cmp.Compare(a.kind, b.kind)
		}
		return cmp.Or(strings.Compare(a.key, b.key), cmp.Compare(a.kind, b.kind))
	})
	first := ends[0]
	if first.kind == 0 {
		i, _ := slices.BinarySearch(keys, first.key)
		return keys[:i], func(err error) string {
			dup, ok := errors.AsType[*merge.DuplicateError](err)
			if !ok || dup.Key != first.key {
				return fmt.Sprintf("got %v, want a duplicate of %q", err, first.key)
			}
			a, b, at := dup.Sources[0], dup.Sources[1], holders[first.key]
			return complaintIf(a == b || !slices.Contains(at, a) || !slices.Contains(at, b), "duplicate %q at %q and %q, want two of %q", dup.Key, a, b, at)
		}
	}
	if first.kind < 0 {
		keys = nil
	} else {
		i, found := slices.BinarySearch(keys, first.key)
		if found {
			i++
		}
		keys = keys[:i]
	}
	return keys, func(err error) string {
		shard, ok := errors.AsType[*spi.ShardError](err)
		if !ok {
			return fmt.Sprintf("got %v, want an error of %s", err, first.f.name)
		}
		for _, e := range ends {
			if e.kind == first.kind && (e.kind < 0 || e.key == first.key) && e.f.name == shard.Shard && e.f.fault.matches(err) {
				return ""
			}
		}
		return fmt.Sprintf("got %v, want the fault %d of %s", err, first.f.fault, first.f.name)
	}
}

func complaintIf(bad bool, format string, args ...any) string {
	if bad {
		return fmt.Sprintf(format, args...)
	}
	return ""
}
