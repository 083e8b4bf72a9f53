package sharded

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/loomgate/loomgate/merge"
	"github.com/loomgate/loomgate/spi"
)

// maxRestarts is how often a listing starts again because the map has changed,
// without giving anything out.
const maxRestarts = 3

// errMapChanged says that there are slots to cover of which the merge did not know.
var errMapChanged = errors.New("the map of slots has changed while it was read")

// A listing is one of the groups that have pages.
type listing[T any] struct {
	prefix string
	key    func(T) string

	// ask asks a shard whose slots are known as of a version.
	ask func(ctx context.Context, shard *spi.Store, after string, limit int, known int64) (merge.Chunk[T], error)
}

// merged returns the merge of a listing of all shards but some, by the map as it is now.
func merged[T any](s *sharded, l listing[T], without []int) merge.Merge[T] {
	t := s.table.Load()
	m := merge.Merge[T]{Key: l.key, Want: t.want}
	if len(without) > 0 {
		m.Want = t.listedWithout(without)
	}
	for i := range s.shards {
		if slices.Contains(without, i) {
			continue
		}
		m.Sources = append(m.Sources, merge.Paged(t.shards[i].name, l.key, func(ctx context.Context, after string, limit int) (merge.Chunk[T], error) {
			return within(ctx, s.timeout, func(ctx context.Context) (merge.Chunk[T], error) {
				return chunk(ctx, s, l, i, t.want, after, limit)
			})
		}))
	}
	return m
}

// chunk reads a part of one shard's listing, and holds it against what the shard
// says that it owns.
func chunk[T any](ctx context.Context, s *sharded, l listing[T], i int, want spi.SlotSet, after string, limit int) (merge.Chunk[T], error) {
	t, err := s.reach(ctx, i)
	if err != nil {
		return merge.Chunk[T]{}, err
	}
	c, err := l.ask(ctx, s.shards[i].store, after, limit, t.shards[i].own.Version)
	if err != nil || !t.identified() {
		return c, err
	}
	t, receipt, err := s.vouch(ctx, t, i, c.Receipt)
	if err != nil {
		return c, err
	}
	if !slices.Equal(t.want, want) {
		return c, &spi.UnavailableError{Cause: errMapChanged}
	}
	c.Receipt = spi.Receipt{receipt}
	for _, item := range c.Items {
		name := l.key(item)
		if slot := t.slot(name); !receipt.Slots.Contains(slot) {
			return c, &ForeignError{spi.NewSlotSet(slot), name}
		}
	}
	return c, nil
}

// vouch returns a chunk's receipt with the slots that the shard had at its version,
// and a table that knows every pin which the shard knew of then: a pin that is on
// its way has to be covered, too.
func (s *sharded) vouch(ctx context.Context, t *table, i int, receipt spi.Receipt) (*table, spi.ShardReceipt, error) {
	if len(receipt) != 1 || receipt[0].Shard != t.shards[i].name {
		return t, spi.ShardReceipt{}, &IdentityError{Shard: t.shards[i].name, Reason: "does not sign its page"}
	}
	r := receipt[0]
	if r.Version != t.shards[i].own.Version {
		if err := s.read(ctx, i); err != nil {
			return t, r, err
		}
		t = s.table.Load()
	}
	if t.shards[i].own.Version == r.Version {
		if excess, ok := errors.AsType[*spi.CoverageError](spi.CheckCoverage(r.Slots, t.shards[i].listed)); ok {
			return t, r, &ForeignError{Slots: excess.Missing}
		}
		r.Slots = t.shards[i].listed
	}
	return t, r, nil
}

// pageOf returns a page of a listing; where the caller allows it, of the shards that
// answer, with the names of the others.
func pageOf[T any](ctx context.Context, s *sharded, l listing[T], after string, limit int, allowPartial bool) (p merge.Page[T], missing []string, err error) {
	var without []int
	for {
		p, err = page(ctx, s, l, after, limit, without)
		i := s.silent(ctx, err)
		if !allowPartial || i == nobody || len(without)+1 == len(s.shards) {
			break
		}
		without = append(without, i)
	}
	if err != nil {
		return p, nil, err
	}
	slices.Sort(without)
	for _, i := range without {
		missing = append(missing, s.table.Load().shards[i].name)
	}
	return p, missing, nil
}

// silent returns the shard that has failed a page because it does not answer; nobody if
// the page failed for another reason, or the caller has no time left.
func (s *sharded) silent(ctx context.Context, err error) int {
	failed, ok := errors.AsType[*spi.ShardError](err)
	_, unavailable := errors.AsType[*spi.UnavailableError](err)
	if !ok || !unavailable || ctx.Err() != nil || errors.Is(err, errMapChanged) {
		return nobody
	}
	return slices.IndexFunc(s.table.Load().shards, func(said said) bool { return said.name == failed.Shard })
}

// listedWithout returns the slots that are on the pages of all shards but some.
func (t *table) listedWithout(without []int) spi.SlotSet {
	var rest []spi.Slot
	for i, said := range t.shards {
		if slices.Contains(without, i) {
			continue
		}
		for _, r := range said.listed {
			for slot := int(r.First); slot <= int(r.Last); slot++ {
				rest = append(rest, spi.Slot(slot))
			}
		}
	}
	return spi.NewSlotSet(rest...)
}

// page returns a page of a listing, of all shards but some.
func page[T any](ctx context.Context, s *sharded, l listing[T], after string, limit int, without []int) (merge.Page[T], error) {
	for restarts := 0; ; restarts++ {
		page, err := merged(s, l, without).Page(ctx, after, limit)
		if errors.Is(err, errMapChanged) && restarts < maxRestarts {
			continue
		}
		for i := range page.Receipt {
			page.Receipt[i].Slots = slices.Clone(page.Receipt[i].Slots) // the map's
		}
		return page, s.nameRivals(err)
	}
}

// all goes through a listing. Each range over it begins anew.
func all[T any](ctx context.Context, s *sharded, l listing[T], after string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		if err := (spi.ListExecutionsRequest{Prefix: l.prefix, After: after, Limit: 1}).Validate(); err != nil {
			var none T
			yield(none, err)
			return
		}
		after := after
		for restarts := 0; ; restarts++ {
			changed := false
			for item, err := range merged(s, l, nil).All(ctx, after) {
				if err == nil {
					after, restarts = l.key(item), 0
				} else if changed = errors.Is(err, errMapChanged) && restarts < maxRestarts; changed {
					break
				} else {
					err = s.nameRivals(err)
				}
				if !yield(item, err) {
					return
				}
			}
			if !changed {
				return
			}
		}
	}
}

// nameRivals names the shards in the error of a page that covers slots twice.
func (s *sharded) nameRivals(err error) error {
	if coverage, ok := err.(*spi.CoverageError); ok { //nolint:errorlint // no shard's own, which would be in another error
		return s.table.Load().overlap(coverage)
	}
	return err
}
