package postgres_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loomgate/loomgate/backends/postgres"
	"github.com/loomgate/loomgate/internal/pgtest"
	"github.com/loomgate/loomgate/spi"
)

// The schedules of this file went wrong once when they were done the obvious way.
// Each plays one transaction by hand and holds it in the middle; LOCKS.md says
// which lock or statement boundary each of them needs.

// A rival is a transaction that a test plays by hand, beside a store.
type rival struct {
	*testing.T
	store   *spi.Store
	patient *spi.Store // the same, whose statements may take minutes
	db      pgtest.Database
	conn    *pgx.Conn
	watch   *pgx.Conn // looks on, outside of any transaction
}

func newRival(t *testing.T) *rival {
	t.Helper()
	db := migrated.Fresh(t, pgtest.ICU)
	connect := func() *pgx.Conn {
		conn, err := pgx.Connect(t.Context(), db.Direct)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close(context.WithoutCancel(t.Context())) })
		return conn
	}
	return &rival{t, open(t, db).Store(), open(t, db, postgres.StatementTimeout(5*time.Minute)).Store(), db, connect(), connect()}
}

// do runs statements of the rival's transaction.
func (r *rival) do(statements ...string) {
	r.Helper()
	for _, sql := range statements {
		if _, err := r.conn.Exec(r.Context(), sql); err != nil {
			r.Fatalf("%s: %v", sql, err)
		}
	}
}

// begin begins the rival's transaction as the store's begin.
func (r *rival) begin() {
	r.Helper()
	r.do("BEGIN ISOLATION LEVEL READ COMMITTED", "LOCK TABLE loomgate.slot_barrier IN ROW SHARE MODE")
}

// waits starts a call and returns when it waits for a lock that the rival holds.
// The function that it returns waits for the call's end.
func (r *rival) waits(call func() error) (end func() error) {
	r.Helper()
	done := make(chan error, 1)
	go func() { done <- call() }()
	ctx, cancel := context.WithTimeout(r.Context(), 20*time.Second)
	defer cancel()
	for waiting := false; !waiting; {
		select {
		case err := <-done:
			r.Fatalf("the call did not wait, and answers %v", err)
		default:
		}
		err := r.watch.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE NOT l.granted AND a.datname = current_database())").Scan(&waiting)
		if err != nil {
			r.Fatal(err)
		}
	}
	return func() error {
		r.Helper()
		select {
		case err := <-done:
			return err
		case <-time.After(20 * time.Second):
			r.Fatal("the call never ends")
			return nil
		}
	}
}

func (r *rival) append(id spi.ExecutionID, head int64, kinds ...string) {
	r.Helper()
	if err := r.tryAppend(spi.AppendRequest{Execution: id, ExpectedHead: head}, kinds...); err != nil {
		r.Fatal(err)
	}
}

func (r *rival) tryAppend(req spi.AppendRequest, kinds ...string) error {
	for _, k := range kinds {
		req.Events = append(req.Events, spi.Event{ID: spi.NewEventID(), Kind: k})
	}
	_, err := spi.Append(r.Context(), r.store, req)
	return err
}

// tryEither appends alone or as a batch.
func (r *rival) tryEither(batched bool, req spi.AppendRequest, kinds ...string) error {
	if !batched {
		return r.tryAppend(req, kinds...)
	}
	for _, k := range kinds {
		req.Events = append(req.Events, spi.Event{ID: spi.NewEventID(), Kind: k})
	}
	res, err := spi.AppendBatch(r.Context(), r.store, spi.AppendBatchRequest{Appends: []spi.AppendRequest{req}})
	if err != nil {
		return err
	}
	return res.Results[0].Err
}

// insert writes an event in the rival's transaction.
func (r *rival) insert(id string, sequence int64, answering bool) {
	r.Helper()
	_, err := r.conn.Exec(r.Context(), `INSERT INTO loomgate.events VALUES ($1, $2, gen_random_uuid(), 'Rival', $3, $3, 0, now(), 5)`, id, sequence, answering)
	if err != nil {
		r.Fatal(err)
	}
}

func (r *rival) head(id spi.ExecutionID) spi.HeadResponse {
	r.Helper()
	res, err := spi.Head(r.Context(), r.store, spi.HeadRequest{Execution: id})
	if err != nil {
		r.Fatal(err)
	}
	return res
}

