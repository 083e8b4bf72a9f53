package server_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/loomgate/loomgate/backends/postgres"
	"github.com/loomgate/loomgate/cmd/gateway/internal/config"
	"github.com/loomgate/loomgate/cmd/gateway/internal/control"
	"github.com/loomgate/loomgate/cmd/gateway/internal/server"
	"github.com/loomgate/loomgate/cmd/gateway/internal/stack"
	"github.com/loomgate/loomgate/decorators/crypto"
	"github.com/loomgate/loomgate/internal/pgtest"
	"github.com/loomgate/loomgate/internal/throwaway"
)

var migrated = pgtest.NewTemplate(postgres.Migrate)

// A gateway is a server in this process.
type gateway struct {
	*testing.T
	server.Addresses
	databases []pgtest.Database // of shard-0 and shard-1
	key       string
	log       *buffer
	stop      context.CancelFunc // lets it drain and end
}

// A buffer is written by a server while it is read.
type buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// seen starts a gateway over two Postgres databases, with encryption and everything that
// shows it. It ends with the test.
func seen(t *testing.T, spans sdktrace.SpanExporter, more string) *gateway {
	t.Helper()
	dir := t.TempDir()
	text := "grpc: {listen: '127.0.0.1:0'}\nadmin: {listen: '127.0.0.1:0'}\ncrypto: {keyring_file: ring.json, secret_file: secret}\n" + more + "\nshards:\n"
	var databases []pgtest.Database
	for i := range 2 {
		databases = append(databases, migrated.Fresh(t, pgtest.ICU))
		text += fmt.Sprintf("  - {name: shard-%d, dsn: %q}\n", i, databases[i].DSN)
	}
	if _, err := crypto.CreateKeyring(filepath.Join(dir, "ring.json"), []byte("a secret for the keyring")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "gateway.yaml")
	for path, text := range map[string]string{filepath.Join(dir, "secret"): "a secret for the keyring", file: text} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg, err := config.Load(config.Sources{File: file, Environ: []string{"LOOMGATE_HTTP_LISTEN=127.0.0.1:0"}})
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{T: t, databases: databases, log: &buffer{}, key: prepare(t, cfg)}
	ctx, cancel := context.WithCancel(t.Context())
	g.stop = cancel
	serving := make(chan server.Addresses, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- server.Run(ctx, server.Options{
			Config: cfg, Log: slog.New(slog.NewTextHandler(g.log, nil)), Spans: spans,
			Serving: func(at server.Addresses) { serving <- at },
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the gateway: %v", err)
		}
	})
	select {
	case g.Addresses = <-serving:
	case err := <-ended:
		ended <- err
		t.Fatal(err)
	}
	if err := throwaway.AwaitReady(t.Context(), g.Admin.String(), nil); err != nil {
		t.Fatal(err)
	}
	return g
}

// prepare makes a cluster of the databases, with a tenant, and returns a key for it.
func prepare(t *testing.T, cfg *config.Config) string {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	must(stack.Init(t.Context(), cfg, "test"))
	s, err := stack.Open(t.Context(), stack.Options{Config: cfg})
	must(err)
	own, err := s.Tenant(control.Tenant)
	must(err)
	records := control.New(own, control.Options{})
	must(records.Refresh(t.Context()))
	must(records.CreateTenant(t.Context(), control.Actor{APIKey: "test"}, tenant))
	key, err := records.Bootstrap(t.Context(), control.Actor{APIKey: "test"})
	must(err)
	must(s.Close())
	return key
}

const tenant = "acme-incorporated"

// conn returns a connection of gRPC.
func (g *gateway) conn() *grpc.ClientConn {
	g.Helper()
	conn, err := grpc.NewClient(g.GRPC.String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		g.Fatal(err)
	}
	g.Cleanup(func() { conn.Close() })
	return conn
}

// as returns a context with the key and the headers given, for gRPC.
func (g *gateway) as(headers ...string) context.Context {
	return metadata.AppendToOutgoingContext(g.Context(), append([]string{"authorization", "Bearer " + g.key, "loomgate-tenant", tenant}, headers...)...)
}

// post calls a method over HTTP, with the key and the headers given.
func (g *gateway) post(method, body string, headers ...string) *http.Response {
	g.Helper()
	return g.do(http.MethodPost, g.HTTP.String(), "/"+method, body,
		append([]string{"Authorization", "Bearer " + g.key, "Loomgate-Tenant", tenant, "Content-Type", "application/json"}, headers...)...)
}

func (g *gateway) do(method, addr, path, body string, headers ...string) *http.Response {
	g.Helper()
	req, err := http.NewRequestWithContext(g.Context(), method, "http://"+addr+path, strings.NewReader(body))
	if err != nil {
		g.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		g.Fatal(err)
	}
	g.Cleanup(func() { res.Body.Close() })
	return res
}

// get returns what a path of the admin port answers.
func (g *gateway) get(path string) (status int, body string) {
	g.Helper()
	res := g.do(http.MethodGet, g.Admin.String(), path, "")
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		g.Fatal(err)
	}
	return res.StatusCode, string(raw)
}
