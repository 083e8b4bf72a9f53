package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/loomgate/loomgate/cmd/gateway/internal/commands"
	"github.com/loomgate/loomgate/internal/throwaway"
	"github.com/loomgate/loomgate/spi"
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
	return gatewayIn(t, nil, args...)
}

// gatewayIn is gateway with more in the environment.
func gatewayIn(t *testing.T, env []string, args ...string) (out, errOut string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // a command that never ends fails
	defer cancel()
	cmd := command(ctx, args...)
	cmd.Env = append(cmd.Env, env...)
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
	grpc, http string // once it serves
	keyFile    string
	out, log   *lockedBuffer
	exited     chan struct{} // closed when it has ended
}

// serve starts a gateway with the arguments given, on ports of its own, and waits until
// it is ready. It ends with the test.
func serve(t *testing.T, keyFile string, args ...string) *process {
	t.Helper()
	p := start(t, keyFile, args...)
	p.awaitReady()
	return p
}

// start is serve for those who do not wait.
func start(t *testing.T, keyFile string, args ...string) *process {
	p := &process{T: t, keyFile: keyFile, out: &lockedBuffer{}, log: &lockedBuffer{}, exited: make(chan struct{})}
	p.cmd = command(context.Background(), append([]string{"serve", "--grpc-listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"}, args...)...)
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.log
	if err := p.cmd.Start(); err != nil {
		t.Error(err)
	}
	go func() {
		defer close(p.exited)
		_ = p.cmd.Wait() // the log says why
	}()
	t.Cleanup(p.stop)
	return p
}

// serving is the line that says where a gateway listens.
var serving = regexp.MustCompile(`msg=serving grpc=(\S+) http=(\S+) `)

// awaitServing waits until the gateway listens.
func (p *process) awaitServing() {
	p.Helper()
	p.until("it serves", func() bool {
		at := serving.FindStringSubmatch(p.log.String())
		if at != nil {
			p.grpc, p.http = at[1], at[2]
		}
		return at != nil
	})
}

func (p *process) awaitReady() {
	p.Helper()
	p.awaitServing()
	if err := throwaway.AwaitReady(p.Context(), p.http, p.exited); err != nil {
		p.Fatalf("%v:\n%s", err, p.log)
	}
}

// embedded starts a gateway without a configuration.
func embedded(t *testing.T) *process {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	return serve(t, filepath.Join(dir, "admin.key"), "--data", dir)
}

// stop asks the gateway to end and waits for it. A race that it has found fails the test.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	<-p.exited
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

// newUUID returns an event's id.
func newUUID() string { return spi.NewEventID().String() }

// incompressible returns n characters that do not compress well.
func incompressible(n int) string {
	raw := make([]byte, n*5/8+5)
	_, _ = rand.Read(raw)
	return base32.StdEncoding.EncodeToString(raw)[:n]
}
