package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loomgate/loomgate/backends/remote"
	"github.com/loomgate/loomgate/cmd/gateway/internal/build"
	"github.com/loomgate/loomgate/internal/pgtest"
	"github.com/loomgate/loomgate/spi"
)

// asWriter in the environment lets a gateway of a test write as another version.
const asWriter = "GATEWAY_TEST_WRITER"

func init() {
	if v := os.Getenv(asWriter); v != "" {
		if _, err := fmt.Sscanf(v, "%d.%d", &build.Writer.Major, &build.Writer.Minor); err != nil {
			panic(err)
		}
	}
}

// The two versions that are side by side.
var (
	older = spi.Versions()[spi.Events]
	newer = spi.Version{Major: older.Major, Minor: older.Minor + 1}
)

// as lets gateways that are started from now on write as a version.
func as(t *testing.T, v spi.Version) {
	t.Helper()
	t.Setenv(asWriter, v.String())
}

// An upgrade is two shards, an application, and the gateways between them.
type upgrade struct {
	cluster
	*load
	tenantKey string
}

func newUpgrade(t *testing.T) *upgrade {
	t.Helper()
	as(t, older)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	u := &upgrade{cluster: cluster{T: t}, load: &load{
		fleet: &fleet{T: t, clients: map[string]*remote.Client{}}, ctx: ctx,
		acknowledged: map[spi.ExecutionID][]spi.EventID{}, wakes: map[spi.ExecutionID]bool{}, redrives: map[spi.ExecutionID]bool{},
	}}
	u.config = configOf(t, "shard-a "+pgtest.Fresh(t, pgtest.ICU).DSN, "shard-b "+pgtest.Fresh(t, pgtest.ICU).DSN)
	u.keys = filepath.Join(t.TempDir(), "admin.key")
	mustGateway(t, "migrate", "-c", u.config)
	write(t, u.keys, mustGateway(t, "init", "-c", u.config, "--cluster", "test"))
	return u
}

// join starts a gateway that writes as a version, and lets it get calls.
func (u *upgrade) join(v spi.Version) *process {
	as(u.T, v)
	p := u.serve()
	if u.tenantKey == "" {
		u.locate(p)
		u.tenantKey = p.asTenant().keyFile
	}
	p.until("the tenant's key is known", func() bool { status, _ := u.tenantOf(p).appendOne(u.onOther, "1"); return status == http.StatusOK })
	u.add(p, u.tenantKey)
	return p
}

// tenantOf is a gateway that is reached with the tenant's key.
func (u *upgrade) tenantOf(p *process) *process {
	own := *p
	own.keyFile = u.tenantKey
	return &own
}

// readiness is what /readyz says is wrong; "" if the gateway is ready.
func (p *process) readiness() (problem string) {
	p.Helper()
	res, err := http.Get("http://" + p.http + "/readyz") //nolint:noctx // it answers at once
	if err != nil {
		p.Fatal(err)
	}
	defer res.Body.Close()
	var state struct {
		Ready   bool
		Problem string
	}
	if err := json.NewDecoder(res.Body).Decode(&state); err != nil || state.Ready != (res.StatusCode == http.StatusOK) || state.Ready != (state.Problem == "") {
		p.Errorf("%+v, %v", state, err)
	}
	return state.Problem
}

// TestARollingUpgradeLosesNothing takes a cluster under load from one version to the next,
// half way back, and on.
func TestARollingUpgradeLosesNothing(t *testing.T) {
	u := newUpgrade(t)
	first, second := u.join(older), u.join(older)
	u.begin()
	olderNodes, stopOlderNodes := context.WithCancel(u.ctx)
	u.working.Go(func() { u.olderNode(olderNodes) })
	defer u.end()
	defer stopOlderNodes()
	u.goOn()

	upgraded := u.join(newer)
	u.goOn()
	u.drain(first)
	u.goOn()
	back := u.join(older)
	u.goOn()
	u.drain(upgraded)
	u.goOn()
	last := u.join(newer)
	u.goOn()
	stopOlderNodes()
	u.raise(last, second)
	u.goOn()
	for name, p := range map[string]*process{"one that ran": second, "one that starts too late": u.startLate()} {
		u.wantTooOld(name, p)
	}
	u.drain(second)
	u.drain(back)
	u.goOn()
	u.end()
	u.wantAll()
}

