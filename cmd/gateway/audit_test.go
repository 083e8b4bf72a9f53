package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/loomgate/loomgate/internal/pgtest"
)

func TestAMigrationOfAClusterLeavesARecordOfEachShardThatItHasChanged(t *testing.T) {
	a := pgtest.Fresh(t, pgtest.ICU)
	config := configOf(t, "shard-a "+a.DSN, "shard-b "+pgtest.Fresh(t, pgtest.ICU).DSN)
	if _, errOut, code := gateway(t, "migrate", "-c", config); code != 0 || !strings.Contains(errOut, "there is no record of it in the databases") {
		t.Errorf("before there is a cluster: exit code %d: %s", code, errOut)
	}
	key := filepath.Join(t.TempDir(), "admin.key")
	write(t, key, mustGateway(t, "init", "-c", config, "--cluster", "test"))
	p := serve(t, key, "-c", config)
	records := func() []string {
		t.Helper()
		return regexp.MustCompile(`"action":"ShardMigrated","by":"local:[^\n]*`).FindAllString(mustGateway(t, p.client("audit", "-o", "json")...), -1)
	}
	mustGateway(t, "migrate", "-c", config)
	if all := records(); len(all) > 0 {
		t.Errorf("of nothing there are the records %q", all)
	}
	conn, err := pgx.Connect(t.Context(), a.Direct)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), `ALTER TABLE loomgate.refs ALTER COLUMN name TYPE text COLLATE "default"`); err != nil { // as when a tool copies a database
		t.Fatal(err)
	}
	mustGateway(t, "migrate", "-c", config)
	if all := records(); len(all) != 1 || !strings.Contains(all[0], `"shard":"shard-a"`) {
		t.Errorf("there are the records %q", all)
	}
}
