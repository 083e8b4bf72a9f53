package pgtest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// withDisk runs a command with a file system of that size mounted, visible to it
// alone and gone with it. A user namespace lets anybody mount.
func withDisk(mount string, sizeMB int) []string {
	return []string{
		"unshare", "--user", "--map-current-user", "--keep-caps", "--mount", "sh", "-c",
		`mount -t tmpfs -o size="$1",mode=0700 disk "$2" && shift 2 && exec "$@"`,
		"sh", fmt.Sprintf("%dm", sizeMB), mount,
	}
}

func (c *Cluster) makeDisk() error {
	if c.opts.DiskMB == 0 {
		return nil
	}
	return c.exec(context.Background(), "postgres", "CREATE TABLESPACE disk LOCATION '"+c.disk()+"'")
}

// FillDisk leaves no space on the disk of Options.DiskMB.
func (c *Cluster) FillDisk(tb testing.TB) {
	tb.Helper()
	err := c.ballast(tb.Context(), "SELECT repeat('x', 1000) FROM generate_series(1, "+fmt.Sprint(c.opts.DiskMB*1100)+")")
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != "53100" {
		tb.Fatalf("pgtest: the disk does not fill up: %v", err)
	}
}

// FreeDisk gives back what FillDisk took.
func (c *Cluster) FreeDisk(tb testing.TB) {
	tb.Helper()
	if err := c.ballast(tb.Context(), "SELECT"); err != nil {
		tb.Fatalf("pgtest: empty the disk: %v", err)
	}
}

// ballast lets the server write the file: nobody else sees the disk.
func (c *Cluster) ballast(ctx context.Context, query string) error {
	return c.exec(ctx, "postgres", fmt.Sprintf("COPY (%s) TO '%s'", query, filepath.Join(c.disk(), "ballast")))
}
