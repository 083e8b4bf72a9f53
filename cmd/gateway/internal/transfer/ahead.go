package transfer

import (
	"context"
	"iter"
	"sync"
)

// ahead calls f for each item and yields the results in the order of the items. Up to n
// are made ahead of the one that is yielded. When ctx ends, so do the results, maybe
// before the items do. No goroutine is left once it returns.
func ahead[T, R any](ctx context.Context, n int, items iter.Seq[T], f func(context.Context, T) R) iter.Seq[R] {
	return func(yield func(R) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var made sync.WaitGroup
		defer made.Wait()
		defer cancel()
		pending := make(chan chan R, n-1) // beside the one that waits for a place
		made.Go(func() {
			defer close(pending)
			for item := range items {
				result := make(chan R, 1)
				made.Go(func() { result <- f(ctx, item) })
				select {
				case pending <- result:
				case <-ctx.Done():
					return
				}
			}
		})
		for result := range pending {
			if !yield(<-result) {
				return
			}
		}
	}
}
