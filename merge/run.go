package merge

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/loomgate/loomgate/spi"
)

// A run is a merge from one start to its end or to a change of ownership.
type run[T any] struct {
	merge   *Merge[T]
	ctx     context.Context // the caller's
	readers []*reader[T]

	// heads is the readers with an item to give, the least last; nil before the
	// first chunks. An insertion into a sorted slice is as fast as a heap of 64
	// readers, and two that have the same key lie side by side.
	heads []*reader[T]

	// dry is the reader that gave the last item, if it needs another chunk to know
	// its next.
	dry *reader[T]

	ahead bool // read a chunk ahead
	limit int  // how many items are still wanted, if not ahead
	moved bool // the error is one that starting again may cure

	reading  context.Context // the reads'; ends with stop
	cancel   context.CancelFunc
	work     sync.WaitGroup
	finished chan *reader[T] // who has read; it has room for all
}

// A reader reads one source.
type reader[T any] struct {
	source  *Source[T]
	items   []T    // of the chunk that is being given out
	head    string // the key of the first
	done    bool   // no chunk follows
	receipt spi.Receipt

	// The goroutine's while a read is under way.
	cursor Cursor[T]
	last   string // the last key read, at first the cursor
	limit  int
	chunk  Chunk[T]
	err    error

	pending bool // a read has begun whose outcome was not taken yet
	ready   bool // it has finished
}

// start prepares to read from after a cursor; nothing is opened yet. The caller
// calls stop.
func (m *Merge[T]) start(ctx context.Context, after string, ask int) *run[T] {
	r := &run[T]{merge: m, ctx: ctx, finished: make(chan *reader[T], len(m.Sources))}
	r.reading, r.cancel = context.WithCancel(ctx)
	for i := range m.Sources {
		r.readers = append(r.readers, &reader[T]{source: &m.Sources[i], last: after, limit: ask})
	}
	return r
}

// stop waits for the reads under way and closes what was opened.
func (r *run[T]) stop() {
	r.cancel()
	r.work.Wait()
	for _, x := range r.readers {
		if x.cursor != nil {
			x.cursor.Close()
		}
	}
}

// next returns the next item and its key, or false at the end.
func (r *run[T]) next() (item T, key string, ok bool, err error) {
	switch {
	case r.heads == nil:
		err = r.first()
	case r.dry != nil:
		err = r.refill(r.dry)
	}
	if err == nil {
		err = r.ctx.Err()
	}
	n := len(r.heads)
	if err != nil || n == 0 {
		return item, "", false, err
	}
	x := r.heads[n-1]
	if n > 1 && r.heads[n-2].head == x.head {
		return item, "", false, &DuplicateError{x.head, [2]string{r.heads[n-2].source.Name, x.source.Name}}
	}
	item, key = x.items[0], x.head
	x.items = x.items[1:]
	r.heads = r.heads[:n-1]
	r.limit--
	if len(x.items) > 0 {
		r.place(x)
	} else if !x.done {
		r.dry = x
	}
	return item, key, true, nil
}

// more reports whether anything may follow what next has returned.
func (r *run[T]) more() bool { return len(r.heads) > 0 || r.dry != nil }

// place puts a reader that has items among the heads.
func (r *run[T]) place(x *reader[T]) {
	x.head = r.merge.Key(x.items[0])
	at, _ := slices.BinarySearchFunc(r.heads, x.head, func(y *reader[T], head string) int {
		return spi.CompareIDs(head, y.head)
	})
	r.heads = slices.Insert(r.heads, at, x)
}

// first reads the first chunk of every source and checks what they cover.
func (r *run[T]) first() error {
	r.heads = make([]*reader[T], 0, len(r.readers))
	if err := r.ctx.Err(); err != nil {
		return err
	}
	for _, x := range r.readers {
		r.read(x)
	}
	for range r.readers {
		if x := <-r.finished; x.err != nil {
			return r.failure(x) // nobody was canceled before this one failed
		}
	}
	var covered []spi.SlotSet
	for _, x := range r.readers {
		x.receipt = x.chunk.Receipt
		for _, shard := range x.receipt {
			covered = append(covered, shard.Slots)
		}
	}
	if len(r.merge.Want) > 0 {
		if err := spi.CheckCoverage(r.merge.Want, covered...); err != nil {
			r.moved = true
			return err
		}
	}
	for _, x := range r.readers {
		r.take(x)
	}
	return nil
}

// refill gets the next chunk of a reader that is dry.
func (r *run[T]) refill(x *reader[T]) error {
	if !x.pending {
		x.limit = min(2*x.limit, r.limit) // it holds more than its share
		r.read(x)
	}
	for !x.ready {
		(<-r.finished).ready = true
	}
	if x.err != nil {
		return r.failure(x)
	}
	if !sameOwnership(x.receipt, x.chunk.Receipt) {
		r.moved = true
		return &spi.ShardError{Shard: x.source.Name, Err: &spi.UnavailableError{Cause: &ChangedError{x.receipt, x.chunk.Receipt}}}
	}
	r.dry = nil
	r.take(x)
	return nil
}

// take makes the chunk that was read the one that is given out.
func (r *run[T]) take(x *reader[T]) {
	x.items, x.done, x.pending = x.chunk.Items, x.chunk.Done, false
	if len(x.items) > 0 {
		r.place(x)
	}
	if r.ahead && !x.done {
		r.read(x)
	}
}

// read begins to read a chunk.
func (r *run[T]) read(x *reader[T]) {
	x.pending, x.ready = true, false
	r.work.Go(func() {
		x.err = x.read(r.reading, r.merge.Key)
		r.finished <- x
	})
}

func (x *reader[T]) read(ctx context.Context, key func(T) string) (err error) {
	if x.cursor == nil {
		cursor, err := x.source.Open(ctx, x.last)
		if err != nil {
			return err
		}
		x.cursor = cursor
	}
	x.chunk, err = x.cursor.Next(ctx, x.limit)
	if err != nil {
		return err
	}
	if n := len(x.chunk.Items); n > x.limit || n == 0 && !x.chunk.Done {
		return &ChunkError{n, x.limit}
	}
	for _, item := range x.chunk.Items {
		k := key(item)
		if spi.CompareIDs(k, x.last) <= 0 {
			return &OrderError{k, x.last}
		}
		x.last = k
	}
	return nil
}

// failure names the source, unless the caller has canceled: that is no source's
// fault. A deadline names the source that was being waited for.
func (r *run[T]) failure(x *reader[T]) error {
	if err := r.ctx.Err(); errors.Is(err, context.Canceled) && errors.Is(x.err, context.Canceled) {
		return err
	}
	return &spi.ShardError{Shard: x.source.Name, Err: x.err}
}

// receipt returns what the run's first chunks, and so all, were read under.
func (r *run[T]) receipt() (all spi.Receipt) {
	for _, x := range r.readers {
		all = append(all, x.receipt...)
	}
	return all
}

// sameOwnership reports whether a later receipt says what the first did.
func sameOwnership(first, later spi.Receipt) bool {
	return slices.EqualFunc(first, later, func(a, b spi.ShardReceipt) bool {
		return a.Shard == b.Shard && a.Version == b.Version && (b.Slots == nil || slices.Equal(a.Slots, b.Slots))
	})
}
