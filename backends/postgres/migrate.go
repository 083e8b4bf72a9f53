package postgres

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/loomgate/loomgate/spi"
)

// schemaVersion is the schema that this package works with.
const schemaVersion = 1

//go:embed schema.sql
var schema string

// migrationLock is the advisory lock that lets one migration run at a time.
const migrationLock = 0x6c6f6f6d67617465 // "loomgate"

// Migrate brings a database to this package's schema. Nodes that start together may
// all call it: one works, the others wait for it, however long it takes, and find
// nothing left to do. The DSN is a direct one, past any pooler.
func Migrate(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return fmt.Errorf("postgres: migrate: connect: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		// To wait for a peer's migration is intended, so no timeout of the caller's
		// cuts it short; they hold again as soon as the lock is had.
		const wait = "SELECT set_config('statement_timeout', '0', true), set_config('lock_timeout', '0', true)"
		var statementTimeout, lockTimeout string
		if err := tx.QueryRow(ctx, "SELECT current_setting('statement_timeout'), current_setting('lock_timeout')").Scan(&statementTimeout, &lockTimeout); err != nil {
			return fmt.Errorf("postgres: migrate: %w", err)
		}
		if _, err := tx.Exec(ctx, wait); err != nil {
			return fmt.Errorf("postgres: migrate: %w", err)
		}
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(migrationLock)); err != nil {
			return fmt.Errorf("postgres: migrate: wait for other migrations: %w", err)
		}
		if _, err := tx.Exec(ctx, "SELECT set_config('statement_timeout', $1, true), set_config('lock_timeout', $2, true)", statementTimeout, lockTimeout); err != nil {
			return fmt.Errorf("postgres: migrate: %w", err)
		}
		var done bool
		if err := tx.QueryRow(ctx, "SELECT to_regclass('loomgate.schema_version') IS NOT NULL").Scan(&done); err != nil {
			return fmt.Errorf("postgres: migrate: %w", err)
		}
		if done {
			return nil
		}
		if _, err := tx.Exec(ctx, schema); err != nil {
			return fmt.Errorf("postgres: migrate: create the schema: %w", err)
		}
		_, err := tx.Exec(ctx, "INSERT INTO loomgate.schema_version (version, events) VALUES ($1, $2)", schemaVersion, spi.Versions()[spi.Events].String())
		if err != nil {
			return fmt.Errorf("postgres: migrate: %w", err)
		}
		return nil
	})
}
