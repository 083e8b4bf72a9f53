package merge

import (
	"context"
	"iter"
)

// All returns everything strictly after a cursor. Each range over it begins anew.
//
// It reads chunks of 1,000 items and from each source, concurrently, one chunk
// ahead of what it gives out. What comes before the first item that it cannot know
// is given out; then comes the error, once, with no item, and nothing after it.
// An iteration that ends without an error was complete.
//
// The error is as of [Merge.Page], but never [ChangedError]: each try gives
// something out before it can see a change. Everything that was opened is closed
// when the range loop has ended, also by break or panic, and before the error.
func (m Merge[T]) All(ctx context.Context, after string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		after := after
		for restarts := 0; ; restarts++ {
			given := 0
			moved, err := m.each(ctx, after, func(item T, key string) bool {
				given++
				after = key
				return yield(item, nil)
			})
			if given > 0 {
				restarts = 0
			}
			if err == nil {
				return
			}
			if !moved || restarts == maxRestarts {
				var none T
				yield(none, err)
				return
			}
		}
	}
}

func (m Merge[T]) each(ctx context.Context, after string, give func(T, string) bool) (moved bool, err error) {
	r := m.start(ctx, after, chunkSize)
	defer r.stop()
	r.ahead = true
	for {
		item, key, ok, err := r.next()
		if err != nil || !ok || !give(item, key) {
			return r.moved, err
		}
	}
}
