// Package postgres is a backend on one Postgres database, one shard of many or a
// store by itself. It offers every method.
//
// Each write is one transaction in one round trip, whatever it has to lock and
// check: BEGIN, the statements and COMMIT travel together. Outcomes are rows, not
// SQL errors. What is locked in which order, and which test fails without it, is
// in LOCKS.md beside this file.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loomgate/loomgate/spi"
)

// A Database is a pool of connections to one shard.
type Database struct {
	pool  *pgxpool.Pool
	store *spi.Store
}

// Store returns the database as a store. It is safe for concurrent use.
func (d *Database) Store() *spi.Store { return d.store }

// Close waits for the calls under way and closes the connections.
func (d *Database) Close() { d.pool.Close() }

type options struct {
	pooler           bool
	asyncCommit      bool
	statementTimeout time.Duration
	tracer           pgx.QueryTracer // nil: nobody
	writer           spi.Version
}

// An Option changes how a Database is used.
type Option func(*options)

// BehindPooler says that a pooler in transaction mode, such as PgBouncer, stands
// between: no prepared statement and no session setting outlives a transaction.
// It costs about a millisecond a call, for planning.
func BehindPooler() Option { return func(o *options) { o.pooler = true } }

// AllowAsyncCommit accepts a database that acknowledges a commit before it is on
// disk (synchronous_commit = off): a crash then loses acknowledged events.
func AllowAsyncCommit() Option { return func(o *options) { o.asyncCommit = true } }

// StatementTimeout bounds each statement, and so what a call waits for a lock. It
// is 30 seconds unless set.
func StatementTimeout(d time.Duration) Option {
	return func(o *options) { o.statementTimeout = d }
}

// Open connects to a database that [Migrate] has prepared. The DSN is pgx's, with
// the pool's settings such as pool_max_conns. It fails with an [UnfitError] if the
// schema is another version's, or if the database acknowledges commits that are not
// durable.
func Open(ctx context.Context, dsn string, opts ...Option) (*Database, error) {
	o := options{statementTimeout: 30 * time.Second, writer: spi.Versions()[spi.Events]}
	for _, opt := range opts {
		opt(&o)
	}
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("postgres: the DSN is malformed") // the error repeats it, password and all
	}
	o.configure(config.ConnConfig)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("postgres: connect: %w", err)
	}
	d := &Database{pool: pool}
	if err := d.check(ctx, o); err != nil {
		pool.Close()
		return nil, err
	}
	s := &store{pool: pool, begin: o.begin(), writer: o.writer}
	if err := s.readAsked(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	backend, err := d.backend(ctx, s)
	if err != nil {
		pool.Close()
		return nil, err
	}
	d.store, err = spi.Open(backend)
	s.self = d.store
	return d, err
}

// configure sets what is the connection's own. A pooler would hand it to others.
func (o options) configure(c *pgx.ConnConfig) {
	c.Tracer = o.tracer
	if o.pooler {
		c.DefaultQueryExecMode = pgx.QueryExecModeExec
		c.StatementCacheCapacity, c.DescriptionCacheCapacity = 0, 0
		return
	}
	ms := fmt.Sprint(o.statementTimeout.Milliseconds())
	c.RuntimeParams["statement_timeout"] = ms
	c.RuntimeParams["idle_in_transaction_session_timeout"] = ms
	c.RuntimeParams["jit"] = "off"                            // it takes longer than the statements
	c.RuntimeParams["plan_cache_mode"] = "force_generic_plan" // so does planning them
	c.RuntimeParams["enable_seqscan"] = "off"                 // statistics that are stale or missing must not make
	c.RuntimeParams["enable_sort"] = "off"                    // a page read or sort the whole directory
}

// begin returns what begins a write. The isolation is said, since a server's
// default may give all statements of a transaction one snapshot: what is checked
// after a lock would then be what was there before it.
func (o options) begin() begins {
	b := begins{
		write: []string{"BEGIN ISOLATION LEVEL READ COMMITTED"},
		read:  []string{"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"},
	}
	if o.pooler {
		set := fmt.Sprintf("SELECT set_config('statement_timeout', '%[1]d', true), set_config('idle_in_transaction_session_timeout', '%[1]d', true), "+
			"set_config('jit', 'off', true), set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'off', true)", o.statementTimeout.Milliseconds())
		b.write, b.read = append(b.write, set), append(b.read, set)
	}
	b.write = append(b.write, "LOCK TABLE loomgate.slot_barrier IN ROW SHARE MODE")
	return b
}

// begins is how transactions begin.
type begins struct {
	write []string // the barrier comes first: what is checked after it holds until COMMIT
	read  []string // one snapshot for data and ownership
}

// An UnfitError is why [Open] refuses a database that answers: waiting does not help.
type UnfitError struct {
	Migrate bool // a migration makes it fit
	Reason  string
}

func (e *UnfitError) Error() string { return "postgres: " + e.Reason }

// check looks at what makes a database unfit.
func (d *Database) check(ctx context.Context, o options) error {
	var version int
	var durable string
	err := d.pool.QueryRow(ctx, "SELECT version, current_setting('synchronous_commit') FROM loomgate.schema_version").Scan(&version, &durable)
	if pg, ok := asPgError(err); ok && (pg.Code == undefinedTable || pg.Code == invalidSchema) {
		return &UnfitError{Migrate: true, Reason: "the database has no schema yet: migrate it first"}
	}
	if err != nil {
		return fmt.Errorf("postgres: look at the schema: %w", err)
	}
	if version != schemaVersion {
		return &UnfitError{
			Migrate: version < schemaVersion,
			Reason:  fmt.Sprintf("the schema is version %d, not %d: migrate it with the program that is to use it", version, schemaVersion),
		}
	}
	if durable == "off" && !o.asyncCommit {
		return &UnfitError{Reason: "synchronous_commit is off: acknowledged events could be lost (AllowAsyncCommit accepts that)"}
	}
	return nil
}

// store is every group.
type store struct {
	pool  *pgxpool.Pool
	begin begins
	self  *spi.Store // for what is made of other calls

	writer spi.Version           // that the caller writes as
	asks   atomic.Pointer[asked] // what the shard asks of writers, as last read
}

// The SQL states that this package tells apart.
const (
	undefinedTable = "42P01"
	invalidSchema  = "3F000"
	deadlock       = "40P01"
	readOnly       = "25006"
	diskFull       = "53100"
)

func asPgError(err error) (*pgconn.PgError, bool) { return errors.AsType[*pgconn.PgError](err) }
