package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/loomgate/loomgate/backends/remote"
	"github.com/loomgate/loomgate/conformance"
	"github.com/loomgate/loomgate/internal/pgtest"
	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

// kit runs the conformance kit through a gateway, each case as a tenant of its own.
func (p *process) kit(t *testing.T) {
	key, err := os.ReadFile(p.keyFile)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(p.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	admin := pb.NewAdminServiceClient(conn)
	var tenants atomic.Int64
	tenant := conformance.PerTest(func(t *testing.T) spi.TenantName {
		name := fmt.Sprintf("kit-%d", tenants.Add(1))
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+strings.TrimSpace(string(key)))
		if _, err := admin.CreateTenant(ctx, &pb.CreateTenantRequest{Name: name}); err != nil {
			t.Fatal(err)
		}
		return spi.TenantName(name)
	})
	conformance.Store(t, func(t *testing.T) *spi.Store {
		client, err := remote.Open(t.Context(), p.grpc, remote.Options{APIKey: strings.TrimSpace(string(key)), Tenant: tenant(t), Plaintext: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		return client.Store()
	})
}

func TestTheKitPassesThroughAGatewayOverSQLite(t *testing.T) { embedded(t).kit(t) }

func TestTheKitPassesThroughAGatewayOverPostgres(t *testing.T) { overPostgres(t, 3).kit(t) }

// overPostgres starts a gateway over Postgres databases.
func overPostgres(t *testing.T, shards int) *process {
	t.Helper()
	dir := t.TempDir()
	config := "shards:\n"
	for i := range shards {
		config += fmt.Sprintf("  - name: shard-%d\n    dsn: %s\n", i, pgtest.Fresh(t, pgtest.ICU).DSN)
	}
	file, key := filepath.Join(dir, "gateway.yaml"), filepath.Join(dir, "admin.key")
	write(t, file, config)
	mustGateway(t, "migrate", "-c", file)
	write(t, key, mustGateway(t, "init", "-c", file, "--cluster", "test"))
	return serve(t, key, "-c", file)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// post calls a method over HTTP as curl would.
func (p *process) post(method, tenant, body string) (status int, answer string) {
	p.Helper()
	key, err := os.ReadFile(p.keyFile)
	if err != nil {
		p.Fatal(err)
	}
	req, err := http.NewRequestWithContext(p.Context(), http.MethodPost, "http://"+p.http+"/loomgate.v1."+method, strings.NewReader(body))
	if err != nil {
		p.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(key)))
	req.Header.Set("Loomgate-Tenant", tenant)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		p.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		p.Fatal(err)
	}
	return res.StatusCode, string(raw)
}

func TestTheLinesThatServePrintsWork(t *testing.T) {
	p := embedded(t)
	p.until("it greets", func() bool { return strings.Contains(p.out.String(), "gateway executions show") })
	greeting := p.out.String()
	body := regexp.MustCompile(`-d '([^']*)'`).FindStringSubmatch(greeting)
	if body == nil || !strings.Contains(greeting, "http://"+p.http+"/loomgate.v1.EventService/Append") || !strings.Contains(greeting, p.keyFile) {
		t.Fatalf("it prints\n%s", greeting)
	}
	for _, want := range []string{`"duplicate":false`, `"duplicate":true`} {
		if status, answer := p.post("EventService/Append", "demo", body[1]); status != http.StatusOK || !strings.Contains(answer, want) {
			t.Errorf("the line is answered %d %s", status, answer)
		}
	}
	out := mustGateway(t, p.client("executions", "show", "order-1", "--tenant", "demo")...)
	if !strings.Contains(out, `"payload":{"total": 12.30}`) {
		t.Errorf("the event is shown as %s", out)
	}
	if info, err := os.Stat(p.keyFile); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file is %v (%v)", info.Mode(), err)
	}
}

