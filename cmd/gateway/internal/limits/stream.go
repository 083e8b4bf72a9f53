package limits

import (
	"context"
	"sync"

	"github.com/loomgate/loomgate/decorators/limits"
)

// A stream is a call that lasts, and has a place in flight as long as it does.
type stream struct {
	mu    sync.Mutex
	ended bool
	leave func() // nil: it has no place yet
}

type streamKey struct{}

// WithStream returns a context for what a stream does: it takes a place in flight once it
// is known whose it is, and end gives that back.
func WithStream(ctx context.Context) (_ context.Context, end func()) {
	s := &stream{}
	return context.WithValue(ctx, streamKey{}, s), s.end
}

func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if s.leave != nil {
		s.leave()
	}
}

// enterStream takes a place for the stream of a context, unless it has one.
func enterStream(ctx context.Context, account *limits.Account) error {
	s, ok := ctx.Value(streamKey{}).(*stream)
	if !ok {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.leave != nil {
		return nil
	}
	leave, err := account.Enter()
	s.leave = leave
	return err
}
