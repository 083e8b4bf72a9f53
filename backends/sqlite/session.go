package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/loomgate/loomgate/spi"
	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// A session is one connection with its prepared statements, for one goroutine at a
// time. Its statements get no context: each is short, and a context would cost the
// driver a goroutine a statement.
type session struct {
	db         *sql.DB // of this connection alone
	conn       *sql.Conn
	statements map[string]*sql.Stmt
}

func connect(dsn string) (*session, error) {
	connector, err := driver.NewConnector(dsn)
	if err != nil {
		return nil, &failure{err}
	}
	db := sql.OpenDB(connector)
	conn, err := db.Conn(context.Background())
	if err != nil {
		db.Close()
		return nil, &failure{err}
	}
	return &session{db, conn, map[string]*sql.Stmt{}}, nil
}

// close closes the connection, which rolls an open transaction back.
func (c *session) close() {
	for _, s := range c.statements {
		s.Close() // else SQLite keeps the connection open for them
	}
	c.conn.Close()
	c.db.Close()
}

// statement returns the statement of a query, prepared once. Queries are constants.
func (c *session) statement(query string) (*sql.Stmt, error) {
	if s, ok := c.statements[query]; ok {
		return s, nil
	}
	s, err := c.conn.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, &failure{err}
	}
	c.statements[query] = s
	return s, nil
}

// exec runs a statement and returns how many rows it changed.
func (c *session) exec(query string, args ...any) (int64, error) {
	s, err := c.statement(query)
	if err != nil {
		return 0, err
	}
	res, err := s.ExecContext(context.Background(), args...)
	if err != nil {
		return 0, &failure{err}
	}
	n, _ := res.RowsAffected() // never fails in this driver
	return n, nil
}

// A scan puts the columns of a row into variables.
type scan func(dest ...any) error

// each calls row with each row of a query, until it answers false.
func (c *session) each(query string, args []any, row func(scan scan) (more bool, err error)) error {
	s, err := c.statement(query)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(context.Background(), args...)
	if err != nil {
		return &failure{err}
	}
	defer rows.Close()
	scanRow := func(dest ...any) error {
		if err := rows.Scan(dest...); err != nil {
			return &failure{err}
		}
		return nil
	}
	for rows.Next() {
		if more, err := row(scanRow); err != nil || !more {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return &failure{err}
	}
	return nil
}

// get reads the only row of a query, and reports whether there is one. It runs the
// query to its end, so that an UPDATE with RETURNING is done.
func (c *session) get(query string, args []any, dest ...any) (found bool, err error) {
	err = c.each(query, args, func(scan scan) (bool, error) {
		found = true
		return true, scan(dest...)
	})
	return found, err
}

// A failure is an error of the database, where other errors are answers.
type failure struct{ err error }

func (f *failure) Error() string { return "sqlite: " + f.err.Error() }

// Unwrap returns the driver's error.
func (f *failure) Unwrap() error { return f.err }

func failed(err error) bool {
	_, is := errors.AsType[*failure](err)
	return is
}

// code returns SQLite's primary result code, or 0 for an error that is not its.
func code(err error) int {
	if e, ok := errors.AsType[*driver.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

// busy reports whether somebody else holds the lock that a statement needs.
// SQLITE_PROTOCOL is a race for the locks of the shared memory.
func busy(err error) bool {
	c := code(err)
	return c == sqlite3.SQLITE_BUSY || c == sqlite3.SQLITE_PROTOCOL
}

// unchanged returns the answer to a call that failed without changing anything. What
// the disk, the file or another process does is [spi.UnavailableError]; what is
// left is a fault of this package.
func unchanged(err error) error {
	if !failed(err) {
		return err
	}
	switch code(err) {
	case sqlite3.SQLITE_ERROR, sqlite3.SQLITE_INTERNAL, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH,
		sqlite3.SQLITE_MISUSE, sqlite3.SQLITE_RANGE, sqlite3.SQLITE_TOOBIG, 0:
		return &spi.InternalError{Cause: err}
	}
	return &spi.UnavailableError{Cause: err}
}

// patiently repeats do for as long as it is busy, until limit has passed or ctx has
// ended. SQLite's own busy_timeout sleeps up to 100 ms at a time, and would starve
// beside a process that writes all the time; short random pauses do not.
func patiently(ctx context.Context, limit time.Duration, do func() error) error {
	deadline := time.Now().Add(limit)
	for {
		err := do()
		if !busy(err) || time.Now().After(deadline) {
			return err
		}
		pause := time.NewTimer(100*time.Microsecond + rand.N(2*time.Millisecond))
		select {
		case <-ctx.Done():
			pause.Stop()
			return ctx.Err()
		case <-pause.C:
		}
	}
}
