package transfer

import (
	"context"
	"errors"

	"github.com/loomgate/loomgate/spi"
)

// unreadable goes on where a page cannot be read: past the event that is to blame, if it
// is still there.
func (c *check) unreadable(ctx context.Context, cause error) (next, error) {
	if is[*spi.ShreddedError](cause) {
		c.shredded = true
		return done, nil
	}
	if cannotAnswer(ctx, cause) {
		return done, cause
	}
	head, err := c.head(ctx)
	switch {
	case err != nil:
		return done, err
	case c.incarnation == 0:
		c.incarnation = head.Incarnation
	case c.incarnation != head.Incarnation:
		return again, nil
	}
	if head.Head <= c.at {
		c.problem(0, "cannot be read: "+cause.Error(), cause)
		return done, nil
	}
	good, bad, err := c.search(ctx, head.Head)
	if err != nil {
		return done, err
	}
	return c.past(ctx, good, bad)
}

// search returns the highest sequence up to which the page can be read, and the next,
// up to which it cannot.
func (c *check) search(ctx context.Context, head int64) (good, bad int64, err error) {
	good, bad = c.at, head
	for good+1 < bad {
		middle := good + (bad-good)/2
		switch _, err := c.read(ctx, middle); {
		case cannotAnswer(ctx, err):
			return 0, 0, err
		case err != nil:
			bad = middle
		default:
			good = middle
		}
	}
	return good, bad, nil
}

// past looks at the events up to the last good one, and goes past the bad one. What was
// read meanwhile is of one incarnation if that is the same afterwards.
func (c *check) past(ctx context.Context, good, bad int64) (next, error) {
	var readable spi.ReadResponse
	var err error
	if good > c.at {
		readable, err = c.read(ctx, good)
	}
	rest, cause := c.read(ctx, bad)
	head, headErr := c.head(ctx)
	switch {
	case headErr != nil:
		return done, headErr
	case head.Incarnation != c.incarnation:
		return again, nil
	case cannotAnswer(ctx, err):
		return done, err
	case cannotAnswer(ctx, cause):
		return done, cause
	case cause == nil: // it was truncated away
		c.page(rest)
	case err == nil:
		if good > c.at {
			c.page(readable)
		}
		c.missing(good)
		c.problem(bad, "cannot be read: "+cause.Error(), cause)
		c.at = bad
	}
	return goOn, nil
}

// cannotAnswer reports whether an error is about the store and not about an event.
func cannotAnswer(ctx context.Context, err error) bool {
	return err != nil && (passing(err) || ctx.Err() != nil || errors.Is(err, errors.ErrUnsupported))
}
