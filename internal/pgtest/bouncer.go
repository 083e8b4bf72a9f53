package pgtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
)

// startBouncer puts one PgBouncer in front of all databases and returns its port.
func (c *Cluster) startBouncer() (int, error) {
	program, err := bouncerBinary()
	if err != nil {
		return 0, err
	}
	port, err := freePort()
	if err != nil {
		return 0, err
	}
	dir := filepath.Join(c.dir, "bouncer")
	if err := newFolder(dir); err != nil {
		return 0, err
	}
	config := fmt.Sprintf(`[databases]
* = host=127.0.0.1 port=%d
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = trust
auth_file = users
admin_users = postgres
pool_mode = transaction
max_client_conn = 1000
default_pool_size = 20
`, c.Port, port)
	if tracksPrepared(program) {
		config += "max_prepared_statements = 0\n"
	}
	if err := writeFile(filepath.Join(dir, "config"), config); err != nil {
		return 0, err
	}
	if err := writeFile(filepath.Join(dir, "users"), `"postgres" ""`+"\n"); err != nil {
		return 0, err
	}
	cmd, err := serverCommand(dir, program, "config")
	if err != nil {
		return 0, err
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return 0, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start PgBouncer: %w", err)
	}
	return port, await(exit(cmd), log.Name(), address(port, "pgbouncer"))
}

func bouncerBinary() (string, error) {
	const debian = "/usr/sbin/pgbouncer" // which is not in everybody's PATH
	find := func() (string, error) {
		if program, err := exec.LookPath("pgbouncer"); err == nil {
			return program, nil
		}
		return debian, executable(debian)
	}
	program, err := find()
	if err == nil {
		return program, nil
	}
	err = locked(func(string) error {
		if program, err = find(); err == nil {
			return nil
		}
		if err := aptInstall("pgbouncer"); err != nil {
			return fmt.Errorf("no PgBouncer here: %w", err)
		}
		program, err = find()
		return err
	})
	return program, err
}

var bouncerVersion = regexp.MustCompile(`PgBouncer (\d+)\.(\d+)`)

// tracksPrepared tells whether it can follow prepared statements, as from 1.21 on;
// an older one refuses the setting.
func tracksPrepared(program string) bool {
	out, _ := exec.Command(program, "--version").Output()
	m := bouncerVersion.FindSubmatch(out)
	if m == nil {
		return false
	}
	major, _ := strconv.Atoi(string(m[1]))
	minor, _ := strconv.Atoi(string(m[2]))
	return major > 1 || minor >= 21
}
