package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loomgate/loomgate/internal/pgtest"
)

// A cluster is two shards, of which "shard-a" has a server of its own. The control
// records are on the other.
type cluster struct {
	*testing.T
	victim            *pgtest.Cluster
	dsn               string // of shard-a
	config, keys      string
	onVictim, onOther string // executions of tenant demo
}

func twoShards(t *testing.T, opts pgtest.Options) cluster {
	t.Helper()
	dir := t.TempDir()
	c := cluster{T: t, victim: pgtest.Private(t, opts), config: filepath.Join(dir, "gateway.yaml"), keys: filepath.Join(dir, "admin.key")}
	c.dsn = c.victim.Fresh(t, pgtest.ICU).DSN
	write(t, c.config, fmt.Sprintf("shards:\n  - {name: shard-a, dsn: %q}\n  - {name: shard-b, dsn: %q}\n",
		c.dsn, pgtest.Fresh(t, pgtest.ICU).DSN))
	mustGateway(t, "migrate", "-c", c.config)
	write(t, c.keys, mustGateway(t, "init", "-c", c.config, "--cluster", "test"))
	return c
}

// serve starts a gateway over the cluster.
func (c *cluster) serve() *process { return serve(c.T, c.keys, "-c", c.config) }

// locate makes the tenant and finds an execution on each shard.
func (c *cluster) locate(p *process) {
	mustGateway(c.T, p.client("tenants", "create", "demo")...)
	for i := 0; c.onOther == "" || c.onVictim == ""; i++ {
		id := fmt.Sprint("e", i)
		if strings.Contains(mustGateway(c.T, p.client("where", "demo", id)...), "shard-b") {
			c.onOther = id
		} else {
			c.onVictim = id
		}
	}
}

// asTenant is the same gateway, reached with a key of the tenant's.
func (p *process) asTenant() *process {
	p.Helper()
	own := *p
	own.keyFile = filepath.Join(p.TempDir(), "tenant.key")
	write(p.T, own.keyFile, mustGateway(p.T, p.client("apikeys", "create", "--tenant", "demo", "--scopes", "read,write")...))
	return &own
}

// appendOne appends an event at the end of an execution.
func (p *process) appendOne(id, payload string) (status int, answer string) {
	p.Helper()
	return p.post("EventService/Append", "demo",
		fmt.Sprintf(`{"execution":%q,"expectedHead":"-1","events":[{"id":%q,"kind":"K","json":%q}]}`, id, newUUID(), payload))
}

// until asks again until the answer is yes.
func (p *process) until(what string, yes func() bool) {
	p.Helper()
	for end := time.Now().Add(time.Minute); !yes(); {
		if time.Now().After(end) {
			p.Fatalf("%s never:\n%s", what, p.log)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-p.exited:
			p.Fatalf("the gateway has ended:\n%s", p.log)
		}
	}
}

// awaitLine waits for the words in the log. A line is written before the answer that it is
// about, and still reaches the test later: it comes by a pipe.
func (p *process) awaitLine(words string) {
	p.Helper()
	p.until("a line "+strconv.Quote(words), func() bool { return strings.Contains(p.log.String(), words) })
}

// readyShards is what /readyz says, nil if the gateway is not ready.
func (p *process) readyShards() map[string]bool {
	p.Helper()
	req, err := http.NewRequestWithContext(p.Context(), http.MethodGet, "http://"+p.http+"/readyz", http.NoBody)
	if err != nil {
		p.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		p.Fatal(err)
	}
	defer res.Body.Close()
	var state struct {
		Ready  bool
		Shards map[string]bool
	}
	if err := json.NewDecoder(res.Body).Decode(&state); err != nil {
		p.Fatal(err)
	}
	if !state.Ready {
		return nil
	}
	return state.Shards
}

