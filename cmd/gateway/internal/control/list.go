package control

import (
	"fmt"

	"github.com/tidwall/btree"

	"github.com/loomgate/loomgate/spi"
)

// listAfter returns at most limit values whose names come after a cursor, and the cursor
// to go on with.
func listAfter[N ~string, V, W any](tree *btree.Map[N, V], after N, limit int, show func(V) W) (page []W, next N, err error) {
	if limit < 1 || limit > spi.MaxLimit {
		return nil, "", &spi.InvalidArgumentError{Field: "limit", Rule: fmt.Sprintf("is %d, not 1 to %d", limit, spi.MaxLimit)}
	}
	more := false
	tree.Ascend(after, func(name N, v V) bool {
		if name == after {
			return true
		}
		if more = len(page) == limit; more {
			return false
		}
		page, next = append(page, show(v)), name
		return true
	})
	if !more {
		next = ""
	}
	return page, next, nil
}
