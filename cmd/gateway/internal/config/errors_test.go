package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// wantProblems compares everything that is wrong with the lines of want.
func wantProblems(t *testing.T, err error, want ...string) {
	t.Helper()
	if _, ok := errors.AsType[*InvalidError](err); !ok {
		t.Errorf("no InvalidError: %v; want %q", err, want)
		return
	}
	if got := err.Error(); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

func TestEverythingWrongInAFileIsSaidOnceWithItsPlace(t *testing.T) {
	_, err := read(`grpc:
  lisen: 127.0.0.1:1
  listen: 127.0.0.1:2
  listen: 127.0.0.1:3
http: 7071
insecure_bind: yes
coalescing: 1
control:
  poll: 5
  max_staleness: 10h30
limits: {max_message: 3 elephants}
log:
  level: loud
  format: 1
shards:
  - name: a
    dsn: host=h dbname=a
    pool_size: 0
  - name: a
    sqlite: /x/b.db
    pool_size: 4
  - sqlite: /x/c.db
    dsn: host=h dbname=c
  - name: Ü
    dsn:
  - name: e
    dsn: host
  - name: f
    dsn: host=h dbname=f pool_max_conns=3
    pool_size: many
  - 7
colour: [1]
"two\nlines": 1
placement: [execution]
deadlines: {call: 2s, drain: -1s}
`)
	wantProblems(t, err,
		"gateway.yaml:2:3: grpc.lisen is no setting; did you mean listen?",
		"gateway.yaml:4:3: grpc.listen is given twice, first in line 3",
		"gateway.yaml:5:7: http is a number, not settings",
		"gateway.yaml:6:16: insecure_bind is text, neither true nor false",
		"gateway.yaml:7:13: coalescing is a number, neither true nor false",
		"gateway.yaml:9:9: control.poll is no duration, such as 300ms, 5s or 1h30m",
		"gateway.yaml:10:18: control.max_staleness is no duration, such as 300ms, 5s or 1h30m",
		"gateway.yaml:11:23: limits.max_message is no size, such as 65536, 64KiB or 8MiB",
		"gateway.yaml:13:10: log.level is not debug or info or warn or error",
		"gateway.yaml:14:11: log.format is a number, not text: write it in quotes",
		"gateway.yaml:18:16: shards[0].pool_size is not in 1 to 256",
		"gateway.yaml:19:11: shards[1].name is that of shards[0]",
		"gateway.yaml:21:16: shards[1].pool_size is for a Postgres",
		"gateway.yaml:22:5: shards[2] names a Postgres and a SQLite",
		"gateway.yaml:22:5: shards[2].name is not 1 to 63 small letters, digits and hyphens",
		"gateway.yaml:24:5: shards[3] names no database: give dsn, dsn_file or sqlite",
		"gateway.yaml:24:11: shards[3].name is not 1 to 63 small letters, digits and hyphens",
		"gateway.yaml:25:9: shards[3].dsn is empty",
		"gateway.yaml:27:10: shards[4].dsn is no DSN of Postgres, such as postgres://user@host:5432/database",
		"gateway.yaml:29:10: shards[5].dsn sets pool_max_conns: give pool_size instead",
		"gateway.yaml:30:16: shards[5].pool_size is text, not a number",
		"gateway.yaml:31:5: shards[6] is a number, not settings",
		"gateway.yaml:32:1: colour is no setting",
		"gateway.yaml:33:1: has a key that is no name",
		"gateway.yaml:34:12: placement is a list",
		"gateway.yaml:35:30: deadlines.drain is not in 0s to 1h",
	)
}

func TestWhatIsNotASettingIsNotAVariable(t *testing.T) {
	_, err := read("",
		"LOOMGATE_HTTP_LISTN=x",
		"LOOMGATE_SHARDS_0_DNS=x",
		"LOOMGATE_SHARDS_N_DSN=x",
		"LOOMGATE_SHARDS_00_DSN=x",
		"LOOMGATE_=x",
		"LOOMGATE_NOTHING_LIKE_IT=x",
		"LOOMGATE_SHARDS_1_NAME=b",
		"LOOMGATE_LOG_LEVEL=",
		"LOOMGATE_ADDR=x", "LOOMGATE_KEY=x", "OTHER=x")
	wantProblems(t, err,
		"LOOMGATE_: is no variable of the gateway",
		"LOOMGATE_HTTP_LISTN: is no variable of the gateway; did you mean LOOMGATE_HTTP_LISTEN?",
		"LOOMGATE_LOG_LEVEL: log.level is not debug or info or warn or error",
		"LOOMGATE_NOTHING_LIKE_IT: is no variable of the gateway",
		"LOOMGATE_SHARDS_00_DSN: is no variable of the gateway; did you mean LOOMGATE_SHARDS_0_DSN?",
		"LOOMGATE_SHARDS_0_DNS: is no variable of the gateway; did you mean LOOMGATE_SHARDS_0_DSN?",
		"LOOMGATE_SHARDS_1_NAME: shards[1] is given, but not shards[0]",
		"LOOMGATE_SHARDS_N_DSN: is no variable of the gateway; did you mean LOOMGATE_SHARDS_0_DSN?",
	)
}

func TestVariablesThatKubernetesSetsForServicesAreNone(t *testing.T) {
	mustRead(t, "",
		"LOOMGATE_SERVICE_HOST=10.0.0.1", "LOOMGATE_SERVICE_PORT=7070", "LOOMGATE_SERVICE_PORT_GRPC=7070",
		"LOOMGATE_PORT=tcp://10.0.0.1:7070", "LOOMGATE_PORT_7070_TCP=tcp://10.0.0.1:7070",
		"LOOMGATE_PORT_7070_TCP_PROTO=tcp", "LOOMGATE_PORT_7070_TCP_PORT=7070", "LOOMGATE_PORT_7070_TCP_ADDR=10.0.0.1",
		"LOOMGATE_HTTP_SERVICE_HOST=10.0.0.1", "LOOMGATE_HTTP_PORT=tcp://10.0.0.1:80")
	_, err := read("", "LOOMGATE_HTTP_PORT=80")
	wantProblems(t, err, "LOOMGATE_HTTP_PORT: is no variable of the gateway; did you mean LOOMGATE_HTTP_LISTEN?")
}

func TestAFlagIsASetting(t *testing.T) {
	_, err := load(Sources{Flags: []Flag{{"--colour", "colour", "red"}, {"--secret", "crypto.secret", "hunter2"}, {"--dsn", "shards[0].dsn", "postgres://u:hunter2@h/d"}}}, "")
	wantProblems(t, err,
		"--colour: colour is no setting",
		"--dsn: shards[0].dsn holds a password: give it by dsn_file or LOOMGATE_SHARDS_0_DSN",
		"--dsn: shards[0].name is not 1 to 63 small letters, digits and hyphens",
		"--secret: crypto.secret is not for a file or a flag: give it by crypto.secret_file or LOOMGATE_CRYPTO_SECRET",
	)
}

func TestAFileThatIsNoConfigurationIsRefusedWhereItGoesWrong(t *testing.T) {
	for text, want := range map[string]string{
		"a: \"x\n":                      "gateway.yaml:1:4: could not find end character of double-quoted text",
		"log:\n\tlevel: info\n":         "gateway.yaml:2:1: found character '\t' that cannot start any token",
		"log: {}\n---\nhttp: {}\n":      "gateway.yaml:3:1: begins a second document",
		"log: &a {}\n":                  "gateway.yaml:1:6: log is an anchor, an alias or a tag, not settings",
		"log: *a\n":                     "gateway.yaml:1:6: log is an anchor, an alias or a tag, not settings",
		"log: {level: !!str info}":      "gateway.yaml:1:14: log.level is an anchor, an alias or a tag",
		"<<: {}\n":                      "gateway.yaml:1:1: has a key that is no name",
		"? log\n: {}\n":                 "gateway.yaml:1:1: has a key that is no name",
		"- log\n":                       "gateway.yaml:1:1: is a list, not settings",
		"info\n":                        "gateway.yaml:1:1: is text, not settings",
		"log: {level: \"\xff\"}":        "gateway.yaml:1:1: the file is not well-formed UTF-8",
		"log: {level: \"a\\u0000\"}":    "gateway.yaml:1:14: log.level has a control character",
		strings.Repeat("# long\n", 1e5): "gateway.yaml:1:1: the file is larger than 262144 bytes",
	} {
		_, err := read(text)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.20q: %v; want %s", text, err, want)
		}
	}
}

