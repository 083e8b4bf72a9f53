package pgtest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loomgate/loomgate/internal/pgtest"
)

func connect(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeExec // the one that suits a pooler
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func ask[T any](t testing.TB, conn interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, sql string,
) T {
	t.Helper()
	var v T
	if err := conn.QueryRow(t.Context(), sql).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func do(t testing.TB, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func code(err error) string {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return fmt.Sprint(err)
	}
	return pg.Code
}

// A store that forgets COLLATE "C" sorts wrongly on each kind.
func TestDefaultCollationSortsUnlikeBytes(t *testing.T) {
	for _, kind := range pgtest.Kinds {
		t.Run(kind.String(), func(t *testing.T) {
			conn := connect(t, pgtest.Fresh(t, kind).DSN)
			// The C library looks at punctuation last.
			provider, first, second := "i", "'a_b'", "'A1'"
			if kind == pgtest.Glibc {
				provider, first, second = "c", "'a_b'", "'B1'"
			}
			if !ask[bool](t, conn, "SELECT "+first+" < "+second) {
				t.Errorf("%s does not sort before %s by default", first, second)
			}
			if ask[bool](t, conn, "SELECT "+first+" < "+second+` COLLATE "C"`) {
				t.Errorf(`%s sorts before %s in "C"`, first, second)
			}
			if got := ask[string](t, conn, "SELECT datlocprovider::text FROM pg_database WHERE datname = current_database()"); got != provider {
				t.Errorf("collation provider is %q, want %q", got, provider)
			}
		})
	}
}

func TestOnlyOneKindIsRepeatableReadByDefault(t *testing.T) {
	for _, kind := range pgtest.Kinds {
		want := "read committed"
		if kind == pgtest.RepeatableRead {
			want = "repeatable read"
		}
		conn := connect(t, pgtest.Fresh(t, kind).DSN)
		if got := ask[string](t, conn, "SELECT current_setting('transaction_isolation')"); got != want {
			t.Errorf("%s: isolation is %q, want %q", kind, got, want)
		}
	}
}

func TestPgBouncerGivesAConnectionForATransaction(t *testing.T) {
	db := pgtest.Fresh(t, pgtest.PgBouncer)
	a, b := connect(t, db.DSN), connect(t, db.DSN)
	const pid = "SELECT pg_backend_pid()"
	if one, other := ask[int](t, a, pid), ask[int](t, b, pid); one != other {
		t.Errorf("two idle clients have servers %d and %d, want the same", one, other)
	}
	tx, err := a.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	held := ask[int](t, tx, pid)
	if other := ask[int](t, b, pid); other == held {
		t.Errorf("server %d serves another client within a transaction", held)
	}
	if again := ask[int](t, tx, pid); again != held {
		t.Errorf("the server changes from %d to %d within a transaction", held, again)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	do(t, connect(t, db.Direct), "SELECT") // the direct way is there too
}

func TestTemplateIsFilledOnceAndCopied(t *testing.T) {
	var mu sync.Mutex
	fills := 0
	template := pgtest.NewTemplate(func(ctx context.Context, dsn string) error {
		mu.Lock()
		fills++
		mu.Unlock()
		conn, err := pgx.Connect(ctx, dsn)
		if err != nil {
			return err
		}
		_, err = conn.Exec(ctx, "CREATE TABLE x AS SELECT 7 AS n")
		return err // the connection stays open, as a careless caller's does
	})
	for _, kind := range pgtest.Kinds {
		for range 3 {
			conn := connect(t, template.Fresh(t, kind).DSN)
			if n := ask[int](t, conn, "SELECT n FROM x"); n != 7 {
				t.Errorf("%s: the copy has %d, want 7", kind, n)
			}
			do(t, conn, "UPDATE x SET n = 8")
		}
	}
	if fills != 3 {
		t.Errorf("filled %d times, want 3: PgBouncer takes ICU's", fills)
	}
}

func TestDatabaseIsDroppedAfterItsTest(t *testing.T) {
	var name string
	t.Run("uses it", func(t *testing.T) {
		db := pgtest.Fresh(t, pgtest.PgBouncer)
		connect(t, db.DSN)
		name = db.Name
	})
	conn := connect(t, pgtest.Shared(t).DSN("postgres"))
	if ask[bool](t, conn, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = '"+name+"')") {
		t.Errorf("database %q is still there", name)
	}
}

func TestKilledDurableServerKeepsWhatWasCommitted(t *testing.T) {
	c := pgtest.Private(t, pgtest.Options{Durable: true, Settings: map[string]string{"work_mem": "'5MB'"}})
	db := c.Fresh(t, pgtest.ICU)
	conn := connect(t, db.DSN)
	if fsync, mem := ask[string](t, conn, "SHOW fsync"), ask[string](t, conn, "SHOW work_mem"); fsync != "on" || mem != "5MB" {
		t.Errorf("fsync is %s, work_mem %s", fsync, mem)
	}
	do(t, conn, "CREATE TABLE x AS SELECT generate_series(1, 1000) AS n")
	c.Kill9(t)
	if _, err := conn.Exec(t.Context(), "SELECT"); err == nil {
		t.Error("a connection survives kill -9")
	}
	c.Restart(t)
	if n := ask[int](t, connect(t, db.DSN), "SELECT count(*) FROM x"); n != 1000 {
		t.Errorf("%d rows after the restart, want 1000", n)
	}
	c.Restart(t) // also in order
	if n := ask[int](t, connect(t, db.DSN), "SELECT count(*) FROM x"); n != 1000 {
		t.Errorf("%d rows after the second restart, want 1000", n)
	}
}

func TestStandbyFollowsAndOnlyReads(t *testing.T) {
	c := pgtest.Private(t, pgtest.Options{})
	db := c.Fresh(t, pgtest.ICU)
	do(t, connect(t, db.DSN), "CREATE TABLE x AS SELECT 1 AS n")
	s := c.Standby(t)
	do(t, connect(t, db.DSN), "INSERT INTO x VALUES (2)")
	s.CatchUp(t)
	conn := connect(t, s.DSN(db.Name))
	if n := ask[int](t, conn, "SELECT count(*) FROM x"); n != 2 {
		t.Errorf("the standby has %d rows, want 2", n)
	}
	if _, err := conn.Exec(t.Context(), "INSERT INTO x VALUES (3)"); code(err) != "25006" {
		t.Errorf("a write on the standby: %v, want read_only_sql_transaction", err)
	}
}

func TestFullDiskRefusesWritesUntilFreed(t *testing.T) {
	c := pgtest.Private(t, pgtest.Options{DiskMB: 32})
	conn := connect(t, c.Fresh(t, pgtest.ICU).DSN)
	do(t, conn, "CREATE TABLE x (v text)")
	const megabyte = "INSERT INTO x SELECT repeat('x', 1000) FROM generate_series(1, 1000)"
	do(t, conn, megabyte)
	c.FillDisk(t)
	if _, err := conn.Exec(t.Context(), megabyte); code(err) != "53100" {
		t.Errorf("a write to a full disk: %v, want disk_full", err)
	}
	if n := ask[int](t, conn, "SELECT count(*) FROM x"); n != 1000 {
		t.Errorf("reads %d rows from a full disk, want 1000", n)
	}
	c.FreeDisk(t)
	do(t, conn, megabyte)
}

// The child is this test binary, told by its environment to start servers and wait.
func TestNothingOutlivesAKilledTestProcess(t *testing.T) {
	const child = "LOOMGATE_PGTEST_CHILD"
	if os.Getenv(child) != "" {
		pgtest.Fresh(t, pgtest.PgBouncer)
		killed := pgtest.Private(t, pgtest.Options{})
		killed.Kill9(t)
		conn := connect(t, pgtest.Shared(t).DSN("postgres"))
		fmt.Println("data in", ask[string](t, conn, "SHOW data_directory"))
		do(t, conn, "SELECT pg_sleep(600)") // a busy server process, too
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), child+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var folder string
	for lines := bufio.NewScanner(out); folder == "" && lines.Scan(); {
		if data, ok := strings.CutPrefix(lines.Text(), "data in "); ok {
			folder = filepath.Dir(filepath.Dir(data))
		}
	}
	if folder == "" {
		t.Fatalf("the child does not start its servers: %v", cmd.Wait())
	}
	running := len(workingUnder(t, folder))
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the child exits by itself")
	}
	if running < 7 { // the postmaster, its five helpers at least, PgBouncer
		t.Fatalf("only %d processes of the child's in %q", running, folder)
	}
	start := time.Now()
	for {
		left := workingUnder(t, folder)
		_, err := os.Stat(folder)
		if len(left) == 0 && errors.Is(err, os.ErrNotExist) {
			t.Logf("%d processes gone in %v", running, time.Since(start).Round(time.Millisecond))
			return
		}
		if time.Since(start) > 20*time.Second {
			t.Fatalf("left behind: %v and %q", left, folder)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func workingUnder(t *testing.T, folder string) []string {
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(links, func(link string) bool {
		cwd, err := os.Readlink(link)
		return err != nil || !strings.HasPrefix(cwd, folder+"/")
	})
}

func BenchmarkFresh(b *testing.B) {
	for _, kind := range pgtest.Kinds {
		b.Run(kind.String(), func(b *testing.B) {
			pgtest.Fresh(b, kind)
			for b.Loop() {
				pgtest.Fresh(b, kind)
			}
		})
	}
}

func BenchmarkPrivate(b *testing.B) {
	for b.Loop() {
		pgtest.Private(b, pgtest.Options{})
	}
}
