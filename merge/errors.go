package merge

import (
	"fmt"

	"github.com/loomgate/loomgate/spi"
)

// The errors of this package quote keys. They are none of package spi, so that
// [spi.RenameError] hides them from whoever must not see a stored name.

// An OrderError says that a source did not ascend.
type OrderError struct {
	Key   string
	After string // the key, or the cursor, that Key should come after
}

func (e *OrderError) Error() string { return fmt.Sprintf("%q came after %q", e.Key, e.After) }

// A ChunkError says that a chunk held more than was asked for, or nothing without
// being the last.
type ChunkError struct{ Items, Limit int }

func (e *ChunkError) Error() string {
	if e.Items == 0 {
		return "an empty chunk that was not the last"
	}
	return fmt.Sprintf("%d items for a limit of %d", e.Items, e.Limit)
}

// A DuplicateError says that two sources hold one key.
type DuplicateError struct {
	Key     string
	Sources [2]string
}

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("%q is at %q and at %q", e.Key, e.Sources[0], e.Sources[1])
}

// A ChangedError says that a source's ownership changed between two chunks, and
// again each time that the merge started anew. It comes in a
// [spi.UnavailableError]: the same request may be sent again.
type ChangedError struct{ Was, Is spi.Receipt }

func (e *ChangedError) Error() string { return "ownership changed while it was read" }
