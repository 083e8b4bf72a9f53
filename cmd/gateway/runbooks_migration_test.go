package main

import (
	"bytes"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/loomgate/loomgate/internal/pgtest"
)

func migrationWaits(a *act) {
	server := durable(a.T, pgtest.Options{})
	s := a.site(server, server, "")
	a.database = s.dsnA
	connect := func() *pgx.Conn {
		a.Helper()
		conn, err := pgx.Connect(a.Context(), s.dsnA)
		if err != nil {
			a.Fatal(err)
		}
		return conn
	}
	do := func(conn *pgx.Conn, sql string) {
		a.Helper()
		if _, err := conn.Exec(a.Context(), sql); err != nil {
			a.Fatal(err)
		}
	}
	// Somebody's report stays open, over a table that a step of the migration needs.
	forgotten := connect()
	do(forgotten, `ALTER TABLE loomgate.refs ALTER COLUMN name TYPE text COLLATE "default"`)
	do(forgotten, "BEGIN")
	do(forgotten, "SELECT name FROM loomgate.refs")
	skipped := []string{"up to date"}
	skipped = append(skipped, a.sayingSo("skipped for now", "lock timeout")...)
	if _, errOut, code := gateway(a.T, "migrate", "-c", s.config, "--lock-timeout", "50ms"); code != 0 || !containsAll(errOut, skipped) {
		a.Errorf("a migration that waits for too long: %d %s", code, errOut)
	}

	var waiting sync.WaitGroup
	defer waiting.Wait()
	wait := func() {
		migrate := command(a.Context(), "migrate", "-c", s.config, "--lock-timeout", "1h")
		var log bytes.Buffer
		migrate.Stderr = &log
		if err := migrate.Start(); err != nil {
			a.Fatal(err)
		}
		waiting.Go(func() {
			if err := migrate.Wait(); err != nil {
				a.Errorf("the migration that waited: %v: %s", err, &log)
			}
		})
		look := connect()
		defer look.Close(a.Context())
		s.until("the migration waits", func() bool {
			var waits bool
			if err := look.QueryRow(a.Context(), "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock'").Scan(&waits); err != nil {
				a.Fatal(err)
			}
			return waits
		})
	}
	end := func() {
		forgotten.Close(a.Context())
		waiting.Wait()
	}
	a.steps = []step{
		{run: "gateway migrate -c gateway.yaml --plan", says: []string{"shard-a", "locks loomgate.refs"}},
		{
			before: wait, says: []string{"idle in transaction", "SELECT name FROM loomgate.refs"},
			run: "SELECT pid, state, xact_start, left(query, 60) FROM pg_stat_activity\n" +
				"WHERE pid IN (SELECT unnest(pg_blocking_pids(pid)) FROM pg_stat_activity);\n",
		},
		{before: end, run: "gateway migrate -c gateway.yaml --lock-timeout 500ms", says: []string{"shard-a: up to date"}},
		{run: "gateway migrate -c gateway.yaml --defer-backfill", says: []string{"shard-a: up to date"}},
		{run: "gateway backfill -c gateway.yaml"},
		{run: "gateway migrate -c gateway.yaml --check"},
		{run: "gateway check -c gateway.yaml", says: []string{"each slot is owned once"}},
	}
}
