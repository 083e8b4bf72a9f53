package pgtest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// patience is how long a server may take to start or stop.
const patience = time.Minute

// Options are those of a private server.
type Options struct {
	// Durable makes it write as in production: to a disk, with fsync and full page
	// writes on. The others write to memory if they can.
	Durable bool
	// Settings go into postgresql.conf, values as written there.
	Settings map[string]string
	// DiskMB puts the databases that Fresh makes on a disk of that size, apart from
	// the log and the server's own files; see FillDisk. The disk is lost when the
	// server is stopped or killed.
	DiskMB int
}

// Cluster is one server. Its superuser is postgres, and it trusts everybody on the
// loopback.
type Cluster struct {
	Port int

	bin  binaries
	dir  string
	opts Options

	cmd    *exec.Cmd
	exited <-chan struct{} // closed when cmd is gone

	pooler    func() (port int, err error)
	templates sync.Map // source to *made
	names     atomic.Int64
	primary   *Cluster // of a standby
}

var shared = sync.OnceValues(func() (*Cluster, error) {
	c, err := newCluster(Options{})
	if err != nil {
		return nil, err
	}
	return c, c.launch()
})

// Shared returns the server that all tests of the process share: not durable, and
// not to be stopped.
func Shared(tb testing.TB) *Cluster {
	tb.Helper()
	c, err := shared()
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	return c
}

// Private returns a running server for this test alone.
func Private(tb testing.TB, opts Options) *Cluster {
	tb.Helper()
	c, err := Start(opts)
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	tb.Cleanup(c.Remove)
	return c
}

// Start returns a running server for a program that is no test. It goes with the
// process, if not before.
func Start(opts Options) (*Cluster, error) {
	c, err := newCluster(opts)
	if err != nil {
		return nil, err
	}
	if err := c.launch(); err != nil {
		c.Remove()
		return nil, err
	}
	return c, nil
}

// DSN is the address of a database, over TCP.
func (c *Cluster) DSN(database string) string { return address(c.Port, database) }

// SocketDSN is the address of a database, over the Unix socket.
func (c *Cluster) SocketDSN(database string) string {
	return fmt.Sprintf("postgres:///%s?user=postgres&host=%s&port=%d", database, c.dir, c.Port)
}

func address(port int, database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", port, database)
}

// newCluster makes the data folder.
func newCluster(opts Options) (*Cluster, error) {
	bin, err := installed()
	if err != nil {
		return nil, err
	}
	source, err := seed(bin)
	if err != nil {
		return nil, err
	}
	c, err := emptyCluster(bin, opts)
	if err != nil {
		return nil, err
	}
	if err := copyFolder(c.data(), source, func(string) bool { return false }); err != nil {
		return nil, fmt.Errorf("copy the data folder: %w", err)
	}
	return c, c.configure(c.settings())
}

func emptyCluster(bin binaries, opts Options) (*Cluster, error) {
	parent := quick
	if opts.Durable {
		parent = durable
	}
	base, err := parent()
	if err != nil {
		return nil, err
	}
	c := &Cluster{bin: bin, opts: opts, dir: filepath.Join(base.dir, strconv.FormatInt(folders.Add(1), 10))}
	c.pooler = sync.OnceValues(c.startBouncer)
	return c, errors.Join(newFolder(c.dir), newFolder(c.disk()))
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }
func (c *Cluster) log() string  { return filepath.Join(c.dir, "log") }
func (c *Cluster) disk() string { return filepath.Join(c.dir, "disk") }

func (c *Cluster) settings() string {
	var s strings.Builder
	fmt.Fprintf(&s, "listen_addresses = '127.0.0.1'\nunix_socket_directories = '%s'\n", c.dir)
	s.WriteString("max_connections = 200\nwal_keep_size = '256MB'\n")
	s.WriteString("dynamic_shared_memory_type = mmap\n") // goes away with the folder
	s.WriteString("log_line_prefix = '%m [%p] %d '\n")
	if !c.opts.Durable {
		s.WriteString("fsync = off\nfull_page_writes = off\n")
	}
	for name, value := range c.opts.Settings {
		fmt.Fprintf(&s, "%s = %s\n", name, value)
	}
	return s.String()
}