func want[E error](t *testing.T, err error) (e E) {
	t.Helper()
	e, ok := errors.AsType[E](err)
	if !ok {
		t.Fatalf("the error is %v, not a %T", err, e)
	}
	return e
}

func TestAPlainAppendWaitsForADeletionAndLeavesNoOrphan(t *testing.T) {
	r := newRival(t)
	r.append("e", 0, "Noted", "Noted")
	r.begin()
	r.do("SELECT FROM loomgate.executions WHERE execution_id = 'e' FOR UPDATE")
	end := r.waits(func() error { return r.tryAppend(spi.AppendRequest{Execution: "e", ExpectedHead: 2}, "Noted") })
	r.do("DELETE FROM loomgate.events WHERE execution_id = 'e'",
		"UPDATE loomgate.executions SET live = false, incarnation = 2, deleted_at = now() WHERE execution_id = 'e'", "COMMIT")
	if got := want[*spi.IncarnationError](t, end()).Current; got != 2 {
		t.Errorf("the incarnation is %d", got)
	}
	if head := r.head("e"); head.Head != 0 {
		t.Errorf("an orphan is at %d", head.Head)
	}
}

func TestAnAppendThatWaitedForANewLogIsNotJudgedByTheOldOne(t *testing.T) {
	r := newRival(t)
	r.append("e", 0, "Noted", "Noted")
	r.begin()
	r.do("SELECT FROM loomgate.executions WHERE execution_id = 'e' FOR UPDATE")
	end := r.waits(func() error { return r.tryAppend(spi.AppendRequest{Execution: "e", ExpectedHead: 2}, "Noted") })
	r.do("DELETE FROM loomgate.events WHERE execution_id = 'e'", "UPDATE loomgate.executions SET incarnation = 2 WHERE execution_id = 'e'")
	r.insert("e", 1, false)
	r.do("COMMIT")
	if got := want[*spi.ConflictError](t, end()).Head; got != 1 {
		t.Errorf("the conflict's head is %d", got)
	}
}

func TestAPlainAppendWaitsForATruncation(t *testing.T) {
	r := newRival(t)
	r.append("e", 0, "Noted", "Noted")
	r.begin()
	r.do("SELECT FROM loomgate.executions WHERE execution_id = 'e' FOR UPDATE")
	end := r.waits(func() error { return r.tryAppend(spi.AppendRequest{Execution: "e", ExpectedHead: 2}, "Noted") })
	r.do("DELETE FROM loomgate.events WHERE execution_id = 'e' AND sequence < 2", "UPDATE loomgate.executions SET floor = 2 WHERE execution_id = 'e'", "COMMIT")
	if err := end(); err != nil {
		t.Error(err)
	}
	if head := r.head("e"); head.Head != 3 || head.Floor != 2 {
		t.Errorf("the log is at %+v", head)
	}
}

func TestAPlainAppendDoesNotWaitForAnAcquire(t *testing.T) {
	r := newRival(t)
	r.append("e", 0, "Noted")
	r.begin()
	r.do("SELECT FROM loomgate.executions WHERE execution_id = 'e' FOR NO KEY UPDATE")
	r.append("e", 1, "Noted")
	r.do("ROLLBACK")
}

func TestAnAnswerWaitsForAnAcquireAndIsStale(t *testing.T) {
	for _, batched := range []bool{false, true} {
		r := newRival(t)
		r.append("e", 0, spi.KindExecutionSuspended)
		r.begin()
		r.do("UPDATE loomgate.executions SET fence = 1 WHERE execution_id = 'e'")
		end := r.waits(func() error {
			return r.tryEither(batched, spi.AppendRequest{Execution: "e", ExpectedHead: 1}, spi.KindExecutionResumed)
		})
		r.do("COMMIT")
		if got := want[*spi.StaleFenceError](t, end()).Current; got != 1 {
			t.Errorf("batched %v: the token is %d", batched, got)
		}
	}
}

func TestAConditionalAcquireWaitsForAnAnswerAndIsStale(t *testing.T) {
	r := newRival(t)
	r.append("e", 0, spi.KindExecutionSuspended)
	r.begin()
	r.do("SELECT FROM loomgate.executions WHERE execution_id = 'e' FOR NO KEY UPDATE")
	r.insert("e", 2, true)
	var res spi.AcquireFenceIfResponse
	end := r.waits(func() (err error) {
		res, err = spi.AcquireFenceIf(t.Context(), r.store, spi.AcquireFenceIfRequest{Execution: "e", ParkSeq: 1})
		return err
	})
	r.do("COMMIT")
	if err := end(); err != nil || res.Acquired || res.Token != 0 {
		t.Errorf("it answers %+v (%v)", res, err)
	}
}