func TestAddressesThatOthersReachNeedTLSOrPermission(t *testing.T) {
	const refused = " is not on loopback, and there is no TLS: give tls.cert_file and tls.key_file, or allow it by insecure_bind"
	for _, host := range []string{"", "0.0.0.0", "[::]", "10.0.0.1", "gateway.internal", "localhost.example", "[::ffff:10.0.0.1]"} {
		_, err := read("grpc: {listen: \"" + host + ":1\"}")
		wantProblems(t, err, "gateway.yaml:1:16: grpc.listen"+refused)
		_, err = read("http: {listen: \"" + host + ":1\"}")
		wantProblems(t, err, "gateway.yaml:1:16: http.listen"+refused)
		mustRead(t, "insecure_bind: true\nhttp: {listen: \""+host+":1\"}")
		mustRead(t, "tls: {cert_file: c, key_file: k}\nhttp: {listen: \""+host+":1\"}")
	}
	for _, host := range []string{"127.0.0.1", "127.9.9.9", "localhost", "LOCALHOST", "[::1]", "[::ffff:127.0.0.1]"} {
		mustRead(t, "http: {listen: \""+host+":1\"}")
	}
	mustRead(t, "grpc: {listen: \"127.0.0.1:0\"}\nhttp: {listen: \"127.0.0.1:0\"}")
	for _, address := range []string{"7070", ":", "h:", "h:x", "h:70000", "[::1:1", "::1:1", "a b:1", "[h]:1", "http://h:1"} {
		_, err := read("insecure_bind: true\nhttp: {listen: \"" + address + "\"}")
		wantProblems(t, err, "gateway.yaml:2:16: http.listen is no address, such as 127.0.0.1:7070")
	}
}

func TestHalfOfAPairIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"tls: {cert_file: c}":                     "gateway.yaml:1:18: tls.cert_file is given without tls.key_file",
		"tls: {key_file: k}":                      "gateway.yaml:1:17: tls.key_file is given without tls.cert_file",
		"crypto: {keyring_file: r}":               "gateway.yaml:1:24: crypto.keyring_file is given without crypto.secret_file or LOOMGATE_CRYPTO_SECRET",
		"http: {listen: 127.0.0.1:7070}":          "gateway.yaml:1:16: http.listen is grpc.listen too",
		"control: {poll: 1m, max_staleness: 90s}": "gateway.yaml:1:36: control.max_staleness is less than two of control.poll: the copy would be too old between them",
	} {
		_, err := read(text)
		wantProblems(t, err, want)
	}
	_, err := read("", "LOOMGATE_CRYPTO_SECRET=hunter2")
	wantProblems(t, err, "LOOMGATE_CRYPTO_SECRET: crypto.keyring_file is missing, but there is a secret for it")
	mustRead(t, "crypto: {keyring_file: r}", "LOOMGATE_CRYPTO_SECRET=hunter2")
}

func TestAFileOfASecretHoldsOne(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	for path, want := range map[string]string{
		missing:                                 "cannot be read: no such file or directory",
		secretFile(t, "\n"):                     "is an empty file",
		secretFile(t, strings.Repeat("x", 1e5)): "cannot be read: it is larger than 65536 bytes",
	} {
		_, err := read("crypto: {keyring_file: r, secret_file: " + path + "}")
		wantProblems(t, err, "gateway.yaml:1:40: crypto.secret_file "+want)
	}
	_, err := read("crypto: {keyring_file: r, secret_file: "+secretFile(t, "x")+"}", "LOOMGATE_CRYPTO_SECRET=y")
	wantProblems(t, err, "gateway.yaml:1:40: crypto.secret_file is given, and crypto.secret too")

	if _, err := Load(Sources{File: missing}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestAPasswordIsNotForTheFile(t *testing.T) {
	const refused = "gateway.yaml:1:25: shards[0].dsn holds a password: give it by dsn_file or LOOMGATE_SHARDS_0_DSN"
	for _, dsn := range []string{
		"postgres://u:hunter2@h/d", "postgresql://u:@h/d", "postgres://h/d?password=hunter2", "postgres://h/d?%70assword=hunter2", "postgres://h/d?sslpassword=hunter2",
		"host=h password=hunter2", "password = 'hunter2' host=h", "host=h sslpassword=hunter2",
	} {
		_, err := read("shards: [{name: a, dsn: \"" + dsn + "\"}]")
		wantProblems(t, err, refused)
		path := secretFile(t, dsn)
		mustRead(t, "shards: [{name: a, dsn_file: "+path+"}]")
		mustRead(t, "shards: [{name: a}]", "LOOMGATE_SHARDS_0_DSN="+dsn)
	}
	for _, dsn := range []string{"postgres://u@h:port/d", "postgres://u@[h/d", "host=h port=x", "postgres", "h"} {
		_, err := read("shards: [{name: a, dsn: \"" + dsn + "\"}]")
		wantProblems(t, err, "gateway.yaml:1:25: shards[0].dsn is no DSN of Postgres, such as postgres://user@host:5432/database")
	}
	for _, dsn := range []string{"postgres://u@h/d", "host=h user=u passfile=/x", "postgres://h/d?passfile=/x"} {
		mustRead(t, "shards: [{name: a, dsn: \""+dsn+"\"}]")
	}
}

func TestSwappedLettersAreRecognised(t *testing.T) {
	_, err := read("shards: [{name: a, sqlite: /x, dns: y}]")
	wantProblems(t, err, "gateway.yaml:1:32: shards[0].dns is no setting; did you mean dsn?")
}

func TestOneDatabaseNamedTwiceIsRefusedHoweverItIsSpelt(t *testing.T) {
	same := [][]string{
		{"postgres://u@db1:5432/d", "postgresql://other@db1/d?sslmode=disable", "host=db1 dbname=d", "host=DB1. port=5432 dbname='d'", "host=db0,db1 port=1,5432 dbname=d", "postgres://db1/%64"},
		{"postgres://localhost/d", "host=127.0.0.1 dbname=d", "postgres://[::1]/d", "postgres://[::ffff:127.0.0.1]:5432/d"},
		{"postgres://[fd00::1]/d", "host=fd00:0:0::1 dbname=d"},
		{"host=/run/pg dbname=d", "postgres:///d?host=/run/pg"},
	}
	const two = "shards:\n  - name: a\n    dsn: %a\n  - name: b\n    dsn: %b\n"
	for _, group := range same {
		for _, a := range group {
			for _, b := range group {
				_, err := read(strings.NewReplacer("%a", a, "%b", b).Replace(two))
				wantProblems(t, err, "gateway.yaml:4:5: shards[1] is the database of shards[0]")
			}
		}
	}
	for _, b := range []string{"host=db1 dbname=D", "host=db1 dbname=d port=5433", "host=db2 dbname=d", "host=127.0.0.2 dbname=d"} {
		mustRead(t, strings.NewReplacer("%a", same[0][0], "%b", b).Replace(two))
	}

	mustRead(t, "shards: [{name: a, dsn: \"host=localhost,127.0.0.1 dbname=d\"}]")

	dir := t.TempDir()
	if err := os.Symlink(dir, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/a.db", "/./a.db", "/x/../a.db", "/link/a.db", "/link/link/a.db"} {
		_, err := read("shards: [{name: a, sqlite: " + dir + "/a.db}, {name: b, sqlite: " + dir + path + "}]")
		if err == nil || !strings.HasSuffix(err.Error(), "shards[1] is the database of shards[0]") {
			t.Errorf("%s: %v", path, err)
		}
	}
	_, err := read("", "LOOMGATE_SHARDS_0_NAME=a", "LOOMGATE_SHARDS_0_DSN=host=h", "LOOMGATE_SHARDS_1_NAME=b", "LOOMGATE_SHARDS_1_DSN=host=h")
	wantProblems(t, err, "LOOMGATE_SHARDS_1_DSN: shards[1] is the database of shards[0]")
}
