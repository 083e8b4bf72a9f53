package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// encrypted starts a gateway over two SQLite shards, with a keyring.
func encrypted(t *testing.T) *process {
	t.Helper()
	dir := t.TempDir()
	file, key := filepath.Join(dir, "gateway.yaml"), filepath.Join(dir, "admin.key")
	write(t, filepath.Join(dir, "secret"), "a secret of the tests, long enough")
	write(t, file, `shards:
  - {name: shard-a, sqlite: a.db}
  - {name: shard-b, sqlite: b.db}
crypto: {keyring_file: keyring, secret_file: secret, cache_life: 1s}
`)
	mustGateway(t, "keyring", "create", "-c", file)
	write(t, key, mustGateway(t, "init", "-c", file, "--cluster", "test"))
	return serve(t, key, "-c", file)
}

// A certificate is what a shredding proves, as it is printed.
type certificate struct {
	Undecryptable, DryRun bool
	Findings              struct{ Encrypted, Shredded, Unencrypted string }
	Shards, Remains       []string
	By                    string
}

func readCertificate(t *testing.T, out string) (c certificate) {
	t.Helper()
	if err := json.Unmarshal([]byte(out), &c); err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	return c
}

func TestKeysAreRotatedAndShreddedWithACertificateAndARecord(t *testing.T) {
	p := encrypted(t)
	mustGateway(t, p.client("tenants", "create", "demo")...)
	for i := range 3 {
		if status, answer := p.appendOne(fmt.Sprint("e", i), `"told in confidence"`); status != http.StatusOK {
			t.Fatal(status, answer)
		}
	}
	read := func(id string) (string, int) {
		out, _, code := gateway(t, p.client("executions", "show", id, "--tenant", "demo")...)
		return out, code
	}
	rotated := mustGateway(t, p.client("tenants", "rotate-key", "demo", "-o", "json")...)
	if !strings.Contains(rotated, `"retired":"[2]"`) || !strings.Contains(rotated, `"lost":0`) {
		t.Errorf("a rotation tells %s", rotated)
	}
	if out, code := read("e0"); code != 0 || !strings.Contains(out, "told in confidence") {
		t.Errorf("after a rotation it reads %s", out)
	}

	before := readCertificate(t, mustGateway(t, p.client("tenants", "shred", "demo", "--dry-run")...))
	if !before.DryRun || before.Undecryptable || before.Findings.Encrypted != "3" {
		t.Errorf("a dry run says %+v", before)
	}
	if _, _, code := gateway(t, p.client("executions", "shred", "e0", "--tenant", "demo")...); code != 2 {
		t.Errorf("a shredding that nobody confirms: exit code %d", code)
	}
	one := readCertificate(t, mustGateway(t, p.client("executions", "shred", "e0", "--tenant", "demo", "--yes")...))
	if one.DryRun || !one.Undecryptable || one.Findings.Shredded != "1" || len(one.Shards) != 2 || len(one.Remains) == 0 || one.By == "" {
		t.Errorf("a certificate says %+v", one)
	}
	if out, code := read("e0"); code == 0 || strings.Contains(out, "confidence") {
		t.Errorf("a shredded execution reads %s", out)
	}
	if out, code := read("e1"); code != 0 || !strings.Contains(out, "told in confidence") {
		t.Errorf("another execution reads %s", out)
	}
	if _, _, code := gateway(t, p.client("executions", "shred", "nothing", "--tenant", "demo", "--yes")...); code != 1 {
		t.Errorf("an execution that there is not: exit code %d", code)
	}

	all := readCertificate(t, mustGateway(t, p.client("tenants", "shred", "demo", "--yes")...))
	if !all.Undecryptable || all.Findings.Shredded != "3" || all.Findings.Encrypted != "0" {
		t.Errorf("a certificate says %+v", all)
	}
	if out, code := read("e1"); code == 0 || strings.Contains(out, "confidence") {
		t.Errorf("a shredded tenant's execution reads %s", out)
	}
	if status, answer := p.appendOne("e9", "1"); status == http.StatusOK {
		t.Errorf("a shredded tenant writes: %s", answer)
	}

	audit := mustGateway(t, p.client("audit", "-o", "json")...)
	for _, want := range []string{`"action":"TenantKeyRotated"`, `"action":"ExecutionShredded"`, `"execution":"e0"`, `"action":"TenantShredded"`} {
		if !strings.Contains(audit, want) {
			t.Errorf("the audit trail has no %s:\n%s", want, audit)
		}
	}
	if strings.Contains(p.log.String(), "confidence") {
		t.Error("a payload is in the log")
	}
}

// read returns what a file holds.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestARotationOfTheKeyringLeavesARecordBeforeItIsDone(t *testing.T) {
	p := encrypted(t)
	dir := filepath.Dir(p.keyFile)
	file, ring := filepath.Join(dir, "gateway.yaml"), filepath.Join(dir, "keyring")
	before := read(t, ring)
	mustGateway(t, "keyring", "rotate", "-c", file)
	if read(t, ring) == before {
		t.Error("the keyring is as it was")
	}
	audit := mustGateway(t, p.client("audit", "-o", "json")...)
	if !strings.Contains(audit, `"action":"KeyringRotated"`) || !strings.Contains(audit, `"by":"local:`) {
		t.Errorf("the audit trail has no record of it:\n%s", audit)
	}

	alone := filepath.Join(dir, "alone.yaml") // databases that nobody has made a cluster of
	write(t, alone, "shards: [{name: a, sqlite: x.db}]\ncrypto: {keyring_file: keyring, secret_file: secret}\n")
	before = read(t, ring)
	if _, _, code := gateway(t, "keyring", "rotate", "-c", alone); code == 0 || read(t, ring) != before {
		t.Errorf("without a record: exit code %d", code)
	}
}

func TestWhereNothingIsEncryptedNothingIsShredded(t *testing.T) {
	p := embedded(t)
	_, errOut, code := gateway(t, p.client("tenants", "shred", "demo", "--yes")...)
	if code != 1 || !strings.Contains(errOut, "keyring") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
}
