package inspect_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loomgate/loomgate/backends/postgres"
	"github.com/loomgate/loomgate/cmd/gateway/internal/config"
	"github.com/loomgate/loomgate/cmd/gateway/internal/inspect"
	"github.com/loomgate/loomgate/internal/pgtest"
)

// must returns a value that there has to be.
func must[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}

// issue returns a certificate and its key, PEM, for the address 127.0.0.1, and the
// authority that has signed it.
func issue(t *testing.T) (certificate, key, authority []byte) {
	t.Helper()
	caKey, leafKey := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)), must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "an authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	block := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	return block("CERTIFICATE", must(x509.CreateCertificate(rand.Reader, leaf, ca, leafKey.Public(), caKey))),
		block("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(leafKey))),
		block("CERTIFICATE", must(x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)))
}

// speakTLS lets a server do so from now on.
func speakTLS(t *testing.T, c *pgtest.Cluster, certificate, key []byte) {
	t.Helper()
	conn := must(pgx.Connect(t.Context(), c.SocketDSN("postgres")))
	defer conn.Close(context.Background())
	for name, text := range map[string][]byte{"test.crt": certificate, "test.key": key} {
		// The server writes the files: they have to be its own.
		for _, sql := range []string{
			"CREATE TEMP TABLE IF NOT EXISTS lines (line text)", "TRUNCATE lines",
			fmt.Sprintf("INSERT INTO lines SELECT unnest(string_to_array('%s', E'\\n'))", text),
			fmt.Sprintf("COPY lines TO PROGRAM 'umask 077; cat > %s'", name),
		} {
			if _, err := conn.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, sql := range []string{"ALTER SYSTEM SET ssl_cert_file = 'test.crt'", "ALTER SYSTEM SET ssl_key_file = 'test.key'", "ALTER SYSTEM SET ssl = on"} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	c.Restart(t)
}

// TestAShardThatIsNotWhoItShouldBeIsRefused reaches a Postgres by a certificate of another
// authority, and by a host name that its certificate is not for.
func TestAShardThatIsNotWhoItShouldBeIsRefused(t *testing.T) {
	c := pgtest.Private(t, pgtest.Options{})
	dir := t.TempDir()
	certificate, key, authority := issue(t)
	_, _, another := issue(t)
	for name, text := range map[string][]byte{"own.pem": authority, "another.pem": another} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	database := c.Fresh(t, pgtest.ICU).DSN
	if err := postgres.Migrate(t.Context(), database); err != nil {
		t.Fatal(err)
	}
	name := must(pgx.ParseConfig(database)).Database
	const password = "hunter2-hunter2"
	load := func(host, file string) *config.Config {
		dsn := fmt.Sprintf("postgres://postgres:%s@%s:%d/%s?sslmode=verify-full&sslrootcert=%s", password, host, c.Port, name, filepath.Join(dir, file))
		cfg, err := config.Load(config.Sources{Environ: []string{"LOOMGATE_SHARDS_0_NAME=a", "LOOMGATE_SHARDS_0_DSN=" + dsn}})
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	refused := func(what string, cfg *config.Config, reason string) {
		t.Helper()
		var found string
		for _, f := range inspect.Inspect(t.Context(), cfg) {
			if f.Subject == "connection" && f.Severity == inspect.Bad {
				found = f.Text
			}
		}
		db, err := postgres.Open(t.Context(), cfg.Shards[0].PoolDSN().Reveal())
		if err == nil {
			db.Close()
			t.Errorf("%s: a gateway opens it", what)
			return
		}
		for _, text := range []string{found, err.Error(), fmt.Sprintf("%+v", err)} {
			if !strings.Contains(text, reason) || strings.Contains(text, password) {
				t.Errorf("%s: %q, not %q without the password", what, text, reason)
			}
		}
	}
	refused("a server without TLS", load("127.0.0.1", "own.pem"), "refused TLS")

	speakTLS(t, c, certificate, key)
	refused("a certificate of another authority", load("127.0.0.1", "another.pem"), "unknown authority")
	refused("a certificate for another host", load("localhost", "own.pem"), "wanted to match localhost")

	db, err := postgres.Open(t.Context(), load("127.0.0.1", "own.pem").Shards[0].PoolDSN().Reveal())
	if err != nil {
		t.Fatalf("the right one: %v", err)
	}
	db.Close()
}

func TestAShardOverTheNetworkThatIsNotVerifiedIsWarnedOf(t *testing.T) {
	for dsn, want := range map[string]inspect.Severity{
		"postgres://db.invalid/d?connect_timeout=1&sslmode=require":     inspect.Warning,
		"postgres://db.invalid/d?connect_timeout=1&sslmode=verify-full": inspect.OK,
	} {
		cfg, err := config.Load(config.Sources{Environ: []string{"LOOMGATE_SHARDS_0_NAME=a", "LOOMGATE_SHARDS_0_DSN=" + dsn}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // nothing has to be reached for it
		found := inspect.Severity("")
		for _, f := range inspect.Inspect(ctx, cfg) {
			if f.Subject == "tls" {
				found = f.Severity
			}
		}
		if found != want {
			t.Errorf("%s: %q, not %q", dsn, found, want)
		}
	}
}
