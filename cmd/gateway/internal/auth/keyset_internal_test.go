package auth

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
)

func TestKeysAreFetchedAgainAndSoonerAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var down atomic.Bool
		var mu sync.Mutex
		var at []time.Duration
		s := newKeySet(func(context.Context) (*publicKeys, error) {
			mu.Lock()
			at = append(at, time.Since(begin))
			mu.Unlock()
			if down.Load() {
				return nil, errors.New("down")
			}
			return &publicKeys{byID: map[string][]jose.JSONWebKey{"a": {{}}}}, nil
		}, time.Minute, time.Now, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.run(ctx, 10*time.Minute)
		}()
		want := func(more ...time.Duration) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(at, more) {
				t.Errorf("fetched at %v, not %v", at, more)
			}
		}
		want(0)
		down.Store(true)
		time.Sleep(12 * time.Minute)
		want(0, 10*time.Minute, 11*time.Minute, 12*time.Minute)
		if keys, err := s.with(ctx, "a"); err != nil || len(keys.byID["a"]) != 1 {
			t.Errorf("while the provider is down: %v, %v", keys, err)
		}
		down.Store(false)
		time.Sleep(10 * time.Minute)
		want(0, 10*time.Minute, 11*time.Minute, 12*time.Minute, 13*time.Minute)
		cancel()
		<-ended
	})
}

// TestACallerWhoGoesEndsNoFetch takes the first caller away while the keys are fetched.
func TestACallerWhoGoesEndsNoFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fetches := 0
		s := newKeySet(func(ctx context.Context) (*publicKeys, error) {
			fetches++
			select {
			case <-time.After(time.Second):
				return &publicKeys{byID: map[string][]jose.JSONWebKey{"a": {{}}}}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}, time.Minute, time.Now, slog.New(slog.DiscardHandler))
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		go func() { _, _ = s.with(short, "a") }()
		synctest.Wait()
		if keys, err := s.with(t.Context(), "a"); err != nil || len(keys.byID["a"]) != 1 {
			t.Errorf("%v, %v", keys, err)
		}
		if fetches != 1 {
			t.Errorf("%d fetches", fetches)
		}
	})
}