// raise lets the shards refuse older writers.
func (u *upgrade) raise(by, old *process) {
	t := u.T
	t.Helper()
	require := func(p *process, v spi.Version, flags ...string) (out, errOut string, code int) {
		t.Helper()
		return gateway(t, p.client(append([]string{"shards", "require-writer", v.String()}, flags...)...)...)
	}
	if _, _, code := require(by, newer); code != 2 {
		t.Errorf("a minimum that nobody confirms: exit code %d", code)
	}
	if _, errOut, code := require(old, newer, "--yes"); code != 1 || !strings.Contains(errOut, older.String()) {
		t.Errorf("an older gateway asks for what it is not itself: %d, %s", code, errOut)
	}
	out, errOut, code := require(by, newer, "--yes")
	if code != 0 || strings.Count(out, "\n") != 2 {
		t.Fatalf("it prints %q and %q (%d)", out, errOut, code)
	}
	if out := mustGateway(t, by.client("audit")...); !strings.Contains(out, "WriterRequired") {
		t.Errorf("the audit has only %s", out)
	}
	if out := mustGateway(t, by.client("shards", "status")...); strings.Count(out, newer.String()) != 2 {
		t.Errorf("the shards are %s", out)
	}
}

// startLate starts an older gateway over shards that refuse it.
func (u *upgrade) startLate() *process {
	as(u.T, older)
	if out, _, code := gateway(u.T, "check", "-c", u.config); code != 6 || !strings.Contains(out, "takes writes from version") {
		u.Errorf("check exits with %d: %s", code, out)
	}
	p := start(u.T, u.keys, "-c", u.config)
	p.awaitServing()
	p.until("the tenant's key is known", func() bool {
		status, _ := u.tenantOf(p).post("EventService/ListExecutions", "demo", `{"limit":1}`)
		return status == http.StatusOK
	})
	return p
}

// wantTooOld checks what a gateway does whose writes the shards refuse.
func (u *upgrade) wantTooOld(name string, p *process) {
	t := u.T
	t.Helper()
	says := fmt.Sprintf("takes writes from version %v of the events group on, and this is %v", newer, older)
	tenant := u.tenantOf(p)
	for _, id := range []string{u.onVictim, u.onOther} {
		if status, answer := tenant.appendOne(id, "1"); status != http.StatusServiceUnavailable || strings.Contains(answer, "shard-") {
			t.Errorf("%s: a tenant's append: %d %s", name, status, answer)
		}
	}
	p.awaitLine(says)
	p.until(name+" is not ready", func() bool { return strings.Count(p.readiness(), says) == 2 })
	if status, answer := tenant.post("EventService/ListExecutions", "demo", `{"limit":10}`); status != http.StatusOK {
		t.Errorf("%s: a page: %d %s", name, status, answer)
	}
	if out, _, code := gateway(t, p.client("shards", "status")...); code != 6 || strings.Count(out, says) != 2 {
		t.Errorf("%s: shards status exits with %d: %s", name, code, out)
	}
}

// wantAll checks that what was acknowledged is there, once, and nothing else.
func (u *upgrade) wantAll() {
	t := u.T
	t.Helper()
	for u.poll(spi.DueTimersRequest{Limit: 100, ExcludeRedrive: true}) > 0 {
	}
	for _, redriven := range u.redrives {
		if !redriven {
			u.handleRedrives(true)
		}
	}
	for id, woken := range u.wakes {
		if !woken {
			t.Errorf("%s was never woken", id)
		}
	}
	if len(u.redrives) == 0 {
		t.Error("no redrive row was written")
	}
	for id, redriven := range u.redrives {
		if !redriven {
			t.Errorf("%s was never tried again", id)
		}
	}
	if len(u.misread) > 0 {
		t.Errorf("redrive rows were taken for wakes: %q", u.misread)
	}
	store, events := u.pick(), 0
	for id, want := range u.acknowledged {
		log, err := spi.Read(u.ctx, store, spi.ReadRequest{Execution: id, Limit: appendsAnExecution + 1})
		if err != nil {
			t.Fatal(err)
		}
		var stored []spi.EventID
		for _, e := range log.Events {
			stored = append(stored, e.ID)
		}
		if events += len(want); !slices.Equal(stored, want) {
			t.Errorf("%s: %d events were acknowledged, and %d are stored", id, len(want), len(stored))
		}
	}
	due, err := spi.DueTimers(u.ctx, store, spi.DueTimersRequest{Limit: 100})
	if err != nil || len(due.Timers)+len(due.Missing) > 0 {
		t.Errorf("due timers that are left: %+v, %v", due, err)
	}
	t.Logf("%d events, %d wakes, %d redrives", events, len(u.wakes), len(u.redrives))
}