func (c *Cluster) configure(settings string) error {
	f, err := os.OpenFile(filepath.Join(c.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("\n" + settings)
	return errors.Join(err, f.Close())
}

// seed is a data folder fresh from initdb, which takes seconds, kept for the next.
func seed(bin binaries) (string, error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	key := sha256.Sum256([]byte(bin.dir + "\n" + bin.version))
	target := filepath.Join(cache, fmt.Sprintf("data-%d-%x", bin.major, key[:6]))
	return target, locked(func(string) error {
		if _, err := os.Stat(target); err == nil {
			return nil
		}
		partial := target + ".partial"
		os.RemoveAll(partial)
		if err := newFolder(partial); err != nil {
			return err
		}
		cmd, err := serverCommand(partial, bin.path("initdb"), "-D", partial, "-U", "postgres",
			"--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
		if err != nil {
			return err
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, tail(out))
		}
		return os.Rename(partial, target)
	})
}

// launch starts the server for the first time, on a port that it finds free.
func (c *Cluster) launch() error {
	for range 10 {
		port, err := freePort()
		if err != nil {
			return err
		}
		c.Port = port
		if err = c.start(); err == nil {
			return c.makeDisk()
		}
		if !strings.Contains(err.Error(), "Address already in use") {
			return err
		}
	}
	return errors.New("found no free port")
}

// freePort stays below the ports that the system gives to clients, so that none
// takes it while the server restarts.
func freePort() (int, error) {
	for range 100 {
		port := 15000 + rand.IntN(17000)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return port, l.Close()
		}
	}
	return 0, errors.New("found no free port")
}

// start returns when the server answers.
func (c *Cluster) start() error {
	args := []string{c.bin.path("postgres"), "-D", c.data(), "-p", fmt.Sprint(c.Port)}
	if c.opts.DiskMB > 0 {
		args = append(withDisk(c.disk(), c.opts.DiskMB), args...)
	}
	cmd, err := serverCommand(c.data(), args[0], args[1:]...)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(c.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	c.cmd, c.exited = cmd, exit(cmd)
	err = await(c.exited, c.log(), c.SocketDSN("postgres"))
	if err != nil && c.opts.DiskMB > 0 {
		return fmt.Errorf("with a disk of its own, which takes a system that allows user namespaces: %w", err)
	}
	return err
}

// exit returns a channel that is closed when the command is gone.
func exit(cmd *exec.Cmd) <-chan struct{} {
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it went is in its log
		close(exited)
	}()
	return exited
}

// await connects until the server takes it, or has exited.
func await(exited <-chan struct{}, log, dsn string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, dsn)
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-exited:
		case <-ctx.Done():
		case <-time.After(5 * time.Millisecond):
			continue
		}
		text, _ := os.ReadFile(log)
		return fmt.Errorf("the server does not start: %w; its log: %s", err, tail(text))
	}
}

// Stop shuts the server down in order, without waiting for its clients.
func (c *Cluster) Stop(tb testing.TB) {
	tb.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGINT); err != nil && !errors.Is(err, os.ErrProcessDone) {
		tb.Fatalf("pgtest: stop the server: %v", err)
	}
	select {
	case <-c.exited:
	case <-time.After(patience):
		tb.Fatalf("pgtest: the server does not stop")
	}
}

// Kill9 kills the server's processes at once, as a crash does.
func (c *Cluster) Kill9(tb testing.TB) {
	tb.Helper()
	if err := c.Crash(); err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
}

// Crash is Kill9 for a program that is no test.
func (c *Cluster) Crash() error {
	if err := run("", "sh", "-c", killAll, "sh", c.data()); err != nil {
		return err
	}
	<-c.exited
	return nil
}

// Restart starts the server on the same port, after stopping it if it runs.
func (c *Cluster) Restart(tb testing.TB) {
	tb.Helper()
	c.Stop(tb)
	if err := c.Recover(); err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
}

// Recover starts a server that was stopped or has crashed, on the same port.
func (c *Cluster) Recover() error { return c.start() }

// Remove ends a private server. What fails here is left to the watchdog.
func (c *Cluster) Remove() {
	_ = run("", "sh", "-c", killAll+removeAll, "sh", c.dir)
}
