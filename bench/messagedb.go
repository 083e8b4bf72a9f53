package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loomgate/loomgate/internal/pgtest"
)

const messageDB = "@eventide/message-db@1.3.1"

// messageDBFiles are what its installer runs, in that order; its views are not needed.
var messageDBFiles = []string{
	"roles/message-store", "schema/message-store", "extensions/pgcrypto", "tables/messages", "types/message",
	"functions/message-store-version", "functions/hash-64", "functions/acquire-lock", "functions/category", "functions/is-category",
	"functions/id", "functions/cardinal-id", "functions/stream-version", "functions/write-message",
	"indexes/messages-id", "indexes/messages-stream", "indexes/messages-category",
}

// installMessageDB makes a database with message-db in it, from its npm package.
func installMessageDB(ctx context.Context, s *server) (*pgxpool.Pool, error) {
	dir, err := os.MkdirTemp("", "message-db-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	pack := exec.CommandContext(ctx, "sh", "-c", "npm pack --silent "+messageDB+" && tar xzf *.tgz")
	pack.Dir = dir
	if out, err := pack.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("npm pack %s: %w: %s", messageDB, err, out)
	}
	dsn, err := s.fresh(ctx, pgtest.ICU)
	if err != nil {
		return nil, err
	}
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	cfg.ConnConfig.RuntimeParams["search_path"] = "message_store,public"
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	for _, name := range messageDBFiles {
		sql, err := os.ReadFile(filepath.Join(dir, "package", "database", name+".sql"))
		if err == nil {
			_, err = pool.Exec(ctx, string(sql), pgx.QueryExecModeSimpleProtocol)
		}
		if err != nil {
			pool.Close()
			return nil, fmt.Errorf("install %s: %w", name, err)
		}
	}
	return pool, nil
}
