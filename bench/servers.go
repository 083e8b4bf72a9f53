package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loomgate/loomgate/backends/postgres"
	"github.com/loomgate/loomgate/internal/pgtest"
)

// A server is a Postgres of this run's, with fsync on.
type server struct {
	*pgtest.Cluster
	pid int // the postmaster's
}

func startServer(ctx context.Context) (*server, error) {
	cluster, err := pgtest.Start(pgtest.Options{Durable: true})
	if err != nil {
		return nil, err
	}
	s := &server{Cluster: cluster}
	return s, s.look(ctx)
}

// look finds the postmaster, which is another one after a crash.
func (s *server) look(ctx context.Context) error {
	pool, err := pgxpool.New(ctx, s.DSN("postgres"))
	if err != nil {
		return err
	}
	defer pool.Close()
	var backend int
	if err := pool.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&backend); err != nil {
		return err
	}
	s.pid, err = parentOf(backend)
	return err
}

func parentOf(pid int) (int, error) {
	fields := statOf(strconv.Itoa(pid))
	if fields == nil {
		return 0, fmt.Errorf("process %d has gone", pid)
	}
	return strconv.Atoi(fields[1])
}

// crashAndRecover kills the server with -9 and starts it again.
func (s *server) crashAndRecover(ctx context.Context) error {
	if err := s.Crash(); err != nil {
		return err
	}
	if err := s.Recover(); err != nil {
		return err
	}
	return s.look(ctx)
}

// fresh makes a database and returns its DSN, with a pool of 16.
func (s *server) fresh(ctx context.Context, kind pgtest.Kind) (string, error) {
	db, err := s.Database(ctx, kind)
	if err != nil {
		return "", err
	}
	return db.DSN + "&pool_max_conns=16", nil
}

// backend makes a database with our schema, and opens it.
func (s *server) backend(ctx context.Context, kind pgtest.Kind) (*postgres.Database, string, error) {
	dsn, err := s.fresh(ctx, kind)
	if err != nil {
		return nil, "", err
	}
	if err := postgres.Migrate(ctx, dsn); err != nil {
		return nil, "", err
	}
	db, err := postgres.Open(ctx, dsn)
	return db, dsn, err
}

// pool makes a database with what a statement makes in it, and connects to it.
func (s *server) pool(ctx context.Context, kind pgtest.Kind, schema string) (*pgxpool.Pool, error) {
	dsn, err := s.fresh(ctx, kind)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return nil, err
	}
	if _, err := pool.Exec(ctx, schema); err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}