func TestAnAppendThatLosesItsPlaceIsNotAnsweredFromItsSnapshot(t *testing.T) {
	for _, batched := range []bool{false, true} {
		r := newRival(t)
		r.append("e", 0, "Noted")
		r.begin()
		r.do("SELECT FROM loomgate.executions WHERE execution_id = 'e' FOR KEY SHARE")
		r.insert("e", 2, false)
		end := r.waits(func() error {
			return r.tryEither(batched, spi.AppendRequest{Execution: "e", ExpectedHead: 1}, "Noted", "Noted")
		})
		r.do("COMMIT")
		if got := want[*spi.ConflictError](t, end()).Head; got != 2 {
			t.Errorf("batched %v: the conflict's head is %d", batched, got)
		}
		if head := r.head("e"); head.Head != 2 {
			t.Errorf("batched %v: the log is at %d", batched, head.Head)
		}
	}
}

// TestABatchOvertakenByANewLogIsNotJudgedByTheOldOne holds a batch between its snapshot
// and a lock, by a policy that waits when it sees the execution before: nothing else
// makes a batch wait there.
func TestABatchOvertakenByANewLogIsNotJudgedByTheOldOne(t *testing.T) {
	r := newRival(t)
	r.append("a", 0, "Noted")
	r.append("e", 0, "Noted", "Noted")
	role := "held_" + r.db.Name
	r.do(`CREATE FUNCTION public.held(id text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	IF id = 'a' THEN PERFORM pg_advisory_xact_lock_shared(1); END IF;
	RETURN true;
END $$`,
		"ALTER TABLE loomgate.executions ENABLE ROW LEVEL SECURITY",
		"CREATE POLICY held ON loomgate.executions USING (public.held(execution_id))",
		"CREATE ROLE "+role+" LOGIN",
		"GRANT USAGE ON SCHEMA loomgate TO "+role,
		"GRANT ALL ON ALL TABLES IN SCHEMA loomgate TO "+role)
	t.Cleanup(func() {
		_, err := r.conn.Exec(context.WithoutCancel(t.Context()), "DROP OWNED BY "+role+"; DROP ROLE "+role)
		if err != nil {
			t.Error(err)
		}
	})
	held := r.db
	held.DSN = strings.Replace(held.DSN, "//postgres@", "//"+role+"@", 1)
	held.Direct = held.DSN
	s := open(t, held).Store()
	event := func() []spi.Event { return []spi.Event{{ID: spi.NewEventID(), Kind: "Noted"}} }
	r.begin()
	r.do("SELECT pg_advisory_xact_lock(1)")
	var results []spi.AppendResult
	end := r.waits(func() error {
		res, err := spi.AppendBatch(t.Context(), s, spi.AppendBatchRequest{Appends: []spi.AppendRequest{
			{Execution: "a", ExpectedHead: 1, Events: event()},
			{Execution: "e", ExpectedHead: 2, Events: event()},
		}})
		results = res.Results
		return err
	})
	r.do("SELECT FROM loomgate.executions WHERE execution_id = 'e' FOR UPDATE",
		"DELETE FROM loomgate.events WHERE execution_id = 'e'", "UPDATE loomgate.executions SET incarnation = 2 WHERE execution_id = 'e'")
	r.insert("e", 1, false)
	r.do("COMMIT")
	if err := end(); err != nil {
		t.Fatal(err)
	}
	if results[0].Err != nil {
		t.Error(results[0].Err)
	}
	if got := want[*spi.ConflictError](t, results[1].Err).Head; got != 1 {
		t.Errorf("the conflict's head is %d", got)
	}
}

