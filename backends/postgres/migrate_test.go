package postgres_test

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loomgate/loomgate/backends/postgres"
	"github.com/loomgate/loomgate/internal/pgtest"
	"github.com/loomgate/loomgate/spi"
)

var (
	//go:embed testdata/older.sql
	olderTables string
	//go:embed testdata/older_rows.sql
	olderRows string
)

// The databases that the migrations work on: an older system's with the rows of
// older_rows.sql, and with a million events of 5,000 executions.
var (
	older = pgtest.NewTemplate(func(ctx context.Context, dsn string) error {
		return script(ctx, dsn, olderTables, olderRows)
	})
	olderMillion = pgtest.NewTemplate(func(ctx context.Context, dsn string) error {
		return script(ctx, dsn, olderTables,
			"DROP INDEX idx_events_exec", "ALTER TABLE events DROP CONSTRAINT events_pkey", // built afterwards, which is quicker
			`INSERT INTO events (execution_id, sequence, event_type, payload, metadata)
SELECT 'order_' || lpad(e::text, 5, '0'), s, 'note', '{"n": 1}', CASE WHEN s > 100 THEN '{"fence": 2}' ELSE '{}' END::jsonb
FROM generate_series(1, 5000) e, generate_series(1, 200) s`,
			"INSERT INTO fences SELECT 'order_' || lpad(e::text, 5, '0'), 2 FROM generate_series(1, 5000, 7) e",
			"ALTER TABLE events ADD PRIMARY KEY (execution_id, sequence)", "CREATE INDEX idx_events_exec ON events (execution_id, sequence)",
			"VACUUM ANALYZE events")
	})
)

const tenant = "acme's" // with a quote

// ours puts the tenant's scope in front.
func ours[N ~string](name N) N { return "6:acme's/" + name }

func script(ctx context.Context, dsn string, statements ...string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// A patient is a database on which migrations are tried.
type patient struct {
	*testing.T
	pgtest.Database
	conn *pgx.Conn // plays whoever gets in the way
	log  bytes.Buffer
}

func newPatient(t *testing.T, template *pgtest.Template) *patient {
	t.Helper()
	p := &patient{T: t, Database: template.Fresh(t, pgtest.ICU)}
	p.conn = p.connect()
	return p
}

func (p *patient) connect() *pgx.Conn {
	p.Helper()
	conn, err := pgx.Connect(p.Context(), p.Direct)
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func (p *patient) do(statements ...string) {
	p.Helper()
	for _, sql := range statements {
		if _, err := p.conn.Exec(p.Context(), sql); err != nil {
			p.Fatalf("%s: %v", sql, err)
		}
	}
}

// get returns the column that a query has, as text.
func (p *patient) get(sql string, args ...any) []string {
	p.Helper()
	rows, err := p.conn.Query(p.Context(), sql, args...)
	if err != nil {
		p.Fatal(err)
	}
	values, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		p.Fatalf("%s: %v", sql, err)
	}
	return values
}

// adopt is the migration of an older database, with its log in p.log.
func (p *patient) adopt() postgres.Migration {
	return postgres.Migration{Adopt: &postgres.Adoption{Tenant: tenant}, Log: slog.New(slog.NewTextHandler(&p.log, nil))}
}

func (p *patient) run(m postgres.Migration) postgres.Report {
	p.Helper()
	report, err := m.Run(p.Context(), p.Direct)
	if err != nil {
		p.Fatal(err)
	}
	return report
}

// adopted is an older database that was adopted, in which names then lost the order
// of bytes, as they do where a tool copies a database.
func adopted(t *testing.T, tables ...string) *patient {
	t.Helper()
	p := newPatient(t, older)
	p.run(p.adopt())
	for _, table := range tables {
		p.uncollate(table)
	}
	return p
}

func (p *patient) uncollate(table string) {
	p.Helper()
	column := map[string]string{"refs": "name"}[table]
	if column == "" {
		column = "execution_id"
	}
	p.do("ALTER TABLE loomgate."+table+" ALTER COLUMN "+column+` TYPE text COLLATE "default"`, "ANALYZE loomgate."+table)
}

// again is the migration that an adopted database goes through at each start.
func (p *patient) again() postgres.Migration {
	return postgres.Migration{Log: p.adopt().Log}
}

// behind starts a call and returns when the condition holds, which another
// connection looks at again and again. The function that it returns waits for the
// call's end.
func (p *patient) behind(condition string, call func() error) (end func() error) {
	p.Helper()
	done := make(chan error, 1)
	go func() { done <- call() }()
	p.await(condition, done)
	return func() error {
		p.Helper()
		select {
		case err := <-done:
			return err
		case <-time.After(60 * time.Second):
			p.Fatal("the call never ends")
			return nil
		}
	}
}

func (p *patient) await(condition string, done <-chan error) {
	p.Helper()
	watch := p.connect()
	defer watch.Close(context.Background())
	deadline := time.Now().Add(60 * time.Second)
	for there := false; !there; {
		select {
		case err := <-done:
			p.Fatalf("the call ended before %s, with %v", condition, err)
		default:
		}
		if err := watch.QueryRow(p.Context(), "SELECT "+condition).Scan(&there); err != nil {
			p.Fatal(err)
		}
		if time.Now().After(deadline) {
			p.Fatalf("never came about: %s", condition)
		}
	}
}

// waitsFor is the condition that somebody waits for a lock on a table.
func waitsFor(table string) string {
	return "EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = to_regclass('" + table + "'))"
}

func (p *patient) collation(table, column string) string {
	p.Helper()
	return p.get(`SELECT c.collname::text FROM pg_attribute a JOIN pg_collation c ON c.oid = a.attcollation
WHERE a.attrelid = $1::text::regclass AND a.attname = $2`, "loomgate."+table, column)[0]
}

// skippedOnly fails unless one step was skipped, for a reason, and its log is a
// warning with the statements, which work when an operator runs them.
func (p *patient) skippedOnly(report postgres.Report, table, code string) {
	p.Helper()
	if len(report.Skipped) != 1 || !slices.Equal(report.Skipped[0].Step.Locks, []string{"loomgate." + table + " ACCESS EXCLUSIVE"}) {
		p.Fatalf("skipped %v", report.Skipped)
	}
	var pg *pgconn.PgError
	if !errors.As(report.Skipped[0].Err, &pg) || pg.Code != code {
		p.Errorf("skipped because of %v, not %s", report.Skipped[0].Err, code)
	}
	column := map[string]string{"refs": "name", "events": "execution_id"}[table]
	byHand := `statements="ALTER TABLE loomgate.` + table + ` ALTER COLUMN ` + column + ` TYPE text COLLATE pg_catalog.\"C\";\nANALYZE loomgate.` + table + `;"`
	if log := p.log.String(); !strings.Contains(log, "level=WARN") || !strings.Contains(log, byHand) {
		p.Errorf("the log does not hold %s:\n%s", byHand, log)
	}
	p.log.Reset()
}

// pages returns all ids, in pages of two.
func pages(t *testing.T, s *spi.Store) (ids []spi.ExecutionID) {
	t.Helper()
	after := ""
	for {
		page, err := spi.ListExecutions(t.Context(), s, spi.ListExecutionsRequest{After: after, Limit: 2})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, page.Executions...)
		if page.Next == "" {
			return ids
		}
		after = page.Next
	}
}

