package pgtest

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Standby returns a server that follows this one and only reads.
func (c *Cluster) Standby(tb testing.TB) *Cluster {
	tb.Helper()
	s, err := emptyCluster(c.bin, c.opts)
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	s.primary = c
	tb.Cleanup(s.Remove)
	if err := s.backUp(tb.Context()); err != nil {
		tb.Fatalf("pgtest: copy the primary: %v", err)
	}
	if err := s.launch(); err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	return s
}

// backUp copies the running primary by SQL: pg_basebackup is not in every package.
func (s *Cluster) backUp(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.primary.SocketDSN("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "SELECT pg_backup_start('standby', true)"); err != nil {
		return err
	}
	if err := copyFolder(s.data(), s.primary.data(), func(path string) bool {
		return strings.HasPrefix(path, "postmaster.") || strings.HasPrefix(path, "pg_replslot/") ||
			strings.HasPrefix(path, "pg_dynshmem/")
	}); err != nil {
		return err
	}
	var label string
	if err := conn.QueryRow(ctx, "SELECT labelfile FROM pg_backup_stop(false)").Scan(&label); err != nil {
		return err
	}
	if err := writeFile(filepath.Join(s.data(), "backup_label"), label); err != nil {
		return err
	}
	if err := writeFile(filepath.Join(s.data(), "standby.signal"), ""); err != nil {
		return err
	}
	return s.configure(s.settings() +
		fmt.Sprintf("primary_conninfo = 'host=127.0.0.1 port=%d user=postgres'\n", s.primary.Port))
}

// CatchUp returns when a standby shows what its primary has written by now.
func (s *Cluster) CatchUp(tb testing.TB) {
	tb.Helper()
	ask := func(c *Cluster, answer any, sql string, args ...any) {
		conn, err := pgx.Connect(tb.Context(), c.SocketDSN("postgres"))
		if err == nil {
			defer conn.Close(tb.Context())
			err = conn.QueryRow(tb.Context(), sql, args...).Scan(answer)
		}
		if err != nil {
			tb.Fatalf("pgtest: the standby catches up: %v", err)
		}
	}
	var written string
	ask(s.primary, &written, "SELECT pg_current_wal_flush_lsn()::text")
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		var there bool
		ask(s, &there, "SELECT coalesce(pg_last_wal_replay_lsn() >= $1::text::pg_lsn, false)", written)
		if there {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("pgtest: the standby does not reach %s", written)
		}
	}
}
