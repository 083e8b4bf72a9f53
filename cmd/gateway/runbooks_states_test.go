package main

import (
	"context"
	"net/http"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/loomgate/loomgate/internal/pgtest"
)

func shardDown(a *act) {
	victim := durable(a.T, pgtest.Options{})
	s := a.site(victim, durable(a.T, pgtest.Options{}), "")
	s.mustAppend("1")
	other := serve(a.T, s.keyFile, "-c", s.config)
	a.stand(map[string]string{"gateway-b.internal:7070": other.grpc})
	victim.Kill9(a.T)
	s.until("an append is unavailable", func() bool { status, _ := s.append("2"); return status == http.StatusServiceUnavailable })
	for _, p := range []*process{s.process, other} {
		p.awaitLine(a.sayingSo("a shard does not answer")[0])
	}
	a.seen("exits with 6", "`connection`", "`role`")
	up := func() {
		victim.Restart(a.T)
		for _, p := range []*process{s.process, other} {
			p.awaitLine(a.sayingSo("a shard answers again")[0])
		}
	}
	a.steps = []step{
		{run: "gateway shards status", exit: 6, says: []string{"shard-a", "false"}},
		{run: "gateway shards status --addr gateway-b.internal:7070 -o json", exit: 6, says: []string{`"name":"shard-a","available":false`, `"name":"shard-b","available":true`}},
		{run: "gateway check -c gateway.yaml", exit: 6, says: []string{"connection", "bad"}},
		{before: up, run: "gateway shards status", says: []string{"shard-a  true"}},
		{run: "gateway check -c gateway.yaml", says: []string{"each slot is owned once"}},
		{run: "gateway verify -c gateway.yaml"},
		{run: "gateway shards recovered shard-b -c gateway.yaml --yes", says: []string{"are raised"}},
	}
}

func diskFull(a *act) {
	victim := durable(a.T, pgtest.Options{DiskMB: 48})
	s := a.site(victim, durable(a.T, pgtest.Options{}), "")
	s.mustAppend("1")
	a.database = victim.DSN("postgres")
	victim.FillDisk(a.T)
	large := `"` + incompressible(3<<20) + `"`
	if status, answer := s.append(large); status != http.StatusServiceUnavailable || !strings.Contains(answer, "incident") {
		a.Errorf("an append: %d %.300s", status, answer)
	}
	s.awaitLine(a.sayingSo("the database's disk is full")[0])
	mustGateway(a.T, s.client("executions", "show", s.onA, "--tenant", "acme")...) // "Reads go on."
	a.seen("Reads go on.")
	a.steps = []step{
		{run: "gateway shards status", says: []string{"shard-a  true"}},
		{run: "gateway check -c gateway.yaml", says: []string{"connection"}},
		{run: "SELECT slot_name, active, pg_size_pretty(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)) AS kept FROM pg_replication_slots;\n" +
			"SELECT last_failed_wal, last_failed_time FROM pg_stat_archiver;\n"},
		{before: func() { victim.FreeDisk(a.T) }, run: "gateway tenants list", says: []string{"acme", "active"}},
		{before: func() {
			s.until("it stores again", func() bool { status, _ := s.append(large); return status == http.StatusOK })
		}, run: "gateway tenants delete acme --yes"},
		{run: "gateway verify -c gateway.yaml"},
	}
}

func keyLost(a *act) {
	server := durable(a.T, pgtest.Options{})
	s := a.site(server, server, "crypto: {keyring_file: keyring, secret_file: secret, cache_life: 1s}\n")
	s.mustAppend("1")
	s.stop()
	keyring := strings.TrimSuffix(s.config, "gateway.yaml") + "keyring"
	back := remove(a.T, keyring)
	mustGateway(a.T, "keyring", "create", "-c", s.config)
	broken := start(a.T, s.keyFile, "-c", s.config)
	broken.awaitServing()
	for _, line := range a.sayingSo("the control records cannot be read", "is lost") {
		broken.awaitLine(line)
	}
	if problem := broken.readiness(); problem == "" {
		a.Error("it is ready")
	}
	a.seen("is not ready", "does not open")
	restart := func() {
		back()
		broken.stop()
		again := serve(a.T, s.keyFile, "-c", s.config)
		a.asOperator(again)
		mustGateway(a.T, again.client("executions", "show", s.onA, "--tenant", "acme")...)
	}
	a.steps = []step{
		{run: "gateway config show -c gateway.yaml", says: []string{"keyring"}},
		{run: "gateway verify -c gateway.yaml", exit: 6, says: []string{s.onA}},
		{before: restart, run: "gateway audit -o json", says: []string{`"action":"TenantCreated"`}},
		{run: "gateway verify -c gateway.yaml"},
	}
}

