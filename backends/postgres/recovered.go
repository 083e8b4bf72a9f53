package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/loomgate/loomgate/spi"
)

// RecoveryJump is how far [Recovered] raises fence tokens, versions and lease tokens:
// further than what a failover can have lost of them.
const RecoveryJump = 1 << 20

// A Recovery says what [Recovered] has raised.
type Recovery struct {
	Executions int64 // whose fence it raised
	Slots      int64 // whose epoch it raised
}

// Recovered makes a shard safe that has been restored from a backup, or failed over to an
// asynchronous standby. Such a shard may have forgotten acquires that it acknowledged: a
// token could be given out a second time, and two owners would hold the same. It raises
// every fence that there is, the versions of refs and timers, the tokens of leases, and the
// epoch of each slot that the shard owns, so that all gateways read their maps anew. It
// does not bring back what is lost.
//
// It waits for no write, and takes the shard's barrier while it works: call it before the
// shard serves again. The DSN is a direct one, of the role that migrates. To call it again
// is safe.
//
// An execution whose very first acquire was lost has token 0, as one that never was fenced:
// those are raised too if unfenced is true. Executions that are never fenced then refuse
// unfenced resumes for good.
func Recovered(ctx context.Context, dsn string, unfenced bool) (r Recovery, err error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return r, fmt.Errorf("postgres: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		for _, sql := range []string{
			"SET LOCAL statement_timeout = 0",
			"LOCK TABLE loomgate.slot_barrier IN EXCLUSIVE MODE", // first, as every write does
		} {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		lowest := 1
		if unfenced {
			lowest = 0
		}
		fences, err := tx.Exec(ctx, `UPDATE loomgate.executions SET fence = fence + $1 WHERE fence >= $2`, RecoveryJump, lowest)
		if err != nil {
			return err
		}
		slots, err := tx.Exec(ctx, `UPDATE loomgate.slots SET epoch = epoch + $1 WHERE state = $2`, RecoveryJump, int(spi.SlotOwned))
		if err != nil {
			return err
		}
		r = Recovery{fences.RowsAffected(), slots.RowsAffected()}
		if _, err := tx.Exec(ctx, `UPDATE loomgate.identity SET version = version + $1`, RecoveryJump); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `SELECT setval('loomgate.versions', (SELECT last_value FROM loomgate.versions) + $1)`, RecoveryJump)
		return err
	})
	if err != nil {
		return Recovery{}, fmt.Errorf("postgres: raise what a recovery may have lowered: %w", err)
	}
	return r, nil
}
