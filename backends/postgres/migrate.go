package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loomgate/loomgate/spi"
)

// schemaVersion is the schema that this package works with.
const schemaVersion = 1

//go:embed schema.sql
var schema string

// Migrate brings a database to this package's schema, as the zero [Migration] does.
func Migrate(ctx context.Context, dsn string) error {
	_, err := Migration{}.Run(ctx, dsn)
	return err
}

// A Migration brings a database to this package's schema. Its DSNs are direct ones,
// past any pooler, of a role that owns the tables.
type Migration struct {
	// LockTimeout bounds each wait for a lock on a table, during which all calls
	// that need the table queue. It is 2 seconds if 0.
	LockTimeout time.Duration

	// Adopt is what is to be known about an older system's database, nil if it is none.
	Adopt *Adoption

	// DeferBackfill leaves the directory of an adopted database to Backfill. Stores
	// work meanwhile; see Backfill for what that costs.
	DeferBackfill bool

	// Log gets the warnings. It is slog.Default() if nil.
	Log *slog.Logger
}

// A Step is a part of a migration: a transaction, done or undone as a whole, or a
// statement that no transaction can hold.
type Step struct {
	Name       string
	Locks      []string // the tables that others wait for, in order, and how they are locked
	Statements []string // exactly what runs, for an operator to run by hand

	// Optional steps only make things faster. A start goes on without them, where
	// one could not be done because of a lock, a cancellation or a dependent view.
	Optional bool

	outside bool                                       // no transaction can hold it
	then    func(ctx context.Context, tx pgx.Tx) error // what cannot be said in SQL
}

// String returns the step as a script.
func (s Step) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "-- %s\n", s.Name)
	if s.Optional {
		b.WriteString("-- optional: a start goes on without it\n")
	}
	for _, lock := range s.Locks {
		fmt.Fprintf(&b, "-- locks %s\n", lock)
	}
	if s.outside {
		return b.String() + s.script() + "\n"
	}
	return b.String() + "BEGIN;\n" + s.script() + "\nCOMMIT;\n"
}

func (s Step) script() string { return strings.Join(s.Statements, ";\n") + ";" }

// A Report says what a migration did.
type Report struct {
	Done         []Step
	Skipped      []Skipped // optional steps that could not be done; they were logged
	Executions   int64     // that the backfill of the directory went through
	BackfillOpen bool      // Backfill has still to be run
}

// Skipped is an optional step that could not be done. The next start tries it again.
type Skipped struct {
	Step Step
	Err  error
}

// Run does what is to be done. Nodes that start together may all call it: one works,
// the others wait for it, however long it takes, and find nothing left. That takes
// no lock on any table. After an error it can be called again: what a step had begun
// is undone.
func (m Migration) Run(ctx context.Context, dsn string) (report Report, err error) {
	err = m.alone(ctx, dsn, func(s *session) error {
		for created := true; created; { // then look again, at the tables that are there now
			steps, err := s.pending(ctx)
			if err != nil {
				return err
			}
			if err := s.runAll(ctx, steps, &report); err != nil {
				return err
			}
			created = len(steps) > 0 && !steps[0].Optional
		}
		if report.BackfillOpen, err = s.exists(ctx, "loomgate.backfill"); err != nil || !report.BackfillOpen || m.DeferBackfill {
			return err
		}
		report.Executions, err = s.fill(ctx)
		report.BackfillOpen = err != nil
		return err
	})
	if err != nil {
		return report, fmt.Errorf("postgres: migrate: %w", err)
	}
	return report, nil
}

// Plan returns what Run would do, in order, and changes nothing. It takes no lock
// either. What Run does depends on what it finds by then.
func (m Migration) Plan(ctx context.Context, dsn string) ([]Step, error) {
	s, err := m.connect(ctx, dsn)
	if err != nil {
		return nil, fmt.Errorf("postgres: plan: %w", err)
	}
	defer s.close()
	steps, err := s.plan(ctx)
	if err != nil {
		return nil, fmt.Errorf("postgres: plan: %w", err)
	}
	return steps, nil
}

func (s *session) plan(ctx context.Context) ([]Step, error) {
	steps, err := s.pending(ctx)
	if err != nil {
		return nil, err
	}
	open, err := s.exists(ctx, "loomgate.backfill")
	if err != nil {
		return nil, err
	}
	if adopts := len(steps) > 0 && !steps[0].Optional && s.Adopt != nil; s.DeferBackfill || !open && !adopts {
		return steps, nil
	}
	before, after, err := s.around(ctx)
	return slices.Concat(steps, before, []Step{batchStep}, after), err
}

// A session is a migration's connection.
type session struct {
	Migration
	conn *pgx.Conn
}

