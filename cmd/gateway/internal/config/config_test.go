package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// read loads text as the file gateway.yaml, with variables.
func read(text string, environ ...string) (*Config, error) {
	return load(Sources{File: "gateway.yaml", Environ: environ}, text)
}

func mustRead(t *testing.T, text string, environ ...string) *Config {
	t.Helper()
	c, err := read(text, environ...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// secretFile makes a file that holds text, and returns its path.
func secretFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestNothingGivenRunsOnLoopbackAndEmbeddedShards(t *testing.T) {
	c, err := Load(Sources{Environ: []string{"PATH=/bin"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{c.GRPC.Listen, c.HTTP.Listen} {
		if host, _ := splitAddress(address); !loopback(host) {
			t.Errorf("listens on %s", address)
		}
	}
	if len(c.Shards) == 0 {
		t.Fatal("no shards")
	}
	for _, s := range c.Shards {
		if filepath.Dir(s.SQLite) != c.DataDir || !filepath.IsAbs(s.SQLite) {
			t.Errorf("shard %s is in %s, not in %s", s.Name, s.SQLite, c.DataDir)
		}
	}
	if c.Crypto.Enabled() || c.TLS.Enabled() || !c.Coalescing || c.Placement != PlaceByExecution {
		t.Errorf("%+v", c)
	}
}

func TestEachSourceCountsMoreThanTheOneBelow(t *testing.T) {
	const file = "http: {listen: 127.0.0.1:1}"
	environ := []string{"LOOMGATE_HTTP_LISTEN=127.0.0.1:2"}
	flags := []Flag{{"--http-listen", "http.listen", "127.0.0.1:3"}}
	for _, c := range []struct {
		from         Sources
		text         string
		want, origin string
	}{
		{Sources{}, "", "127.0.0.1:7071", "default"},
		{Sources{File: "gateway.yaml"}, file, "127.0.0.1:1", "gateway.yaml:1:16"},
		{Sources{File: "gateway.yaml", Environ: environ}, file, "127.0.0.1:2", "LOOMGATE_HTTP_LISTEN"},
		{Sources{File: "gateway.yaml", Environ: environ, Flags: flags}, file, "127.0.0.1:3", "--http-listen"},
	} {
		got, err := load(c.from, c.text)
		if err != nil {
			t.Fatal(err)
		}
		if origin := got.origins["http.listen"].String(); got.HTTP.Listen != c.want || origin != c.origin {
			t.Errorf("%s from %s, want %s from %s", got.HTTP.Listen, origin, c.want, c.origin)
		}
	}
}

func TestVariablesAloneMakeShards(t *testing.T) {
	c := mustRead(t, "",
		"LOOMGATE_SHARDS_0_NAME=a", "LOOMGATE_SHARDS_0_DSN=postgres://u:hunter2@h/a",
		"LOOMGATE_SHARDS_1_NAME=b", "LOOMGATE_SHARDS_1_DSN=host=h dbname=b", "LOOMGATE_SHARDS_1_POOL_SIZE=3")
	if len(c.Shards) != 2 || c.Shards[0].DSN.Reveal() != "postgres://u:hunter2@h/a" || c.Shards[1].PoolSize != 3 || c.Shards[0].PoolSize != 16 {
		t.Errorf("%+v", c.Shards)
	}
}

func TestTheOrderOfShardsMeansNothing(t *testing.T) {
	const a, b = "  - {name: a, sqlite: /x/a.db}\n", "  - {name: b, sqlite: /x/b.db}\n"
	one, other := mustRead(t, "shards:\n"+a+b), mustRead(t, "shards:\n"+b+a)
	for i := range one.Shards {
		if one.Shards[i] != other.Shards[i] {
			t.Errorf("shard %d is %v and %v", i, one.Shards[i].Name, other.Shards[i].Name)
		}
	}
	if got := other.origins["shards[0].name"].Line; got != 3 {
		t.Errorf("the origin of a is line %d", got)
	}
}

func TestPathsInTheFileAreRelativeToIt(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.dsn"), []byte("postgres://u:hunter2@h/a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "gateway.yaml")
	if err := os.WriteFile(file, []byte("data_dir: data\nshards: [{name: a, dsn_file: a.dsn}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(Sources{File: file, Environ: []string{"LOOMGATE_TLS_CERT_FILE=x.crt", "LOOMGATE_TLS_KEY_FILE=x.key"}})
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if c.DataDir != filepath.Join(dir, "data") || c.TLS.CertFile != filepath.Join(here, "x.crt") {
		t.Errorf("data in %s, certificate in %s", c.DataDir, c.TLS.CertFile)
	}
	if got := c.Shards[0].DSN.Reveal(); got != "postgres://u:hunter2@h/a" {
		t.Errorf("the DSN of the file is %q", got)
	}
}

func TestThePoolsSizeIsPartOfTheDSN(t *testing.T) {
	for dsn, want := range map[string]string{
		"postgres://u@h/d":                  "postgres://u@h/d?pool_max_conns=7",
		"postgres://u@h/d?":                 "postgres://u@h/d?pool_max_conns=7",
		"postgresql://u@h/d?sslmode=prefer": "postgresql://u@h/d?sslmode=prefer&pool_max_conns=7",
		"host=h dbname=d":                   "host=h dbname=d pool_max_conns=7",
	} {
		got := Shard{DSN: NewSecret(dsn), PoolSize: 7}.PoolDSN().Reveal()
		d, ok := parseDSN(got)
		if got != want || !ok || !d.pool {
			t.Errorf("%s: %s, %v", dsn, got, d)
		}
	}
}

func TestEveryKindOfValueIsRead(t *testing.T) {
	secret := secretFile(t, "open sesame\n")
	c := mustRead(t, `
grpc: {listen: "[::1]:0"}
tls: {cert_file: /c, key_file: /k}
insecure_bind: true
placement: tenant
crypto: {keyring_file: /r, secret_file: `+secret+`, cache_life: 1m30s}
coalescing: false
limits: {max_message: 16MiB}
log: {level: debug, format: json, slow_call: 250ms}
telemetry: {traces: {sample_ratio: 0.25}, tenants: [acme, "b c"]}
shards:
  - name: a
    dsn: host=h dbname=a
    pool_size: 256
    behind_pooler: true
`, "LOOMGATE_LIMITS_MAX_MESSAGE=65536", "LOOMGATE_HTTP_CORS_ORIGINS=https://a.example, http://localhost:3000")
	if c.Telemetry.Traces.SampleRatio != 0.25 || !slices.Equal(c.Telemetry.Tenants, Texts{"acme", "b c"}) ||
		!slices.Equal(c.HTTP.CORSOrigins, Texts{"https://a.example", "http://localhost:3000"}) {
		t.Errorf("%+v, origins %q", c.Telemetry, c.HTTP.CORSOrigins)
	}
	if c.GRPC.Listen != "[::1]:0" || !c.InsecureBind || c.Placement != PlaceByTenant || c.Coalescing || c.Log != (Log{"debug", "json", 250 * time.Millisecond}) {
		t.Errorf("%+v", c)
	}
	if c.Crypto.Secret.Reveal() != "open sesame" || c.Crypto.CacheLife != 90*time.Second || c.Limits.MaxMessage != 64<<10 {
		t.Errorf("%+v", c)
	}
	if s := c.Shards[0]; s.PoolSize != 256 || !s.BehindPooler {
		t.Errorf("%+v", s)
	}
}

func TestWindowsLinesAndAByteOrderMarkAreText(t *testing.T) {
	c := mustRead(t, "\ufefflog:\r\n  level: warn\r\n")
	if c.Log.Level != "warn" || c.origins["log.level"] != (Origin{"gateway.yaml", 2, 10}) {
		t.Errorf("%q from %v", c.Log.Level, c.origins["log.level"])
	}
}

func TestTheExampleHasEverySetting(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"eu-1.dsn": "postgres://loomgate:hunter2@eu-1.internal/loomgate\n", "keyring.secret": "open sesame\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	example := exampleText(t)
	c, err := load(Sources{File: filepath.Join(dir, "gateway.yaml")}, example)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Shards) != 3 || !c.Crypto.Enabled() || !c.TLS.Enabled() {
		t.Errorf("%+v", c)
	}
	values := exampleValues(t)
	for _, s := range settings {
		if values[s.path] == "" && s.path != "crypto.secret" {
			t.Errorf("the example has no %s", s.path)
		}
	}
}

func exampleText(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// exampleValues returns what the example gives each setting, the first for a list.
func exampleValues(t *testing.T) map[string]string {
	t.Helper()
	r := &reading{values: map[string]given{}, places: map[string]Origin{}}
	r.readYAML("example.yaml", exampleText(t))
	values := map[string]string{}
	lines := strings.Split(exampleText(t), "\n")
	first := map[string]int{}
	for path, v := range r.values {
		path = anyElement(path)
		if line, again := first[path]; !again || v.origin.Line < line {
			first[path] = v.origin.Line
			_, value, _ := strings.Cut(lines[v.origin.Line-1], ": ")
			values[path], _, _ = strings.Cut(value, " #")
		}
	}
	return values
}
