package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loomgate/loomgate/backends/sqlite"
	"github.com/loomgate/loomgate/conformance"
	"github.com/loomgate/loomgate/spi"
)

// open opens a file for as long as the test lasts.
func open(t testing.TB, path string, options ...sqlite.Option) *spi.Store {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db.Store()
}

// emptyStore returns a copy of a file that was opened once: making the tables anew
// would take a quarter of the kit's time.
func emptyStore(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store.db")
	if err := os.WriteFile(path, empty(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

var empty = sync.OnceValue(func() []byte {
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "store.db")
	db, err := sqlite.Open(context.Background(), path)
	if err != nil {
		panic(err)
	}
	db.Close()
	content, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	return content
})

func TestConformance(t *testing.T) {
	file := conformance.PerTest(func(t *testing.T) string { return emptyStore(t) })
	conformance.Store(t, func(t *testing.T) *spi.Store { return open(t, file(t)) })
}

func TestOffersEverything(t *testing.T) {
	if got := open(t, filepath.Join(t.TempDir(), "store.db")).Offered(); got != spi.AllCaps {
		t.Errorf("offers %v, not all", got)
	}
}

func TestPathsAreTakenLiterally(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"a b?mode=ro&vfs=none#1%41.db", "é.db"} {
		path := filepath.Join(folder, name)
		open(t, path)
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%q was not made: %v", name, err)
		}
	}
	t.Chdir(folder)
	s := open(t, "relative.db")
	t.Chdir("/")
	fill(t, s, "e", 1)
	if _, err := os.Stat(filepath.Join(folder, "relative.db")); err != nil {
		t.Errorf("a relative path: %v", err)
	}
}

func TestClockIsAskedForEveryTime(t *testing.T) {
	ctx := t.Context()
	start := time.Date(2026, 5, 1, 12, 0, 0, 1234, time.FixedZone("east", 3600))
	var passed atomic.Int64
	s := open(t, filepath.Join(t.TempDir(), "store.db"), sqlite.WithClock(func() time.Time { return start.Add(time.Duration(passed.Load())) }))
	now := start.UTC().Truncate(time.Microsecond)

	fill(t, s, "a", 1)
	log := must[spi.ReadResponse](t)(spi.Read(ctx, s, spi.ReadRequest{Execution: "a", Limit: 1}))
	if log.Events[0].RecordedAt != now {
		t.Errorf("recorded at %v; want %v", log.Events[0].RecordedAt, now)
	}
	held := must[spi.AcquireLeaseResponse](t)(spi.AcquireLease(ctx, s, spi.AcquireLeaseRequest{Name: "l", Holder: "h", TTL: time.Second}))
	if held.ExpiresAt != now.Add(time.Second) {
		t.Errorf("lease until %v", held.ExpiresAt)
	}
	must[spi.ScheduleTimerResponse](t)(spi.ScheduleTimer(ctx, s, spi.ScheduleTimerRequest{Timer: spi.Timer{Execution: "a", WakeAt: now.Add(time.Second)}}))
	for _, want := range []int{0, 1} {
		due := must[spi.DueTimersResponse](t)(spi.DueTimers(ctx, s, spi.DueTimersRequest{Limit: 10}))
		if len(due.Timers) != want {
			t.Errorf("due %v; want %d", due.Timers, want)
		}
		passed.Store(int64(time.Second))
	}
	_, err := spi.RenewLease(ctx, s, spi.RenewLeaseRequest{Name: "l", Token: held.Token, TTL: time.Second})
	wantError[*spi.LeaseLostError](t, err)
}

// wantError checks that err is an E and returns it.
func wantError[E error](t *testing.T, err error) E {
	t.Helper()
	e, ok := errors.AsType[E](err)
	if !ok {
		t.Fatalf("the error is %v, not a %T", err, e)
	}
	return e
}

// hold takes the lock for writing, as another process does, until release is called.
func hold(t *testing.T, path string) (release func()) {
	t.Helper()
	db := must[*sql.DB](t)(sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)"))
	t.Cleanup(func() { db.Close() })
	c := must[*sql.Conn](t)(db.Conn(t.Context()))
	must[sql.Result](t)(c.ExecContext(t.Context(), `BEGIN IMMEDIATE`))
	return sync.OnceFunc(func() {
		must[sql.Result](t)(c.ExecContext(context.Background(), `ROLLBACK`))
		c.Close()
	})
}

func TestAWriteWaitsForAnotherProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path)
	release := hold(t, path)
	answered := make(chan error)
	go func() {
		_, err := spi.Append(t.Context(), s, spi.AppendRequest{Execution: "e", Events: []spi.Event{event("K")}})
		answered <- err
	}()
	must[spi.ReadResponse](t)(spi.Read(t.Context(), s, spi.ReadRequest{Execution: "e", Limit: 1})) // reads go on
	select {
	case err := <-answered:
		t.Errorf("it answers %v without the lock", err)
	default:
	}
	release()
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

