package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/loomgate/loomgate/internal/pgtest"
)

func TestAConfigurationIsTakenOverAtOnceOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	file, key := filepath.Join(dir, "gateway.yaml"), filepath.Join(dir, "admin.key")
	a, b, other := pgtest.Fresh(t, pgtest.ICU).DSN, pgtest.Fresh(t, pgtest.ICU).DSN, pgtest.Fresh(t, pgtest.ICU).DSN
	configure := func(level, a, b, more string) {
		write(t, file, fmt.Sprintf("log: {level: %s}\n%sshards:\n  - {name: shard-a, dsn: %q}\n  - {name: shard-b, dsn: %q}\n", level, more, a, b))
	}
	configure("info", a, b, "")
	mustGateway(t, "migrate", "-c", file)
	write(t, key, mustGateway(t, "init", "-c", file, "--cluster", "test"))
	p := serve(t, key, "-c", file)
	mustGateway(t, p.client("tenants", "create", "demo")...)
	store := func() {
		t.Helper()
		for i := range 8 { // on both shards
			if status, answer := p.appendOne(fmt.Sprint("e", i), "1"); status != http.StatusOK {
				t.Errorf("%d %s", status, answer)
			}
		}
	}
	store()
	reload := func() (out, errOut string, code int) { return gateway(t, p.client("config", "reload")...) }

	if out, errOut, code := reload(); code != 0 || out != "" {
		t.Errorf("nothing has changed: %s%s", out, errOut)
	}
	moved := b + "&application_name=moved"
	configure("debug", a, moved, "deadlines: {call: 7s}\n")
	want := "shards[1].dsn has changed\nlog.level has changed\ndeadlines.call needs a restart\n"
	if out, errOut, code := reload(); code != 0 || out != want {
		t.Errorf("it says %q%s", out, errOut)
	}
	store()

	configure("debug", a, moved, "limits: {tenant: {requests_per_second: 0}}\n")
	if out, errOut, code := reload(); code != 0 || !strings.Contains(out, "limits.tenant.requests_per_second has changed\n") {
		t.Errorf("it says %q%s", out, errOut)
	}
	if status, answer := p.appendOne("e1", "1"); status != http.StatusTooManyRequests {
		t.Errorf("over a limit that was reloaded: %d %s", status, answer)
	}
	configure("debug", a, moved, "")
	if out, errOut, code := reload(); code != 0 {
		t.Errorf("it says %q%s", out, errOut)
	}
	store()

	for name, c := range map[string]struct {
		write func()
		says  string
	}{
		"a broken file":                 {func() { write(t, file, "log: {level: loud}\n") }, "log.level"},
		"a database that is no shard":   {func() { configure("warn", a, other, "") }, "shard-b"},
		"the databases of one another":  {func() { configure("warn", b, a, "") }, "another database"},
		"a provider with a bad address": {func() { configure("warn", a, moved, "identity: {providers: [{issuer: 'http://x', audience: [a]}]}\n") }, "identity.providers[0].issuer"},
	} {
		c.write()
		_, errOut, code := reload()
		if code != 1 || !strings.Contains(errOut, c.says) || strings.Contains(errOut, "postgres://") {
			t.Errorf("%s: exit code %d: %s", name, code, errOut)
		}
		store()
	}

	// A shard that is down is taken over, and served when it is there.
	configure("error", a, regexp.MustCompile(`127\.0\.0\.1:\d+`).ReplaceAllString(b, "127.0.0.1:1"), "")
	if out, errOut, code := reload(); code != 0 {
		t.Errorf("a shard that is down: %s%s", out, errOut)
	}
	configure("error", a, b, "")
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	p.until("the shard is there again", func() bool {
		for i := range 8 {
			if status, _ := p.appendOne(fmt.Sprint("e", i), "1"); status != http.StatusOK {
				return false
			}
		}
		return true
	})
	if audit := mustGateway(t, p.client("audit", "-o", "json")...); !strings.Contains(audit, "ConfigReloaded") {
		t.Errorf("the audit trail is\n%s", audit)
	}
}
