package sqlite

import (
	"context"
	"fmt"

	"github.com/loomgate/loomgate/spi"
	sqlite3 "modernc.org/sqlite/lib"
)

// schemaVersion is that of the tables: another major cannot be worked with.
var schemaVersion = spi.Version{Major: 1, Minor: 0}

const schemaGroup spi.Group = "sqlite schema"

// schema makes an empty file a store. Text is compared by bytes (BINARY, the
// default), which is code point order.
//
// Events are rows by the number of their log, not by their execution's id: a log
// keeps its number until it is deleted, and the next log of the execution has
// another, so the old events can be removed while the new ones are written.
// New rows go to the end of the table, whatever the execution: 64 appends then
// touch a few pages of it. (Rows clustered by execution are read 1.5 times as fast
// and written 3 times as slowly; an index by event id halves the speed of writing,
// see [recent].)
var schema = []string{
	`CREATE TABLE versions (
		part  TEXT NOT NULL PRIMARY KEY, -- a group of the interface, or the tables
		major INTEGER NOT NULL,
		minor INTEGER NOT NULL
	) STRICT, WITHOUT ROWID`,

	// The last numbers that were given out.
	`CREATE TABLE counters (
		version INTEGER NOT NULL,
		log     INTEGER NOT NULL
	) STRICT`,
	`INSERT INTO counters VALUES (0, 0)`,

	// The directory: changed by a first event, an acquire, a deletion, a truncation
	// and a key, never by a plain append.
	`CREATE TABLE executions (
		execution_id TEXT NOT NULL PRIMARY KEY,
		slot         INTEGER NOT NULL,
		log          INTEGER, -- NULL: it has no events
		incarnation  INTEGER NOT NULL,
		fence        INTEGER NOT NULL,
		floor        INTEGER NOT NULL,
		key_id       BLOB,
		shredded     INTEGER NOT NULL,
		deleted_at   INTEGER NOT NULL
	) STRICT, WITHOUT ROWID`,
	`CREATE INDEX executions_live ON executions (execution_id, slot, log) WHERE log IS NOT NULL`,
	`CREATE INDEX tombstones ON executions (execution_id) WHERE log IS NULL AND incarnation > 1`,

	`CREATE TABLE events (
		log         INTEGER NOT NULL,
		sequence    INTEGER NOT NULL,
		event_id    BLOB NOT NULL,
		kind        TEXT NOT NULL,
		kernel      INTEGER NOT NULL,
		fence       INTEGER NOT NULL,
		recorded_at INTEGER NOT NULL, -- as every time: microseconds since 1970
		size        INTEGER NOT NULL,
		metadata    TEXT, -- JSON
		payload     BLOB,
		PRIMARY KEY (log, sequence)
	) STRICT`,

	// Logs of deleted executions whose events are still to be removed.
	`CREATE TABLE graves (log INTEGER PRIMARY KEY) STRICT`,

	createTimers, createTimersOf,

	`CREATE TABLE refs (
		name         TEXT NOT NULL PRIMARY KEY,
		slot         INTEGER NOT NULL,
		execution_id TEXT NOT NULL,
		sequence     INTEGER NOT NULL,
		version      INTEGER NOT NULL
	) STRICT, WITHOUT ROWID`,
	`CREATE TABLE ref_lineage (
		name         TEXT NOT NULL,
		version      INTEGER NOT NULL,
		execution_id TEXT NOT NULL,
		sequence     INTEGER NOT NULL,
		PRIMARY KEY (name, version)
	) STRICT, WITHOUT ROWID`,

	`CREATE TABLE leases (
		name       TEXT NOT NULL PRIMARY KEY,
		slot       INTEGER NOT NULL,
		holder     TEXT NOT NULL,
		token      INTEGER NOT NULL,
		expires_at INTEGER NOT NULL
	) STRICT, WITHOUT ROWID`,

	`CREATE TABLE data_keys (
		owner      TEXT NOT NULL,
		version    INTEGER NOT NULL,
		slot       INTEGER NOT NULL,
		key_id     BLOB NOT NULL,
		wrapped_by TEXT NOT NULL,
		wrapped    BLOB, -- NULL: destroyed
		PRIMARY KEY (owner, version)
	) STRICT, WITHOUT ROWID`,
	`CREATE INDEX data_keys_there ON data_keys (owner, version) WHERE wrapped IS NOT NULL`,

	// No row: the store has no identity.
	`CREATE TABLE ownership (
		version      INTEGER NOT NULL,
		cluster      TEXT NOT NULL,
		shard        TEXT NOT NULL,
		fingerprint  TEXT NOT NULL,
		writer_major INTEGER NOT NULL,
		writer_minor INTEGER NOT NULL
	) STRICT`,
	`CREATE TABLE slots (
		slot   INTEGER PRIMARY KEY,
		state  INTEGER NOT NULL,
		epoch  INTEGER NOT NULL,
		peer   TEXT NOT NULL,
		tenant TEXT NOT NULL
	) STRICT`,
}

