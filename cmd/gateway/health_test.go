package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loomgate/loomgate/internal/pgtest"
)

func TestHealthSaysByItsExitCodeWhetherAGatewayServes(t *testing.T) {
	c := twoShards(t, pgtest.Options{})
	p := c.serve()
	ask := func(args ...string) (out, errOut string, code int) {
		return gateway(t, append([]string{"health", "--timeout", "1m"}, args...)...)
	}
	if out, errOut, code := ask("--url", "http://"+p.http); code != 0 || out != "the gateway serves\n" {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
	_, port, err := net.SplitHostPort(p.http)
	if err != nil {
		t.Fatal(err)
	}
	for name, listen := range map[string]string{"its own address": p.http, "every address": "0.0.0.0:" + port, "no address": ":" + port} {
		t.Setenv("LOOMGATE_INSECURE_BIND", "true")
		t.Setenv("LOOMGATE_HTTP_LISTEN", listen)
		if out, errOut, code := ask("-c", c.config); code != 0 {
			t.Errorf("a configuration that listens at %s: exit code %d: %s%s", name, code, out, errOut)
		}
	}

	c.victim.Kill9(t)
	p.until("the shard is seen to be dead", func() bool { return !p.readyShards()["shard-a"] })
	if out, _, code := ask("--url", "http://"+p.http); code != 0 || !strings.Contains(out, "shard shard-a does not answer\n") {
		t.Errorf("with a shard down: exit code %d: %s", code, out)
	}
	p.stop()
	if _, errOut, code := ask("--url", "http://"+p.http); code != 5 || !strings.Contains(errOut, "refused") {
		t.Errorf("one that has ended: exit code %d: %s", code, errOut)
	}

	alone := configOf(t, "shard-b postgres://127.0.0.1:1/gone") // where the control records would be
	unready := start(t, "", "-c", alone)
	unready.awaitServing()
	if _, errOut, code := ask("--url", "http://"+unready.http); code != 5 || !strings.Contains(errOut, "does not serve: the control records cannot be read") {
		t.Errorf("one that cannot let anybody in: exit code %d: %s", code, errOut)
	}
	if _, _, code := ask("--url", "127.0.0.1:7071"); code != 2 {
		t.Errorf("no address of HTTP: exit code %d", code)
	}
}

func TestHealthAsksAGatewayWithTLSWithoutKnowingItsName(t *testing.T) {
	dir := t.TempDir()
	selfSigned(t, dir, "server")
	file := filepath.Join(dir, "gateway.yaml")
	write(t, file, "data_dir: data\ntls: {cert_file: server.crt, key_file: server.key}\n")
	p := start(t, "", "-c", file)
	p.awaitServing()
	t.Setenv("LOOMGATE_HTTP_LISTEN", p.http)
	p.until("it is ready", func() bool {
		_, _, code := gateway(t, "health", "-c", file, "--timeout", "1m")
		return code == 0
	})
}

func TestTheFirstKeyIsWrittenToANewFileAndShownNowhere(t *testing.T) {
	config := configOf(t, "shard-a "+pgtest.Fresh(t, pgtest.ICU).DSN)
	mustGateway(t, "migrate", "-c", config)
	dir := t.TempDir()
	taken, key, none := filepath.Join(dir, "taken"), filepath.Join(dir, "admin.key"), filepath.Join(dir, "none", "admin.key")
	write(t, taken, "something else")
	initialise := func(keyFile string) (out, errOut string, code int) {
		return gateway(t, "init", "-c", config, "--cluster", "test", "--key-file", keyFile)
	}
	if _, errOut, code := initialise(taken); code != 1 || !strings.Contains(errOut, "not written over") || read(t, taken) != "something else" {
		t.Errorf("over a file: exit code %d: %s", code, errOut)
	}
	if out, _, code := gateway(t, "check", "-c", config); code == 0 {
		t.Errorf("what was refused has made a cluster:\n%s", out)
	}
	if _, errOut, code := initialise(none); code != 1 {
		t.Errorf("in a folder that there is not: exit code %d: %s", code, errOut)
	}
	out, errOut, code := initialise(key)
	if code != 0 || strings.Contains(out+errOut, "lg_") || !strings.Contains(errOut, key) {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
	if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the file is %v (%v)", info, err)
	}
	text := read(t, key)
	if out, errOut, code := initialise(key); code != 0 || out != "" || read(t, key) != text {
		t.Errorf("again: exit code %d: %s%s", code, out, errOut)
	}
	p := serve(t, key, "-c", config)
	mustGateway(t, p.client("tenants", "create", "demo")...)
}
