package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/loomgate/loomgate/spi"
)

func openDatabase(t *testing.T, path string, options ...Option) *Database {
	t.Helper()
	db, err := Open(t.Context(), path, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func single(id spi.ExecutionID, payload int) spi.AppendRequest {
	return spi.AppendRequest{Execution: id, Events: []spi.Event{{ID: spi.NewEventID(), Kind: "K", Payload: make([]byte, payload)}}}
}

// group does calls, each of one write, in one transaction and in their order.
func (d *Database) group(t *testing.T, calls ...func()) {
	t.Helper()
	begun, end := make(chan struct{}), make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		err := d.store.write(context.Background(), "", func(*tx) error {
			select {
			case <-end: // done again
			default:
				close(begun)
				<-end
			}
			return nil
		})
		if err != nil && !errors.Is(err, errLost) {
			t.Error(err)
		}
	})
	<-begun
	for _, call := range calls {
		before, _ := d.store.writer.queue.look()
		done.Go(call)
		for last := before; last == before; last, _ = d.store.writer.queue.look() {
			runtime.Gosched()
		}
	}
	close(end)
	done.Wait()
}

// inWriter runs do on the writer's connection, in a transaction.
func (d *Database) inWriter(t *testing.T, do func(*tx) error) {
	t.Helper()
	if err := d.store.write(t.Context(), "", do); err != nil {
		t.Fatal(err)
	}
}

var errLost = errors.New("lost")

// loseCommit makes the next commit fail, after it was done or in place of it.
func (d *Database) loseCommit(t *testing.T, done bool) {
	w := d.store.writer
	d.inWriter(t, func(*tx) error {
		commit := w.commit
		w.commit = func(c *session) error { // this transaction's
			w.commit = func(c *session) error { // the next one's
				w.commit = commit
				if done {
					if err := commit(c); err != nil {
						t.Error(err)
					}
				}
				return &failure{errLost}
			}
			return commit(c)
		}
		return nil
	})
}

func TestOneFsyncServesAllThatWait(t *testing.T) {
	db := openDatabase(t, filepath.Join(t.TempDir(), "store.db"))
	commits := 0
	db.inWriter(t, func(*tx) error {
		commit := db.store.writer.commit
		db.store.writer.commit = func(c *session) error { commits++; return commit(c) }
		return nil
	})
	before := 0
	db.inWriter(t, func(*tx) error { before = commits; return nil })
	var calls []func()
	for range 50 {
		calls = append(calls, func() {
			if _, err := spi.Append(t.Context(), db.Store(), single(spi.ExecutionID(spi.NewEventID().String()), 1)); err != nil {
				t.Error(err)
			}
		})
	}
	db.group(t, calls...)
	db.inWriter(t, func(*tx) error {
		if commits > before+2 { // the calls before this one, and theirs
			t.Errorf("%d commits", commits-before)
		}
		return nil
	})
}

func TestALostCommitIsAmbiguousForEachOfItsGroup(t *testing.T) {
	ctx := t.Context()
	for _, done := range []bool{true, false} {
		db := openDatabase(t, filepath.Join(t.TempDir(), "store.db"))
		s := db.Store()
		a, b, refused := single("a", 1), single("b", 1), single("refused", 1)
		refused.ExpectedHead = 7
		batch := spi.AppendBatchRequest{Appends: []spi.AppendRequest{single("c", 1), single("d", 1), refused}}

		var errA, errB, errRefused, errBatch error
		var results spi.AppendBatchResponse
		db.loseCommit(t, done)
		db.group(t,
			func() { _, errA = spi.Append(ctx, s, a) },
			func() { _, errB = spi.Append(ctx, s, b) },
			func() { _, errRefused = spi.Append(ctx, s, refused) },
			func() { results, errBatch = spi.AppendBatch(ctx, s, batch) },
		)
		wantAmbiguous(t, errA, "a")
		wantAmbiguous(t, errB, "b")
		if _, ok := errors.AsType[*spi.UnavailableError](errRefused); !ok {
			t.Errorf("who was refused learns %v", errRefused)
		}
		if errBatch != nil || len(results.Results) != 3 {
			t.Fatalf("the batch answers %+v, %v", results, errBatch)
		}
		for i, id := range []spi.ExecutionID{"c", "d", "refused"} {
			wantAmbiguous(t, results.Results[i].Err, id)
		}

		for _, req := range append(batch.Appends[:2:2], a, b) {
			res, err := spi.Append(ctx, s, req)
			if err != nil || res.Duplicate != done || res.Head != 1 {
				t.Errorf("the retry of %q answers %+v, %v", req.Execution, res, err)
			}
		}
	}
}

