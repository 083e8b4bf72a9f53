package transfer

import (
	"context"
	"fmt"

	"github.com/loomgate/loomgate/spi"
)

// maxProblems is after how many problems with one log the rest of it is left alone.
const maxProblems = 20

// A check is what there is to say about one execution.
type check struct {
	store    *spi.Store
	retry    Retry
	id       spi.ExecutionID
	problems []Problem
	err      error // why the walk cannot go on

	facts
}

// facts are a log's in one incarnation.
type facts struct {
	at          int64 // every event up to here was looked at
	incarnation int64 // 0 before the first page
	floor       int64
	events      int64
	bytes       int64
	shredded    bool
}

// What comes after a step of a check.
type next int

const (
	goOn  next = iota
	done       // there is nothing more to look at
	again      // from the beginning: the log was deleted meanwhile
)

// log looks at the whole log. The error is that of a store which cannot answer.
func (c *check) log(ctx context.Context) error {
	before := len(c.problems)
	for {
		switch next, err := c.step(ctx); {
		case err != nil:
			return err
		case next == again:
			c.facts, c.problems = facts{}, c.problems[:before]
		case next == done:
			return nil
		case len(c.problems) > maxProblems:
			c.problem(0, "has more problems than these; the rest of it was not looked at", nil)
			return nil
		}
	}
}

// step looks at a page.
func (c *check) step(ctx context.Context) (next, error) {
	page, err := c.read(ctx, 0)
	switch {
	case err != nil:
		return c.unreadable(ctx, err)
	case c.incarnation != 0 && page.Incarnation != c.incarnation:
		return again, nil
	}
	c.page(page)
	if page.More {
		return goOn, nil
	}
	return c.end(ctx)
}

// page looks at the events of a page.
func (c *check) page(page spi.ReadResponse) {
	c.incarnation, c.floor, c.shredded = page.Incarnation, page.Floor, page.Shredded
	before := c.at
	for i := range page.Events {
		e := &page.Events[i]
		c.events++
		c.bytes += int64(e.Size())
		if e.Sequence <= c.at {
			c.problem(e.Sequence, fmt.Sprintf("comes after sequence %d", c.at), nil)
			continue
		}
		c.missing(e.Sequence - 1)
		c.at = e.Sequence
	}
	if page.More && c.at == before {
		c.at++
		c.problem(c.at, "cannot be reached: the page that begins with it does not", nil)
	}
}

// missing looks whether there ought to be events past what was looked at, up to a sequence.
func (c *check) missing(last int64) {
	switch first := max(c.at+1, c.floor); {
	case first == last:
		c.problem(first, "is missing", nil)
	case first < last:
		c.problem(first, fmt.Sprintf("is missing, and so is all up to sequence %d", last), nil)
	}
}

// end compares where the log ends with its head.
func (c *check) end(ctx context.Context) (next, error) {
	head, err := c.head(ctx)
	switch {
	case err != nil:
		return done, err
	case head.Incarnation != c.incarnation:
		return again, nil
	case head.Head < c.at:
		c.problem(c.at, fmt.Sprintf("is past the head, which is %d", head.Head), nil)
	case head.Head == 0:
		return done, c.phantom(ctx)
	case head.Head > c.at: // appended since, or missing
		page, err := c.read(ctx, 0)
		if err != nil || len(page.Events) > 0 || page.Incarnation != c.incarnation {
			return goOn, nil
		}
		c.missing(head.Head)
	}
	return done, nil
}

// phantom looks whether an execution without events is listed still: it may have been
// deleted since it was.
func (c *check) phantom(ctx context.Context) error {
	var page spi.ListExecutionsResponse
	err := c.retry.do(ctx, func() (err error) {
		page, err = spi.ListExecutions(ctx, c.store, spi.ListExecutionsRequest{Prefix: string(c.id), Limit: 1})
		return err
	})
	if err != nil {
		return err
	}
	head, err := c.head(ctx)
	if err != nil {
		return err
	}
	if len(page.Executions) == 1 && page.Executions[0] == c.id && head.Head == 0 && head.Incarnation == c.incarnation {
		c.problem(0, "is listed, but has no events", nil)
	}
	return nil
}

func (c *check) problem(sequence int64, reason string, err error) {
	c.problems = append(c.problems, Problem{c.id, sequence, reason, err})
}

// read returns the page past what was looked at, up to a sequence; 0 sets no bound.
func (c *check) read(ctx context.Context, until int64) (page spi.ReadResponse, err error) {
	err = c.retry.do(ctx, func() (err error) {
		page, err = spi.Read(ctx, c.store, spi.ReadRequest{Execution: c.id, After: c.at, Until: until, Limit: pageEvents, MaxBytes: pageBytes})
		return err
	})
	return page, err
}

func (c *check) head(ctx context.Context) (head spi.HeadResponse, err error) {
	err = c.retry.do(ctx, func() (err error) {
		head, err = spi.Head(ctx, c.store, spi.HeadRequest{Execution: c.id})
		return err
	})
	return head, err
}
