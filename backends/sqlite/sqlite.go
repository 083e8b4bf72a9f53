// Package sqlite is a durable store in one SQLite file, without cgo. It offers
// every method.
//
// # Writing
//
// SQLite lets one connection write at a time. One goroutine of a [Database] has
// it: it gathers the writes that wait, does them in one transaction and answers
// each after the commit, so that many callers share one fsync. By default a commit
// is on disk before it is acknowledged (synchronous=FULL).
//
// Several processes may open one file. They take turns, within the busy timeout;
// past it a call answers [spi.UnavailableError]. The file has to be on a local
// disk: SQLite's locks and its shared memory do not work over a network.
//
// # Reading
//
// Reads have connections of their own. They neither wait for writes nor hold them
// up, and each sees one snapshot.
//
// # The write-ahead log
//
// Commits go to FILE-wal and are moved into FILE by and by. What a reader still
// looks at cannot be moved. Reads of this package are short; but a program that
// holds a read transaction open on the file makes FILE-wal grow until it lets go.
// Past [WithWALLimit] the writer tries to empty it, and again as it grows on; once
// nothing is in the way any more, it is cut back.
//
// # Deleting
//
// A deletion marks a log as gone in one short transaction. Its events are removed
// in small steps between other writes, or after the next start. FILE does not
// shrink: what was freed is used again.
package sqlite

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loomgate/loomgate/spi"
)

// store is every group over one file.
type store struct {
	config
	writer  *writer
	readers *readers

	// ownership is as of some commit. What its version says it is, it is: a
	// transaction compares that with the version in the file.
	ownership atomic.Pointer[ownership]
}

// A Database is an open file.
type Database struct {
	store *store
	spi   *spi.Store
	close func()
}

type config struct {
	path        string
	now         func() time.Time
	busyTimeout time.Duration
	pragmas     []string // of the writer's connection; the last one of a name counts
	walLimit    int64
}

// An Option changes how a file is opened.
type Option func(*config)

// WithClock makes a store take the time from now, in place of [time.Now]. It is
// called by many goroutines at once.
func WithClock(now func() time.Time) Option { return func(c *config) { c.now = now } }

// WithBusyTimeout sets how long a call waits for other processes, in place of 5 s.
func WithBusyTimeout(limit time.Duration) Option {
	return func(c *config) { c.busyTimeout = limit }
}

// WithNormalSync acknowledges a commit before it is on disk: a power failure may
// lose the last ones, a crash of the process loses none. The file stays whole.
func WithNormalSync() Option {
	return func(c *config) { c.pragmas = append(c.pragmas, "synchronous(NORMAL)") }
}

// WithWALLimit sets from how many bytes on FILE-wal is emptied, in place of 64 MiB.
func WithWALLimit(bytes int64) Option { return func(c *config) { c.walLimit = bytes } }

// Open opens a file, and makes it if it is not there. One that another major
// version has written is [spi.CompatibilityError]; one that cannot be written, or
// that is no database, [spi.UnavailableError].
func Open(ctx context.Context, path string, options ...Option) (*Database, error) {
	path, err := filepath.Abs(path) // a process may change its folder
	if err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	s := &store{config: config{path: path, now: time.Now, busyTimeout: 5 * time.Second, walLimit: 64 << 20}}
	for _, option := range options {
		option(&s.config)
	}
	first, err := s.prepare(ctx)
	if err != nil {
		return nil, fmt.Errorf("sqlite: open %q: %w", path, err)
	}
	s.readers = newReaders(max(4, runtime.GOMAXPROCS(0)), s.readerDSN())
	s.writer = startWriter(s, first)
	d := &Database{store: s, close: sync.OnceFunc(s.close)}
	d.spi, err = spi.Open(spi.Backend{Events: s, Timers: s, Refs: s, Leases: s, DataKeys: s, Ownership: s})
	if err != nil {
		d.Close()
	}
	return d, err
}

// Store returns the store in the file. It is of no use after Close.
func (d *Database) Store() *spi.Store { return d.spi }

// Close waits for the calls that are being served, refuses those that wait, and
// closes the file. To close again is no error.
func (d *Database) Close() error {
	d.close()
	return nil
}

func (s *store) close() {
	s.writer.close()
	s.readers.close()
}

func (c *config) writerDSN() string {
	return c.dsn(append([]string{
		"journal_mode(WAL)",
		"synchronous(FULL)",
		"secure_delete(FAST)", // zeros over what was removed, where that costs no I/O
		"journal_size_limit(" + strconv.FormatInt(c.walLimit, 10) + ")",
	}, c.pragmas...)...)
}

func (c *config) readerDSN() string { return c.dsn("query_only(1)") }

// dsn names the file. It sets no busy_timeout: see [patiently].
func (c *config) dsn(pragmas ...string) string {
	path := filepath.ToSlash(c.path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a Windows drive
	}
	query := url.Values{"_pragma": append(pragmas, "cell_size_check(1)", "mmap_size(0)", "trusted_schema(0)")}
	return "file://" + (&url.URL{Path: path}).EscapedPath() + "?" + query.Encode()
}

// clock returns the store's time.
func (c *config) clock() time.Time { return canonical(c.now()) }

// canonical returns t as every time is stored: in UTC, in whole microseconds and
// without a monotonic reading, so that equal times are also identical.
func canonical(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// timeOf returns the time that is stored as micros.
func timeOf(micros int64) time.Time { return time.UnixMicro(micros).UTC() }
