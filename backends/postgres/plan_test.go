package postgres

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/loomgate/loomgate/internal/pgtest"
)

// TestAPageIsAnIndexOnlyScanWithoutASort reads the plan of a page in the middle of
// 200,000 executions, with statistics as they come: none at all, those of an empty
// table, and fresh ones.
func TestAPageIsAnIndexOnlyScanWithoutASort(t *testing.T) {
	for _, statistics := range []string{"none", "of an empty table", "fresh"} {
		t.Run(statistics, func(t *testing.T) {
			db := pgtest.NewTemplate(Migrate).Fresh(t, pgtest.ICU)
			config, err := pgx.ParseConfig(db.DSN)
			if err != nil {
				t.Fatal(err)
			}
			options{}.configure(config) // as the store's own connections
			config.RuntimeParams["statement_timeout"] = "0"
			conn, err := pgx.ConnectConfig(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(context.WithoutCancel(t.Context()))
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