func TestADeadShardDegradesTheGatewayAndComesBackByItself(t *testing.T) {
	c := twoShards(t, pgtest.Options{})
	ran := c.serve()
	c.locate(ran)
	tenants := ran.asTenant()
	page := func(p *process) (int, string) { return p.post("EventService/ListExecutions", "demo", `{"limit":10}`) }
	if status, answer := tenants.appendOne(c.onVictim, "1"); status != http.StatusOK {
		t.Fatal(status, answer)
	}
	c.victim.Kill9(t)
	tenants.appendOne(c.onVictim, "2") // on a connection that has just died: it may be ambiguous
	started := c.serve()
	started.keyFile = tenants.keyFile
	started.until("the tenant's key is known", func() bool { status, _ := started.appendOne(c.onOther, "1"); return status == http.StatusOK })
	for name, p := range map[string]*process{"a gateway that ran": tenants, "one started without the shard": started} {
		if status, answer := p.appendOne(c.onOther, "1"); status != http.StatusOK {
			t.Errorf("%s: the shard that lives: %d %s", name, status, answer)
		}
		for what, call := range map[string]func() (int, string){
			"an append": func() (int, string) { return p.appendOne(c.onVictim, "3") },
			"a page":    func() (int, string) { return page(p) },
		} {
			status, answer := call()
			if status != http.StatusServiceUnavailable || !strings.Contains(answer, "incident") {
				t.Errorf("%s: %s that needs the dead shard: %d %s", name, what, status, answer)
			}
			if strings.Contains(answer, "shard-") || strings.Contains(answer, "127.0.0.1") || strings.Contains(answer, quoted(c.onOther)) {
				t.Errorf("%s: a tenant reads %s", name, answer)
			}
		}
		status, answer := p.post("EventService/ListExecutions", "demo", `{"limit":10,"allowPartial":true}`)
		if status != http.StatusOK || !strings.Contains(answer, `"missing":1`) || !strings.Contains(answer, quoted(c.onOther)) || strings.Contains(answer, "shard-") {
			t.Errorf("%s: a page that may be partial: %d %s", name, status, answer)
		}
		p.until("the shard is seen to be dead", func() bool { s := p.readyShards(); return !s["shard-a"] && s["shard-b"] })
	}
	if out, errOut, code := gateway(t, tenants.client("executions", "list", "--partial")...); code != 5 || !strings.Contains(out, c.onOther) || !strings.Contains(errOut, "1 shards did not answer") {
		t.Errorf("a list that may be partial exits with %d: %s%s", code, out, errOut)
	}
	if out, _, code := gateway(t, ran.client("shards", "status")...); code != 6 || !strings.Contains(out, "shard-a") {
		t.Errorf("shards status exits with %d:\n%s", code, out)
	}
	c.victim.Restart(t)
	for name, p := range map[string]*process{"a gateway that ran": tenants, "one started without the shard": started} {
		p.until(name+": the shard is used again", func() bool { status, _ := p.appendOne(c.onVictim, "4"); return status == http.StatusOK })
		p.until(name+": the shard is seen to live", func() bool { return p.readyShards()["shard-a"] })
		for _, want := range []string{"a shard does not answer", "a shard answers again"} {
			p.awaitLine(want)
		}
		if status, answer := page(p); status != http.StatusOK || !strings.Contains(answer, quoted(c.onOther)) || !strings.Contains(answer, quoted(c.onVictim)) {
			t.Errorf("%s: a page: %d %s", name, status, answer)
		}
	}
}

func quoted(id string) string { return strconv.Quote(id) }

func TestAFullDiskIsToldToTheOperatorAndLosesNothing(t *testing.T) {
	c := twoShards(t, pgtest.Options{DiskMB: 48})
	p := c.serve()
	c.locate(p)
	c.victim.FillDisk(t)
	large := `"` + incompressible(3<<20) + `"`
	if status, answer := p.appendOne(c.onVictim, large); status != http.StatusServiceUnavailable || strings.Contains(answer, "disk") {
		t.Errorf("a tenant reads %d %.300s", status, answer)
	}
	p.awaitLine("disk is full")
	if status, answer := p.appendOne(c.onOther, large); status != http.StatusOK {
		t.Errorf("the other shard: %d %.300s", status, answer)
	}
	c.victim.FreeDisk(t)
	p.until("it stores again", func() bool { status, _ := p.appendOne(c.onVictim, "1"); return status == http.StatusOK })
	out := mustGateway(t, p.client("executions", "show", c.onVictim, "--tenant", "demo")...)
	if strings.Count(out, "\n") != 1 {
		t.Errorf("what was refused is stored:\n%.300q", out)
	}
}