func TestACredentialThatIsRefusedTellsNothing(t *testing.T) {
	p := embedded(t)
	mustGateway(t, p.client("tenants", "create", "acme")...)
	read := filepath.Join(t.TempDir(), "read.key")
	write(t, read, mustGateway(t, p.client("apikeys", "create", "--tenant", "acme", "--scopes", "read")...))
	unknown := filepath.Join(t.TempDir(), "unknown.key")
	write(t, unknown, "lg_aaaaaaaaaaaaaaaa_"+strings.Repeat("a", 52))

	as := func(key string, args ...string) (string, int) {
		_, errOut, code := gateway(t, append(args, "--addr", p.grpc, "--key-file", key)...)
		return errOut, code
	}
	want, code := as(unknown, "executions", "list")
	if code != 4 {
		t.Fatalf("an unknown key: exit code %d: %s", code, want)
	}
	for what, args := range map[string][]string{
		"a tenant that is not the key's": {"executions", "list", "--tenant", "demo"},
		"a tenant that there is not":     {"executions", "list", "--tenant", "nobody"},
	} {
		if got, code := as(read, args...); got != want || code != 4 {
			t.Errorf("%s: exit code %d: %s", what, code, got)
		}
	}
	if _, code := as(read, "tenants", "list"); code != 4 {
		t.Errorf("a key that only reads lists tenants: exit code %d", code)
	}
	var id string
	for line := range strings.Lines(mustGateway(t, p.client("apikeys", "list", "-o", "json")...)) {
		var row struct{ ID, Tenants string }
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		if row.Tenants == "acme" {
			id = row.ID
		}
	}
	mustGateway(t, p.client("apikeys", "revoke", id)...)
	if got, code := as(read, "executions", "list"); got != want || code != 4 {
		t.Errorf("a revoked key: exit code %d: %s", code, got)
	}
}

func TestATenantIsDeletedWithEverythingAndItsNameIsNeverUsedAgain(t *testing.T) {
	p := embedded(t)
	mustGateway(t, p.client("tenants", "create", "gone")...)
	file := filepath.Join(t.TempDir(), "log.ndjson")
	write(t, file, `{"executionId":"a","kind":"K","recordedAt":"2024-05-01T09:30:00Z","payload":{}}
{"executionId":"b","kind":"K","recordedAt":"2024-05-01T09:30:00Z","payload":{}}
`)
	mustGateway(t, p.client("import", "--tenant", "gone", file)...)
	if _, _, code := gateway(t, p.client("tenants", "delete", "gone")...); code != 2 {
		t.Errorf("a deletion that nobody confirms: exit code %d", code)
	}
	mustGateway(t, p.client("tenants", "delete", "gone", "--yes")...)
	if _, _, code := gateway(t, p.client("executions", "list", "--tenant", "gone")...); code != 4 {
		t.Errorf("a deleted tenant's calls: exit code %d", code)
	}
	if _, _, code := gateway(t, p.client("tenants", "create", "gone")...); code != 1 {
		t.Errorf("a deleted tenant's name: exit code %d", code)
	}
	if out := mustGateway(t, p.client("tenants", "list")...); !regexp.MustCompile(`gone +purged`).MatchString(out) {
		t.Errorf("the tenants are\n%s", out)
	}
	audit := mustGateway(t, p.client("audit", "-o", "json")...)
	for _, action := range []string{"TenantDisabled", "TenantPurged"} {
		if !strings.Contains(audit, `"action":"`+action+`"`) {
			t.Errorf("the audit trail has no %s:\n%s", action, audit)
		}
	}
	p.stop()
	out := mustGateway(t, "verify", "--data", filepath.Dir(p.keyFile))
	if !strings.Contains(out, "1 executions") { // the gateway's own records
		t.Errorf("after the deletion there is\n%s", out)
	}
}

func TestWhatIsStoredIsThereAfterAStop(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	key := filepath.Join(dir, "admin.key")
	first := serve(t, key, "--data", dir)
	first.post("EventService/Append", "demo", `{"execution":"e","events":[{"id":"e5b9e69b-bbdc-488a-ac11-45ac157370bc","kind":"K","json":"1"}]}`)
	first.stop()
	second := serve(t, key, "--data", dir)
	if out := mustGateway(t, second.client("executions", "list", "--tenant", "demo", "-o", "json")...); out != "{\"id\":\"e\"}\n" {
		t.Errorf("there is %q", out)
	}
	if out := mustGateway(t, "verify", "--data", dir); !strings.Contains(out, " 0 problems") {
		t.Errorf("verify says %s", out)
	}
}