// olderIDs are those of older_rows.sql that have events, in the order of bytes.
var olderIDs = []spi.ExecutionID{ours[spi.ExecutionID]("A1"), ours[spi.ExecutionID]("a1"), ours[spi.ExecutionID]("a_b"), ours[spi.ExecutionID](`é'\`)}

func TestMigrationMakesANewDatabase(t *testing.T) {
	db := pgtest.Fresh(t, pgtest.ICU)
	m := postgres.Migration{}
	plan, err := m.Plan(t.Context(), db.Direct)
	if err != nil {
		t.Fatal(err)
	}
	report, err := m.Run(t.Context(), db.Direct)
	if err != nil {
		t.Fatal(err)
	}
	if len(plan) != 1 || len(report.Done) != 1 || plan[0].String() != report.Done[0].String() || report.BackfillOpen {
		t.Errorf("planned %v, did %v", plan, report)
	}
	open(t, db)
}

func TestMigrationAdoptsAnOlderDatabase(t *testing.T) {
	p := newPatient(t, older)
	report := p.run(p.adopt())
	if report.Executions != 5 || len(report.Done) != 1 || len(report.Skipped) != 0 || report.BackfillOpen {
		t.Fatalf("%+v", report)
	}
	store := open(t, p.Database).Store()

	t.Run("ids are the tenant's, in the order of bytes", func(t *testing.T) {
		if ids := pages(t, store); !slices.Equal(ids, olderIDs) {
			t.Errorf("%q", ids)
		}
		for _, name := range []struct{ table, column string }{{"events", "execution_id"}, {"refs", "name"}, {"timers", "execution_id"}, {"lineage", "name"}} {
			if c := p.collation(name.table, name.column); c != "C" {
				t.Errorf("%s.%s is in the order of %s", name.table, name.column, c)
			}
		}
	})
	read := func(t *testing.T, id spi.ExecutionID) spi.ReadResponse {
		t.Helper()
		res, err := spi.Read(t.Context(), store, spi.ReadRequest{Execution: ours(id), Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	t.Run("events are as they were", func(t *testing.T) {
		events := read(t, "A1").Events
		if len(events) != 4 {
			t.Fatalf("%v", events)
		}
		at := time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)
		if e := events[0]; e.Kind != spi.KindExecutionStarted || !e.RecordedAt.Equal(at) || string(e.Payload) != `{"order": 1}` || e.Sequence != 1 {
			t.Errorf("%+v", e)
		}
		if e := events[1]; e.Payload != nil {
			t.Errorf("a missing payload is %q", e.Payload)
		}
		if e := events[3]; string(e.Payload) != "null" {
			t.Errorf("a payload of null is %q", e.Payload)
		}
	})
	t.Run("kernel counts only as JSON true, and fence is a number", func(t *testing.T) {
		for i, want := range []struct {
			kernel bool
			fence  int64
			rest   string
		}{
			{true, 0, "map[actor:ann]"},
			{true, 3, "map[]"},
			{false, 0, `map[kernel:true list:[1, "two"] n:4]`},
			{false, 0, "map[fence:3 kernel:1]"},
		} {
			e := read(t, "A1").Events[i]
			if e.Kernel != want.kernel || e.Fence != want.fence || fmt.Sprint(e.Metadata) != want.rest {
				t.Errorf("event %d: kernel %v, fence %d, metadata %v", i+1, e.Kernel, e.Fence, e.Metadata)
			}
			size := p.get("SELECT size::text FROM loomgate.events WHERE execution_id = $1 AND sequence = $2", ours("A1"), e.Sequence)[0]
			if size != fmt.Sprint(e.Size()) {
				t.Errorf("event %d counts %s bytes, not %d", i+1, size, e.Size())
			}
		}
	})
	t.Run("answering is what the table of kinds says", func(t *testing.T) {
		got := p.get("SELECT sequence::text FROM loomgate.events WHERE execution_id = $1 AND answering ORDER BY 1", ours("A1"))
		if !slices.Equal(got, []string{"2", "4"}) { // the kernel's of a later version, and the resume
			t.Errorf("%v", got)
		}
	})
	t.Run("event ids are a hash of execution and sequence", func(t *testing.T) {
		q := newPatient(t, older)
		q.do("ALTER TABLE events ADD COLUMN event_id uuid", "UPDATE events SET event_id = '00000000-0000-4000-8000-000000000001' WHERE execution_id = 'A1' AND sequence = 1")
		q.run(q.adopt())
		const ids = "SELECT event_id::text FROM loomgate.events ORDER BY execution_id, sequence"
		mine, its := p.get(ids), q.get(ids)
		if its[0] != "00000000-0000-4000-8000-000000000001" {
			t.Errorf("an event lost its id for %s", its[0])
		}
		if !slices.Equal(mine[1:], its[1:]) {
			t.Errorf("adopted twice, the ids differ:\n%v\n%v", mine, its)
		}
		if n := len(slices.Compact(slices.Sorted(slices.Values(mine)))); n != 11 {
			t.Errorf("%d ids of 11 events: %v", n, mine)
		}
	})
	t.Run("what was truncated lies below the floor", func(t *testing.T) {
		if res := read(t, "a1"); res.Floor != 5 || len(res.Events) != 3 || res.Incarnation != 1 {
			t.Errorf("%+v", res)
		}
	})
	t.Run("a park can be answered under its token", func(t *testing.T) {
		id := ours[spi.ExecutionID]("a_b")
		got, err := spi.AcquireFenceIf(t.Context(), store, spi.AcquireFenceIfRequest{Execution: id, Fence: 7, ParkSeq: 2})
		if err != nil || !got.Acquired || got.Token != 8 {
			t.Fatalf("%+v, %v", got, err)
		}
		_, err = spi.Append(t.Context(), store, spi.AppendRequest{Execution: id, ExpectedHead: 3, Fence: 7, Events: []spi.Event{{ID: spi.NewEventID(), Kind: spi.KindExecutionResumed, Kernel: true}}})
		var stale *spi.StaleFenceError
		if !errors.As(err, &stale) || stale.Current != 8 {
			t.Errorf("under the older token: %v", err)
		}
	})
	t.Run("a fence without events goes on, and lists nothing", func(t *testing.T) {
		got, err := spi.AcquireFence(t.Context(), store, spi.AcquireFenceRequest{Execution: ours[spi.ExecutionID]("fenced only")})
		if err != nil || got.Token != 5 {
			t.Errorf("%+v, %v", got, err)
		}
	})
	t.Run("refs keep their lineage", func(t *testing.T) {
		list, err := spi.ListRefs(t.Context(), store, spi.ListRefsRequest{Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		var names []spi.RefName
		for _, r := range list.Refs {
			names = append(names, r.Name)
		}
		if !slices.Equal(names, []spi.RefName{ours[spi.RefName]("B1"), ours[spi.RefName]("b_a"), ours[spi.RefName]("main")}) {
			t.Errorf("%q", names)
		}
		if _, err := spi.PutRef(t.Context(), store, spi.PutRefRequest{Name: ours[spi.RefName]("main"), Execution: ours[spi.ExecutionID]("A1"), Sequence: 4, ExpectedVersion: spi.AnyVersion}); err != nil {
			t.Fatal(err)
		}
		lineage, err := spi.RefLineage(t.Context(), store, spi.RefLineageRequest{Name: ours[spi.RefName]("main"), Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		var places []int64
		for _, r := range lineage.Refs {
			places = append(places, r.Sequence)
		}
		if !slices.Equal(places, []int64{3, 2, 1}) {
			t.Errorf("the places before are %v, newest first", places)
		}
	})
	t.Run("timers get redrive", func(t *testing.T) {
		due, err := spi.DueTimers(t.Context(), store, spi.DueTimersRequest{Limit: 10})
		if err != nil || len(due.Timers) != 1 {
			t.Fatalf("%+v, %v", due, err)
		}
		timer := due.Timers[0]
		if timer.Execution != ours[spi.ExecutionID]("a_b") || timer.WakeAt.UnixMilli() != 1767323045678 || timer.Redrive {
			t.Errorf("%+v", timer)
		}
		timer.Redrive, timer.Attempt, timer.Version = true, 2, 0
		if _, err := spi.ScheduleTimer(t.Context(), store, spi.ScheduleTimerRequest{Timer: timer}); err != nil {
			t.Fatal(err)
		}
		if due, err = spi.DueTimers(t.Context(), store, spi.DueTimersRequest{Limit: 10}); err != nil || !due.Timers[0].Redrive || due.Timers[0].Attempt != 2 {
			t.Errorf("%+v, %v", due, err)
		}
	})
	t.Run("older writers are stopped", func(t *testing.T) {
		p.T = t
		for _, sql := range []string{
			"SELECT execution_id FROM fences",
			"INSERT INTO events (execution_id, sequence, event_type, payload, metadata) VALUES ('A1', 9, 'note', '{}', '{}')",
			"INSERT INTO events (execution_id, sequence) VALUES ('A1', 9)",
			"INSERT INTO refs (name, execution_id, sequence) VALUES ('older', 'A1', 1)",
			"INSERT INTO lineage (name, position, execution_id, sequence) VALUES ('older', 1, 'A1', 1)",
			"INSERT INTO timers (execution_id, wake_at) VALUES ('A1', to_timestamp(0))",
			"INSERT INTO fences (execution_id, token) VALUES ('A1', 9)",
		} {
			for _, path := range []string{"public", "loomgate"} { // whatever an operator does to find the tables again
				p.do("SET search_path = " + path)
				if _, err := p.conn.Exec(t.Context(), sql); err == nil {
					t.Errorf("with search_path = %s it works: %s", path, sql)
				}
			}
		}
		p.do("RESET search_path")
		start := strings.ReplaceAll(strings.ReplaceAll(olderTables, "CREATE TABLE", "CREATE TABLE IF NOT EXISTS"), "CREATE INDEX", "CREATE INDEX IF NOT EXISTS")
		if _, err := p.conn.Exec(t.Context(), start); err == nil {
			t.Error("a program that starts makes its tables anew")
		}
	})
}

func TestMigrationAdoptsOnlyWhatItIsToldTo(t *testing.T) {
	fails := func(t *testing.T, p *patient, m postgres.Migration, want string) {
		t.Helper()
		_, err := m.Run(t.Context(), p.Direct)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, not %q", err, want)
		}
		if _, planErr := m.Plan(t.Context(), p.Direct); planErr == nil {
			t.Error("Plan finds nothing wrong")
		}
	}
	t.Run("whose the names are has to be said", func(t *testing.T) {
		p := newPatient(t, older)
		fails(t, p, postgres.Migration{}, "say whose they are")
	})
	t.Run("slots without an identity", func(t *testing.T) {
		p := newPatient(t, older)
		m := p.adopt()
		m.Adopt.SlotOf = func(string) spi.Slot { return 0 }
		fails(t, p, m, "Identity and a SlotOf")
	})
	t.Run("there must be something", func(t *testing.T) {
		p := newPatient(t, pgtest.NewTemplate(func(context.Context, string) error { return nil }))
		fails(t, p, p.adopt(), "nothing to adopt")
	})
	t.Run("not into a database in use", func(t *testing.T) {
		p := newPatient(t, migrated)
		p.do(olderTables)
		fails(t, p, p.adopt(), "in use")
	})
	t.Run("a table of another shape", func(t *testing.T) {
		p := newPatient(t, older)
		p.do("ALTER TABLE refs RENAME COLUMN sequence TO place")
		fails(t, p, p.adopt(), "public.refs has no column sequence")
	})
	t.Run("a column that each insert would have to give", func(t *testing.T) {
		p := newPatient(t, older)
		p.do("ALTER TABLE events ADD COLUMN region text NOT NULL DEFAULT 'eu'", "ALTER TABLE events ALTER COLUMN region DROP DEFAULT")
		fails(t, p, p.adopt(), "a column region")
	})
	t.Run("a trigger", func(t *testing.T) {
		p := newPatient(t, older)
		p.do("CREATE TRIGGER wake AFTER INSERT ON timers FOR EACH ROW EXECUTE FUNCTION tsvector_update_trigger()")
		fails(t, p, p.adopt(), "wake of timers")
	})
	t.Run("an id that no call could state", func(t *testing.T) {
		p := newPatient(t, older)
		p.do("INSERT INTO events VALUES (repeat('x', 513), 1, 'note')")
		if _, err := p.adopt().Run(t.Context(), p.Direct); err == nil || !strings.Contains(err.Error(), "longer than 512 bytes") {
			t.Errorf("%v", err)
		}
		if got := p.get("SELECT count(*)::text FROM public.events"); got[0] != "12" {
			t.Errorf("the older table has %s rows", got)
		}
	})
	t.Run("from another schema, in older forms", func(t *testing.T) {
		p := newPatient(t, older)
		p.do("ALTER SCHEMA public RENAME TO legacy", "CREATE SCHEMA public", "DROP TABLE legacy.fences, legacy.refs, legacy.lineage",
			"ALTER TABLE legacy.timers ALTER COLUMN wake_at TYPE timestamptz USING to_timestamp(wake_at / 1000)",
			"ALTER TABLE legacy.timers ADD COLUMN redrive jsonb", `UPDATE legacy.timers SET redrive = '{"attempt": 3}'`,
			"ALTER TABLE legacy.events ALTER COLUMN payload TYPE bytea USING convert_to(payload::text, 'UTF8')",
			"ALTER TABLE legacy.events ALTER COLUMN recorded_at DROP DEFAULT",
			"ALTER TABLE legacy.events ALTER COLUMN recorded_at TYPE bigint USING (extract(epoch FROM recorded_at) * 1000)::bigint",
			"ALTER TABLE legacy.events ALTER COLUMN sequence TYPE integer")
		m := p.adopt()
		m.Adopt.Schema = "legacy"
		p.run(m)
		store := open(t, p.Database).Store()
		if ids := pages(t, store); !slices.Equal(ids, olderIDs) {
			t.Errorf("%q", ids)
		}
		res, err := spi.Read(t.Context(), store, spi.ReadRequest{Execution: olderIDs[0], Limit: 1})
		if err != nil || string(res.Events[0].Payload) != `{"order": 1}` || res.Events[0].RecordedAt.UnixMilli() != 1767323045679 {
			t.Errorf("%+v, %v", res, err)
		}
		due, err := spi.DueTimers(t.Context(), store, spi.DueTimersRequest{Limit: 10})
		if err != nil || len(due.Timers) != 1 || due.Timers[0].Attempt != 3 {
			t.Errorf("%+v, %v", due, err)
		}
	})
}

func TestMigrationAdoptsOnEachKindOfDatabase(t *testing.T) {
	for _, kind := range pgtest.Kinds {
		t.Run(kind.String(), func(t *testing.T) {
			db := older.Fresh(t, kind)
			m := postgres.Migration{Adopt: &postgres.Adoption{Tenant: tenant}, DeferBackfill: true}
			if _, err := m.Run(t.Context(), db.Direct); err != nil {
				t.Fatal(err)
			}
			store := open(t, db).Store()
			for range 2 {
				if ids := pages(t, store); !slices.Equal(ids, olderIDs) {
					t.Errorf("%q", ids)
				}
				_, err := spi.Append(t.Context(), store, spi.AppendRequest{Execution: olderIDs[2], ExpectedHead: spi.AnyHead, Fence: 7, Events: []spi.Event{{ID: spi.NewEventID(), Kind: "note"}}})
				if err != nil {
					t.Error(err)
				}
				if _, err := m.Backfill(t.Context(), db.Direct); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestMigrationPlanIsWhatRunsAndWhatAnOperatorCanRun(t *testing.T) {
	p := newPatient(t, older)
	plan, err := p.adopt().Plan(t.Context(), p.Direct)
	if err != nil {
		t.Fatal(err)
	}
	if len(plan) != 4 || !slices.Equal(plan[0].Locks, []string{
		`"public"."lineage" ACCESS EXCLUSIVE`, `"public"."refs" ACCESS EXCLUSIVE`, `"public"."timers" ACCESS EXCLUSIVE`,
		`"public"."fences" ACCESS EXCLUSIVE`, `"public"."events" ACCESS EXCLUSIVE`,
	}) {
		t.Fatalf("%v", plan)
	}
	if got := p.get("SELECT count(*)::text FROM pg_namespace WHERE nspname = 'loomgate'"); got[0] != "0" {
		t.Error("a plan makes things")
	}
	p.do(plan[0].String()) // by hand, in a maintenance window
	q := newPatient(t, older)
	if done := q.run(q.adopt()).Done; done[0].String() != plan[0].String() {
		t.Errorf("planned\n%s\ndid\n%s", plan[0], done[0])
	}
	if report := p.run(p.again()); len(report.Done) != 0 || report.BackfillOpen {
		t.Errorf("after the plan was run by hand: %+v", report)
	}
	const rows = "SELECT e::text FROM loomgate.events e ORDER BY execution_id, sequence"
	if !slices.Equal(p.get(rows), q.get(rows)) {
		t.Error("by hand it comes out differently")
	}
	if plan, err = p.again().Plan(t.Context(), p.Direct); err != nil || len(plan) != 0 {
		t.Errorf("still planned: %v, %v", plan, err)
	}
}

func TestMigrationThatTimesOutOnALockGoesOnWithAWarning(t *testing.T) {
	for _, table := range []string{"refs", "events"} {
		t.Run(table, func(t *testing.T) {
			p := adopted(t, "refs", "events")
			p.do("BEGIN", "SELECT FROM loomgate."+table)
			m := p.again()
			m.LockTimeout = 50 * time.Millisecond
			report := p.run(m)
			p.skippedOnly(report, table, "55P03")
			if len(report.Done) != 1 {
				t.Errorf("the other table's step was not done: %v", report.Done)
			}
			if ids := pages(t, open(t, p.Database).Store()); !slices.Equal(ids, olderIDs) {
				t.Errorf("without the order of bytes the pages are %q", ids)
			}
			p.do("COMMIT", report.Skipped[0].Step.String())
			if report := p.run(p.again()); len(report.Done) != 0 {
				t.Errorf("after the statements were run by hand: %v", report.Done)
			}
		})
	}
}

func TestMigrationThatIsCancelledGoesOnWithAWarning(t *testing.T) {
	p := adopted(t, "events")
	p.do("BEGIN", "SELECT FROM loomgate.events")
	m := p.again()
	m.LockTimeout = time.Minute
	var report postgres.Report
	end := p.behind(waitsFor("loomgate.events"), func() (err error) {
		report, err = m.Run(t.Context(), p.Direct)
		return err
	})
	p.do("SELECT pg_cancel_backend(pid) FROM pg_locks WHERE NOT granted AND relation = 'loomgate.events'::regclass")
	if err := end(); err != nil {
		t.Fatal(err)
	}
	p.skippedOnly(report, "events", "57014")
	p.do("COMMIT")
	if report := p.run(m); len(report.Done) != 1 || p.collation("events", "execution_id") != "C" {
		t.Errorf("the next start does not catch up: %+v", report)
	}
}

func TestMigrationThatTheCallerCancelsFails(t *testing.T) {
	p := adopted(t, "events")
	p.do("BEGIN", "SELECT FROM loomgate.events")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m := p.again()
	m.LockTimeout = time.Minute
	end := p.behind(waitsFor("loomgate.events"), func() error {
		_, err := m.Run(ctx, p.Direct)
		return err
	})
	cancel()
	if err := end(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestMigrationWithADependentViewGoesOnWithAWarning(t *testing.T) {
	for _, table := range []string{"refs", "events"} {
		t.Run(table, func(t *testing.T) {
			p := adopted(t, "refs", "events")
			p.do("CREATE VIEW report AS SELECT * FROM loomgate." + table)
			report := p.run(p.again())
			p.skippedOnly(report, table, "0A000")
			if err := report.Skipped[0].Err.Error(); !strings.Contains(err, "view public.report") {
				t.Errorf("it does not say which view: %s", err)
			}
			if ids := pages(t, open(t, p.Database).Store()); !slices.Equal(ids, olderIDs) {
				t.Errorf("without the order of bytes the pages are %q", ids)
			}
		})
	}
	t.Run("adoption fails and changes nothing", func(t *testing.T) {
		p := newPatient(t, older)
		p.do("CREATE VIEW report AS SELECT execution_id FROM events")
		if _, err := p.adopt().Run(t.Context(), p.Direct); err == nil || !strings.Contains(err.Error(), "view public.report") {
			t.Errorf("%v", err)
		}
		p.do("DROP VIEW report")
		p.run(p.adopt())
	})
}

// A transaction that reads refs and then events deadlocks with a migration that
// holds events while it waits for refs. This one holds one table at a time.
func TestMigrationNeverDeadlocksWithAReaderOfRefsAndEvents(t *testing.T) {
	for _, order := range [][2]string{{"refs", "events"}, {"events", "refs"}} {
		t.Run(order[0]+" then "+order[1], func(t *testing.T) {
			p := adopted(t, "refs", "events")
			p.do("BEGIN", "SELECT FROM loomgate."+order[0])
			m := p.again()
			m.LockTimeout = time.Minute
			end := p.behind(waitsFor("loomgate."+order[0]), func() error {
				report, err := m.Run(t.Context(), p.Direct)
				if err == nil && len(report.Skipped) > 0 {
					err = report.Skipped[0].Err
				}
				return err
			})
			p.do("SELECT FROM loomgate."+order[1], "COMMIT")
			if err := end(); err != nil {
				t.Fatal(err)
			}
			if c := p.collation("refs", "name") + p.collation("events", "execution_id"); c != "CC" {
				t.Error(c)
			}
		})
	}
}

// The adoption has to hold all tables at once. It takes them in one order; whoever
// takes them in another may end it, and nothing has happened.
func TestMigrationAdoptionBesideAReaderOfRefsAndEvents(t *testing.T) {
	t.Run("refs then events", func(t *testing.T) {
		p := newPatient(t, older)
		p.do("BEGIN", "SELECT FROM refs")
		m := p.adopt()
		m.LockTimeout = time.Minute
		end := p.behind(waitsFor("public.refs"), func() error {
			_, err := m.Run(t.Context(), p.Direct)
			return err
		})
		p.do("SELECT FROM events", "COMMIT")
		if err := end(); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("events then refs", func(t *testing.T) {
		p := newPatient(t, older)
		p.do("BEGIN", "SET LOCAL deadlock_timeout = '1min'", "SELECT FROM events")
		m := p.adopt()
		m.LockTimeout = time.Minute
		end := p.behind(waitsFor("public.events"), func() error {
			_, err := m.Run(t.Context(), p.Direct)
			return err
		})
		p.do("SELECT FROM refs", "COMMIT")
		var pg *pgconn.PgError
		if err := end(); !errors.As(err, &pg) || pg.Code != "40P01" {
			t.Fatal(err)
		}
		p.run(m)
		if ids := pages(t, open(t, p.Database).Store()); !slices.Equal(ids, olderIDs) {
			t.Errorf("%q", ids)
		}
	})
}

// Whoever waits for the migration's own lock while it holds a table makes a circle
// after all. The server chooses who has waited longest.
func TestMigrationThatADeadlockEndsGoesOnWithAWarning(t *testing.T) {
	p := adopted(t, "events")
	p.do("BEGIN", "SELECT FROM loomgate.events")
	m := p.again()
	m.LockTimeout = time.Minute
	var report postgres.Report
	end := p.behind(waitsFor("loomgate.events"), func() (err error) {
		report, err = m.Run(t.Context(), p.Direct)
		return err
	})
	p.do("SET LOCAL deadlock_timeout = '1min'", "SELECT pg_advisory_xact_lock(x'6c6f6f6d67617465'::bigint)", "COMMIT")
	if err := end(); err != nil {
		t.Fatal(err)
	}
	p.skippedOnly(report, "events", "40P01")
}

func TestMigrationAdoptionThatFailsLeavesTheOlderSystemAtWorkAndIsTriedAgain(t *testing.T) {
	p := newPatient(t, older)
	p.do("BEGIN", "SELECT FROM events")
	m := p.adopt()
	m.LockTimeout = 50 * time.Millisecond
	report, err := m.Run(t.Context(), p.Direct)
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != "55P03" || len(report.Done) != 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	p.do("COMMIT", "INSERT INTO events VALUES ('later', 1, 'note')", "INSERT INTO timers VALUES ('later', 0)", "INSERT INTO fences VALUES ('later', 1)")
	p.run(m) // the same program, without a restart
	if ids := pages(t, open(t, p.Database).Store()); len(ids) != len(olderIDs)+1 {
		t.Errorf("%q", ids)
	}
}

// The rebuild of a million rows takes longer than the second that the role's
// statements may take.
func TestMigrationIsNotCutShortByAStatementTimeout(t *testing.T) {
	p := newPatient(t, olderMillion)
	p.do(
		"ALTER DATABASE "+p.Name+" SET statement_timeout = '1s'",
		"ALTER DATABASE "+p.Name+" SET lock_timeout = '1s'",
		"ALTER DATABASE "+p.Name+" SET idle_in_transaction_session_timeout = '1s'",
	)
	m := p.adopt()
	m.DeferBackfill = true
	start := time.Now()
	report := p.run(m)
	if took := time.Since(start); took < time.Second {
		t.Errorf("it took only %v, which proves nothing", took)
	} else {
		t.Logf("adopted a million events in %v", took.Round(time.Millisecond))
	}
	if !report.BackfillOpen {
		t.Errorf("%+v", report)
	}
	start = time.Now()
	n, err := m.Backfill(t.Context(), p.Direct)
	if err != nil || n != 5_000 {
		t.Errorf("%d, %v", n, err)
	}
	t.Logf("filled the directory's 5,000 rows in %v", time.Since(start).Round(time.Millisecond))
	if got := p.get("SELECT count(*)::text || ' ' || sum(fence) FROM loomgate.executions WHERE live AND floor = 1"); got[0] != "5000 1430" {
		t.Errorf("the directory: %s", got)
	}
}

func TestMigrationLeavesStatistics(t *testing.T) {
	statistics := func(p *patient, table, column string) {
		p.Helper()
		if n := p.get("SELECT count(*)::text FROM pg_stats WHERE schemaname = 'loomgate' AND tablename = $1 AND attname = $2", table, column); n[0] != "1" {
			p.Errorf("the planner knows nothing of %s.%s", table, column)
		}
	}
	p := newPatient(t, older)
	p.run(p.adopt())
	for _, table := range []string{"events", "timers", "executions"} {
		statistics(p, table, "execution_id")
	}
	statistics(p, "refs", "name")

	q := adopted(t, "refs", "events")
	q.run(q.again())
	statistics(q, "refs", "name")
	statistics(q, "events", "execution_id")
}

func TestMigrationOfTwoNodesRunsOnceAndTheSecondWaits(t *testing.T) {
	p := newPatient(t, older)
	p.do("BEGIN", "SELECT FROM events")
	m := p.adopt()
	m.LockTimeout = time.Minute
	var first, second postgres.Report
	endFirst := p.behind(waitsFor("public.events"), func() (err error) {
		first, err = m.Run(t.Context(), p.Direct)
		return err
	})
	// The second one's timeouts are shorter than its wait.
	impatient := p.Direct + "&statement_timeout=50&lock_timeout=50&application_name=second"
	done := make(chan error, 1)
	go func() {
		var err error
		second, err = m.Run(t.Context(), impatient)
		done <- err
	}()
	for range 3 { // it looks again and again, longer than its timeouts
		const asked = "(SELECT query_start FROM pg_stat_activity WHERE application_name = 'second' AND query LIKE '%pg_try_advisory_lock%')"
		p.await(asked+" IS NOT NULL", done)
		p.await(asked+" > clock_timestamp() - interval '50 milliseconds'", done)
		p.await(asked+" < clock_timestamp() - interval '60 milliseconds'", done)
	}
	p.do("COMMIT")
	if err := endFirst(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if len(first.Done) != 1 || len(second.Done) != 0 || second.BackfillOpen {
		t.Errorf("the first did %d steps, the second %d", len(first.Done), len(second.Done))
	}
}

// The second start's only chance is to take no lock on a table.
func TestMigrationOfASecondStartTakesNoTableLock(t *testing.T) {
	p := adopted(t)
	p.do("BEGIN")
	for _, table := range p.get("SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname IN ('loomgate', 'public')") {
		p.do("LOCK TABLE " + table + " IN ACCESS EXCLUSIVE MODE")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for _, m := range []postgres.Migration{p.again(), {DeferBackfill: true}} {
		report, err := m.Run(ctx, p.Direct+"&lock_timeout=10000")
		if err != nil || len(report.Done) != 0 || len(report.Skipped) != 0 {
			t.Errorf("%+v, %v", report, err)
		}
	}
}

func TestMigrationByARoleThatDoesNotOwnTheTablesFails(t *testing.T) {
	notOwner := func(err error) bool {
		var pg *pgconn.PgError
		return errors.As(err, &pg) && pg.Code == "42501"
	}
	t.Run("adoption", func(t *testing.T) {
		p := newPatient(t, older)
		dsn := p.role("stranger", "GRANT ALL ON ALL TABLES IN SCHEMA public TO stranger", "GRANT CREATE ON DATABASE "+p.Name+" TO stranger")
		if _, err := p.adopt().Run(t.Context(), dsn); !notOwner(err) {
			t.Error(err)
		}
		if got := p.get("SELECT count(*)::text FROM public.events"); got[0] != "11" {
			t.Errorf("the older table has %s rows", got)
		}
	})
	t.Run("the order of names", func(t *testing.T) {
		p := adopted(t, "refs")
		dsn := p.role("stranger", "GRANT USAGE ON SCHEMA loomgate TO stranger", "GRANT ALL ON ALL TABLES IN SCHEMA loomgate TO stranger")
		report, err := p.again().Run(t.Context(), dsn)
		if !notOwner(err) || len(report.Skipped) != 0 || p.log.Len() != 0 {
			t.Errorf("%+v, %v: %s", report, err, &p.log)
		}
	})
}

// role makes a role that is no superuser, and returns a DSN of its. Roles are the
// server's, so its name in the statements becomes one of this database's.
func (p *patient) role(name string, statements ...string) (dsn string) {
	p.Helper()
	mine := name + "_" + p.Name
	p.do("CREATE ROLE " + mine + " LOGIN")
	p.Cleanup(func() {
		conn, err := pgx.Connect(context.Background(), p.Direct)
		if err != nil {
			p.Error(err)
			return
		}
		defer conn.Close(context.Background())
		for _, sql := range []string{"REASSIGN OWNED BY " + mine + " TO postgres", "DROP OWNED BY " + mine, "DROP ROLE " + mine} {
			if _, err := conn.Exec(context.Background(), sql); err != nil {
				p.Error(err)
			}
		}
	})
	for _, sql := range statements {
		p.do(regexp.MustCompile(`\b`+name+`\b`).ReplaceAllString(sql, mine))
	}
	return strings.Replace(p.Direct, "postgres://postgres@", "postgres://"+mine+"@", 1)
}

func TestMigrationRefusesAPooler(t *testing.T) {
	db := migrated.Fresh(t, pgtest.PgBouncer)
	if _, err := (postgres.Migration{}).Run(t.Context(), db.DSN); err == nil || !strings.Contains(err.Error(), "pooler") {
		t.Error(err)
	}
	if _, err := (postgres.Migration{}).Run(t.Context(), db.Direct); err != nil {
		t.Error(err)
	}
}

// deferred is an older database that was adopted, without its directory.
func deferred(t *testing.T) (*patient, postgres.Migration) {
	t.Helper()
	p := newPatient(t, older)
	m := p.adopt()
	m.DeferBackfill = true
	if report := p.run(m); !report.BackfillOpen {
		t.Fatalf("%+v", report)
	}
	return p, m
}

func TestMigrationPagesAreCompleteWhileTheBackfillIsOpen(t *testing.T) {
	p, m := deferred(t)
	early := open(t, p.Database).Store()
	ctx := t.Context()
	if report := p.run(m); !report.BackfillOpen || len(report.Done) != 0 { // a second start
		t.Fatalf("%+v", report)
	}
	if got := p.get("SELECT count(*)::text FROM loomgate.executions"); got[0] != "0" {
		t.Fatalf("the directory has %s rows", got)
	}
	if ids := pages(t, early); !slices.Equal(ids, olderIDs) {
		t.Errorf("%q", ids)
	}
	for _, c := range []struct {
		prefix, after string
		limit         int
		want          []spi.ExecutionID
		next          string
	}{
		{ours("a"), "", 5, olderIDs[1:3], ""},
		{"", string(olderIDs[0]), 1, olderIDs[1:2], string(olderIDs[1])},
		{"", ours("A1\x00"), 5, olderIDs[1:], ""},
		{"6:acme'", ours("a"), 5, olderIDs[1:], ""},
		{"7:", "", 5, nil, ""},
	} {
		page, err := spi.ListExecutions(ctx, early, spi.ListExecutionsRequest{Prefix: c.prefix, After: c.after, Limit: c.limit})
		if err != nil || !slices.Equal(page.Executions, c.want) || page.Next != c.next {
			t.Errorf("%q after %q: %q, next %q, %v", c.prefix, c.after, page.Executions, page.Next, err)
		}
	}

	event := func() []spi.Event { return []spi.Event{{ID: spi.NewEventID(), Kind: "note"}} }
	t.Run("older executions go on", func(t *testing.T) {
		head, err := spi.Head(ctx, early, spi.HeadRequest{Execution: olderIDs[2]})
		if err != nil || head.Head != 3 || head.Fence != 7 {
			t.Errorf("%+v, %v", head, err)
		}
		if _, err := spi.Append(ctx, early, spi.AppendRequest{Execution: olderIDs[1], ExpectedHead: 6, Events: event()}); err != nil {
			t.Error(err)
		}
		batch, err := spi.AppendBatch(ctx, early, spi.AppendBatchRequest{Appends: []spi.AppendRequest{
			{Execution: olderIDs[0], ExpectedHead: 4, Events: event()},
			{Execution: ours[spi.ExecutionID]("new"), Events: event()},
			{Execution: olderIDs[3], ExpectedHead: 0, Events: event()},
		}})
		var conflict *spi.ConflictError
		if err != nil || batch.Results[0].Err != nil || batch.Results[1].Err != nil || !errors.As(batch.Results[2].Err, &conflict) || conflict.Head != 1 {
			t.Errorf("%+v, %v", batch, err)
		}
		fence, err := spi.AcquireFence(ctx, early, spi.AcquireFenceRequest{Execution: ours[spi.ExecutionID]("fenced only")})
		if err != nil || fence.Token != 5 {
			t.Errorf("%+v, %v", fence, err)
		}
	})
	t.Run("a deletion is one", func(t *testing.T) {
		res, err := spi.DeleteExecution(ctx, early, spi.DeleteExecutionRequest{Execution: olderIDs[3], Incarnation: 1})
		if err != nil || !res.Existed {
			t.Errorf("%+v, %v", res, err)
		}
	})
	want := []spi.ExecutionID{olderIDs[0], olderIDs[1], olderIDs[2], ours[spi.ExecutionID]("new")}
	if ids := pages(t, early); !slices.Equal(ids, want) {
		t.Errorf("%q", ids)
	}
	n, err := m.Backfill(ctx, p.Direct)
	if err != nil || n != 5 { // four with events, and one with a fence
		t.Errorf("%d, %v", n, err)
	}
	// What was opened before goes on, and learns that it is done.
	for _, store := range []*spi.Store{early, open(t, p.Database).Store()} {
		if ids := pages(t, store); !slices.Equal(ids, want) {
			t.Errorf("%q", ids)
		}
		if _, err := spi.Append(ctx, store, spi.AppendRequest{Execution: ours[spi.ExecutionID]("new"), ExpectedHead: spi.AnyHead, Events: event()}); err != nil {
			t.Error(err)
		}
	}
	if n, err := m.Backfill(ctx, p.Direct); n != 0 || err != nil {
		t.Errorf("again: %d, %v", n, err)
	}
}

// A store that an append makes learn of the end, not a page.
func TestMigrationBackfillEndsUnderAnOpenStore(t *testing.T) {
	p, m := deferred(t)
	store := open(t, p.Database).Store()
	head := func() {
		t.Helper()
		if head, err := spi.Head(t.Context(), store, spi.HeadRequest{Execution: olderIDs[0]}); err != nil || head.Fence != 3 {
			t.Errorf("%+v, %v", head, err)
		}
	}
	head()
	if _, err := m.Backfill(t.Context(), p.Direct); err != nil {
		t.Fatal(err)
	}
	head()
	head()
}

func TestMigrationBackfillGoesOnWhereItWasStopped(t *testing.T) {
	p := newPatient(t, older)
	p.do("INSERT INTO events SELECT 'x' || lpad(g::text, 4, '0'), 1, 'note' FROM generate_series(1, 2500) g")
	m := p.adopt()
	m.DeferBackfill = true
	p.run(m)
	// Somebody makes a row of a later batch, and is slow.
	p.do("BEGIN", "INSERT INTO loomgate.executions (execution_id, slot, live) VALUES ('"+strings.ReplaceAll(ours("x2400"), "'", "''")+"', 0, true)")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	end := p.behind("EXISTS (SELECT FROM pg_locks WHERE NOT granted AND locktype = 'transactionid')", func() error {
		_, err := m.Backfill(ctx, p.Direct)
		return err
	})
	cancel()
	if err := end(); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	p.do("COMMIT")
	n, err := m.Backfill(t.Context(), p.Direct)
	if err != nil || n >= 2505 { // the first batch is not gone through again
		t.Errorf("%d, %v", n, err)
	}
	if got := p.get("SELECT count(*) FILTER (WHERE live) || ' of ' || count(*) FROM loomgate.executions"); got[0] != "2504 of 2505" {
		t.Errorf("live are %s", got)
	}
}

// An older execution is made, deleted and swept while the backfill waits to make its
// row: in the snapshot that the backfill waited with, it has events.
func TestMigrationBackfillNeverListsWhatWasDeletedMeanwhile(t *testing.T) {
	p, m := deferred(t)
	p.do("BEGIN",
		"INSERT INTO loomgate.executions (execution_id, slot, live) SELECT execution_id, 0, true FROM loomgate.events WHERE kind = 'kept'",
		"DELETE FROM loomgate.events WHERE execution_id = (SELECT execution_id FROM loomgate.executions)",
		"DELETE FROM loomgate.executions")
	end := p.behind("EXISTS (SELECT FROM pg_locks WHERE NOT granted AND locktype = 'transactionid')", func() error {
		_, err := m.Backfill(t.Context(), p.Direct)
		return err
	})
	p.do("COMMIT")
	if err := end(); err != nil {
		t.Fatal(err)
	}
	if ids := pages(t, open(t, p.Database).Store()); !slices.Equal(ids, slices.Delete(slices.Clone(olderIDs), 1, 2)) {
		t.Errorf("%q", ids)
	}
}

// TestMigrationBackfillBesideWriters deletes, makes and goes on with executions while
// the backfill makes the rows of the same ones.
func TestMigrationBackfillBesideWriters(t *testing.T) {
	p := newPatient(t, older)
	p.do("INSERT INTO events SELECT 'x' || lpad(g::text, 4, '0'), s, 'note' FROM generate_series(1, 3000) g, generate_series(1, 2) s")
	m := p.adopt()
	m.DeferBackfill = true
	p.run(m)
	store := open(t, p.Database).Store()
	ctx := t.Context()
	const writers = 8
	failures := make(chan error, writers)
	for w := range writers {
		go func() {
			for i := 3000 - w; i > 0; i -= 3 * writers { // from the end, to meet the backfill
				id := ours[spi.ExecutionID](spi.ExecutionID(fmt.Sprintf("x%04d", i)))
				event := []spi.Event{{ID: spi.NewEventID(), Kind: "note"}}
				var err error
				switch i % 4 {
				case 0:
					_, err = spi.DeleteExecution(ctx, store, spi.DeleteExecutionRequest{Execution: id, Incarnation: 1})
				case 1:
					_, err = spi.Append(ctx, store, spi.AppendRequest{Execution: id, ExpectedHead: 2, Events: event})
				case 2:
					_, err = spi.AcquireFence(ctx, store, spi.AcquireFenceRequest{Execution: id})
				case 3:
					_, err = spi.Append(ctx, store, spi.AppendRequest{Execution: id + " new", Events: event})
				}
				if err != nil {
					failures <- fmt.Errorf("%s: %w", id, err)
					return
				}
			}
			failures <- nil
		}()
	}
	if _, err := m.Backfill(ctx, p.Direct); err != nil {
		t.Error(err)
	}
	for range writers {
		if err := <-failures; err != nil {
			t.Error(err)
		}
	}
	wrong := p.get(`SELECT coalesce(d.execution_id, e.execution_id) FROM (SELECT DISTINCT execution_id FROM loomgate.events) e
FULL JOIN loomgate.executions d USING (execution_id) WHERE (e.execution_id IS NOT NULL) <> coalesce(d.live, false)`)
	if len(wrong) > 0 {
		t.Errorf("the directory is wrong about %q", wrong)
	}
}

// An index that is built CONCURRENTLY waits for every snapshot that is older, and a
// peer that waited in the server for the lock would hold one: 40P01.
func TestMigrationBackfillBuildsAndDropsItsIndexWhileAPeerWaits(t *testing.T) {
	p, m := deferred(t)
	p.uncollate("events")
	p.do("ALTER DATABASE "+p.Name+" SET lock_timeout = '50ms'", "BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT FROM loomgate.refs") // an older snapshot
	ends := make(chan error, 1)
	end := p.behind("EXISTS (SELECT FROM pg_stat_progress_create_index WHERE phase LIKE 'waiting%')", func() error {
		_, err := m.Backfill(t.Context(), p.Direct)
		return err
	})
	go func() {
		_, err := m.Run(t.Context(), p.Direct+"&application_name=peer")
		ends <- err
	}()
	p.await("EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'peer' AND query LIKE '%pg_try_advisory_lock%')", ends)
	p.do("COMMIT")
	if err := end(); err != nil {
		t.Error(err)
	}
	if err := <-ends; err != nil {
		t.Error(err)
	}
	if got := p.get("SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = 'loomgate.events'::regclass"); !slices.Equal(got, []string{"loomgate.events_pkey"}) {
		t.Errorf("events has the indexes %v", got)
	}
	if ids := pages(t, open(t, p.Database).Store()); !slices.Equal(ids, olderIDs) {
		t.Errorf("%q", ids)
	}
}

func TestMigrationAdoptsAShardThatKeepsAllSlotsUntilTheBackfillIsDone(t *testing.T) {
	p := newPatient(t, older)
	slot := func(name string) spi.Slot { return spi.Slot(len(name) * 100) }
	identity := spi.Identity{Cluster: "c", Shard: "one", Fingerprint: "by length", MinWriter: spi.Version{Major: 2}}
	m := p.adopt()
	m.Adopt.Identity, m.Adopt.SlotOf, m.DeferBackfill = identity, slot, true
	p.run(m)
	store := open(t, p.Database).Store()
	ctx := t.Context()
	owned, err := spi.GetOwnership(ctx, store, spi.GetOwnershipRequest{})
	if err != nil || len(owned.Shards) != 1 || owned.Shards[0].Identity != identity || len(owned.Shards[0].Slots) != spi.HashSlots {
		t.Fatalf("%v, %v", owned, err)
	}
	route := func(id spi.ExecutionID) spi.Route { return spi.Route{Slot: slot(string(id)), Epoch: 1} }
	if _, err := spi.Head(ctx, store, spi.HeadRequest{Execution: olderIDs[0]}); err == nil {
		t.Error("a call that nothing has routed works")
	}
	if head, err := spi.Head(ctx, store, spi.HeadRequest{Route: route(olderIDs[0]), Execution: olderIDs[0]}); err != nil || head.Head != 4 || head.Fence != 3 {
		t.Errorf("%+v, %v", head, err)
	}
	ref := ours[spi.RefName]("main")
	if _, err := spi.GetRef(ctx, store, spi.GetRefRequest{Route: spi.Route{Slot: slot(string(ref)), Epoch: 1}, Name: ref}); err != nil {
		t.Error(err)
	}
	page, err := spi.ListExecutions(ctx, store, spi.ListExecutionsRequest{Limit: 10})
	if err != nil || !slices.Equal(page.Executions, olderIDs) || len(page.Receipt) != 1 || page.Receipt[0].Slots.String() != "0-4095" {
		t.Errorf("%+v, %v", page, err)
	}

	freeze := spi.ChangeOwnershipRequest{ExpectedVersion: 1, Slots: []spi.SlotRecord{{Slot: 7, State: spi.SlotFrozen, Epoch: 1, Peer: "two"}}}
	var refused *spi.OwnershipError
	if _, err := spi.ChangeOwnership(ctx, store, freeze); !errors.As(err, &refused) {
		t.Errorf("a slot is given away: %v", err)
	}
	if _, err := (postgres.Migration{}).Backfill(ctx, p.Direct); err == nil {
		t.Error("a backfill that does not know the slots works")
	}
	if _, err := m.Backfill(ctx, p.Direct); err != nil {
		t.Fatal(err)
	}
	if got := p.get("SELECT execution_id FROM loomgate.executions WHERE slot <> octet_length(execution_id) * 100"); len(got) > 0 {
		t.Errorf("in the wrong slots are %q", got)
	}
	if _, err := spi.ChangeOwnership(ctx, store, freeze); err != nil {
		t.Error(err)
	}
}

// grants returns the statements of a block of the page for operators.
func grants(t *testing.T, name string) []string {
	t.Helper()
	page, err := os.ReadFile("../../docs/postgres-migrations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(page), "```sql\n-- "+name+"\n")
	block, _, closed := strings.Cut(block, "```")
	if !found || !closed {
		t.Fatalf("the page has no block %q", name)
	}
	var statements []string
	for sql := range strings.SplitSeq(block, ";\n") {
		if strings.TrimSpace(sql) != "" {
			statements = append(statements, sql)
		}
	}
	return statements
}

// TestMigrationRolesNeedWhatTheDocumentationGrants gives roles exactly that.
func TestMigrationRolesNeedWhatTheDocumentationGrants(t *testing.T) {
	inDatabase := func(p *patient, statements []string) []string {
		p.Helper()
		for i := range statements {
			statements[i] = strings.ReplaceAll(statements[i], "DATABASE app", "DATABASE "+p.Name)
		}
		return statements
	}
	t.Run("migrating", func(t *testing.T) {
		p := newPatient(t, pgtest.NewTemplate(func(context.Context, string) error { return nil }))
		dsn := p.role("migrator", inDatabase(p, grants(t, "the migrating role"))...)
		if err := postgres.Migrate(t.Context(), dsn); err != nil {
			t.Fatal(err)
		}
		p.uncollate("refs")
		if report, err := (postgres.Migration{}).Run(t.Context(), dsn); err != nil || len(report.Done) != 1 {
			t.Errorf("%+v, %v", report, err)
		}
	})
	t.Run("adopting", func(t *testing.T) {
		p := newPatient(t, older)
		dsn := p.role("migrator", inDatabase(p, append(grants(t, "the migrating role"), grants(t, "to adopt older tables")...))...)
		if _, err := p.adopt().Run(t.Context(), dsn); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("serving", func(t *testing.T) {
		p := newPatient(t, migrated)
		p.serve(p.role("server", grants(t, "the serving role")...), "new")
	})
	t.Run("serving while the backfill is open", func(t *testing.T) {
		p, _ := deferred(t)
		p.serve(p.role("server", append(grants(t, "the serving role"), grants(t, "while the backfill is open")...)...), olderIDs[3])
	})
	t.Run("moving", func(t *testing.T) {
		p := newPatient(t, migrated)
		dsn := p.role("server", append(grants(t, "the serving role"), grants(t, "to change ownership")...)...)
		_, err := spi.ChangeOwnership(t.Context(), p.open(dsn), spi.ChangeOwnershipRequest{
			Identity: spi.Identity{Cluster: "c", Shard: "s", Fingerprint: "f"},
			Slots:    []spi.SlotRecord{{Slot: 1, State: spi.SlotOwned, Epoch: 1}},
		})
		if err != nil {
			t.Error(err)
		}
	})
	t.Run("the barrier needs more than to read and insert", func(t *testing.T) {
		p := newPatient(t, migrated)
		dsn := p.role("server", append(grants(t, "the serving role"),
			"REVOKE ALL ON loomgate.slot_barrier FROM server", "GRANT SELECT ON loomgate.slot_barrier TO server")...)
		_, err := spi.AcquireFence(t.Context(), p.open(dsn), spi.AcquireFenceRequest{Execution: "e"})
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != "42501" {
			t.Errorf("%v", err)
		}
	})
}

func (p *patient) open(dsn string) *spi.Store {
	p.Helper()
	return open(p.T, pgtest.Database{DSN: dsn, Direct: dsn, Name: p.Name}).Store()
}

// serve calls methods of each group, of those that touch tables in different ways.
func (p *patient) serve(dsn string, id spi.ExecutionID) {
	p.Helper()
	ctx, s := p.Context(), p.open(dsn)
	ok := func(what string, err error) {
		p.Helper()
		if err != nil {
			p.Errorf("%s: %v", what, err)
		}
	}
	events := []spi.Event{{ID: spi.NewEventID(), Kind: spi.KindExecutionSuspended, Kernel: true}}
	appended, err := spi.Append(ctx, s, spi.AppendRequest{Execution: id, ExpectedHead: spi.AnyHead, Events: events})
	ok("Append", err)
	_, err = spi.Read(ctx, s, spi.ReadRequest{Execution: id, Limit: 10})
	ok("Read", err)
	_, err = spi.ListExecutions(ctx, s, spi.ListExecutionsRequest{Limit: 10})
	ok("ListExecutions", err)
	_, err = spi.AcquireFenceIf(ctx, s, spi.AcquireFenceIfRequest{Execution: id, ParkSeq: appended.Head})
	ok("AcquireFenceIf", err)
	_, err = spi.CopyPrefix(ctx, s, spi.CopyPrefixRequest{From: id, To: "copy", N: 1})
	ok("CopyPrefix", err)
	_, err = spi.TruncatePrefixKeeping(ctx, s, spi.TruncatePrefixKeepingRequest{Execution: id, Incarnation: 1, Before: 2})
	ok("TruncatePrefixKeeping", err)
	_, err = spi.DeleteExecution(ctx, s, spi.DeleteExecutionRequest{Execution: id, Incarnation: 1})
	ok("DeleteExecution", err)
	_, err = spi.SweepTombstones(ctx, s, spi.SweepTombstonesRequest{Limit: 10})
	ok("SweepTombstones", err)

	timer, err := spi.ScheduleTimer(ctx, s, spi.ScheduleTimerRequest{Timer: spi.Timer{Execution: "e", WakeAt: time.Unix(1, 0)}})
	ok("ScheduleTimer", err)
	_, err = spi.DueTimers(ctx, s, spi.DueTimersRequest{Limit: 10})
	ok("DueTimers", err)
	_, err = spi.CompleteTimer(ctx, s, spi.CompleteTimerRequest{Execution: "e", WakeAt: time.Unix(1, 0), Version: timer.Timer.Version})
	ok("CompleteTimer", err)

	for sequence := range int64(2) {
		_, err = spi.PutRef(ctx, s, spi.PutRefRequest{Name: "r", Execution: "e", Sequence: sequence + 1, ExpectedVersion: spi.AnyVersion})
		ok("PutRef", err)
	}
	_, err = spi.RefLineage(ctx, s, spi.RefLineageRequest{Name: "r", Limit: 10})
	ok("RefLineage", err)
	_, err = spi.DeleteRef(ctx, s, spi.DeleteRefRequest{Name: "r", ExpectedVersion: spi.AnyVersion})
	ok("DeleteRef", err)

	lease, err := spi.AcquireLease(ctx, s, spi.AcquireLeaseRequest{Name: "l", Holder: "h", TTL: time.Minute})
	ok("AcquireLease", err)
	_, err = spi.ReleaseLease(ctx, s, spi.ReleaseLeaseRequest{Name: "l", Token: lease.Token})
	ok("ReleaseLease", err)

	key := spi.DataKey{Owner: "keyed", Version: 1, ID: spi.KeyID{1}, WrappedBy: "k", Wrapped: []byte("w")}
	_, err = spi.CreateDataKey(ctx, s, spi.CreateDataKeyRequest{Key: key})
	ok("CreateDataKey", err)
	_, err = spi.RewrapDataKey(ctx, s, spi.RewrapDataKeyRequest{Owner: "keyed", Version: 1, OldWrappedBy: "k", WrappedBy: "l", Wrapped: []byte("x")})
	ok("RewrapDataKey", err)
	_, err = spi.DestroyDataKey(ctx, s, spi.DestroyDataKeyRequest{Owner: "keyed", Version: 1})
	ok("DestroyDataKey", err)

	_, err = spi.GetOwnership(ctx, s, spi.GetOwnershipRequest{})
	ok("GetOwnership", err)
}