func TestOneLockedExecutionDoesNotStallTheRestOfItsBatch(t *testing.T) {
	for _, head := range []int64{0, spi.AnyHead} { // a batch that lands, and one that is judged
		r := newRival(t)
		r.append("held", 0, "Noted")
		r.begin()
		r.do("SELECT FROM loomgate.executions WHERE execution_id = 'held' FOR UPDATE")
		event := func() []spi.Event { return []spi.Event{{ID: spi.NewEventID(), Kind: "Noted"}} }
		var results []spi.AppendResult
		end := r.waits(func() error {
			res, err := spi.AppendBatch(t.Context(), r.store, spi.AppendBatchRequest{Appends: []spi.AppendRequest{
				{Execution: "held", ExpectedHead: 1, Events: event()},
				{Execution: "a", ExpectedHead: head, Events: event()},
				{Execution: "z", ExpectedHead: head, Events: event()},
			}})
			results = res.Results
			return err
		})
		for _, id := range []spi.ExecutionID{"a", "z"} {
			if r.head(id).Head != 1 {
				t.Errorf("while one is held, %q has not landed at %d", id, head)
			}
		}
		r.do("COMMIT")
		if err := end(); err != nil {
			t.Fatal(err)
		}
		for i, res := range results {
			if res.Err != nil {
				t.Errorf("result %d: %v", i, res.Err)
			}
		}
	}
}

func TestAFirstAppendWaitsForARivalsAndConflicts(t *testing.T) {
	r := newRival(t)
	r.begin()
	r.do("INSERT INTO loomgate.executions (execution_id, slot, live) VALUES ('e', 0, true)")
	r.insert("e", 1, false)
	end := r.waits(func() error { return r.tryAppend(spi.AppendRequest{Execution: "e"}, "Noted") })
	r.do("COMMIT")
	if got := want[*spi.ConflictError](t, end()).Head; got != 1 {
		t.Errorf("the conflict's head is %d", got)
	}
}

// own gives the store's database an identity and slot 7.
func (r *rival) own() spi.Route {
	r.Helper()
	_, err := spi.ChangeOwnership(r.Context(), r.store, spi.ChangeOwnershipRequest{
		Identity: spi.Identity{Cluster: "c", Shard: "s", Fingerprint: "f"},
		Slots:    []spi.SlotRecord{{Slot: 7, State: spi.SlotOwned, Epoch: 1}},
	})
	if err != nil {
		r.Fatal(err)
	}
	return spi.Route{Slot: 7, Epoch: 1}
}

func (r *rival) freeze() error {
	_, err := spi.ChangeOwnership(r.Context(), r.patient, spi.ChangeOwnershipRequest{
		ExpectedVersion: 1, Slots: []spi.SlotRecord{{Slot: 7, State: spi.SlotFrozen, Epoch: 1}},
	})
	return err
}

func TestAChangeOfOwnershipWaitsForTheWritesUnderWay(t *testing.T) {
	r := newRival(t)
	r.own()
	r.begin() // a write, past its barrier
	end := r.waits(r.freeze)
	r.do("COMMIT")
	if err := end(); err != nil {
		t.Error(err)
	}
}

func TestAWriteThatWaitedForAChangeOfOwnershipSeesItAndLeavesNoRow(t *testing.T) {
	r := newRival(t)
	route := r.own()
	r.do("BEGIN", "LOCK TABLE loomgate.slot_barrier IN EXCLUSIVE MODE")
	end := r.waits(func() error { return r.tryAppend(spi.AppendRequest{Route: route, Execution: "e"}, "Noted") })
	r.do("UPDATE loomgate.slots SET state = 2 WHERE slot = 7", "COMMIT")
	want[*spi.SlotMovingError](t, end())
	var rows int
	if err := r.conn.QueryRow(t.Context(), "SELECT count(*) FROM loomgate.executions").Scan(&rows); err != nil || rows != 0 {
		t.Errorf("%d rows are left (%v)", rows, err)
	}
}

func TestAChangeOfOwnershipDoesNotHoldWritesUpForLong(t *testing.T) {
	r := newRival(t)
	route := r.own()
	r.begin() // a write that hangs
	end := r.waits(r.freeze)
	if unavailable := want[*spi.UnavailableError](t, end()); unavailable.Cause == nil {
		t.Error("it has no cause")
	}
	if err := r.tryAppend(spi.AppendRequest{Route: route, Execution: "e"}, "Noted"); err != nil {
		t.Error(err)
	}
	r.do("ROLLBACK")
}

