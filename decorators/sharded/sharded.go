package sharded

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/loomgate/loomgate/spi"
)

// DefaultCallTimeout is used where [Options] state none.
const DefaultCallTimeout = 5 * time.Second

// A Shard is one of the stores to spread over.
type Shard struct {
	// Name is what the shard's identity has to say; "" takes its word for it.
	Name  string
	Store *spi.Store
}

// Options say how names are spread. The zero Options suit shards with identities
// that were filled by execution.
type Options struct {
	// Placement is how names are placed; the shards' identities have to say the same.
	Placement Placement

	// Tenant is set where the shards are this tenant's views of the real ones. Its
	// names are then placed where they are placed from above such views.
	Tenant spi.TenantName

	// CallTimeout is how long a shard may take in a call that goes to several of
	// them; and how long a call without a deadline of its own is tried again while
	// its slot is on its way to another shard. 0 means DefaultCallTimeout.
	CallTimeout time.Duration

	// Exclusive accepts shards without an identity. The caller alone uses them and
	// always lists them in one order: slots are shared out by it, and nothing
	// notices a shard in another's place.
	Exclusive bool

	// Writer is the version of the events group that the caller writes as; the zero
	// Version is that of package spi. Shards that ask for a later one are read only,
	// see [WriterError].
	Writer spi.Version

	// AwaitMissing starts although shards do not answer. Until they do, pages and
	// calls to slots that no other shard has are [spi.UnavailableError], and due
	// timers name them as missing. They are asked again when a call needs them, at
	// most once a second.
	AwaitMissing bool
}

// A Cluster is a set of shards that together hold everything.
type Cluster struct {
	sharded *sharded
	store   *spi.Store
}

// New returns a store over shards: that of the [Cluster] that [Open] returns.
func New(ctx context.Context, shards []Shard, opts Options) (*spi.Store, error) {
	c, err := Open(ctx, shards, opts)
	if err != nil {
		return nil, err
	}
	return c.store, nil
}

// Open asks the shards for the map and checks it. It returns an [IdentityError] for
// a shard that is not what the caller takes it for or does not belong to the
// others; a [spi.CoverageError] where slots are nobody's or several shards', in the
// second case within an [OverlapError]; a [PinError] where the pins contradict each
// other; a [spi.ShardError] where a shard does not answer; a
// [spi.InvalidArgumentError]; or an error of [spi.Wrap].
//
// A slot on its way from one of the shards to another counts as covered.
func Open(ctx context.Context, shards []Shard, opts Options) (*Cluster, error) {
	s, err := newSharded(shards, opts)
	if err != nil {
		return nil, err
	}
	stores := make([]*spi.Store, len(shards))
	for i, shard := range shards {
		stores[i] = shard.Store
	}
	store, err := spi.Wrap(s, stores...)
	if err != nil {
		return nil, err
	}
	if err := s.open(ctx, opts.AwaitMissing); err != nil {
		return nil, err
	}
	return &Cluster{s, store}, nil
}

// Store returns the shards as one store. It offers what all of them do, except to
// change who owns what; CopyPrefix also where they only offer AppendIfUnchanged.
func (c *Cluster) Store() *spi.Store { return c.store }

// Refresh reads the map from all shards again. Nobody needs to call it for slots
// that move, since a call to the wrong shard is refused. A pin is another matter:
// whoever makes one lets every program that uses the shards refresh before the
// tenant's first event, for the shard that does not have the tenant cannot know.
//
// An error is as of [Open]; what could be read is in effect all the same.
func (c *Cluster) Refresh(ctx context.Context) error {
	if err := c.sharded.readAll(ctx); err != nil {
		return err
	}
	return c.sharded.table.Load().fault
}

// A Location is where the rows of a name are.
type Location struct {
	Shard string
	Route spi.Route // the zero Route where the shards have no identity
}

// Where returns where the rows of an execution, a ref, a lease or a key owner are,
// by its name as callers of the store know it, according to the map as it was last
// read. A slot that no known shard has is [spi.UnavailableError].
func (c *Cluster) Where(name string) (Location, error) {
	t := c.sharded.table.Load()
	at := t.find(name)
	if at.shard == nobody {
		return Location{}, t.unowned(at.route.Slot)
	}
	return Location{t.shards[at.shard].name, at.route}, nil
}

// sharded is the decorator.
type sharded struct {
	placer
	shards    []*shard
	timeout   time.Duration
	exclusive bool
	writer    spi.Version // that the caller writes as

	table    atomic.Pointer[table]
	learning sync.Mutex // held to replace the table
	reads    singleflight.Group
}

// A shard is a store and the state of asking it what it owns.
type shard struct {
	store *spi.Store
	key   string       // of its reads
	begun atomic.Int64 // how many reads have begun
	asked atomic.Int64 // when the last one ended, in Unix nanoseconds
}

func newSharded(shards []Shard, opts Options) (*sharded, error) {
	placer, err := newPlacer(opts.Placement, opts.Tenant)
	if err != nil {
		return nil, err
	}
	switch {
	case opts.CallTimeout == 0:
		opts.CallTimeout = DefaultCallTimeout
	case opts.CallTimeout < 0:
		return nil, &spi.InvalidArgumentError{Field: "call timeout", Rule: "is negative"}
	}
	if len(shards) == 0 || len(shards) > spi.HashSlots {
		return nil, &spi.InvalidArgumentError{Field: "shards", Rule: fmt.Sprintf("has %d, not 1 to %d", len(shards), spi.HashSlots)}
	}
	s := &sharded{placer: placer, timeout: opts.CallTimeout, exclusive: opts.Exclusive, writer: cmp.Or(opts.Writer, spi.Versions()[spi.Events])}
	unread := make([]said, len(shards))
	for i, given := range shards {
		name := given.Name
		if name == "" {
			name = fmt.Sprintf("shard-%d", i+1) // until it says its own
		}
		if given.Store == nil {
			return nil, &IdentityError{Shard: name, Reason: "has no store"}
		}
		for _, earlier := range shards[:i] {
			if given.Store == earlier.Store || given.Name != "" && given.Name == earlier.Name {
				return nil, &IdentityError{Shard: name, Reason: "is in the list twice"}
			}
		}
		s.shards = append(s.shards, &shard{store: given.Store, key: fmt.Sprint(i)})
		unread[i] = said{name: name, named: given.Name != "", err: errNotAsked}
	}
	s.table.Store(newTable(&s.placer, unread))
	return s, nil
}
