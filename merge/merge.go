// Package merge reads several ordered sources, usually shards, as one.
//
// A [Merge] comes in two forms: [Merge.Page] answers one request and keeps
// nothing; [Merge.All] goes through everything. Both are pulled by the caller, and
// neither returns, or ends, before every goroutine that it started has.
//
// # What it promises
//
// Items come in the order of [spi.CompareIDs], each key once. An item is given out
// only while every source has its next item here or is done; so what is given out
// is what a merge of complete sources would begin with, and nothing lies past a
// source that failed. There is no partial result without an error.
//
// # What it takes for granted: nothing
//
// A source must ascend strictly, from after the cursor on, within a chunk and from
// one chunk to the next ([OrderError]), must keep to the limit and move on
// ([ChunkError]), and must not hold a key of another source ([DuplicateError]).
// What one source did wrong comes as a [spi.ShardError] that names it.
//
// # Ownership
//
// Shards that pass items between them stamp each chunk with a receipt of the
// snapshot that it was read in. All chunks of one source must carry the same
// ownership versions, and the sources together must cover the wanted slots once.
// Otherwise somebody is moving slots: the merge drops what it has buffered and
// starts again after the last item given out, at most three times in a row without
// giving an item out. So an item that is live all the time is given out once, even
// if it moves meanwhile. What was given out before is not taken back: it was
// covered when it was read.
package merge

import (
	"context"

	"github.com/loomgate/loomgate/spi"
)

const (
	// chunkSize is how many items an iteration asks a source for.
	chunkSize = 1000

	// maxRestarts is how often a merge starts again without giving an item out.
	maxRestarts = 3
)

// A Merge is what to merge. It holds no state: use it as often as you like, also
// concurrently.
type Merge[T any] struct {
	// Key returns what an item is ordered by. It is called from several goroutines
	// at once and must always say the same of one item.
	Key func(T) string

	Sources []Source[T]

	// Want is the slots that the receipts must cover before an item is given out;
	// none may be covered twice. If it is empty, coverage is not checked, only that
	// no version changes.
	Want spi.SlotSet
}

// A Source is one of the stores to merge.
type Source[T any] struct {
	Name string // a shard's; errors say it

	// Open begins to read strictly after a cursor: any well-formed string. It may
	// block, and may leave all work to the first Next. A cursor that comes with an
	// error is not closed. The context lives as long as the cursor.
	Open func(ctx context.Context, after string) (Cursor[T], error)
}

// A Cursor reads a source, a chunk at a time. The merge that opened it uses it
// from one goroutine at a time, does not call Next again after an error or the
// last chunk, and calls Close once, when no Next is under way: at the latest
// before it returns, whatever happens.
type Cursor[T any] interface {
	// Next returns at most limit items, at least one unless it is the last chunk.
	// It has to return soon after the context is done, for a merge waits for it.
	Next(ctx context.Context, limit int) (Chunk[T], error)

	// Close lets go of what the cursor holds. There is nothing that its failure
	// could change about the chunks that were read, so it has none to report.
	Close()
}

// A Chunk is the next items of a source.
type Chunk[T any] struct {
	Items []T  // ascending by key; the merge's from now on, which only reads it
	Done  bool // nothing comes after Items

	// Receipt describes the snapshot that the chunk was read in: one entry a shard
	// of the source, always in the same order. A cursor's first chunk states the
	// slots; later ones may leave them nil, which means as before.
	Receipt spi.Receipt
}

// Paged returns a source over a stateless listing such as [spi.ListExecutions].
// Each chunk is asked for after the key of the one before, whatever cursor the
// listing itself returned. Nothing stays open in between.
//
// A listing that leaves out the slots of a version that its caller knows
// (KnownOwnership) needs a fetch that puts them back.
func Paged[T any](name string, key func(T) string, fetch func(ctx context.Context, after string, limit int) (Chunk[T], error)) Source[T] {
	return Source[T]{name, func(_ context.Context, after string) (Cursor[T], error) {
		return &pager[T]{key, fetch, after}, nil
	}}
}

type pager[T any] struct {
	key   func(T) string
	fetch func(ctx context.Context, after string, limit int) (Chunk[T], error)
	after string
}

func (p *pager[T]) Next(ctx context.Context, limit int) (Chunk[T], error) {
	c, err := p.fetch(ctx, p.after, limit)
	if n := len(c.Items); err == nil && n > 0 {
		p.after = p.key(c.Items[n-1])
	}
	return c, err
}

func (p *pager[T]) Close() {}
