package postgres

import (
	"cmp"
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/loomgate/loomgate/spi"
)

// listedSQL is the ownership filter of every page, for a row with a slot: it leaves
// out the slots that this shard has given away or does not have yet. There are few
// of those, and where nothing is routed none.
const listedSQL = `slot <> ALL (ARRAY(SELECT s.slot FROM loomgate.slots s WHERE s.state > 2))`

// receipt reads what a page covers, in the page's own snapshot.
func (s *store) receipt(known int64, into *spi.Receipt) statement {
	return statement{
		`SELECT n.shard, n.version, CASE WHEN n.version <> $1 THEN ARRAY(SELECT s.slot FROM loomgate.slots s WHERE s.state <= 2) END
FROM loomgate.identity n`,
		[]any{known},
		func(rows pgx.Rows) error {
			for rows.Next() {
				var r spi.ShardReceipt
				var slots []spi.Slot
				if err := rows.Scan(&r.Shard, &r.Version, &slots); err != nil {
					return err
				}
				if r.Version != known {
					r.Slots = append(spi.SlotSet{}, spi.NewSlotSet(slots...)...)
				}
				*into = append(*into, r)
			}
			return rows.Err()
		},
	}
}

// name returns the shard's own name for an error; "" if it has none or cannot be
// asked.
func (s *store) name(ctx context.Context) (name string) {
	_ = s.pool.QueryRow(ctx, "SELECT shard FROM loomgate.identity").Scan(&name)
	return name
}

func (s *store) GetOwnership(ctx context.Context, _ spi.GetOwnershipRequest) (res spi.GetOwnershipResponse, err error) {
	var o spi.ShardOwnership
	if err := s.read(ctx, ownershipStatements(&o)...); err != nil {
		return res, err
	}
	s.learn(o)
	if o.Version > 0 {
		res.Shards = []spi.ShardOwnership{o}
	}
	return res, nil
}

// ownershipStatements read what the shard says of itself.
func ownershipStatements(o *spi.ShardOwnership) []statement {
	return []statement{
		{
			"SELECT cluster, shard, fingerprint, min_writer_major, min_writer_minor, version FROM loomgate.identity", nil,
			func(rows pgx.Rows) error {
				id := &o.Identity
				for rows.Next() {
					if err := rows.Scan(&id.Cluster, &id.Shard, &id.Fingerprint, &id.MinWriter.Major, &id.MinWriter.Minor, &o.Version); err != nil {
						return err
					}
				}
				return rows.Err()
			},
		},
		{
			"SELECT slot, state, epoch, peer, tenant FROM loomgate.slots ORDER BY slot", nil,
			func(rows pgx.Rows) error {
				for rows.Next() {
					var r spi.SlotRecord
					if err := rows.Scan(&r.Slot, &r.State, &r.Epoch, &r.Peer, &r.Tenant); err != nil {
						return err
					}
					o.Slots = append(o.Slots, r)
				}
				return rows.Err()
			},
		},
	}
}

// ChangeOwnership takes the barrier against every write, for as long as it takes to
// write the rows. It reads, decides and writes on one connection: the only method
// of several round trips. It locks the barrier first, as every write does, and then
// nothing that a write locks.
func (s *store) ChangeOwnership(ctx context.Context, req spi.ChangeOwnershipRequest) (res spi.ChangeOwnershipResponse, err error) {
	committing := false
	err = pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		// While this waits every write queues behind it, so it does not wait long.
		if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '2s'"); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "LOCK TABLE loomgate.slot_barrier IN EXCLUSIVE MODE"); err != nil {
			return err
		}
		now, holds, err := readOwnership(ctx, tx)
		if err != nil {
			return err
		}
		if res.Ownership, err = now.Apply(req, holds); err != nil {
			return err
		}
		if err := writeOwnership(ctx, tx, res.Ownership, req.Slots); err != nil {
			return err
		}
		committing = true
		return nil
	})
	if refused, ok := errors.AsType[*spi.OwnershipError](err); ok {
		return spi.ChangeOwnershipResponse{}, refused
	}
	if err != nil && committing && !rolledBack(err) {
		return res, &spi.AmbiguousError{Cause: err}
	}
	if err != nil {
		return res, s.failed(ctx, err)
	}
	s.learn(res.Ownership)
	return res, nil
}

// readOwnership reads what the shard says of itself, and whether it holds anything.
func readOwnership(ctx context.Context, tx pgx.Tx) (o spi.ShardOwnership, holds bool, err error) {
	for _, st := range ownershipStatements(&o) {
		rows, err := tx.Query(ctx, st.sql)
		if err != nil {
			return o, false, err
		}
		err = st.rows(rows)
		rows.Close()
		if err = cmp.Or(rows.Err(), err); err != nil {
			return o, false, err
		}
	}
	err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM loomgate.executions) OR EXISTS (SELECT FROM loomgate.timers)
OR EXISTS (SELECT FROM loomgate.refs) OR EXISTS (SELECT FROM loomgate.leases) OR EXISTS (SELECT FROM loomgate.data_keys)`).Scan(&holds)
	return o, holds, err
}

func writeOwnership(ctx context.Context, tx pgx.Tx, o spi.ShardOwnership, slots []spi.SlotRecord) error {
	id := o.Identity
	_, err := tx.Exec(ctx, `INSERT INTO loomgate.identity (cluster, shard, fingerprint, min_writer_major, min_writer_minor, version)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (one) DO UPDATE SET fingerprint = excluded.fingerprint, min_writer_major = excluded.min_writer_major,
	min_writer_minor = excluded.min_writer_minor, version = excluded.version`,
		id.Cluster, id.Shard, id.Fingerprint, int32(id.MinWriter.Major), int32(id.MinWriter.Minor), o.Version)
	if err != nil {
		return err
	}
	n := len(slots)
	numbers, states, epochs, peers, tenants := make([]int32, n), make([]int16, n), make([]int64, n), make([]string, n), make([]string, n)
	for i, r := range slots {
		numbers[i], states[i], epochs[i], peers[i], tenants[i] = int32(r.Slot), int16(r.State), r.Epoch, r.Peer, string(r.Tenant)
	}
	_, err = tx.Exec(ctx, `INSERT INTO loomgate.slots (slot, state, epoch, peer, tenant)
SELECT * FROM unnest($1::integer[], $2::smallint[], $3::bigint[], $4::text[], $5::text[])
ON CONFLICT (slot) DO UPDATE SET state = excluded.state, epoch = excluded.epoch, peer = excluded.peer, tenant = excluded.tenant`,
		numbers, states, epochs, peers, tenants)
	return err
}
