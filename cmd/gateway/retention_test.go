package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

func TestRetentionDeletesWhatEndedAndSaysSoBefore(t *testing.T) {
	p := embedded(t)
	file := filepath.Join(t.TempDir(), "log.ndjson")
	line := func(id, kind, at string) string {
		return fmt.Sprintf(`{"executionId":%q,"id":%q,"sequence":%d,"kind":%q,"kernel":true,"fence":0,"recordedAt":%q,"metadata":{},"payload":{}}`+"\n",
			id, newUUID(), map[string]int{"EXECUTION_STARTED": 1, "EXECUTION_COMPLETED": 2}[kind], kind, at)
	}
	const long, now = "2024-05-01T09:30:00Z", "2999-05-01T09:30:00Z"
	write(t, file, line("old", "EXECUTION_STARTED", long)+line("old", "EXECUTION_COMPLETED", long)+
		line("new", "EXECUTION_STARTED", now)+line("new", "EXECUTION_COMPLETED", now)+line("open", "EXECUTION_STARTED", long))
	mustGateway(t, p.client("import", "--tenant", "demo", file)...)
	list := func() string {
		t.Helper()
		return mustGateway(t, p.client("executions", "list", "--tenant", "demo", "-o", "json")...)
	}
	all := list()
	retention := func(flags ...string) (string, int) {
		t.Helper()
		out, _, code := gateway(t, p.client(append([]string{"retention", "--tenant", "demo", "-o", "json"}, flags...)...)...)
		return out, code
	}
	for _, wrong := range [][]string{{"--max-age", "1h"}, {"--yes"}} {
		if _, code := retention(wrong...); code != 2 {
			t.Errorf("%v: exit code %d", wrong, code)
		}
	}
	const want = `{"action":"delete","execution":"old","ref":""}` + "\n"
	if out, code := retention("--max-age", "24h", "--dry-run"); code != 0 || out != want || list() != all {
		t.Errorf("a dry run (%d) prints %s, and leaves %s", code, out, list())
	}
	if out, code := retention("--max-age", "24h", "--yes"); code != 0 || out != want {
		t.Errorf("it prints %s (%d)", out, code)
	}
	if out := list(); strings.Contains(out, "old") || !strings.Contains(out, "new") || !strings.Contains(out, "open") {
		t.Errorf("it leaves %s", out)
	}
	if status, answer := p.appendOne("open", "1"); status != http.StatusOK {
		t.Errorf("what is left is not as it was: %d %s", status, answer)
	}
}