func wantAmbiguous(t *testing.T, err error, id spi.ExecutionID) {
	t.Helper()
	e, ok := errors.AsType[*spi.AmbiguousError](err)
	if !ok || e.Execution != id || !errors.Is(e, errLost) {
		t.Errorf("of %q it answers %v", id, err)
	}
}

// TestARolledBackAppendIsForgotten: the ids that a search has seen must not outlive
// the transaction that wrote them.
func TestARolledBackAppendIsForgotten(t *testing.T) {
	ctx := t.Context()
	db := openDatabase(t, filepath.Join(t.TempDir(), "store.db"))
	s := db.Store()
	long := spi.AppendRequest{Execution: "e"}
	for range 200 {
		long.Events = append(long.Events, spi.Event{ID: spi.NewEventID(), Kind: "K"})
	}
	if _, err := spi.Append(ctx, s, long); err != nil {
		t.Fatal(err)
	}
	lost, after := single("e", 1), single("e", 1)
	lost.ExpectedHead, after.ExpectedHead = spi.AnyHead, spi.AnyHead
	db.loseCommit(t, false)
	db.group(t,
		func() { _, _ = spi.Append(ctx, s, lost) },
		func() { _, _ = spi.Append(ctx, s, after) }, // has seen the first one
	)
	for i, req := range []spi.AppendRequest{lost, after} {
		res, err := spi.Append(ctx, s, req)
		if err != nil || res.Duplicate || res.Head != 201+int64(i) {
			t.Errorf("the retry answers %+v, %v", res, err)
		}
	}
}

func TestAFullDiskRefusesOnlyWhatDoesNotFit(t *testing.T) {
	ctx := t.Context()
	db := openDatabase(t, filepath.Join(t.TempDir(), "store.db"), func(c *config) { c.pragmas = []string{"max_page_count(200)"} })
	s := db.Store()
	small, large, other := single("small", 100), single("large", 4<<20), single("other", 100)
	var errSmall, errLarge, errOther error
	db.group(t,
		func() { _, errSmall = spi.Append(ctx, s, small) },
		func() { _, errLarge = spi.Append(ctx, s, large) },
		func() { _, errOther = spi.Append(ctx, s, other) },
	)
	if errSmall != nil || errOther != nil {
		t.Errorf("what fits: %v, %v", errSmall, errOther)
	}
	if e, ok := errors.AsType[*spi.UnavailableError](errLarge); !ok || !strings.Contains(e.Error(), "full") {
		t.Errorf("what does not fit: %v", errLarge)
	}
	if head, err := spi.Head(ctx, s, spi.HeadRequest{Execution: "large"}); err != nil || head.Head != 0 {
		t.Errorf("what did not fit has head %d, %v", head.Head, err)
	}
}