func TestAShredWaitsForTheAppendsUnderWay(t *testing.T) {
	r := newRival(t)
	key := spi.DataKey{Owner: "e", Version: 1, ID: spi.KeyID{1}, WrappedBy: "kms", Wrapped: []byte{1}}
	if _, err := spi.CreateDataKey(t.Context(), r.store, spi.CreateDataKeyRequest{Key: key}); err != nil {
		t.Fatal(err)
	}
	r.begin()
	r.do("SELECT FROM loomgate.executions WHERE execution_id = 'e' FOR KEY SHARE") // a plain append
	end := r.waits(func() error {
		_, err := spi.DestroyDataKey(t.Context(), r.store, spi.DestroyDataKeyRequest{Owner: "e", Version: 1})
		return err
	})
	r.do("COMMIT")
	if err := end(); err != nil {
		t.Error(err)
	}
}

func TestAnAppendWaitsForAShredAndIsRefused(t *testing.T) {
	r := newRival(t)
	key := spi.DataKey{Owner: "e", Version: 1, ID: spi.KeyID{1}, WrappedBy: "kms", Wrapped: []byte{1}}
	if _, err := spi.CreateDataKey(t.Context(), r.store, spi.CreateDataKeyRequest{Key: key}); err != nil {
		t.Fatal(err)
	}
	if err := r.tryAppend(spi.AppendRequest{Execution: "e", KeyID: key.ID}, "Noted"); err != nil {
		t.Fatal(err)
	}
	r.begin()
	r.do("SELECT FROM loomgate.executions WHERE execution_id = 'e' FOR UPDATE")
	end := r.waits(func() error {
		return r.tryAppend(spi.AppendRequest{Execution: "e", ExpectedHead: 1, KeyID: key.ID}, "Noted")
	})
	r.do("UPDATE loomgate.executions SET key_id = NULL, shredded = true WHERE execution_id = 'e'", "COMMIT")
	want[*spi.ShreddedError](t, end())
}

func TestAReadJudgesOwnershipInTheSnapshotOfItsData(t *testing.T) {
	r := newRival(t)
	route := r.own()
	if err := r.tryAppend(spi.AppendRequest{Route: route, Execution: "e"}, "Noted"); err != nil {
		t.Fatal(err)
	}
	// A mover that releases the slot and purges it in one go: a read finds the log,
	// or that it is elsewhere, and never an empty log.
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 30 {
			r.do("BEGIN", "LOCK TABLE loomgate.slot_barrier IN EXCLUSIVE MODE", "UPDATE loomgate.slots SET state = 3 WHERE slot = 7",
				"CREATE TEMP TABLE purged ON COMMIT PRESERVE ROWS AS SELECT * FROM loomgate.events", "DELETE FROM loomgate.events", "COMMIT",
				"BEGIN", "INSERT INTO loomgate.events SELECT * FROM purged", "UPDATE loomgate.slots SET state = 1 WHERE slot = 7", "COMMIT", "DROP TABLE purged")
		}
	}()
	for {
		res, err := spi.Read(t.Context(), r.store, spi.ReadRequest{Route: route, Execution: "e", Limit: 10})
		if err == nil && len(res.Events) != 1 {
			t.Errorf("a read finds %d events and no error", len(res.Events))
		}
		select {
		case <-done:
			return
		default:
		}
	}
}

func TestBatchesWithLocksInEveryOrderNeverDeadlock(t *testing.T) {
	r := newRival(t)
	ids := []spi.ExecutionID{"a", "b", "c", "d"}
	for _, id := range ids {
		r.append(id, 0, spi.KindExecutionSuspended)
	}
	before := deadlocks(r)
	errs := make(chan error, 8)
	for w := range cap(errs) {
		go func() {
			order := slices.Clone(ids)
			if w%2 == 0 {
				slices.Reverse(order)
			}
			for range 25 {
				var appends []spi.AppendRequest
				for i, id := range order {
					kind := []string{"Noted", spi.KindExecutionResumed}[(i+w)%2]
					appends = append(appends, spi.AppendRequest{Execution: id, ExpectedHead: spi.AnyHead, Events: []spi.Event{{ID: spi.NewEventID(), Kind: kind}}})
				}
				res, err := spi.AppendBatch(t.Context(), r.store, spi.AppendBatchRequest{Appends: appends})
				for _, result := range res.Results {
					err = errors.Join(err, result.Err)
				}
				if err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if after := deadlocks(r); after != before {
		t.Errorf("the server has undone %d deadlocks", after-before)
	}
}

// deadlocks is how many the server has found in this database. A retry would hide
// them from the caller.
func deadlocks(r *rival) (n int) {
	r.Helper()
	if err := r.watch.QueryRow(r.Context(), "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").Scan(&n); err != nil {
		r.Fatal(err)
	}
	return n
}