func TestADatabaseThatOnlyReadsIsToldToTheOperatorAndServesReads(t *testing.T) {
	c := twoShards(t, pgtest.Options{})
	operator := c.serve()
	c.locate(operator)
	p := operator.asTenant()
	if status, answer := p.appendOne(c.onVictim, "1"); status != http.StatusOK {
		t.Fatal(status, answer)
	}
	readOnly := func(mode string) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), c.victim.DSN("postgres"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		for _, sql := range []string{"ALTER SYSTEM SET default_transaction_read_only = " + mode, "SELECT pg_reload_conf()"} {
			if _, err := conn.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
	}
	readOnly("on")
	var answer string
	p.until("an append is refused", func() bool { // a server's processes read their configuration in their own time
		var status int
		status, answer = p.appendOne(c.onVictim, "2")
		return status == http.StatusServiceUnavailable
	})
	if strings.Contains(answer, "read-only") || strings.Contains(answer, "shard-") || !strings.Contains(answer, "incident") {
		t.Errorf("a tenant reads %s", answer)
	}
	p.awaitLine("read-only")
	if status, answer := p.post("EventService/Head", "demo", fmt.Sprintf(`{"execution":%q}`, c.onVictim)); status != http.StatusOK {
		t.Errorf("a read: %d %s", status, answer)
	}
	if status, answer := p.appendOne(c.onOther, "1"); status != http.StatusOK {
		t.Errorf("the other shard: %d %s", status, answer)
	}
	if shards := p.readyShards(); !shards["shard-a"] || !shards["shard-b"] {
		t.Errorf("the shards are %v", shards)
	}
	readOnly("off")
	p.until("it stores again", func() bool { status, _ := p.appendOne(c.onVictim, "3"); return status == http.StatusOK })
}

func TestARecoveredShardServesWithTokensThatItHasNotGivenOut(t *testing.T) {
	c := twoShards(t, pgtest.Options{})
	p := c.serve()
	c.locate(p)
	acquire := func() string {
		t.Helper()
		status, answer := p.post("EventService/AcquireFence", "demo", fmt.Sprintf(`{"execution":%q}`, c.onVictim))
		var res struct{ Token string }
		if err := json.Unmarshal([]byte(answer), &res); err != nil || status != http.StatusOK {
			t.Fatal(status, answer, err)
		}
		return res.Token
	}
	if token := acquire(); token != "1" {
		t.Fatalf("the first token is %s", token)
	}
	if _, _, code := gateway(t, "shards", "recovered", "shard-a", "-c", c.config); code != 2 {
		t.Errorf("a recovery that nobody confirms: exit code %d", code)
	}
	if out := mustGateway(t, "shards", "recovered", "shard-a", "-c", c.config, "--yes"); out != "1 fences and the epochs of 2048 slots are raised\n" {
		t.Errorf("it says %q", out)
	}
	if audit := mustGateway(t, p.client("audit", "-o", "json")...); !regexp.MustCompile(`"action":"ShardRecovered","by":"local:.*"shard":"shard-a"`).MatchString(audit) {
		t.Errorf("the audit trail has no record of it:\n%s", audit)
	}
	if token := acquire(); len(token) < 6 { // the gateway reads its map anew
		t.Errorf("the next token is %s", token)
	}
	if status, answer := p.appendOne(c.onVictim, "1"); status != http.StatusOK {
		t.Errorf("an append afterwards: %d %s", status, answer)
	}

	// Where the records cannot be reached, it is for the operator to say.
	alone := filepath.Join(t.TempDir(), "gateway.yaml")
	write(t, alone, fmt.Sprintf("shards:\n  - {name: shard-a, dsn: %q}\n  - {name: shard-b, dsn: 'postgres://127.0.0.1:1/gone'}\n", c.dsn))
	before := acquire()
	if _, errOut, code := gateway(t, "shards", "recovered", "shard-a", "-c", alone, "--yes"); code == 0 || !strings.Contains(errOut, "--unrecorded") {
		t.Errorf("without a record: exit code %d: %s", code, errOut)
	}
	if after := acquire(); len(after) != len(before) {
		t.Errorf("what was refused has raised the token from %s to %s", before, after)
	}
	mustGateway(t, "shards", "recovered", "shard-a", "-c", alone, "--yes", "--unrecorded")
}