func TestPastTheBusyTimeoutAWriteIsUnavailable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path, sqlite.WithBusyTimeout(20*time.Millisecond))
	release := hold(t, path)
	req := spi.AppendRequest{Execution: "e", Events: []spi.Event{event("K")}}
	_, err := spi.Append(t.Context(), s, req)
	if e := wantError[*spi.UnavailableError](t, err); !strings.Contains(e.Error(), "locked") {
		t.Errorf("the cause is %v", e)
	}
	release()
	if res := must[spi.AppendResponse](t)(spi.Append(t.Context(), s, req)); res.Duplicate {
		t.Error("it had changed something")
	}
}

func TestAWriteIsCanceledWhileItWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path, sqlite.WithBusyTimeout(time.Hour))
	release := hold(t, path)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	req := spi.AppendRequest{Execution: "e", Events: []spi.Event{event("K")}}
	if _, err := spi.Append(ctx, s, req); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it answers %v", err)
	}
	release()
	if res := must[spi.AppendResponse](t)(spi.Append(t.Context(), s, req)); res.Duplicate {
		t.Error("it had changed something")
	}
}

func TestCloseRefusesWhatWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	db := must[*sqlite.Database](t)(sqlite.Open(t.Context(), path, sqlite.WithBusyTimeout(time.Hour)))
	release := hold(t, path)
	defer release()
	answered := make(chan error)
	go func() {
		_, err := spi.Append(t.Context(), db.Store(), spi.AppendRequest{Execution: "e", Events: []spi.Event{event("K")}})
		answered <- err
	}()
	db.Close()
	wantError[*spi.UnavailableError](t, <-answered)
	db.Close()
	_, err := spi.Head(t.Context(), db.Store(), spi.HeadRequest{Execution: "e"})
	wantError[*spi.UnavailableError](t, err)
	_, err = spi.AcquireFence(t.Context(), db.Store(), spi.AcquireFenceRequest{Execution: "e"})
	wantError[*spi.UnavailableError](t, err)
}

func TestCloseLeavesOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	db := must[*sqlite.Database](t)(sqlite.Open(t.Context(), path))
	fill(t, db.Store(), "e", 10)
	must[spi.HeadResponse](t)(spi.Head(t.Context(), db.Store(), spi.HeadRequest{Execution: "e"}))
	db.Close()
	if left := must[[]os.DirEntry](t)(os.ReadDir(filepath.Dir(path))); len(left) != 1 {
		t.Errorf("left are %v", left)
	}
}