const (
	createTimers = `CREATE TABLE timers (
		wake_at      INTEGER NOT NULL,
		execution_id TEXT NOT NULL,
		slot         INTEGER NOT NULL,
		redrive      INTEGER NOT NULL,
		attempt      INTEGER NOT NULL,
		version      INTEGER NOT NULL,
		PRIMARY KEY (wake_at, execution_id)
	) STRICT, WITHOUT ROWID`
	createTimersOf = `CREATE INDEX timers_of ON timers (execution_id)`
)

// prepare connects to the file and makes it a store of this version. All of it is
// one transaction that has the writer's lock, so of several processes that start
// together one does the work, and the others find it done.
func (s *store) prepare(ctx context.Context) (*session, error) {
	var c *session
	err := patiently(ctx, s.busyTimeout, func() (err error) {
		if c, err = connect(s.writerDSN()); err != nil {
			return err
		}
		if err = s.prepareIn(c); err != nil {
			c.close()
		}
		return err
	})
	if err != nil {
		return nil, unchanged(err)
	}
	return c, nil
}

func (s *store) prepareIn(c *session) error {
	var mode string
	if _, err := c.get(`PRAGMA journal_mode`, nil, &mode); err != nil {
		return err
	}
	if mode != "wal" {
		return &spi.UnavailableError{Cause: fmt.Errorf("sqlite: no write-ahead log can be kept beside the file, only %q", mode)}
	}
	if _, err := c.exec(`BEGIN IMMEDIATE`); err != nil {
		return err
	}
	known, err := c.tableHas("versions", "major")
	switch {
	case err != nil:
		return err
	case known:
		if err := c.checkVersions(); err != nil {
			return err
		}
		// A file that cannot be written begins a transaction all the same.
		if _, err := c.exec(`DELETE FROM versions WHERE false`); err != nil {
			return err
		}
	default:
		if err := s.createSchema(c); err != nil {
			return err
		}
	}
	_, err = c.exec(`COMMIT`)
	return err
}

// tableHas reports whether there is a table with a column.
func (c *session) tableHas(table, column string) (bool, error) {
	return c.get(`SELECT name FROM pragma_table_info(?) WHERE name = ?`, []any{table, column}, new(string))
}

func (c *session) checkVersions() error {
	have := map[spi.Group]spi.Version{}
	err := c.each(`SELECT part, major, minor FROM versions`, nil, func(scan scan) (bool, error) {
		var part string
		var v spi.Version
		err := scan(&part, &v.Major, &v.Minor)
		have[spi.Group(part)] = v
		return true, err
	})
	if err != nil {
		return err
	}
	if v := have[schemaGroup]; v.Major != schemaVersion.Major {
		return &spi.CompatibilityError{Group: schemaGroup, Have: v, Want: schemaVersion}
	}
	return spi.CheckCompatibility(have)
}

func (s *store) createSchema(c *session) error {
	older, err := c.tableHas("timers", "wake_at")
	if err != nil {
		return err
	}
	if older {
		if _, err := c.exec(`ALTER TABLE timers RENAME TO older_timers`); err != nil {
			return err
		}
	}
	for _, statement := range schema {
		_, err := c.exec(statement)
		if code(err) == sqlite3.SQLITE_ERROR { // the name is taken
			return fmt.Errorf("%w: it holds another program's tables: %s", &spi.CompatibilityError{Group: schemaGroup, Want: schemaVersion}, err.Error())
		}
		if err != nil {
			return err
		}
	}
	if older {
		if err := s.adoptTimers(c); err != nil {
			return err
		}
	}
	versions := spi.Versions()
	versions[schemaGroup] = schemaVersion
	for part, v := range versions {
		if _, err := c.exec(`INSERT INTO versions VALUES (?, ?, ?)`, string(part), v.Major, v.Minor); err != nil {
			return err
		}
	}
	return nil
}

// adoptTimers takes over a table of timers from before there was a directory:
// (execution_id, wake_at in milliseconds), in its later form with redrive, which is
// JSON that holds the attempt, or NULL. Who still writes the older form fails: its
// rows have no version.
func (s *store) adoptTimers(c *session) error {
	t := &tx{session: c}
	version, err := t.next(s.clock())
	if err != nil {
		return err
	}
	flagged, err := c.tableHas("older_timers", "redrive")
	if err != nil {
		return err
	}
	redrive, attempt := `0`, `0`
	if flagged {
		redrive, attempt = `redrive IS NOT NULL`, `coalesce(json_extract(redrive, '$.attempt'), 0)`
	}
	_, err = c.exec(`INSERT INTO timers (wake_at, execution_id, slot, redrive, attempt, version)
		SELECT wake_at * 1000, execution_id, 0, `+redrive+`, `+attempt+`, ? FROM older_timers`, version)
	if err != nil {
		return err
	}
	_, err = c.exec(`DROP TABLE older_timers`)
	return err
}
