package postgres

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/loomgate/loomgate/spi"
)

// backend returns what the store offers: itself, or, while the directory of an
// adopted database is not complete, the store that makes up for it.
func (d *Database) backend(ctx context.Context, s *store) (spi.Backend, error) {
	var open bool
	if err := d.pool.QueryRow(ctx, "SELECT to_regclass('loomgate.backfill') IS NOT NULL").Scan(&open); err != nil {
		return spi.Backend{}, s.failed(ctx, err)
	}
	if open {
		a := &adopted{store: s}
		return spi.Backend{Events: a, Timers: a, Refs: s, Leases: s, DataKeys: a, Ownership: a}, nil
	}
	return spi.Backend{Events: s, Timers: s, Refs: s, Leases: s, DataKeys: s, Ownership: s}, nil
}

// An adopted store is one whose older executions may lack their rows. It makes the
// rows of those that a call names, before the call, and lists what has events.
type adopted struct {
	store    *store      // not embedded: each method is decided here
	complete atomic.Bool // the directory is, and stays so
}

// A method to come of these groups does not compile until it is decided. Refs and
// leases have nothing to do with rows.
var _ interface {
	spi.EventMethods
	spi.TimerMethods
	spi.DataKeyMethods
	spi.OwnershipMethods
} = (*adopted)(nil)

type place struct {
	spi.Route
	id spi.ExecutionID
}

// ready makes the rows that are missing.
func (a *adopted) ready(ctx context.Context, places ...place) error {
	if a.complete.Load() {
		return nil
	}
	ids, slots, epochs := make([]string, len(places)), make([]int32, len(places)), make([]int64, len(places))
	for i, p := range places {
		ids[i], slots[i], epochs[i] = string(p.id), int32(p.Slot), p.Epoch
	}
	err := a.store.write(ctx, "", statement{sql: plantOlderSQL(ownedSQL), args: []any{ids, slots, epochs}}, statement{sql: reviveOlderSQL, args: []any{ids}})
	if pg, ok := asPgError(err); ok && pg.Code == undefinedTable {
		a.complete.Store(true) // the backfill has ended
		return nil
	}
	if ambiguous, ok := errors.AsType[*spi.AmbiguousError](err); ok {
		return &spi.UnavailableError{Cause: ambiguous.Cause} // of the call itself nothing was sent
	}
	return err
}

func (a *adopted) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	if err := a.ready(ctx, place{req.Route, req.Execution}); err != nil {
		return spi.AppendResponse{}, err
	}
	return a.store.Append(ctx, req)
}

func (a *adopted) AppendIfUnchanged(ctx context.Context, req spi.AppendIfUnchangedRequest) (spi.AppendIfUnchangedResponse, error) {
	if err := a.ready(ctx, place{req.Route, req.Execution}); err != nil {
		return spi.AppendIfUnchangedResponse{}, err
	}
	return a.store.AppendIfUnchanged(ctx, req)
}

func (a *adopted) AppendBatch(ctx context.Context, req spi.AppendBatchRequest) (spi.AppendBatchResponse, error) {
	places := make([]place, len(req.Appends))
	for i := range req.Appends {
		places[i] = place{req.Appends[i].Route, req.Appends[i].Execution}
	}
	if err := a.ready(ctx, places...); err != nil {
		return spi.AppendBatchResponse{}, err
	}
	return a.store.AppendBatch(ctx, req)
}

func (a *adopted) Read(ctx context.Context, req spi.ReadRequest) (spi.ReadResponse, error) {
	if err := a.ready(ctx, place{req.Route, req.Execution}); err != nil {
		return spi.ReadResponse{}, err
	}
	return a.store.Read(ctx, req)
}

func (a *adopted) Head(ctx context.Context, req spi.HeadRequest) (spi.HeadResponse, error) {
	if err := a.ready(ctx, place{req.Route, req.Execution}); err != nil {
		return spi.HeadResponse{}, err
	}
	return a.store.Head(ctx, req)
}

func (a *adopted) AcquireFence(ctx context.Context, req spi.AcquireFenceRequest) (spi.AcquireFenceResponse, error) {
	if err := a.ready(ctx, place{req.Route, req.Execution}); err != nil {
		return spi.AcquireFenceResponse{}, err
	}
	return a.store.AcquireFence(ctx, req)
}

func (a *adopted) AcquireFenceIf(ctx context.Context, req spi.AcquireFenceIfRequest) (spi.AcquireFenceIfResponse, error) {
	if err := a.ready(ctx, place{req.Route, req.Execution}); err != nil {
		return spi.AcquireFenceIfResponse{}, err
	}
	return a.store.AcquireFenceIf(ctx, req)
}

func (a *adopted) CopyPrefix(ctx context.Context, req spi.CopyPrefixRequest) (spi.CopyPrefixResponse, error) {
	if err := a.ready(ctx, place{req.FromRoute, req.From}, place{req.Route, req.To}); err != nil {
		return spi.CopyPrefixResponse{}, err
	}
	return a.store.CopyPrefix(ctx, req)
}

func (a *adopted) TruncatePrefixKeeping(ctx context.Context, req spi.TruncatePrefixKeepingRequest) (spi.TruncatePrefixKeepingResponse, error) {
	if err := a.ready(ctx, place{req.Route, req.Execution}); err != nil {
		return spi.TruncatePrefixKeepingResponse{}, err
	}
	return a.store.TruncatePrefixKeeping(ctx, req)
}

