package sqlite_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/loomgate/loomgate/backends/sqlite"
	"github.com/loomgate/loomgate/spi"
)

// roleVariable makes the test program a process that a test starts.
const roleVariable = "SQLITE_TEST_ROLE"

func TestMain(m *testing.M) {
	role := os.Getenv(roleVariable)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := roles[role](os.Args[1]); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

var roles = map[string]func(path string) error{
	"append":      appendForever,
	"open":        openUnprivileged,
	"lose commit": loseCommit,
}

// process returns a command that runs a role on a file.
func process(t *testing.T, role, path string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0], path)
	c.Env = append(os.Environ(), roleVariable+"="+role)
	c.Stderr = os.Stderr
	return c
}

// appendForever appends to eight executions at once and prints each head that was
// acknowledged.
func appendForever(path string) error {
	ctx := context.Background()
	db, err := sqlite.Open(ctx, path)
	if err != nil {
		return err
	}
	failed := make(chan error)
	for i := range 8 {
		go func() {
			for {
				res, err := spi.Append(ctx, db.Store(), spi.AppendRequest{
					Execution: id(i), ExpectedHead: spi.AnyHead, Events: []spi.Event{event("K"), event("K")},
				})
				if err != nil {
					failed <- err
					return
				}
				fmt.Printf("%d %d\n", i, res.Head)
			}
		}()
	}
	return <-failed
}

func TestEverythingAcknowledgedSurvivesAKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	for range 3 {
		child := process(t, "append", path)
		out := must[interface{ Read([]byte) (int, error) }](t)(child.StdoutPipe())
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		acknowledged := map[int]int64{}
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			var i int
			var head int64
			if _, err := fmt.Sscan(lines.Text(), &i, &head); err != nil {
				break // the kill cut the line
			}
			acknowledged[i] = max(acknowledged[i], head)
			if n == 400 {
				_ = child.Process.Kill()
			}
		}
		_ = child.Wait() // killed

		db := must[*sqlite.Database](t)(sqlite.Open(t.Context(), path))
		for i := range 8 {
			head := must[spi.HeadResponse](t)(spi.Head(t.Context(), db.Store(), spi.HeadRequest{Execution: id(i)})).Head
			if head < acknowledged[i] || acknowledged[i] == 0 {
				t.Errorf("the head of %d is %d; %d was acknowledged", i, head, acknowledged[i])
			}
			wantWhole(t, db.Store(), id(i), head)
		}
		db.Close()
	}
}

// wantWhole checks that a log holds every sequence up to its head, and each event
// id once.
func wantWhole(t *testing.T, s *spi.Store, id spi.ExecutionID, head int64) {
	t.Helper()
	seen := map[spi.EventID]bool{}
	for after := int64(0); after < head; {
		res := must[spi.ReadResponse](t)(spi.Read(t.Context(), s, spi.ReadRequest{Execution: id, After: after, Limit: 1000}))
		for _, e := range res.Events {
			after++
			if e.Sequence != after || seen[e.ID] {
				t.Fatalf("%q holds %d where %d should be, or one event twice", id, e.Sequence, after)
			}
			seen[e.ID] = true
		}
		if len(res.Events) == 0 {
			t.Fatalf("%q ends at %d, not %d", id, after, head)
		}
	}
}

// TestDatabasesShareAFile lets two databases and a process write to one file as fast
// as they can. SQLite tells them apart as it does processes: each has connections
// and locks of its own.
func TestDatabasesShareAFile(t *testing.T) {
	const each, rounds = 8, 60
	path := filepath.Join(t.TempDir(), "store.db")
	child := process(t, "append", path)
	out := must[interface{ Read([]byte) (int, error) }](t)(child.StdoutPipe())
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Scan() // it is up and writing

	var calls sync.WaitGroup
	for d := range 2 {
		s := open(t, path)
		for w := range each {
			calls.Go(func() {
				own := spi.ExecutionID(fmt.Sprintf("own-%d-%d", d, w))
				for i := range rounds {
					if _, err := spi.Append(t.Context(), s, spi.AppendRequest{Execution: own, ExpectedHead: int64(i), Events: []spi.Event{event("K")}}); err != nil {
						t.Errorf("an append to its own log: %v", err)
					}
					if _, err := spi.Append(t.Context(), s, spi.AppendRequest{Execution: "shared", ExpectedHead: spi.AnyHead, Events: []spi.Event{event("K")}}); err != nil {
						t.Errorf("an append to the shared log: %v", err)
					}
					if _, err := spi.AcquireFence(t.Context(), s, spi.AcquireFenceRequest{Execution: "fenced"}); err != nil {
						t.Errorf("an acquire: %v", err)
					}
					if _, err := spi.ListExecutions(t.Context(), s, spi.ListExecutionsRequest{Limit: 10}); err != nil {
						t.Errorf("a page: %v", err)
					}
				}
			})
		}
	}
	calls.Wait()
	_ = child.Process.Kill()
	for lines.Scan() {
		if text := lines.Text(); text[0] == 'e' {
			t.Errorf("the process: %s", text)
		}
	}
	_ = child.Wait() // killed

	s := open(t, path)
	if got := must[spi.HeadResponse](t)(spi.Head(t.Context(), s, spi.HeadRequest{Execution: "fenced"})).Fence; got != 2*each*rounds {
		t.Errorf("the token is %d, not %d", got, 2*each*rounds)
	}
	wantWhole(t, s, "shared", 2*each*rounds)
	if got := must[spi.HeadResponse](t)(spi.Head(t.Context(), s, spi.HeadRequest{Execution: "shared"})).Head; got != 2*each*rounds {
		t.Errorf("the shared head is %d, not %d", got, 2*each*rounds)
	}
}

// openUnprivileged opens a file as somebody who is no superuser.
func openUnprivileged(path string) error {
	if os.Getuid() == 0 {
		const nobody = 65534
		if err := syscall.Setuid(nobody); err != nil {
			return err
		}
	}
	db, err := sqlite.Open(context.Background(), path)
	if err == nil {
		db.Close()
	}
	return err
}

// loseCommit appends while the disk takes no more, and again when it does.
func loseCommit(path string) error {
	ctx := context.Background()
	db, err := sqlite.Open(ctx, path)
	if err != nil {
		return err
	}
	defer db.Close()
	large := event("K")
	large.Payload = make([]byte, 1<<20)
	req := spi.AppendRequest{Execution: "e", Events: []spi.Event{large}}

	signal.Ignore(syscall.SIGXFSZ)
	var unlimited syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &unlimited); err != nil {
		return err
	}
	limited := unlimited
	limited.Cur = 512 << 10 // FILE-wal would have to be larger
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limited); err != nil {
		return err
	}
	_, err = spi.Append(ctx, db.Store(), req)
	fmt.Println("with a limit:", err)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &unlimited); err != nil {
		return err
	}
	res, err := spi.Append(ctx, db.Store(), req)
	fmt.Println("without:", res.Head, err)
	return err
}
