// Package memory is a store that keeps everything in the memory of one process:
// the reference that other backends are compared with, and the store for tests.
// It offers every method.
package memory

import (
	"context"
	"sync"
	"time"

	"github.com/loomgate/loomgate/spi"
	"github.com/tidwall/btree"
)

// store is every group over one lock, so each method is one transaction.
type store struct {
	now func() time.Time // the caller's code: never called under mu

	// Trees are sorted by bytes, which is code point order. They are never
	// copied, so reading them changes nothing and a read lock is enough.
	mu         sync.RWMutex
	executions map[spi.ExecutionID]*execution
	live       btree.Map[string, *execution] // those with events
	tombstones btree.Map[string, *execution]
	timers     btree.Map[string, *timer] // by time, then execution
	timersOf   btree.Map[string, *timer] // by execution, then time
	refs       btree.Map[string, *ref]
	leases     map[spi.LeaseName]*lease
	keyrings   map[spi.KeyOwner]*keyring
	keyOwners  btree.Map[string, *keyring] // those with a key that is not destroyed
	ownership  ownership
	last       int64 // the last version or token given out
}

// An Option changes how a store works.
type Option func(*store)

// WithClock makes a store take the time from now, in place of [time.Now]. It is
// called by many goroutines at once.
func WithClock(now func() time.Time) Option {
	return func(s *store) { s.now = now }
}

// New returns an empty store.
func New(options ...Option) (*spi.Store, error) {
	s := &store{
		now:        time.Now,
		executions: map[spi.ExecutionID]*execution{},
		leases:     map[spi.LeaseName]*lease{},
		keyrings:   map[spi.KeyOwner]*keyring{},
		ownership:  ownership{slots: map[spi.Slot]spi.SlotRecord{}},
	}
	for _, option := range options {
		option(s)
	}
	return spi.Open(spi.Backend{Events: s, Timers: s, Refs: s, Leases: s, DataKeys: s, Ownership: s})
}

// begin takes a lock for one transaction, unless ctx has ended.
func begin(ctx context.Context, lock sync.Locker) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	lock.Lock()
	return nil
}

// on does one transaction on the row that a call names. The row comes from find,
// which judges the route; one that is not there it makes, and do keeps it or not.
func on[Name, Row, Res any](
	ctx context.Context, lock sync.Locker, find func(spi.Route, Name) (Row, error), route spi.Route, name Name,
	do func(Row) (Res, error),
) (res Res, err error) {
	if err := begin(ctx, lock); err != nil {
		return res, err
	}
	defer lock.Unlock()
	row, err := find(route, name)
	if err != nil {
		return res, err
	}
	return do(row)
}

// clock returns the store's time.
func (s *store) clock() time.Time { return canonical(s.now()) }

// canonical returns t as every time is stored: in UTC, in whole microseconds and
// without a monotonic reading, so that equal times are also identical.
func canonical(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// next returns a number that was never given out before. It is the time where it
// can be, so that a version tells a tenant nothing of how busy the others are.
func (s *store) next(now time.Time) int64 {
	s.last = max(s.last+1, now.UnixMicro())
	return s.last
}

// empty reports whether the store holds nothing.
func (s *store) empty() bool {
	return len(s.executions)+s.timers.Len()+s.refs.Len()+len(s.leases)+len(s.keyrings) == 0
}

type row interface{ place() spi.Slot }

// placed is a row's slot: that of the call which planted it.
type placed struct{ slot spi.Slot }

func (p placed) place() spi.Slot { return p.slot }

// list emits a page of the rows that this store lists, and returns the cursor to
// go on with: "" if no row is left.
func list[R row](s *store, index *btree.Map[string, R], prefix, after string, limit int, emit func(name string, r R)) (next string) {
	part := spi.Seek(prefix, after)
	start, inclusive := part.Start()
	at := index.Iter()
	more := at.Seek(start)
	if more && !inclusive && at.Key() == start {
		more = at.Next()
	}
	for ; more && !part.Past(at.Key()); more = at.Next() {
		if !s.ownership.lists(at.Value()) {
			continue
		}
		if limit == 0 {
			return next
		}
		emit(at.Key(), at.Value())
		next, limit = at.Key(), limit-1
	}
	return ""
}