func (m Migration) connect(ctx context.Context, dsn string) (*session, error) {
	if m.LockTimeout == 0 {
		m.LockTimeout = 2 * time.Second
	}
	if m.Log == nil {
		m.Log = slog.Default()
	}
	if err := m.Adopt.validate(); err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(dsn) // which knows the pool's settings, unlike pgx
	if err != nil {
		return nil, errors.New("the DSN is malformed") // the error repeats it, password and all
	}
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	s := &session{m, conn}
	// A pooler hands a session's lock to whoever comes next, and shows itself by a
	// process that is not the one that it has announced.
	var pid uint32
	err = conn.QueryRow(ctx, "SELECT pg_catalog.pg_backend_pid()").Scan(&pid)
	if err == nil && pid != conn.PgConn().PID() {
		err = errors.New("the DSN goes through a pooler: a migration needs a direct one")
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *session) close() { s.conn.Close(context.Background()) }

// migrationLock is the advisory lock of the one migration or backfill at a time.
const migrationLock int64 = 0x6c6f6f6d67617465 // "loomgate"

// alone runs f while no other migration or backfill runs. It waits for them without
// end: a peer may be rebuilding a large table, and a node that gave up would refuse
// every call until it is started again. So no timeout of the caller's may cut the
// wait short, and each look is a statement of its own. One that waited in the server
// would also hold a snapshot all the time, for which CREATE INDEX CONCURRENTLY waits
// in the session that has the lock: a deadlock.
func (m Migration) alone(ctx context.Context, dsn string, f func(*session) error) error {
	s, err := m.connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer s.close() // which gives the lock back
	for {
		var got bool
		if err := s.conn.QueryRow(ctx, "SELECT pg_catalog.pg_try_advisory_lock($1)", migrationLock).Scan(&got); err != nil {
			return fmt.Errorf("wait for other migrations: %w", err)
		}
		if got {
			return f(s)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for other migrations: %w", ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// pending returns the steps that are not done yet. It looks only at the catalog, so
// that a start with nothing to do waits for nobody.
func (s *session) pending(ctx context.Context) ([]Step, error) {
	done, err := s.exists(ctx, "loomgate.schema_version")
	if err != nil {
		return nil, err
	}
	older, err := s.older(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case done && s.Adopt != nil && older.there():
		return nil, fmt.Errorf("schema loomgate is there, and so are older tables in schema %q: they cannot be adopted into a database that is in use", older.schema)
	case done:
		return s.uncollated(ctx)
	case s.Adopt == nil && older.there():
		return nil, fmt.Errorf("schema %q holds an older system's events: say whose they are (Migration.Adopt)", older.schema)
	case s.Adopt != nil && !older.there():
		return nil, fmt.Errorf("there is nothing to adopt: schema %q holds no older system's events", older.schema)
	}
	create, err := s.createSchema(ctx)
	if err != nil {
		return nil, err
	}
	if s.Adopt != nil {
		step, err := s.adopt(older, create)
		return []Step{step}, err
	}
	return []Step{{Name: "create the schema", Statements: append(create, schema, versionSQL())}}, nil
}

func versionSQL() string {
	return fmt.Sprintf("INSERT INTO loomgate.schema_version (version, events) VALUES (%d, %s)", schemaVersion, literal(spi.Versions()[spi.Events].String()))
}

// createSchema returns the statement that makes the schema, where it is missing. IF
// NOT EXISTS would ask a role for its right to make schemas even where it is not.
func (s *session) createSchema(ctx context.Context) ([]string, error) {
	var there bool
	err := s.conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = 'loomgate')").Scan(&there)
	if err != nil || there {
		return nil, err
	}
	return []string{"CREATE SCHEMA loomgate"}, nil
}

func (s *session) exists(ctx context.Context, table string) (there bool, err error) {
	err = s.conn.QueryRow(ctx, "SELECT pg_catalog.to_regclass($1) IS NOT NULL", table).Scan(&there)
	return there, err
}

// nameColumns are the columns whose order is the order of names, each in a table
// of its own, and those for which others wait the least first.
var nameColumns = []struct {
	table   string
	columns []string
}{
	{"leases", []string{"name"}},
	{"lineage", []string{"name", "execution_id"}},
	{"refs", []string{"name", "execution_id"}},
	{"timers", []string{"execution_id"}},
	{"data_keys", []string{"owner"}},
	{"executions", []string{"execution_id"}},
	{"events", []string{"execution_id"}},
}

// uncollated returns the steps that give names the order of their bytes, where a
// table came here without it: tools that copy databases make columns in the
// database's own order. Every statement says the order that it needs, so only speed
// depends on it: without, no index has it. No row is written again, but the indexes
// are; and the planner's statistics of the column are lost.
func (s *session) uncollated(ctx context.Context) ([]Step, error) {
	tables, err := s.tables(ctx, "loomgate")
	if err != nil {
		return nil, err
	}
	var steps []Step
	for _, t := range nameColumns {
		var changes []string
		for _, name := range t.columns {
			if c, there := tables[t.table][name]; there && c.collation != "C" {
				changes = append(changes, "ALTER COLUMN "+name+` TYPE text COLLATE pg_catalog."C"`)
			}
		}
		if len(changes) > 0 {
			table := "loomgate." + t.table
			steps = append(steps, Step{
				Name:       "give " + table + " the order of bytes",
				Locks:      []string{table + " ACCESS EXCLUSIVE"},
				Statements: []string{"ALTER TABLE " + table + " " + strings.Join(changes, ", "), "ANALYZE " + table},
				Optional:   true,
			})
		}
	}
	return steps, nil
}

// A column is one of a table's.
type column struct {
	kind      string
	collation string
	required  bool // an insert must give it
}

// tables returns the columns of a schema's tables, by name.
func (s *session) tables(ctx context.Context, schema string) (map[string]map[string]column, error) {
	rows, err := s.conn.Query(ctx, `SELECT c.relname, a.attname, pg_catalog.format_type(a.atttypid, NULL), coalesce(o.collname, ''),
	a.attnotnull AND NOT a.atthasdef AND a.attidentity = ''
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_catalog.pg_collation o ON o.oid = a.attcollation
WHERE n.nspname = $1 AND c.relkind IN ('r', 'p')`, schema)
	if err != nil {
		return nil, err
	}
	tables := map[string]map[string]column{}
	var table, name string
	var c column
	_, err = pgx.ForEachRow(rows, []any{&table, &name, &c.kind, &c.collation, &c.required}, func() error {
		if tables[table] == nil {
			tables[table] = map[string]column{}
		}
		tables[table][name] = c
		return nil
	})
	return tables, err
}

// runAll runs steps, each in a transaction of its own: none waits for a lock while
// it holds that of another step.
func (s *session) runAll(ctx context.Context, steps []Step, report *Report) error {
	for _, step := range steps {
		err := s.run(ctx, step)
		switch {
		case err == nil:
			report.Done = append(report.Done, step)
		case step.Optional && passable(err):
			report.Skipped = append(report.Skipped, Skipped{step, err})
			s.Log.WarnContext(ctx, "postgres: this start goes on without: "+step.Name+"; the next one tries again, or an operator runs it by hand",
				"error", err, "statements", step.script())
		default:
			return fmt.Errorf("%s: %w", step.Name, err)
		}
	}
	return nil
}

// passable reports whether a start can go on after that error. A role that does not
// own the table is not among them: it is set up wrongly, and stays so.
func passable(err error) bool {
	const (
		lockTimeout   = "55P03"
		cancelled     = "57014" // by an operator: the end of the caller's context is no error of the server's
		unsupported   = "0A000" // a view, a rule or a policy depends on the column
		dependentLeft = "2BP01"
	)
	pg, ok := asPgError(err)
	return ok && slices.Contains([]string{lockTimeout, cancelled, unsupported, dependentLeft, deadlock}, pg.Code)
}

func (s *session) run(ctx context.Context, step Step) error {
	if step.outside {
		return s.unbounded(ctx, step.Statements[0])
	}
	return pgx.BeginTxFunc(ctx, s.conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		return s.bounded(ctx, tx, func() error {
			for _, sql := range step.Statements {
				if _, err := tx.Exec(ctx, sql); err != nil {
					return detailed(err)
				}
			}
			if step.then == nil {
				return nil
			}
			return step.then(ctx, tx)
		})
	})
}

// detailed adds what a message leaves out, such as which view depends on a column.
func detailed(err error) error {
	if pg, ok := asPgError(err); ok && pg.Detail != "" {
		return fmt.Errorf("%w: %s", err, pg.Detail)
	}
	return err
}

// bounded runs f with waits for locks bounded and nothing else: a timeout that cut
// the work short would do so at each start, and each would hold the lock for
// nothing. The caller's settings hold again afterwards. Names mean what they mean
// here, whatever the role's settings are.
func (s *session) bounded(ctx context.Context, tx pgx.Tx, f func() error) error {
	names, values, err := settings(ctx, tx,
		"lock_timeout", fmt.Sprint(s.LockTimeout.Milliseconds()),
		"statement_timeout", "0",
		"transaction_timeout", "0", // from version 17 on
		"idle_in_transaction_session_timeout", "0",
		"search_path", "pg_catalog",
		"standard_conforming_strings", "on",
	)
	if err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "SELECT pg_catalog.set_config(name, value, true) FROM unnest($1::text[], $2::text[]) AS s(name, value)", names, values)
	return err
}

// settings makes settings until the end of the transaction, where the server knows
// them, and returns what they were.
func settings(ctx context.Context, tx pgx.Tx, pairs ...string) (names, values []string, err error) {
	var set []string
	for i := 0; i < len(pairs); i += 2 {
		names, set = append(names, pairs[i]), append(set, pairs[i+1])
	}
	err = tx.QueryRow(ctx, `SELECT array_agg(name), array_agg(value) FROM (
	SELECT s.name, pg_catalog.current_setting(s.name) AS value FROM unnest($1::text[]) AS s(name)
	WHERE s.name IN (SELECT g.name FROM pg_catalog.pg_settings g)) s`, names).Scan(&names, &values)
	if err != nil {
		return nil, nil, err
	}
	for i, name := range names {
		to := set[slices.Index(pairs, name)/2]
		if _, err := tx.Exec(ctx, "SELECT pg_catalog.set_config($1, $2, true)", name, to); err != nil {
			return nil, nil, fmt.Errorf("set %s to %q instead of %q: %w", name, to, values[i], err)
		}
	}
	return names, values, nil
}

// literal quotes a string for SQL that takes no parameters.
func literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
