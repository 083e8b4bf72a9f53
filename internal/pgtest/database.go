package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Kind is a sort of database that the store must work on.
type Kind int

// The kinds.
const (
	ICU            Kind = iota // sorts by ICU's en-US unless told otherwise
	Glibc                      // sorts by the C library's en_US.UTF-8
	RepeatableRead             // ICU, and transactions are REPEATABLE READ by default
	PgBouncer                  // ICU, behind a pooler that changes connections between transactions
	C                          // sorts by bytes; no order is ever wrong on it
)

// Kinds are those on which a store has to be proven.
var Kinds = []Kind{ICU, Glibc, RepeatableRead, PgBouncer}

func (k Kind) String() string {
	return [...]string{"icu", "glibc", "repeatableread", "pgbouncer", "c"}[k]
}

// Database is one test's own, dropped after it.
type Database struct {
	DSN    string // how the store reaches it
	Direct string // past the pooler; else the same
	Name   string
}

// Template is a database with content, made once for each server and kind, and
// copied for each test.
type Template struct {
	fill func(ctx context.Context, dsn string) error
}

// NewTemplate returns a template that fill writes; dsn goes past any pooler.
func NewTemplate(fill func(ctx context.Context, dsn string) error) *Template {
	return &Template{fill}
}

// Fresh returns an empty database on the shared server.
func Fresh(tb testing.TB, kind Kind) Database {
	tb.Helper()
	return Shared(tb).Fresh(tb, kind)
}

// Fresh returns a copy of the template on the shared server.
func (t *Template) Fresh(tb testing.TB, kind Kind) Database {
	tb.Helper()
	return Shared(tb).Copy(tb, kind, t)
}

// Fresh returns an empty database.
func (c *Cluster) Fresh(tb testing.TB, kind Kind) Database {
	tb.Helper()
	return c.Copy(tb, kind, nil)
}

// Copy returns a copy of the template.
func (c *Cluster) Copy(tb testing.TB, kind Kind, t *Template) Database {
	tb.Helper()
	db, err := c.copy(tb.Context(), kind, t)
	if err != nil {
		tb.Fatalf("pgtest: %s database: %v", kind, err)
	}
	tb.Cleanup(func() {
		// The test's context is over, and the test may have stopped the server.
		if err := c.drop(context.Background(), db.Name); err != nil {
			tb.Logf("pgtest: %v", err)
		}
	})
	return db
}

// Database is Fresh for a program that is no test.
func (c *Cluster) Database(ctx context.Context, kind Kind) (Database, error) {
	return c.copy(ctx, kind, nil)
}

func (c *Cluster) copy(ctx context.Context, kind Kind, t *Template) (Database, error) {
	from, err := c.source(ctx, kind, t)
	if err != nil {
		return Database{}, err
	}
	name := fmt.Sprintf("t%d", c.names.Add(1))
	if err := c.create(ctx, name, kind, from); err != nil {
		return Database{}, err
	}
	db := Database{DSN: c.DSN(name), Direct: c.DSN(name), Name: name}
	if kind == PgBouncer {
		port, err := c.pooler()
		if err != nil {
			return Database{}, err
		}
		db.DSN = address(port, name)
	}
	return db, nil
}

// create copies by files: quicker here than by the log, unless they are synced.
func (c *Cluster) create(ctx context.Context, name string, kind Kind, from string) error {
	create := fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s", name, from)
	if !c.opts.Durable {
		create += " STRATEGY file_copy"
	}
	if c.opts.DiskMB > 0 {
		create += " TABLESPACE disk"
	}
	if from == "template0" {
		switch kind {
		case Glibc:
			create += " LOCALE_PROVIDER libc LOCALE 'en_US.UTF-8'"
		case C:
			create += " LOCALE_PROVIDER libc LOCALE 'C'"
		default:
			create += " LOCALE_PROVIDER icu ICU_LOCALE 'en-US'"
		}
	}
	statements := []string{create}
	if kind == RepeatableRead { // a copy does not take it along
		statements = append(statements, "ALTER DATABASE "+name+" SET default_transaction_isolation = 'repeatable read'")
	}
	return c.exec(ctx, "postgres", statements...)
}

// drop ends the connections first: FORCE alone looks only every 100 ms whether
// they are gone.
func (c *Cluster) drop(ctx context.Context, name string) error {
	conn, err := pgx.Connect(ctx, c.SocketDSN("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for range 100 {
		tag, err := conn.Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", name)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			break
		}
		time.Sleep(2 * time.Millisecond)
	}
	_, err = conn.Exec(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
	return err
}

type source struct {
	kind     Kind
	template *Template
}

type made struct {
	once sync.Once
	name string
	err  error
}

// source returns the database to copy. One without a template is empty.
func (c *Cluster) source(ctx context.Context, kind Kind, t *Template) (string, error) {
	if kind == PgBouncer || t == nil && kind == RepeatableRead {
		kind = ICU
	}
	v, _ := c.templates.LoadOrStore(source{kind, t}, &made{})
	m := v.(*made)
	m.once.Do(func() {
		// Made for all tests: the first one's end must not cancel it.
		m.name, m.err = c.makeSource(context.WithoutCancel(ctx), kind, t)
	})
	return m.name, m.err
}

// warm, the first statement in a database, leaves a cache of the catalog in a file,
// which the copies get too: each connection to them is quicker.
const warm = "SELECT"

func (c *Cluster) makeSource(ctx context.Context, kind Kind, t *Template) (string, error) {
	name := fmt.Sprintf("template_%d", c.names.Add(1))
	if t == nil {
		if kind == Glibc {
			if err := locale(); err != nil {
				return "", err
			}
		}
		return name, errors.Join(c.create(ctx, name, kind, "template0"), c.exec(ctx, name, warm))
	}
	empty, err := c.source(ctx, kind, nil)
	if err != nil {
		return "", err
	}
	if err := c.create(ctx, name, kind, empty); err != nil {
		return "", err
	}
	if err := t.fill(ctx, c.DSN(name)); err != nil {
		return "", fmt.Errorf("fill the template: %w", err)
	}
	if err := c.exec(ctx, name, warm); err != nil {
		return "", err
	}
	// One with connections cannot be copied.
	return name, c.exec(ctx, "postgres",
		"ALTER DATABASE "+name+" ALLOW_CONNECTIONS false",
		"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '"+name+"'")
}

func (c *Cluster) exec(ctx context.Context, database string, statements ...string) error {
	conn, err := pgx.Connect(ctx, c.SocketDSN(database))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, s := range statements {
		if _, err := conn.Exec(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// locale makes the C library's en_US.UTF-8 where the system lacks it.
var locale = sync.OnceValue(func() error {
	if hasLocale() {
		return nil
	}
	if os.Geteuid() != 0 {
		return errors.New("the system has no locale en_US.UTF-8; as root: apt-get install locales && localedef -i en_US -f UTF-8 en_US.UTF-8")
	}
	return locked(func(string) error {
		if hasLocale() {
			return nil
		}
		if _, err := os.Stat("/usr/share/i18n/locales/en_US"); err != nil {
			if err := aptInstall("locales"); err != nil {
				return err
			}
		}
		return run("", "localedef", "-i", "en_US", "-f", "UTF-8", "en_US.UTF-8")
	})
})

func hasLocale() bool {
	out, err := exec.Command("locale", "-a").Output()
	return err == nil && strings.Contains(string(out), "en_US.utf8")
}
