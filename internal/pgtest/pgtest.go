// Package pgtest runs tests against real, throw-away Postgres servers. It needs
// Linux; it finds a Postgres or installs one, and fails the test where it can do
// neither.
//
//	var migrated = pgtest.NewTemplate(func(ctx context.Context, dsn string) error {
//		return postgres.Migrate(ctx, dsn)
//	})
//
//	for _, kind := range pgtest.Kinds {
//		t.Run(kind.String(), func(t *testing.T) {
//			db := migrated.Fresh(t, kind) // pgtest.Fresh(t, kind) is empty
//			store := postgres.Open(db.DSN)
//		})
//	}
//
// The tests of a process share one server, started by the first that asks and
// quick rather than safe: Private(t, pgtest.Options{Durable: true}) gives one to
// kill, restart and measure. Nothing needs to be stopped or cleaned up: a watchdog
// does that when the process is gone, however it went.
//
// LOOMGATE_PGVERSION=15|16|17|18 asks for a version, LOOMGATE_PGBIN names the
// folder that holds initdb and postgres.
package pgtest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// serverUser runs the servers: Postgres refuses root. Elsewhere it is nil.
var serverUser = sync.OnceValues(func() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		u, err = user.Lookup("nobody")
	}
	if err != nil {
		return nil, fmt.Errorf("no user to run Postgres, which refuses root: %w", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
})

// serverCommand prepares a command of the server's user, in a session of its own:
// an interrupt meant for the test does not reach it.
func serverCommand(dir, name string, args ...string) (*exec.Cmd, error) {
	who, err := serverUser()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "PG") || strings.HasPrefix(v, "LC_") || strings.HasPrefix(v, "LANG")
	})
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who, Setsid: true}
	return cmd, nil
}

// killAll kills what works in the folder or below: each process of a server's,
// whatever its name, until none is left. The postmaster may be starting more.
const killAll = `
while pids=$(ls -l /proc/[0-9]*/cwd 2>/dev/null | sed -n "s,.*/proc/\([0-9]*\)/cwd -> $1\(/.*\)\?\$,\1,p") &&
	[ -n "$pids" ]; do
	kill -9 $pids
	sleep 0.01
done 2>/dev/null
`

// removeAll removes the folder, and the shared memory of servers killed there.
const removeAll = `
for segment in $(find "$1" -name postmaster.pid -exec sed -sn '7s/.* //p' {} +); do
	ipcrm -m "$segment"
done
rm -rf "$1"
`

// watchdog waits for the end of its input, whose other end only the test process
// holds: the kernel closes it even after kill -9.
const watchdog = "read -r _\n" + killAll + removeAll

// home holds a folder for each server of this process. Its name is short: a
// socket's path has at most 107 bytes.
type home struct {
	dir   string
	leash *os.File // the watchdog's input; stays open until the process ends
}

var (
	durable = sync.OnceValues(func() (home, error) { return newHome(scratch()) })
	quick   = sync.OnceValues(func() (home, error) { return newHome(memory()) })
)

func newHome(parent string) (home, error) {
	dir, err := os.MkdirTemp(parent, "pgtest-")
	if err != nil {
		return home{}, err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return home{}, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return home{}, err
	}
	defer r.Close()
	cmd := exec.Command("sh", "-c", watchdog, "sh", dir)
	cmd.Dir = "/"
	cmd.Stdin = r
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // out of reach of a kill of the test's group
	if err := cmd.Start(); err != nil {
		return home{}, fmt.Errorf("start the watchdog: %w", err)
	}
	return home{dir, w}, nil
}

// memory is a folder in memory, where databases are made several times faster than
// on a disk that others write to; or scratch where there is little of it.
func memory() string {
	const folder, least = "/dev/shm", 2 << 30
	var fs syscall.Statfs_t
	if syscall.Statfs(folder, &fs) != nil || fs.Bavail*uint64(fs.Bsize) < least {
		return scratch()
	}
	return folder
}

// scratch is the temporary folder, or /tmp where the server's user cannot enter it.
func scratch() string {
	dir, err := filepath.EvalSymlinks(os.TempDir())
	if err != nil || len(dir) > 60 {
		return "/tmp"
	}
	for up := dir; os.Geteuid() == 0 && up != "/"; up = filepath.Dir(up) {
		if info, err := os.Stat(up); err != nil || info.Mode()&0o001 == 0 {
			return "/tmp"
		}
	}
	return dir
}

var folders atomic.Int64

// newFolder makes a folder that the server's user owns.
func newFolder(path string) error { return errors.Join(os.Mkdir(path, 0o755), own(path)) }

// own gives a file of root's to the server's user.
func own(path string) error {
	who, err := serverUser()
	if err != nil || who == nil {
		return err
	}
	return os.Lchown(path, int(who.Uid), int(who.Gid))
}

// writeFile writes a file that the server's user owns.
func writeFile(path, text string) error {
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	return own(path)
}

// copyFolder copies a data folder, perhaps of a running server, whose files may go
// away meanwhile.
func copyFolder(to, from string, skip func(path string) bool) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return ignoreGone(err)
		}
		rel, err := filepath.Rel(from, path)
		if err != nil || skip(rel) {
			return err
		}
		target := filepath.Join(to, rel)
		if d.IsDir() {
			if err := os.Mkdir(target, 0o700); err != nil {
				return err
			}
			return own(target)
		}
		return ignoreGone(copyFile(target, path))
	})
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func copyFile(to, from string) error {
	r, err := os.Open(from)
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	return errors.Join(err, w.Close(), own(to))
}
