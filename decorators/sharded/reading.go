package sharded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/loomgate/loomgate/spi"
)

const (
	// unreadPause is how long a shard that could not say what it owns is left alone
	// before it is asked again.
	unreadPause = time.Second

	// openTries is how often the map is read at start, if somebody may be moving
	// slots from a shard that was asked early to one that was asked late.
	openTries = 3
)

var errNotAsked = errors.New("not asked yet")

// open reads the map and checks it. Nobody else has s yet.
func (s *sharded) open(ctx context.Context, awaitMissing bool) error {
	for try := 1; ; try++ {
		outcomes := scatter(s, func(i int) ([]spi.ShardOwnership, error) { return s.ask(ctx, i) })
		if err := ctx.Err(); err != nil {
			return err
		}
		shards := slices.Clone(s.table.Load().shards)
		for i, o := range outcomes {
			var err error
			shards[i], err = s.hear(shards, i, o.res, o.err)
			switch {
			case o.err != nil && !awaitMissing:
				return s.failed(ctx, i, err)
			case o.err == nil && err != nil:
				return err
			}
		}
		t := newTable(&s.placer, shards)
		if t.fault == nil {
			s.table.Store(t)
			return nil
		}
		if try == openTries {
			return t.fault
		}
	}
}

// ask asks a shard what it owns: nothing, if it has no identity.
func (s *sharded) ask(ctx context.Context, i int) ([]spi.ShardOwnership, error) {
	shard := s.shards[i]
	defer func() { shard.asked.Store(time.Now().UnixNano()) }()
	if !shard.store.Offered().Has(spi.CapOwnership) {
		return nil, nil
	}
	res, err := within(ctx, s.timeout, func(ctx context.Context) (spi.GetOwnershipResponse, error) {
		return spi.GetOwnership(ctx, shard.store, spi.GetOwnershipRequest{})
	})
	return res.Shards, err
}

// readAll reads all shards.
func (s *sharded) readAll(ctx context.Context) error {
	for i, o := range scatter(s, func(i int) (struct{}, error) { return struct{}{}, s.read(ctx, i) }) {
		if o.err != nil {
			return s.failed(ctx, i, o.err)
		}
	}
	return nil
}

// read reads what a shard owns, beginning not before now.
func (s *sharded) read(ctx context.Context, i int) error {
	for before := s.shards[i].begun.Load(); ; {
		number, err := s.join(ctx, i)
		if number > before {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// join waits for a read of a shard that is under way, or for a new one, and returns
// its number. A read is for all who wait: the end of one's context does not end it.
func (s *sharded) join(ctx context.Context, i int) (number int64, err error) {
	shard := s.shards[i]
	done := s.reads.DoChan(shard.key, func() (any, error) {
		number := shard.begun.Add(1)
		answer, err := s.ask(context.WithoutCancel(ctx), i)
		return number, s.learn(i, answer, err)
	})
	select {
	case r := <-done:
		return r.Val.(int64), r.Err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// reach returns the table once a shard is known in it.
func (s *sharded) reach(ctx context.Context, i int) (*table, error) {
	t := s.table.Load()
	if t.shards[i].known {
		return t, nil
	}
	if time.Now().UnixNano()-s.shards[i].asked.Load() >= int64(unreadPause) {
		_, _ = s.join(ctx, i) // the table tells
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		t = s.table.Load()
	}
	if said := t.shards[i]; !said.known {
		return nil, &spi.UnavailableError{Cause: said.err}
	}
	return t, nil
}

// learn takes what a shard has answered into the map. The error is why it could not.
func (s *sharded) learn(i int, answer []spi.ShardOwnership, err error) error {
	s.learning.Lock()
	defer s.learning.Unlock()
	was := s.table.Load().shards
	now := slices.Clone(was)
	now[i], err = s.hear(was, i, answer, err)
	if !reflect.DeepEqual(was[i], now[i]) {
		s.table.Store(newTable(&s.placer, now))
	}
	return err
}

// hear returns what is known of a shard after it has answered, and the error if that
// is not what it answered.
func (s *sharded) hear(shards []said, i int, answer []spi.ShardOwnership, err error) (said, error) {
	was := shards[i]
	if err != nil && was.known {
		return was, err // what it said before is the best there is
	}
	if err == nil {
		err = s.misfit(shards, i, answer)
	}
	now := said{name: was.name, named: was.named, known: err == nil, err: err}
	if now.known && len(answer) > 0 {
		now.name, now.named, now.own = answer[0].Identity.Shard, true, answer[0]
		now.listed = listed(now.own)
		now.refuses = Refuses(now.own, s.writer)
	}
	return now, err
}

// listed returns the slots that are on a shard's pages.
func listed(own spi.ShardOwnership) spi.SlotSet {
	var slots []spi.Slot
	for _, r := range own.Slots {
		if r.State.Lists() {
			slots = append(slots, r.Slot)
		}
	}
	return spi.NewSlotSet(slots...)
}

// misfit returns an error unless a shard is what the caller takes it for, and fits
// the others that are known.
func (s *sharded) misfit(shards []said, i int, answer []spi.ShardOwnership) error {
	me := shards[i]
	refuse := func(reason string, args ...any) error {
		return &IdentityError{Shard: me.name, Missing: len(answer) == 0 && me.own.Version == 0, Reason: fmt.Sprintf(reason, args...)}
	}
	switch {
	case len(answer) > 1:
		return refuse("is itself %d shards", len(answer))
	case len(answer) == 0 && me.own.Version > 0:
		return refuse("has lost its identity")
	case len(answer) == 0 && !s.exclusive:
		return refuse("has no identity; give it one, unless the caller alone uses it")
	}
	var id spi.Identity
	for _, own := range answer {
		id = own.Identity
		switch {
		case !slices.IsSortedFunc(own.Slots, func(a, b spi.SlotRecord) int { return cmp.Or(cmp.Compare(a.Slot, b.Slot), -1) }):
			return refuse("does not list its slots in order")
		case me.named && id.Shard != me.name:
			return refuse("says that it is shard %q: the list is in another order, or the store another one", id.Shard)
		case id.Fingerprint != s.Fingerprint():
			return refuse("places names by %q, not by %q", id.Fingerprint, s.Fingerprint())
		}
		me.name = id.Shard
	}
	for j, other := range shards {
		switch {
		case j == i:
		case len(answer) > 0 && other.named && other.name == id.Shard:
			return refuse("is in the list twice: two stores lead to it")
		case !other.known:
		case len(answer) == 0 && other.own.Version > 0:
			return refuse("has no identity, while shard %q has one", other.name)
		case len(answer) > 0 && other.own.Version == 0:
			return refuse("has an identity, while shard %q has none", other.name)
		case id.Cluster != other.own.Identity.Cluster:
			return refuse("is of cluster %q, while shard %q is of %q", id.Cluster, other.name, other.own.Identity.Cluster)
		}
	}
	return nil
}
