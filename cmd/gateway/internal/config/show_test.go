package config

import (
	"reflect"
	"strings"
	"testing"
)

func show(t testing.TB, c *Config) string {
	t.Helper()
	var b strings.Builder
	if err := c.Show(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestShowSaysWhereEachValueCameFrom(t *testing.T) {
	dsnFile := secretFile(t, "postgres://app:hunter2@db2/two?sslpassword=hunter2")
	c, err := load(Sources{
		File:    "gateway.yaml",
		Environ: []string{"LOOMGATE_SHARDS_1_DSN=postgres://app:hunter2@db1,db3:5433/one?sslmode=disable", "LOOMGATE_CRYPTO_SECRET=hunter2"},
		Flags:   []Flag{{"--log-level", "log.level", "debug"}},
	}, `
shards:
  - name: two
    dsn_file: `+dsnFile+`
  - name: one
    pool_size: 3
  - name: three
    sqlite: /x/three.db
crypto:
  keyring_file: /k
`)
	if err != nil {
		t.Fatal(err)
	}
	got := show(t, c)
	wantHidden(t, "Show", got)
	for _, want := range []string{
		"grpc:\n  listen: \"127.0.0.1:7070\"  # default\n",
		"  - name: \"one\"  # gateway.yaml:5:11\n" +
			"    dsn: \"host=db1,db3 port=5432,5433 dbname=one user=app\"  # LOOMGATE_SHARDS_1_DSN\n" +
			"    pool_size: 3  # gateway.yaml:6:16\n" +
			"    behind_pooler: false  # default\n" +
			"  - name: \"three\"  # gateway.yaml:7:11\n" +
			"    sqlite: \"/x/three.db\"  # gateway.yaml:8:13\n" +
			"  - name: \"two\"  # gateway.yaml:3:11\n" +
			"    # dsn: host=db2 port=5432 dbname=two user=app\n" +
			"    dsn_file: \"" + dsnFile + "\"  # gateway.yaml:4:15\n",
		"crypto:\n  keyring_file: \"/k\"  # gateway.yaml:10:17\n  # secret: [redacted]\n  cache_life: 10s  # default\n",
		"  max_message: 80MiB  # default\n",
		"  level: \"debug\"  # --log-level\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("it lacks\n%s", want)
		}
	}
	if t.Failed() {
		t.Log("\n" + got)
	}
}

// values returns every setting's, for comparing.
func values(c *Config) map[string]any {
	all := map[string]any{}
	each(reflect.ValueOf(c).Elem(), "", func(path string, f reflect.StructField, v reflect.Value) {
		if f.Type != secretType {
			all[path] = v.Interface()
		}
	})
	return all
}

// wantLoadable loads what Show writes, and expects the same.
func wantLoadable(t testing.TB, c *Config, environ ...string) {
	t.Helper()
	text := show(t, c)
	again, err := read(text, environ...)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if want, got := values(c), values(again); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

func TestWhatIsShownCanBeLoaded(t *testing.T) {
	wantLoadable(t, mustRead(t, ""))
	wantLoadable(t, mustRead(t, `
grpc: {listen: "[::]:0"}
tls: {cert_file: "/a b/c: \"d\" # e.pem", key_file: /k}
placement: tenant
coalescing: false
crypto: {keyring_file: /r, cache_life: 90s}
deadlines: {drain: 0s}
control: {poll: 1500ms, max_staleness: 24h}
shards:
  - {name: b, sqlite: "/x/ü'\\.db"}
  - {name: a, dsn: "host='a b' dbname='it\\'s'", behind_pooler: true}
`, "LOOMGATE_CRYPTO_SECRET=hunter2"), "LOOMGATE_CRYPTO_SECRET=hunter2")
}
