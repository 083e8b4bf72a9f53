package sharded

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/loomgate/loomgate/spi"
)

// read makes a call that changes nothing.
func read[N ~string, Q, R any](ctx context.Context, s *sharded, name N, req Q, do routed[Q, R]) (R, error) {
	return call(ctx, s, name, req, false, do)
}

// write makes a call that changes something, unless the shard refuses this writer.
func write[N ~string, Q, R any](ctx context.Context, s *sharded, name N, req Q, do routed[Q, R]) (R, error) {
	return call(ctx, s, name, req, true, do)
}

// routed makes a call at a shard.
type routed[Q, R any] func(context.Context, *spi.Store, spi.Route, Q) (R, error)

// call makes a call at the shard that has a name's slot, and again where the map
// turns out to be stale.
func call[N ~string, Q, R any](ctx context.Context, s *sharded, name N, req Q, writes bool, do routed[Q, R]) (R, error) {
	var tries tries
	for {
		t := s.table.Load()
		at := t.find(string(name))
		var res R
		var err error
		if at.shard != nobody {
			if writes {
				err = t.refused(at.shard)
			}
			if err == nil {
				res, err = do(ctx, s.shards[at.shard].store, at.route, req)
			}
			if err == nil {
				return res, nil
			}
		}
		again, err := s.judge(ctx, string(name), at, err)
		if again {
			again, err = tries.pause(ctx, s.timeout, err)
		}
		if !again {
			return res, err
		}
	}
}

// judge reports whether a call that failed may be made again, by the map as it is
// now. The error is the answer if it is not.
func (s *sharded) judge(ctx context.Context, name string, at place, err error) (again bool, _ error) {
	if at.shard == nobody {
		s.lookFor(ctx)
		t := s.table.Load()
		return t.find(name).shard != nobody, t.unowned(at.route.Slot)
	}
	refusal := refusal(err)
	if refusal == nil {
		return false, s.failed(ctx, at.shard, err)
	}
	moving, isMoving := errors.AsType[*spi.SlotMovingError](refusal)
	if isMoving && moving.State != spi.SlotReleased {
		return true, err // there is nothing new to be read yet
	}
	if s.table.Load().find(name) != at {
		return true, err // somebody has read it meanwhile
	}
	unread := s.read(ctx, at.shard)
	// A shard that owned the slot before the call and after has the name in another
	// slot. No map helps there.
	settled := !isMoving && at.owned && unread == nil && s.table.Load().find(name) == at
	return !settled, err
}

// lookFor asks whoever may have a slot that no known shard has.
func (s *sharded) lookFor(ctx context.Context) {
	t := s.table.Load()
	unread := len(t.unread()) > 0
	scatter(s, func(i int) (*table, error) {
		if unread {
			return s.reach(ctx, i)
		}
		return nil, s.read(ctx, i)
	})
}

// unowned is the error for a slot that no known shard has.
func (t *table) unowned(slot spi.Slot) error {
	var cause error = &spi.CoverageError{Missing: spi.NewSlotSet(slot)}
	if unread := t.unread(); len(unread) > 0 {
		cause = &UnreadError{unread, t.shards[t.index(unread[0])].err}
	} else if t.fault != nil {
		cause = t.fault
	}
	return &spi.UnavailableError{Cause: cause}
}

// refusal returns the error by which a shard says that the map is stale, or nil. One
// that is the cause of another error is not the call's answer.
func refusal(err error) error {
	switch e := err.(type) { //nolint:errorlint // see above
	case *spi.OpError:
		return refusal(e.Err)
	case *spi.ShardError:
		return refusal(e.Err)
	case *spi.MisroutedError, *spi.SlotMovingError:
		return err
	}
	return nil
}

// failed names the shard in an error, unless it is an answer to the request, or the
// caller has given up.
func (s *sharded) failed(ctx context.Context, i int, err error) error {
	if answers(err) || errors.Is(ctx.Err(), context.Canceled) && errors.Is(err, context.Canceled) {
		return err
	}
	return &spi.ShardError{Shard: s.table.Load().shards[i].name, Err: spi.WithoutOp(err)}
}

// answers reports whether an error is about the request and not about the shard.
func answers(err error) bool {
	switch e := err.(type) { //nolint:errorlint // what is below another error is that one's to say
	case *spi.OpError:
		return answers(e.Err)
	case *spi.ConflictError, *spi.StaleFenceError, *spi.IncarnationError, *spi.TruncatedError, *spi.RangeError, *spi.TooLargeError,
		*spi.NotFoundError, *spi.RefVersionError, *spi.LeaseHeldError, *spi.LeaseLostError, *spi.ShreddedError, *spi.KeyMismatchError,
		*spi.InvalidArgumentError, *spi.UnsupportedError, *spi.ThrottledError, *spi.MisroutedError, *spi.SlotMovingError:
		return true
	}
	return false
}

// tries paces the tries of one call. The first again comes at once.
type tries struct {
	since time.Time
	next  time.Duration // how long the next pause is
}

const (
	firstPause   = time.Millisecond
	longestPause = 100 * time.Millisecond
)

// pause waits before another try. It reports false if that would come too late: after
// the caller's deadline, or limit after the first try where there is none. The error
// is the answer then.
func (p *tries) pause(ctx context.Context, limit time.Duration, err error) (again bool, _ error) {
	now := time.Now()
	if p.since.IsZero() {
		p.since = now
	}
	until, ok := ctx.Deadline()
	if !ok {
		until = p.since.Add(limit)
	}
	length := p.next/2 + rand.N(p.next/2+1)
	p.next = min(max(firstPause, 2*p.next), longestPause)
	if now.Add(length).After(until) {
		return false, err
	}
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		err = ctx.Err()
	}
	return ctx.Err() == nil, err
}
