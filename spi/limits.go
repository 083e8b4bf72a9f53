package spi

import (
	"fmt"
	"unicode/utf8"
)

// Limits on calls.
const (
	MaxLimit       = 10_000   // items of one page or read
	MaxReadBytes   = 64 << 20 // bytes of one read, by [Event.Size]
	MaxBatch       = 1_000    // appends of one batch
	MaxKeep        = 10_000   // events that one truncation keeps
	MaxWrappedKey  = 64 << 10 // bytes of one wrapped data key
	MaxDescription = 1_024    // bytes of a lease holder, a wrapping key's name, a shard's or a cluster's
)

func validLimit(limit int) error {
	if limit < 1 || limit > MaxLimit {
		return &InvalidArgumentError{"limit", fmt.Sprintf("is %d, not 1 to %d", limit, MaxLimit)}
	}
	return nil
}

// validPage checks what every listing brings. A cursor may be longer than an id
// and hold U+0000; a prefix is the beginning of a name and may not.
func validPage(prefix, cursor string, limit int) error {
	if err := validName("prefix", prefix, 0, MaxID); err != nil {
		return err
	}
	if !utf8.ValidString(cursor) {
		return &InvalidArgumentError{"cursor", "is not well-formed UTF-8"}
	}
	return validLimit(limit)
}

func notNegative(field string, n int64) error {
	if n < 0 {
		return &InvalidArgumentError{field, fmt.Sprintf("is %d, which is negative", n)}
	}
	return nil
}

func positive(field string, n int64) error {
	if n < 1 {
		return &InvalidArgumentError{field, fmt.Sprintf("is %d, which is less than 1", n)}
	}
	return nil
}

// first returns the first error. It is on every call's path, where cmp.Or, which has
// to compare whatever an interface holds, takes as long as all the rest.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
