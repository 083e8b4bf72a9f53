package config

import (
	"errors"
	"testing"
)

// FuzzLoad finds text that makes the loader panic, or that it takes for something else
// than it then shows.
func FuzzLoad(f *testing.F) {
	f.Add("log: {level: debug}\nshards:\n  - name: a\n    sqlite: /x\n", "LOOMGATE_HTTP_LISTEN", "127.0.0.1:1")
	f.Add("tls: {cert_file: c, key_file: k}\ngrpc:\n  listen: \"[::]:1\"\n", "LOOMGATE_SHARDS_0_NAME", "a")
	f.Add("crypto:\n  keyring_file: |\n    a\n", "LOOMGATE_CRYPTO_SECRET", "hunter2")
	f.Add("shards: [{name: a, dsn: \"host=h dbname=d\"}, {name: b, dsn: postgres://h/e}]", "LOOMGATE_SHARDS_1_POOL_SIZE", "3")
	f.Add("%YAML 1.2\n---\n? a\n: &b !!c *d\n<<: [1.5, ~, 0x1f, .inf]\n# e\n", "LOOMGATE_", "")
	f.Fuzz(func(t *testing.T, text, name, value string) {
		if len(text) > 4<<10 {
			return // the parser takes quadratic time
		}
		c, err := read(text, name+"="+value)
		if err != nil {
			if _, ok := errors.AsType[*InvalidError](err); !ok {
				t.Fatal(err)
			}
			return
		}
		if c.Crypto.Enabled() {
			wantLoadable(t, c, "LOOMGATE_CRYPTO_SECRET=x")
			return
		}
		wantLoadable(t, c)
	})
}
