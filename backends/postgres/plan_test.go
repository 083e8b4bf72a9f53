package postgres

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/loomgate/loomgate/internal/pgtest"
	"github.com/loomgate/loomgate/spi"
)

// TestAPageIsAnIndexOnlyScanWithoutASort reads the plan of a page in the middle of
// 200,000 executions, with statistics as they come: none at all, those of an empty
// table, and fresh ones.
func TestAPageIsAnIndexOnlyScanWithoutASort(t *testing.T) {
	for _, statistics := range []string{"none", "of an empty table", "fresh"} {
		t.Run(statistics, func(t *testing.T) {
			db := pgtest.NewTemplate(Migrate).Fresh(t, pgtest.ICU)
			conn := connect(t, db)
			run := func(sql string) {
				t.Helper()
				if _, err := conn.Exec(t.Context(), sql); err != nil {
					t.Fatal(err)
				}
			}
			run("ALTER TABLE loomgate.executions SET (autovacuum_enabled = off)")
			if statistics == "of an empty table" {
				run("ANALYZE loomgate.executions")
			}
			run(`INSERT INTO loomgate.executions (execution_id, slot, live) SELECT 'order-' || md5(g::text), g % 4096, g % 10 > 0 FROM generate_series(1, 200000) g`)
			run("INSERT INTO loomgate.slots SELECT g, 1, 1, '', '' FROM generate_series(0, 4095) g")
			if statistics == "fresh" {
				run("VACUUM ANALYZE loomgate.executions")
			}
			plan := explain(t, conn, listExecutionsSQL, "order-7", lastName, 1000, 0)
			if !strings.Contains(plan, "Index Only Scan using executions_live") || strings.Contains(plan, "Sort") || strings.Contains(plan, "Seq Scan on executions") {
				t.Errorf("the plan is\n%s", plan)
			}
			// No row beyond the page is read: the scan's actual rows are the page's.
			plan = strings.ReplaceAll(plan, ".00 loops", " loops") // from version 18 on
			if !strings.Contains(plan, "rows=1001 loops=1") || strings.Contains(plan, "Rows Removed") {
				t.Errorf("the plan reads more than the page\n%s", plan)
			}
		})
	}
}

// TestABatchTakesTimeInProportionToItsAppends counts the rows that the steps of a batch
// look at: a plan that compares each append with all others passes every other test.
func TestABatchTakesTimeInProportionToItsAppends(t *testing.T) {
	const appends, events = 200, 3
	for _, several := range []bool{false, true} {
		for name, sql := range map[string]string{"land": landStatements[index(several)], "judge": judgeStatements[0][index(several)]} {
			conn := connect(t, pgtest.NewTemplate(Migrate).Fresh(t, pgtest.ICU))
			items := make([]item, appends)
			for i := range items {
				// Every other execution has a row, but no events yet.
				items[i] = item{AppendRequest: spi.AppendRequest{Execution: spi.ExecutionID(fmt.Sprint("e-", 1000+i)), ExpectedHead: int64(i % 2)}}
				for range 1 + (events-1)*index(several) {
					items[i].Events = append(items[i].Events, spi.Event{ID: spi.NewEventID(), Kind: "Noted"})
				}
			}
			for _, sql := range []string{
				"INSERT INTO loomgate.executions (execution_id, slot, live) SELECT 'e-' || g, 0, g % 2 > 0 FROM generate_series(1000, 1199) g",
				"INSERT INTO loomgate.events SELECT 'e-' || g, 1, gen_random_uuid(), 'Noted', false, false, 0, now(), 5 FROM generate_series(1001, 1199, 2) g",
			} {
				if _, err := conn.Exec(t.Context(), sql); err != nil {
					t.Fatal(err)
				}
			}
			args, _ := appendArgs(items, false)
			plan := explainPrepared(t, conn, sql, args)
			if !strings.Contains(plan, fmt.Sprint("Tuples Inserted: ", appends)) {
				t.Fatalf("%s, several %v: it does not land\n%s", name, several, plan)
			}
			if step := most(plan); step > 2*appends*events {
				t.Errorf("%s, several %v: one step looks at %d rows\n%s", name, several, step, plan)
			}
		}
	}
}

var (
	ran     = regexp.MustCompile(`rows=(\d+)(?:\.\d+)? loops=(\d+)`)
	removed = regexp.MustCompile(`Rows Removed by .*: (\d+)`)
)

// most is how many rows the step of a plan looks at that looks at most.
func most(plan string) (most int) {
	loops := 0
	for line := range strings.Lines(plan) {
		rows := 0
		if m := ran.FindStringSubmatch(line); m != nil {
			rows, _ = strconv.Atoi(m[1])
			loops, _ = strconv.Atoi(m[2])
		} else if m := removed.FindStringSubmatch(line); m != nil {
			rows, _ = strconv.Atoi(m[1])
		}
		most = max(most, rows*loops)
	}
	return most
}

// connect connects as the store does.
func connect(t *testing.T, db pgtest.Database) *pgx.Conn {
	t.Helper()
	config, err := pgx.ParseConfig(db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	options{}.configure(config)
	config.RuntimeParams["statement_timeout"] = "0"
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

// explainPrepared returns the plan that a prepared statement has, which knows no
// parameter.
func explainPrepared(t *testing.T, conn *pgx.Conn, sql string, args []any) string {
	t.Helper()
	if _, err := conn.Exec(t.Context(), "PREPARE explained AS "+sql); err != nil {
		t.Fatal(err)
	}
	places := make([]string, len(args))
	for i := range places {
		places[i] = fmt.Sprint("$", i+1)
	}
	return explain(t, conn, "EXECUTE explained ("+strings.Join(places, ", ")+")", append([]any{pgx.QueryExecModeSimpleProtocol}, args...)...)
}

func explain(t *testing.T, conn *pgx.Conn, sql string, args ...any) string {
	t.Helper()
	rows, err := conn.Query(t.Context(), "EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF) "+sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}