func TestAFileThatCannotBeWrittenIsRefused(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "store.db")
	db := must[*sqlite.Database](t)(sqlite.Open(t.Context(), path))
	db.Close()
	for _, p := range []string{filepath.Dir(folder), folder} {
		if err := os.Chmod(p, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(path, 0o444); err != nil {
		t.Fatal(err)
	}
	out, err := process(t, "open", path).Output()
	if err == nil || !strings.Contains(string(out), "unavailable: ") || !strings.Contains(string(out), "readonly") {
		t.Errorf("it says %q (%v)", out, err)
	}
}

func TestAFileThatIsNoDatabaseIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	if err := os.WriteFile(path, bytes.Repeat([]byte("no database "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := sqlite.Open(t.Context(), path)
	if e := wantError[*spi.UnavailableError](t, err); !strings.Contains(e.Error(), "not a database") {
		t.Errorf("the cause is %v", e)
	}
	_, err = sqlite.Open(t.Context(), filepath.Join(path, "store.db"))
	wantError[*spi.UnavailableError](t, err)
}

func TestACorruptFileIsUnavailable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	db := must[*sqlite.Database](t)(sqlite.Open(t.Context(), path))
	fill(t, db.Store(), "e", 2000)
	db.Close()
	const page = 4096
	content := must[[]byte](t)(os.ReadFile(path))
	for i := 60 * page; i < len(content)-page; i++ { // past the schema and the directory
		content[i] = 0xff
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, path)
	_, err := spi.Read(t.Context(), s, spi.ReadRequest{Execution: "e", Limit: 2000})
	if e := wantError[*spi.UnavailableError](t, err); !strings.Contains(e.Error(), "malformed") {
		t.Errorf("the cause is %v", e)
	}
}

func TestALostCommitIsAmbiguousAndARetryResolvesIt(t *testing.T) {
	out, err := process(t, "lose commit", filepath.Join(t.TempDir(), "store.db")).Output()
	want := `with a limit: Append: the outcome for execution "e" is unknown: sqlite: disk I/O error`
	if err != nil || !strings.HasPrefix(string(out), want) || !strings.HasSuffix(string(out), "without: 1 <nil>\n") {
		t.Errorf("it says %q (%v)", out, err)
	}
}

// TestAReadSeesOneSnapshot: from the floor that a read tells on, no event is missing.
func TestAReadSeesOneSnapshot(t *testing.T) {
	ctx := t.Context()
	s := open(t, filepath.Join(t.TempDir(), "store.db"), sqlite.WithNormalSync())
	fill(t, s, "e", 1)
	var readers sync.WaitGroup
	var stop atomic.Bool
	for range 4 {
		readers.Go(func() {
			for !stop.Load() {
				log, err := spi.Read(ctx, s, spi.ReadRequest{Execution: "e", Limit: 10})
				if err != nil || len(log.Events) == 0 || log.Events[0].Sequence != log.Floor {
					t.Errorf("with the floor %d, it begins with %+v, %v", log.Floor, log.Events, err)
					return
				}
			}
		})
	}
	for head := int64(1); head < 300; head++ {
		must[spi.AppendResponse](t)(spi.Append(ctx, s, spi.AppendRequest{Execution: "e", ExpectedHead: head, Events: []spi.Event{event("K")}}))
		must[spi.TruncatePrefixKeepingResponse](t)(spi.TruncatePrefixKeeping(ctx, s, spi.TruncatePrefixKeepingRequest{Execution: "e", Incarnation: 1, Before: head + 1}))
	}
	stop.Store(true)
	readers.Wait()
}

// TestTheLogShrinksWhenNothingPinsIt keeps a snapshot open, under which FILE-wal has
// to grow.
func TestTheLogShrinksWhenNothingPinsIt(t *testing.T) {
	const limit = 1 << 20
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path, sqlite.WithWALLimit(limit))
	fill(t, s, "first", 1)

	db := must[*sql.DB](t)(sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)"))
	defer db.Close()
	reader := must[*sql.Tx](t)(db.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true}))
	var n int
	if err := reader.QueryRow(`SELECT count(*) FROM events`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	size := func() int64 { return must[os.FileInfo](t)(os.Stat(path + "-wal")).Size() }
	fill(t, s, "e", 20_000)
	if size() < 4*limit {
		t.Errorf("FILE-wal has %d bytes: it is not pinned", size())
	}
	_ = reader.Rollback()
	fill(t, s, "more", 5_000)
	fill(t, s, "last", 1) // a call later, so that the writer is done with the one before
	if size() > 2*limit {
		t.Errorf("FILE-wal has %d bytes, long after it was let go", size())
	}
}

// TestTheLogStaysSmallUnderReadsThatOverlap: there is always a snapshot of some read,
// so nothing but the writer's own attempts can empty FILE-wal.
func TestTheLogStaysSmallUnderReadsThatOverlap(t *testing.T) {
	const limit = 1 << 20
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path, sqlite.WithWALLimit(limit))
	fill(t, s, "read", 20)
	var readers sync.WaitGroup
	var stop atomic.Bool
	for range 4 {
		readers.Go(func() {
			for !stop.Load() {
				if _, err := spi.Read(t.Context(), s, spi.ReadRequest{Execution: "read", Limit: 20}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	largest := int64(0)
	for i := range 24 { // 6 MiB
		e := event("K")
		e.Payload = make([]byte, limit/4)
		must[spi.AppendResponse](t)(spi.Append(t.Context(), s, spi.AppendRequest{Execution: id(i), Events: []spi.Event{e}}))
		largest = max(largest, must[os.FileInfo](t)(os.Stat(path+"-wal")).Size())
	}
	stop.Store(true)
	readers.Wait()
	if largest > 4*limit {
		t.Errorf("FILE-wal had %d bytes", largest)
	}
}

// TestLibcIsTheOneThatTheDriverWants: the driver's generated code fits one version of
// its C library only, and go.mod alone would let another dependency raise it.
func TestLibcIsTheOneThatTheDriverWants(t *testing.T) {
	module := func(format, name string) string {
		return strings.TrimSpace(string(must[[]byte](t)(exec.Command("go", "list", "-m", "-f", format, name).Output())))
	}
	wants := must[[]byte](t)(os.ReadFile(module("{{.GoMod}}", "modernc.org/sqlite")))
	have := module("{{.Version}}", "modernc.org/libc")
	if !strings.Contains(string(wants), "\tmodernc.org/libc "+have+"\n") {
		t.Errorf("modernc.org/libc is at %s, which the driver's go.mod does not ask for", have)
	}
}
