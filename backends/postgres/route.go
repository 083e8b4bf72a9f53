package postgres

import (
	"context"

	"github.com/loomgate/loomgate/spi"
)

// Every statement that works on a row judges the call's route in the same snapshot.
// ownedSQL is that judgement of a call whose slot and epoch are in the columns or
// parameters given: true, or what the shard says of the slot instead. A store
// without an identity takes only calls that nothing has routed.
//
// The lateral probe with OFFSET 0 stays one index look-up; a join would hash all
// 4,096 slots for each batch.
const (
	slotProbeSQL = `LEFT JOIN LATERAL (SELECT s.state, s.epoch FROM loomgate.slots s WHERE s.slot = i.slot OFFSET 0) s ON true`
	ownedSQL     = `CASE WHEN i.epoch = 0 THEN (SELECT count(*) = 0 FROM loomgate.identity) ELSE coalesce(s.state = 1 AND s.epoch = i.epoch, false) END`
)

// callSQL is a call's own row: its slot and epoch as $1 and $2, whether they are
// owned, and what the slot is otherwise. Each statement on one row begins with it.
const callSQL = `i AS (SELECT $1::integer AS slot, $2::bigint AS epoch),
c AS MATERIALIZED (SELECT i.slot, ` + ownedSQL + ` AS owned, coalesce(s.state, 0) AS state, coalesce(s.epoch, 0) AS slot_epoch FROM i ` + slotProbeSQL + `)`

// A judgement is what a shard says of a call's route.
type judgement struct {
	owned bool
	state spi.SlotState
	epoch int64
}

// into returns where a row's columns owned, state and slot_epoch go.
func (j *judgement) into() []any { return []any{&j.owned, &j.state, &j.epoch} }

// refuse returns the error that a judgement means, or nil. same is whether the row
// that was found lies in the call's slot.
func (s *store) refuse(ctx context.Context, route spi.Route, j judgement, same bool) error {
	switch {
	case j.owned && same:
		return nil
	case route.Epoch > 0 && j.state != 0 && j.state != spi.SlotOwned:
		return &spi.SlotMovingError{Shard: s.name(ctx), Slot: route.Slot, State: j.state}
	}
	return &spi.MisroutedError{Shard: s.name(ctx), Route: route, Epoch: j.epoch}
}
