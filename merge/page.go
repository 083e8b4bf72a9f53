package merge

import (
	"context"
	"fmt"

	"github.com/loomgate/loomgate/spi"
)

// A Page is a part of the merged order.
type Page[T any] struct {
	Items   []T
	Next    string      // the key of the last item; "" if nothing can follow it
	Receipt spi.Receipt // of all sources, in their order
}

// Page returns the first items strictly after a cursor, exactly limit (1 to
// [spi.MaxLimit]) unless the sources end before. With an error it returns none.
//
// Next is "" only if every source is done and everything was given out; so a last
// page may be empty. The sources are asked concurrently, each for a little more
// than its share, and again only if that does not suffice. Everything that was
// opened is closed when Page returns.
//
// The error is of the source that failed first, not of one that was canceled
// because of it. If no try found the ownership steady, it is [spi.CoverageError]
// or [ChangedError].
func (m Merge[T]) Page(ctx context.Context, after string, limit int) (Page[T], error) {
	if limit < 1 || limit > spi.MaxLimit {
		return Page[T]{}, &spi.InvalidArgumentError{Field: "limit", Rule: fmt.Sprintf("is %d, not 1 to %d", limit, spi.MaxLimit)}
	}
	for restarts := 0; ; restarts++ {
		page, moved, err := m.page(ctx, after, limit)
		if err == nil {
			return page, nil
		}
		if !moved || restarts == maxRestarts {
			return Page[T]{}, err
		}
	}
}

func (m Merge[T]) page(ctx context.Context, after string, limit int) (page Page[T], moved bool, err error) {
	n := max(1, len(m.Sources))
	r := m.start(ctx, after, min(limit, limit*6/(5*n)+16))
	defer r.stop()
	r.limit = limit
	for len(page.Items) < limit {
		item, key, ok, err := r.next()
		if err != nil {
			return page, r.moved, err
		}
		if !ok {
			break
		}
		if page.Items == nil {
			page.Items = make([]T, 0, limit)
		}
		page.Items, page.Next = append(page.Items, item), key
	}
	if !r.more() {
		page.Next = ""
	}
	page.Receipt = r.receipt()
	return page, false, nil
}
