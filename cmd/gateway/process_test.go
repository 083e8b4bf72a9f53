package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/loomgate/loomgate/cmd/gateway/internal/commands"
	"github.com/loomgate/loomgate/cmd/gateway/internal/throwaway"
)

// asGateway in the environment makes the test binary the gateway.
const asGateway = "GATEWAY_TEST_PROCESS"

func TestMain(m *testing.M) {
	if os.Getenv(asGateway) != "" {
		os.Exit(commands.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// command returns a command of the gateway, as a process of its own.
func command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), asGateway+"=1")
	return cmd
}

// gateway runs a command to its end, and returns what it printed and its exit code.
func gateway(t *testing.T, args ...string) (out, errOut string, code int) {
	t.Helper()
	cmd := command(t.Context(), args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return stdout.String(), stderr.String(), code
}

// mustGateway is gateway for a command that has to succeed.
func mustGateway(t *testing.T, args ...string) string {
	t.Helper()
	out, errOut, code := gateway(t, args...)
	if code != 0 {
		t.Fatalf("gateway %s: exit code %d: %s", strings.Join(args, " "), code, errOut)
	}
	return out
}

// A process is a gateway that serves.
type process struct {
	*testing.T
	cmd        *exec.Cmd
	grpc, http string
	keyFile    string
	out, log   *lockedBuffer
	exited     chan error
}

// serve starts a gateway with the arguments given, on addresses of its own, and waits
// until it is ready. It ends with the test.
func serve(t *testing.T, keyFile string, args ...string) *process {
	t.Helper()
	p := &process{T: t, keyFile: keyFile, out: &lockedBuffer{}, log: &lockedBuffer{}, exited: make(chan error, 1)}
	for _, addr := range []*string{&p.grpc, &p.http} {
		var err error
		if *addr, err = throwaway.FreeAddress(); err != nil {
			t.Fatal(err)
		}
	}
	p.cmd = command(context.Background(), append([]string{"serve", "--grpc-listen", p.grpc, "--http-listen", p.http}, args...)...)
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.exited <- p.cmd.Wait() }()
	t.Cleanup(p.stop)
	p.await()
	return p
}

// embedded starts a gateway without a configuration.
func embedded(t *testing.T) *process {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	return serve(t, filepath.Join(dir, "admin.key"), "--data", dir)
}

// await waits until the gateway is ready.
func (p *process) await() {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), time.Minute)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.http+"/readyz", http.NoBody)
		if err != nil {
			p.Fatal(err)
		}
		if res, err := http.DefaultClient.Do(req); err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case err := <-p.exited:
			p.exited <- err
			p.Fatalf("the gateway has ended: %v\n%s", err, p.log)
		case <-ctx.Done():
			p.Fatalf("the gateway does not get ready:\n%s", p.log)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// stop asks the gateway to end and waits for it. A race that it has found fails the test.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	err := <-p.exited
	p.exited <- err
	if strings.Contains(p.log.String(), "DATA RACE") {
		p.Errorf("the gateway has a race:\n%s", p.log)
	}
}

// client returns a command's arguments with those that reach this gateway.
func (p *process) client(args ...string) []string {
	return append(args, "--addr", p.grpc, "--key-file", p.keyFile)
}

// A lockedBuffer is written by a process while it is read.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
