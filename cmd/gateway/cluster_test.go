package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/loomgate/loomgate/internal/pgtest"
)

// configOf writes a configuration of shards, "NAME DSN" each, and returns its file.
func configOf(t *testing.T, shards ...string) string {
	t.Helper()
	text := "grpc: {listen: '127.0.0.1:0'}\nhttp: {listen: '127.0.0.1:0'}\nshards:\n"
	for _, s := range shards {
		name, dsn, _ := strings.Cut(s, " ")
		text += fmt.Sprintf("  - {name: %s, dsn: %q}\n", name, dsn)
	}
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	write(t, file, text)
	return file
}

func TestShardsThatAreNoClusterAreRefusedAndTheErrorSaysWhatToDo(t *testing.T) {
	fresh := func() string { return pgtest.Fresh(t, pgtest.ICU).DSN }
	a, b, other, empty, migrated := fresh(), fresh(), fresh(), fresh(), fresh()
	both := configOf(t, "shard-a "+a, "shard-b "+b)
	mustGateway(t, "migrate", "-c", both)
	mustGateway(t, "init", "-c", both, "--cluster", "test")
	alone := configOf(t, "shard-b "+other)
	mustGateway(t, "migrate", "-c", alone)
	mustGateway(t, "init", "-c", alone, "--cluster", "another")
	mustGateway(t, "migrate", "-c", configOf(t, "shard-b "+migrated))

	for name, c := range map[string]struct {
		config string
		says   []string
	}{
		"a database of another cluster":  {configOf(t, "shard-a "+a, "shard-b "+other), []string{"shard-b", "another"}},
		"a database without a schema":    {configOf(t, "shard-a "+a, "shard-b "+empty), []string{"shard-b", "gateway migrate"}},
		"a database without an identity": {configOf(t, "shard-a "+a, "shard-b "+migrated), []string{"shard-b", "gateway init"}},
		"one database under two names":   {configOf(t, "shard-a "+a, "shard-b "+a+"&application_name=b"), []string{"shards[1] is the database of shards[0]"}},
		"databases under others' names":  {configOf(t, "shard-a "+b, "shard-b "+a), []string{"shard-a", "shard-b"}},
		"a shard too few":                {configOf(t, "shard-a "+a), []string{"slots"}},
	} {
		for _, command := range []string{"serve", "check"} {
			out, errOut, code := gateway(t, command, "-c", c.config)
			if code == 0 {
				t.Errorf("%s: %s succeeds", name, command)
			}
			for _, want := range c.says {
				if !strings.Contains(out+errOut, want) {
					t.Errorf("%s: %s does not say %q:\n%s%s", name, command, want, out, errOut)
				}
			}
		}
	}
	serve(t, "", "-c", configOf(t, "shard-b "+b, "shard-a "+a)) // their order means nothing
}

func TestGatewaysThatBeginAtOnceMakeOneCluster(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	key := filepath.Join(dir, "admin.key")
	gateways := make([]*process, 3)
	var starting sync.WaitGroup
	for i := range gateways {
		starting.Go(func() { gateways[i] = start(t, key, "--data", dir) })
	}
	starting.Wait()
	for i, p := range gateways {
		p.awaitReady()
		id := fmt.Sprint("e", i)
		p.until("the first key is known", func() bool { status, _ := p.appendOne(id, "1"); return status == 200 })
	}
	out := mustGateway(t, gateways[0].client("executions", "list", "--tenant", "demo")...)
	for _, want := range []string{"e0", "e1", "e2"} {
		if !strings.Contains(out, want) {
			t.Errorf("%s is not in\n%s", want, out)
		}
	}

	config := configOf(t, "shard-a "+pgtest.Fresh(t, pgtest.ICU).DSN, "shard-b "+pgtest.Fresh(t, pgtest.ICU).DSN)
	printed := make([]string, 3)
	for i := range printed {
		starting.Go(func() {
			_, errOut, code := gateway(t, "migrate", "-c", config)
			if code != 0 {
				t.Errorf("migrate: %s", errOut)
			}
			if printed[i], errOut, code = gateway(t, "init", "-c", config, "--cluster", "test"); code != 0 {
				t.Errorf("init: %s", errOut)
			}
		})
	}
	starting.Wait()
	if keys := strings.Count(strings.Join(printed, ""), "lg_"); keys != 1 {
		t.Errorf("%d first keys are printed: %q", keys, printed)
	}
}
