package sqlite_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/loomgate/loomgate/backends/sqlite"
	"github.com/loomgate/loomgate/spi"
)

// execute runs SQL on a file, as another program would.
func execute(t *testing.T, path string, statements ...string) {
	t.Helper()
	db := must[*sql.DB](t)(sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)"))
	defer db.Close()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// The shapes that the table of timers has had.
const (
	firstTimers  = `CREATE TABLE timers (execution_id TEXT NOT NULL, wake_at INTEGER NOT NULL, PRIMARY KEY (execution_id, wake_at))`
	secondTimers = `CREATE TABLE timers (execution_id TEXT NOT NULL, wake_at INTEGER NOT NULL, redrive TEXT, PRIMARY KEY (execution_id, wake_at))`
)

func TestMigrationOfOlderTimers(t *testing.T) {
	at := func(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
	for _, c := range []struct {
		name       string
		statements []string
		want       []spi.Timer
	}{
		{"without redrive", []string{firstTimers, `INSERT INTO timers VALUES ('b', 1700000000001), ('a', 1700000000002), ('a', 1700000000001)`}, []spi.Timer{
			{Execution: "a", WakeAt: at(1700000000001)},
			{Execution: "b", WakeAt: at(1700000000001)},
			{Execution: "a", WakeAt: at(1700000000002)},
		}},
		{"with redrive", []string{secondTimers, `INSERT INTO timers VALUES ('a', 1, NULL), ('b', 2, '{"attempt":3}'), ('c', 3, '{}')`}, []spi.Timer{
			{Execution: "a", WakeAt: at(1)},
			{Execution: "b", WakeAt: at(2), Redrive: true, Attempt: 3},
			{Execution: "c", WakeAt: at(3), Redrive: true},
		}},
		{"with the column added later", []string{firstTimers, `ALTER TABLE timers ADD COLUMN redrive TEXT`, `INSERT INTO timers VALUES ('a', 1, '{"attempt":1}')`}, []spi.Timer{
			{Execution: "a", WakeAt: at(1), Redrive: true, Attempt: 1},
		}},
		{"without rows", []string{firstTimers}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "store.db")
			execute(t, path, c.statements...)
			s := open(t, path)
			wantTimers(t, s, c.want)

			redrive := spi.Timer{Execution: "e", WakeAt: at(4), Redrive: true, Attempt: 2}
			must[spi.ScheduleTimerResponse](t)(spi.ScheduleTimer(t.Context(), s, spi.ScheduleTimerRequest{Timer: redrive}))
			wantTimers(t, open(t, path), append(c.want, redrive))
		})
	}
}

// wantTimers checks what is due, and completes none.
func wantTimers(t *testing.T, s *spi.Store, want []spi.Timer) {
	t.Helper()
	got := map[spi.Timer]bool{}
	for _, timer := range must[spi.DueTimersResponse](t)(spi.DueTimers(t.Context(), s, spi.DueTimersRequest{Limit: 100})).Timers {
		if timer.Version < 1 {
			t.Errorf("%+v has no version", timer)
		}
		timer.Version = 0
		got[timer] = true
	}
	if len(got) != len(want) {
		t.Errorf("due are %v, not %v", got, want)
	}
	for _, timer := range want {
		if !got[timer] {
			t.Errorf("%+v is not due", timer)
		}
	}
}

func TestDatabasesThatMigrateAtOnceAllStart(t *testing.T) {
	for _, before := range [][]string{nil, {firstTimers, `INSERT INTO timers VALUES ('a', 1)`}, {secondTimers, `INSERT INTO timers VALUES ('a', 1, NULL)`}} {
		path := filepath.Join(t.TempDir(), "store.db")
		execute(t, path, before...)
		var starts sync.WaitGroup
		for range 4 {
			starts.Go(func() {
				db, err := sqlite.Open(t.Context(), path)
				if err != nil {
					t.Errorf("after %v: %v", before, err)
					return
				}
				defer db.Close()
				if before != nil {
					wantTimers(t, db.Store(), []spi.Timer{{Execution: "a", WakeAt: time.UnixMilli(1).UTC()}})
				}
			})
		}
		starts.Wait()
	}
}

func TestAnotherVersionIsRefused(t *testing.T) {
	for _, group := range []spi.Group{"sqlite schema", spi.Events, spi.Timers, spi.Refs, spi.Leases, spi.DataKeys, spi.Ownership} {
		for _, change := range []string{"major = major + 1", "major = major - 1"} {
			path := filepath.Join(t.TempDir(), "store.db")
			open(t, path)
			execute(t, path, `UPDATE versions SET `+change+` WHERE part = '`+string(group)+`'`)
			_, err := sqlite.Open(t.Context(), path)
			if e := wantError[*spi.CompatibilityError](t, err); e.Group != group || e.Have.Major == e.Want.Major {
				t.Errorf("it answers %v", e)
			}
		}
	}
}

func TestAnotherMinorIsNot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	open(t, path)
	execute(t, path, `UPDATE versions SET minor = minor + 1`, `INSERT INTO versions VALUES ('later', 9, 9)`)
	open(t, path)
}

func TestTablesOfAnotherProgramAreLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	execute(t, path, firstTimers, `CREATE TABLE events (id TEXT)`, `INSERT INTO events VALUES ('theirs')`)
	_, err := sqlite.Open(t.Context(), path)
	if _, ok := errors.AsType[*spi.CompatibilityError](err); !ok {
		t.Errorf("it answers %v", err)
	}
	execute(t, path, `INSERT INTO events VALUES ('still there')`, `INSERT INTO timers VALUES ('a', 1)`)
}