func gatewaysDisagree(a *act) {
	server := durable(a.T, pgtest.Options{})
	other := (&act{T: a.T, words: map[string]string{}}).site(server, server, "")
	s := a.site(server, server, "")
	s.mustAppend("1")
	// The second gateway has the first one's key, and by mistake the other cluster's databases.
	a.stand(map[string]string{"gateway-a.internal:7070": s.grpc, "gateway-b.internal:7070": other.grpc, "gateway.yaml": other.config})
	a.seen("exits with 4")
	same := func(run string) []string {
		return []string{mustGateway(a.T, s.client(strings.Fields(run)...)...)}
	}
	corrected := func() {
		again := serve(a.T, s.keyFile, "-c", s.config)
		a.stand(map[string]string{"gateway-b.internal:7070": again.grpc, "gateway.yaml": s.config})
	}
	a.steps = []step{
		{run: "gateway shards list --addr gateway-a.internal:7070 -o json", says: []string{`"name":"shard-a"`}},
		{run: "gateway shards list --addr gateway-b.internal:7070 -o json", exit: 4},
		{run: "gateway where acme order-17 --addr gateway-a.internal:7070", says: []string{"shard-a"}},
		{run: "gateway where acme order-17 --addr gateway-b.internal:7070", exit: 4},
		{run: "gateway config show -c gateway.yaml", says: []string{"shard-b"}},
		{run: "gateway check -c gateway.yaml", says: []string{"each slot is owned once"}},
		{before: corrected, run: "gateway audit --addr gateway-a.internal:7070", says: same("audit")},
		{run: "gateway audit --addr gateway-b.internal:7070", says: same("audit")},
	}
}

func ambiguousAppend(a *act) {
	server := durable(a.T, pgtest.Options{})
	s := a.site(server, server, "")
	s.mustAppend("1")
	ctx := context.WithoutCancel(a.Context())
	admin, err := pgx.Connect(ctx, server.DSN("postgres"))
	if err != nil {
		a.Fatal(err)
	}
	a.Cleanup(func() { admin.Close(ctx) })
	do := func(sql string) {
		a.Helper()
		if _, err := admin.Exec(ctx, sql); err != nil {
			a.Fatal(err)
		}
	}
	// A commit waits for a standby that there is not, and its connection breaks. Appends are
	// sent until one has met that: the server takes the setting in its own time.
	do("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
	do("SELECT pg_reload_conf()")
	goOn := func() {
		do("ALTER SYSTEM RESET synchronous_standby_names")
		do("SELECT pg_reload_conf()")
	}
	a.Cleanup(goOn) // or the databases cannot be dropped
	var event, answer string
	status := http.StatusOK
	var sending sync.WaitGroup
	sending.Go(func() {
		for status == http.StatusOK {
			event = newUUID()
			status, answer = s.send(event, "2")
		}
	})
	s.until("the commit waits", func() bool {
		var waits bool
		if err := admin.QueryRow(ctx, "SELECT count(pg_terminate_backend(pid)) > 0 FROM pg_stat_activity WHERE wait_event = 'SyncRep'").Scan(&waits); err != nil {
			a.Fatal(err)
		}
		return waits
	})
	sending.Wait()
	goOn()
	if status != http.StatusInternalServerError || !strings.Contains(answer, "unknown") {
		a.Errorf("the append: %d %s", status, answer)
	}
	a.seen("`unknown` in gRPC, 500 in HTTP", "with `duplicate`")
	s.until("the repetition is answered", func() bool { status, answer = s.send(event, "2"); return status == http.StatusOK })
	if !strings.Contains(answer, `"duplicate":true`) {
		a.Errorf("the repetition: %s", answer)
	}
	a.steps = []step{
		{run: "gateway where acme order-17", says: []string{"shard-a"}},
		{run: "gateway executions show order-17 --tenant acme", says: []string{event}},
		{run: "gateway shards status", says: []string{"shard-a  true"}},
		{run: "gateway check -c gateway.yaml", says: []string{"each slot is owned once"}},
	}
}
