package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loomgate/loomgate/spi"
)

// Causes of a [spi.UnavailableError] that an operator has to mend.
var (
	ErrReadOnly = errors.New("the database is read-only: a standby, or one that was told to be")
	ErrDiskFull = errors.New("the database's disk is full")
)

// A statement is one of a transaction's, with what is done with its rows.
type statement struct {
	sql  string
	args []any
	rows func(pgx.Rows) error // nil: there are none
}

// maxTries bounds how often a transaction is tried that another one got in the way
// of. Each of those made progress.
const maxTries = 100

// write runs statements as one read-committed transaction behind the ownership
// barrier, in one round trip. A connection that breaks before COMMIT is answered
// leaves the outcome unknown: the error is ambiguous for id.
func (s *store) write(ctx context.Context, id spi.ExecutionID, statements ...statement) error {
	if err := s.mayWrite(); err != nil {
		return err
	}
	for try := 0; ; try++ {
		sent, err := s.run(ctx, s.begin.write, statements)
		if err == nil {
			return nil
		}
		if pg, ok := asPgError(err); ok && pg.Code == deadlock && try < maxTries {
			continue // the server undid it
		}
		if sent && !rolledBack(err) {
			return &spi.AmbiguousError{Execution: id, Cause: err}
		}
		return s.failed(ctx, err)
	}
}

// read runs statements in one snapshot, in one round trip. A single statement has
// one by itself.
func (s *store) read(ctx context.Context, statements ...statement) error {
	begin := s.begin.read
	if len(statements) == 1 && len(begin) == 1 {
		begin = nil
	}
	_, err := s.run(ctx, begin, statements)
	if err != nil {
		return s.failed(ctx, err)
	}
	return nil
}

// run reports sent if the server may have got the transaction. What does not begin
// does not commit either.
func (s *store) run(ctx context.Context, begin []string, statements []statement) (sent bool, err error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Release() // which closes a connection that an error has left in a transaction
	batch := &pgx.Batch{}
	for _, sql := range begin {
		batch.Queue(sql)
	}
	for _, st := range statements {
		batch.Queue(st.sql, st.args...)
	}
	if len(begin) > 0 {
		batch.Queue("COMMIT")
	}
	results := conn.SendBatch(ctx, batch)
	err = readResults(results, len(begin), statements)
	if closeErr := results.Close(); err == nil {
		err = closeErr
	}
	return !unsent(err), err
}

func readResults(results pgx.BatchResults, begin int, statements []statement) error {
	for range begin {
		if _, err := results.Exec(); err != nil {
			return err
		}
	}
	for _, st := range statements {
		if st.rows == nil {
			if _, err := results.Exec(); err != nil {
				return err
			}
			continue
		}
		rows, err := results.Query()
		if err != nil {
			return err
		}
		err = st.rows(rows)
		rows.Close()
		if err = cmp.Or(rows.Err(), err); err != nil {
			return err
		}
	}
	if begin == 0 {
		return nil
	}
	tag, err := results.Exec()
	if err == nil && tag.String() == "ROLLBACK" { // a COMMIT of a failed transaction
		err = errRolledBack
	}
	return err
}

var errRolledBack = errors.New("the transaction was rolled back")

// rolledBack reports whether the server said itself that a statement failed. It
// answers in order, so a COMMIT behind it was not done. A FATAL error may also end
// the wait of a commit that is done already, and whatever else ends a connection
// says nothing about the COMMIT.
func rolledBack(err error) bool {
	if pg, ok := asPgError(err); ok {
		return pg.SeverityUnlocalized == "ERROR"
	}
	return errors.Is(err, errRolledBack) || pgconn.SafeToRetry(err)
}

// unsent reports whether pgx failed before it sent a batch: it first prepares the
// statements and encodes the parameters of all.
func unsent(err error) bool {
	_, ok := errors.AsType[pgx.ErrPreprocessingBatch](err)
	return ok || unencoded(err)
}

// unencoded reports whether pgx could not encode a parameter, for which it has no
// type of its own.
func unencoded(err error) bool {
	if batch, ok := errors.AsType[pgx.ErrPreprocessingBatch](err); ok {
		err = batch.Unwrap()
	}
	return err != nil && strings.HasPrefix(err.Error(), "failed to encode args[")
}

var errUnencoded = errors.New("a parameter cannot be sent")

// failed says what a failure means that changed nothing.
func (s *store) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return ctx.Err()
	}
	pg, ok := asPgError(err)
	switch {
	case unencoded(err):
		err = errUnencoded // pgx's own error repeats the parameter
	case ok && pg.Code == readOnly:
		err = fmt.Errorf("%w (%w)", ErrReadOnly, err)
	case ok && pg.Code == diskFull:
		err = fmt.Errorf("%w (%w)", ErrDiskFull, err)
	}
	return &spi.UnavailableError{Cause: err}
}

// one reads a single row.
func one(dst ...any) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		if !rows.Next() {
			return cmp.Or(rows.Err(), errNoRow)
		}
		return rows.Scan(dst...)
	}
}

var errNoRow = errors.New("no row came back")