func TestADeletedLogIsRemovedInSteps(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "store.db")
	db, err := Open(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	const steps = 5
	long := spi.AppendRequest{Execution: "e"}
	for range steps * maxRemoved {
		long.Events = append(long.Events, spi.Event{ID: spi.NewEventID(), Kind: "Old"})
	}
	if _, err := spi.Append(ctx, db.Store(), long); err != nil {
		t.Fatal(err)
	}
	var left int
	db.group(t,
		func() {
			if _, err := spi.DeleteExecution(ctx, db.Store(), spi.DeleteExecutionRequest{Execution: "e", Incarnation: 1}); err != nil {
				t.Error(err)
			}
		},
		func() {
			_ = db.store.write(ctx, "", func(tx *tx) error {
				_, err := tx.get(`SELECT count(*) FROM events`, nil, &left)
				return err
			})
		})
	if left != steps*maxRemoved {
		t.Errorf("the deletion itself left %d events, not all", left)
	}
	again := single("e", 1)
	again.Incarnation = 2
	if _, err := spi.Append(ctx, db.Store(), again); err != nil { // waits for none of it
		t.Fatal(err)
	}
	log, err := spi.Read(ctx, db.Store(), spi.ReadRequest{Execution: "e", Limit: 10})
	if err != nil || len(log.Events) != 1 || log.Events[0].ID != again.Events[0].ID {
		t.Errorf("the new log holds %+v, %v", log, err)
	}

	db.Close() // in the middle of it
	db = openDatabase(t, path)
	for left, last := steps*maxRemoved, 0; left > 1; last = left {
		db.inWriter(t, func(t *tx) error {
			_, err := t.get(`SELECT count(*) FROM events`, nil, &left)
			return err
		})
		if last > left+2*maxRemoved {
			t.Errorf("one step removed %d", last-left)
		}
	}
	db.inWriter(t, func(tx *tx) error {
		if found, err := tx.get(`SELECT log FROM graves`, nil, new(int64)); err != nil || found {
			t.Errorf("there is a grave left, %v", err)
		}
		return nil
	})
}

func TestALargeTruncationIsDoneInSteps(t *testing.T) {
	ctx := t.Context()
	db := openDatabase(t, filepath.Join(t.TempDir(), "store.db"))
	long := spi.AppendRequest{Execution: "e"}
	for range 5*maxRemoved + 10 {
		long.Events = append(long.Events, spi.Event{ID: spi.NewEventID(), Kind: "K"})
	}
	if _, err := spi.Append(ctx, db.Store(), long); err != nil {
		t.Fatal(err)
	}
	before, _ := db.store.writer.queue.look()
	res, err := spi.TruncatePrefixKeeping(ctx, db.Store(), spi.TruncatePrefixKeepingRequest{
		Execution: "e", Incarnation: 1, Before: 5*maxRemoved + 1, Keep: []int64{1, 1500, maxRemoved * 3},
	})
	if err != nil || res.Floor != 5*maxRemoved+1 || res.Dropped != 5*maxRemoved-3 {
		t.Errorf("it answers %+v, %v", res, err)
	}
	if after, _ := db.store.writer.queue.look(); after-before != 5 {
		t.Errorf("it took %d writes", after-before)
	}
	log, err := spi.Read(ctx, db.Store(), spi.ReadRequest{Execution: "e", Limit: 100})
	if err != nil || len(log.Events) != 13 || log.Events[1].Sequence != 1500 {
		t.Errorf("left are %d events, %v", len(log.Events), err)
	}
}

// TestPlans holds the statements that read many rows to one index and no sort.
func TestPlans(t *testing.T) {
	db := openDatabase(t, filepath.Join(t.TempDir(), "store.db"))
	for _, c := range []struct {
		query string
		args  int
		want  string
	}{
		{listExecutions, 3, "SEARCH executions USING COVERING INDEX executions_live (execution_id>? AND execution_id<?)"},
		{listRefs, 3, "SEARCH refs USING PRIMARY KEY (name>? AND name<?)"},
		{listDataKeys, 3, "SEARCH data_keys USING INDEX data_keys_there (owner>? AND owner<?)"},
		{dueTimers, 4, "SEARCH timers USING PRIMARY KEY (wake_at<?)"},
		{readForward, 3, "SEARCH events USING INDEX sqlite_autoindex_events_1 (log=? AND sequence>? AND sequence<?)"},
		{readBackward, 3, "SEARCH events USING INDEX sqlite_autoindex_events_1 (log=? AND sequence>? AND sequence<?)"},
	} {
		var plan []string
		err := db.store.read(t.Context(), "", func(tx *tx) error {
			return tx.each(`EXPLAIN QUERY PLAN `+c.query, make([]any, c.args), func(scan scan) (bool, error) {
				var step string
				err := scan(new(int), new(int), new(int), &step)
				plan = append(plan, step)
				return true, err
			})
		})
		if err != nil || strings.Join(plan, "; ") != c.want {
			t.Errorf("%s\nis done by %q, %v", c.query, plan, err)
		}
	}
}
