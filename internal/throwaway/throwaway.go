// Package throwaway runs a gateway, as a process of its own, over Postgres servers that
// are gone when the program ends: for trying it out and for proving it as a whole.
package throwaway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/loomgate/loomgate/internal/pgtest"
)

// A Cluster is several Postgres servers, each a shard.
type Cluster struct {
	Servers []*pgtest.Cluster
	DSNs    []string // the shards' databases
	Config  string   // the configuration file
	dir     string
	binary  string
}

// Options say what is started.
type Options struct {
	Shards     int
	GRPC, HTTP string // the addresses of the first gateway, host and port
	Settings   string // more of its configuration, YAML
}

// Start builds the gateway, starts the Postgres servers, and writes a configuration.
func Start(ctx context.Context, o Options) (_ *Cluster, err error) {
	c := &Cluster{}
	if c.dir, err = os.MkdirTemp("", "loomgate-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	c.binary = filepath.Join(c.dir, "gateway")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", c.binary, "github.com/loomgate/loomgate/cmd/gateway").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the gateway: %w\n%s", err, out)
	}
	config := fmt.Sprintf("%sgrpc:\n  listen: %s\nhttp:\n  listen: %s\nshards:\n", o.Settings, o.GRPC, o.HTTP)
	for i := range o.Shards {
		server, err := pgtest.Start(pgtest.Options{Durable: true})
		if err != nil {
			return nil, err
		}
		c.Servers = append(c.Servers, server)
		db, err := server.Database(ctx, pgtest.ICU)
		if err != nil {
			return nil, err
		}
		c.DSNs = append(c.DSNs, db.DSN)
		config += fmt.Sprintf("  - name: shard-%d\n    dsn: %s\n", i, db.DSN)
	}
	c.Config = filepath.Join(c.dir, "gateway.yaml")
	return c, os.WriteFile(c.Config, []byte(config), 0o600)
}

// Close ends the servers and removes what was written.
func (c *Cluster) Close() {
	for _, s := range c.Servers {
		s.Remove()
	}
	os.RemoveAll(c.dir)
}

// Path returns a file's path in the cluster's folder.
func (c *Cluster) Path(name string) string { return filepath.Join(c.dir, name) }

// Command returns a command of the gateway.
func (c *Cluster) Command(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, c.binary, args...)
}

// Do runs a command of the gateway and returns what it printed.
func (c *Cluster) Do(ctx context.Context, args ...string) (string, error) {
	cmd := c.Command(ctx, args...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("gateway %s: %w\n%s", args[0], err, errOut.String())
	}
	return out.String(), nil
}

// Prepare migrates the databases, makes them a cluster, and leaves the first key in a
// file, whose path it returns.
func (c *Cluster) Prepare(ctx context.Context) (keyFile string, err error) {
	if _, err := c.Do(ctx, "migrate", "-c", c.Config); err != nil {
		return "", err
	}
	key, err := c.Do(ctx, "init", "-c", c.Config, "--cluster", "throwaway")
	if err != nil {
		return "", err
	}
	keyFile = c.Path("admin.key")
	return keyFile, os.WriteFile(keyFile, []byte(key), 0o600)
}

// A Gateway is a gateway that runs.
type Gateway struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when err is set
	err    error
}

// Serve starts a gateway that serves HTTP at addr, and returns when it is ready. What it
// logs goes to log.
func (c *Cluster) Serve(ctx context.Context, addr string, log *os.File, flags ...string) (*Gateway, error) {
	g := &Gateway{cmd: c.Command(context.WithoutCancel(ctx), append([]string{"serve", "-c", c.Config}, flags...)...), exited: make(chan struct{})}
	g.cmd.Stderr, g.cmd.Stdout = log, log
	if err := g.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(g.exited)
		g.err = g.cmd.Wait()
	}()
	return g, g.await(ctx, addr)
}

// await waits until the gateway is ready.
func (g *Gateway) await(ctx context.Context, addr string) error {
	err := AwaitReady(ctx, addr, g.exited)
	if err == nil {
		return nil
	}
	return errors.Join(fmt.Errorf("%w, see its log", err), g.Stop())
}

// AwaitReady waits until the gateway that serves HTTP at addr is ready, for a minute at
// most, or until its process has ended.
func AwaitReady(ctx context.Context, addr string, exited <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/readyz", http.NoBody)
		if err != nil {
			return err
		}
		if res, err := http.DefaultClient.Do(req); err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-exited:
			return errors.New("the gateway has ended")
		case <-ctx.Done():
			return errors.New("the gateway does not get ready")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// PID returns the gateway's process.
func (g *Gateway) PID() int { return g.cmd.Process.Pid }

// Exited is closed when the gateway has ended.
func (g *Gateway) Exited() <-chan struct{} { return g.exited }

// Kill ends a gateway as a crash does.
func (g *Gateway) Kill() {
	_ = g.cmd.Process.Kill()
	<-g.exited
}

// Stop lets a gateway drain, and returns when it has ended.
func (g *Gateway) Stop() error {
	if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-g.exited
	return g.err
}

// FreeAddress returns an address on loopback that nobody listens at. Its port is below
// those that the system gives to clients, so that none takes it before a gateway does, or
// while that is away.
func FreeAddress() (string, error) {
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(5000)))
		if err == nil {
			return l.Addr().String(), l.Close()
		}
	}
	return "", errors.New("found no free port")
}

// Lines returns what a command printed, line by line.
func Lines(out string) []string {
	if out == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(out, "\n"), "\n")
}