func (a *adopted) DeleteExecution(ctx context.Context, req spi.DeleteExecutionRequest) (spi.DeleteExecutionResponse, error) {
	if err := a.ready(ctx, place{req.Route, req.Execution}); err != nil {
		return spi.DeleteExecutionResponse{}, err
	}
	return a.store.DeleteExecution(ctx, req)
}

// SweepTombstones finds only what has a row.
func (a *adopted) SweepTombstones(ctx context.Context, req spi.SweepTombstonesRequest) (spi.SweepTombstonesResponse, error) {
	return a.store.SweepTombstones(ctx, req)
}

func (a *adopted) ScheduleTimer(ctx context.Context, req spi.ScheduleTimerRequest) (spi.ScheduleTimerResponse, error) {
	if err := a.ready(ctx, place{req.Route, req.Timer.Execution}); err != nil {
		return spi.ScheduleTimerResponse{}, err
	}
	return a.store.ScheduleTimer(ctx, req)
}

func (a *adopted) DueTimers(ctx context.Context, req spi.DueTimersRequest) (spi.DueTimersResponse, error) {
	return a.store.DueTimers(ctx, req)
}

func (a *adopted) CompleteTimer(ctx context.Context, req spi.CompleteTimerRequest) (spi.CompleteTimerResponse, error) {
	return a.store.CompleteTimer(ctx, req)
}

func (a *adopted) CreateDataKey(ctx context.Context, req spi.CreateDataKeyRequest) (spi.CreateDataKeyResponse, error) {
	if id, ok := req.Key.Owner.Execution(); ok {
		if err := a.ready(ctx, place{req.Route, id}); err != nil {
			return spi.CreateDataKeyResponse{}, err
		}
	}
	return a.store.CreateDataKey(ctx, req)
}

// The other methods of data keys find the row that CreateDataKey has made.

func (a *adopted) GetDataKey(ctx context.Context, req spi.GetDataKeyRequest) (spi.GetDataKeyResponse, error) {
	return a.store.GetDataKey(ctx, req)
}

func (a *adopted) DestroyDataKey(ctx context.Context, req spi.DestroyDataKeyRequest) (spi.DestroyDataKeyResponse, error) {
	return a.store.DestroyDataKey(ctx, req)
}

func (a *adopted) RewrapDataKey(ctx context.Context, req spi.RewrapDataKeyRequest) (spi.RewrapDataKeyResponse, error) {
	return a.store.RewrapDataKey(ctx, req)
}

func (a *adopted) ListDataKeys(ctx context.Context, req spi.ListDataKeysRequest) (spi.ListDataKeysResponse, error) {
	return a.store.ListDataKeys(ctx, req)
}

// ListExecutions reads events, which have no slot: until the directory is complete
// all slots are this shard's.
func (a *adopted) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (res spi.ListExecutionsResponse, err error) {
	if a.complete.Load() {
		return a.store.ListExecutions(ctx, req)
	}
	var open bool
	from, before := bounds(spi.Seek(req.Prefix, req.After))
	err = a.store.read(ctx, backfillOpen(&open), a.store.receipt(req.KnownOwnership, &res.Receipt), statement{
		olderIDsSQL,
		[]any{from, before, req.Limit + 1},
		func(rows pgx.Rows) error {
			res.Executions, err = pgx.AppendRows(make([]spi.ExecutionID, 0, min(req.Limit+1, 1024)), rows, pgx.RowTo[spi.ExecutionID])
			return err
		},
	})
	if err == nil && !open {
		a.complete.Store(true)
		return a.store.ListExecutions(ctx, req)
	}
	if len(res.Executions) > req.Limit {
		res.Executions = res.Executions[:req.Limit]
		res.Next = string(res.Executions[req.Limit-1])
	}
	return res, err
}

// backfillOpen reads, in the snapshot of what is read beside it, whether rows may be
// missing; to_regclass would not keep to the snapshot.
func backfillOpen(open *bool) statement {
	return statement{
		sql: `SELECT EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'loomgate' AND c.relname = 'backfill')`,
		rows: one(open),
	}
}

func (a *adopted) GetOwnership(ctx context.Context, req spi.GetOwnershipRequest) (spi.GetOwnershipResponse, error) {
	return a.store.GetOwnership(ctx, req)
}

// ChangeOwnership refuses to give slots away as long as pages cannot leave them out.
func (a *adopted) ChangeOwnership(ctx context.Context, req spi.ChangeOwnershipRequest) (spi.ChangeOwnershipResponse, error) {
	if len(req.Slots) > 0 && !a.complete.Load() {
		var open bool
		var o spi.ShardOwnership
		if err := a.store.read(ctx, append(ownershipStatements(&o), backfillOpen(&open))...); err != nil {
			return spi.ChangeOwnershipResponse{}, err
		}
		if open {
			return spi.ChangeOwnershipResponse{}, &spi.OwnershipError{Shard: o.Identity.Shard, Version: o.Version, Reason: "it owns all slots until the backfill of its directory is done"}
		}
		a.complete.Store(true)
	}
	return a.store.ChangeOwnership(ctx, req)
}
