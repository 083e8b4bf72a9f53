package auth

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// fetchTimeout is how long a provider may take to tell its keys.
const fetchTimeout = 5 * time.Second

// publicKeys are those that a provider published together. They never change.
type publicKeys struct {
	byID map[string][]jose.JSONWebKey // "" for those without an id
}

// A keySet is what is known of a provider's keys. A provider that does not answer leaves
// it as it was.
type keySet struct {
	fetch func(context.Context) (*publicKeys, error)
	least time.Duration // between the end of a fetch and the next
	now   func() time.Time
	log   *slog.Logger

	current  atomic.Pointer[publicKeys] // nil until some were fetched
	last     atomic.Pointer[attempt]    // nil until one was made
	fetching chan struct{}              // holds a token while one fetches
}

// An attempt is a fetch that has ended.
type attempt struct {
	at  time.Time
	err error
}

func newKeySet(fetch func(context.Context) (*publicKeys, error), least time.Duration, now func() time.Time, log *slog.Logger) *keySet {
	return &keySet{fetch: fetch, least: least, now: now, log: log, fetching: make(chan struct{}, 1)}
}

// run fetches the keys again and again until ctx ends: a key that was withdrawn has to go.
func (s *keySet) run(ctx context.Context, every time.Duration) {
	for {
		wait := every
		if s.refresh(ctx) != nil {
			wait = s.least
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// with returns the keys, with that of an id among them if the provider publishes it. The
// error says that this cannot be told, because the provider does not answer.
func (s *keySet) with(ctx context.Context, id string) (*publicKeys, error) {
	if keys := s.current.Load(); keys != nil && len(keys.byID[id]) > 0 {
		return keys, nil
	}
	if err := s.refresh(ctx); err != nil {
		return nil, err
	}
	return s.current.Load(), nil
}

// refresh fetches the keys, unless that was tried a short while ago: then it returns what
// came of it. Whoever comes while they are fetched waits for the end of that.
func (s *keySet) refresh(ctx context.Context) error {
	if a := s.recent(); a != nil && len(s.fetching) == 0 {
		return a.err
	}
	select {
	case s.fetching <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.fetching }()
	if a := s.recent(); a != nil {
		return a.err
	}
	// The others wait too: that the first has gone does not end it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
	defer cancel()
	keys, err := s.fetch(ctx)
	before := s.last.Swap(&attempt{s.now(), err})
	switch failed := before != nil && before.err != nil; {
	case err != nil && !failed:
		s.log.WarnContext(ctx, "the keys of an identity provider cannot be fetched; those that are known count", "error", err)
	case err == nil && failed:
		s.log.InfoContext(ctx, "the keys of an identity provider can be fetched again")
	}
	if err == nil {
		s.current.Store(keys)
	}
	return err
}

// recent returns the last attempt if the next has to wait.
func (s *keySet) recent() *attempt {
	if a := s.last.Load(); a != nil && s.now().Sub(a.at) < s.least {
		return a
	}
	return nil
}
