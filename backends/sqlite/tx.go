package sqlite

import (
	"context"
	"time"

	"github.com/loomgate/loomgate/spi"
)

// on does one transaction on the row that a call names. The row comes from find,
// which judges the route; one that is not there it makes, and do saves it or not.
func on[Name, Row, Res any](
	ctx context.Context, transact transact, find func(*tx, spi.Route, Name) (Row, error), route spi.Route, name Name,
	do func(*tx, Row) (Res, error),
) (res Res, err error) {
	err = transact(ctx, executionOf(name), func(t *tx) error {
		row, err := find(t, route, name)
		if err != nil {
			return err
		}
		res, err = do(t, row)
		return err
	})
	return res, err
}

// A transact is [store.write] or [store.read].
type transact func(ctx context.Context, execution spi.ExecutionID, do func(*tx) error) error

// executionOf returns the execution whose outcome is unknown if a call on name is
// lost.
func executionOf(name any) spi.ExecutionID {
	switch name := name.(type) {
	case spi.ExecutionID:
		return name
	case spi.Timer:
		return name.Execution
	case spi.KeyOwner:
		if id, ok := name.Execution(); ok {
			return id
		}
	}
	return ""
}

// A tx is one transaction: of the writer, or a reader's snapshot.
type tx struct {
	*session
	ctx       context.Context // of the call that it serves, or of none
	ownership *ownership
	recent    *recent // the writer's
	written   int     // bytes of events
}

// each calls row with each row of a query, until it answers false.
func (t *tx) each(query string, args []any, row func(scan scan) (more bool, err error)) error {
	return t.session.each(query, args, func(scan scan) (bool, error) {
		if err := t.ctx.Err(); err != nil {
			return false, err
		}
		return row(scan)
	})
}

// next returns a number that was never given out before. It is the time where it
// can be, so that a version tells a tenant nothing of how busy the others are.
func (t *tx) next(now time.Time) (n int64, err error) {
	_, err = t.get(`UPDATE counters SET version = max(version + 1, ?) RETURNING version`, []any{now.UnixMicro()}, &n)
	return n, err
}

// nextLog returns a number for a log, which none has had before.
func (t *tx) nextLog() (n int64, err error) {
	_, err = t.get(`UPDATE counters SET log = log + 1 RETURNING log`, nil, &n)
	return n, err
}

// seek returns the bounds of a listing: ?1 <= name, name <> ?2 and name < ?3.
func seek(prefix, after string) []any {
	part := spi.Seek(prefix, after)
	start, _ := part.Start()
	end := any(part.End)
	if part.End == "" {
		end = []byte{0} // SQLite puts a blob after every text
	}
	return []any{start, part.After, end}
}

// A page gathers the rows that this store lists.
type page struct {
	*ownership
	left int
	next string // the cursor to go on with
	more bool
}

// take calls emit with a row that belongs on the page, and returns false if the
// page is full.
func (p *page) take(name string, slot spi.Slot, emit func()) bool {
	switch {
	case !p.lists(slot):
		return true
	case p.left == 0:
		p.more = true
		return false
	}
	emit()
	p.next, p.left = name, p.left-1
	return true
}

// cursor returns "" if no row is left.
func (p *page) cursor() string {
	if p.more {
		return p.next
	}
	return ""
}
