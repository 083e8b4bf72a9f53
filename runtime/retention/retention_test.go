package retention_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/runtime/events"
	"github.com/loomgate/loomgate/runtime/resume"
	"github.com/loomgate/loomgate/runtime/retention"
	"github.com/loomgate/loomgate/spi"
)

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newStore(tb testing.TB) *spi.Store {
	tb.Helper()
	store, err := memory.New()
	if err != nil {
		tb.Fatal(err)
	}
	return store
}

// write appends kinds of kernel events at a time to an execution, after what it has.
func write(tb testing.TB, store *spi.Store, id spi.ExecutionID, at time.Time, kinds ...string) {
	tb.Helper()
	head, err := spi.Head(tb.Context(), store, spi.HeadRequest{Execution: id})
	if err != nil {
		tb.Fatal(err)
	}
	var batch []spi.Event
	for _, kind := range kinds {
		e := spi.Event{ID: spi.NewEventID(), Kind: kind, Kernel: true, RecordedAt: at}
		if kind == spi.KindExecutionSuspended {
			var err error
			if e, err = events.New(e.ID, kind, events.Suspended{Waits: []events.Wait{{ID: "w", Reason: events.ReasonExternal}}}); err != nil {
				tb.Fatal(err)
			}
			e.RecordedAt = at
		}
		batch = append(batch, e)
	}
	if _, err := spi.Append(tb.Context(), store, spi.AppendRequest{Execution: id, ExpectedHead: head.Head, Events: batch}); err != nil {
		tb.Fatal(err)
	}
}

// ended writes executions that ended a day after one another.
func ended(tb testing.TB, store *spi.Store, n int) {
	tb.Helper()
	for i := range n {
		write(tb, store, spi.ExecutionID(fmt.Sprint("done-", i)), t0.AddDate(0, 0, i), spi.KindExecutionStarted, spi.KindExecutionCompleted)
	}
}

func left(tb testing.TB, store *spi.Store) []spi.ExecutionID {
	tb.Helper()
	page, err := spi.ListExecutions(tb.Context(), store, spi.ListExecutionsRequest{Limit: 1000})
	if err != nil {
		tb.Fatal(err)
	}
	return page.Executions
}

func apply(t *testing.T, store *spi.Store, p retention.Policy) retention.Report {
	t.Helper()
	p.Now = func() time.Time { return t0.AddDate(0, 0, 10) }
	r, err := retention.Apply(t.Context(), resume.New(store), p)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestWhatEndedLongAgoIsDeletedAndWhatRunsIsNot(t *testing.T) {
	store := newStore(t)
	ended(t, store, 5)
	write(t, store, "parked", t0, spi.KindExecutionStarted, spi.KindExecutionSuspended)
	write(t, store, "running", t0, spi.KindExecutionStarted)
	dry := apply(t, store, retention.Policy{MaxAge: 8 * 24 * time.Hour, DryRun: true})
	if dry.Deleted != 3 || len(left(t, store)) != 7 {
		t.Errorf("a dry run: %+v, and %v are left", dry, left(t, store))
	}
	r := apply(t, store, retention.Policy{MaxAge: 8 * 24 * time.Hour})
	if want := []spi.ExecutionID{"done-3", "done-4", "parked", "running"}; r.Deleted != 3 || !slices.Equal(left(t, store), want) {
		t.Errorf("%+v, and %v are left", r, left(t, store))
	}
}

func TestOfWhatEndedTheNewestStay(t *testing.T) {
	store := newStore(t)
	ended(t, store, 5)
	if r := apply(t, store, retention.Policy{MaxCount: 2}); r.Deleted != 3 || !slices.Equal(left(t, store), []spi.ExecutionID{"done-3", "done-4"}) {
		t.Errorf("%+v, and %v are left", r, left(t, store))
	}
}

func TestAPinIsAskedOnlyForWhatIsDueAndKeepsIt(t *testing.T) {
	store := newStore(t)
	ended(t, store, 5)
	var asked []spi.ExecutionID
	r := apply(t, store, retention.Policy{MaxAge: 8 * 24 * time.Hour, Pins: []retention.Pin{func(_ context.Context, c retention.Candidate) (bool, error) {
		asked = append(asked, c.Execution)
		return c.Execution == "done-1", nil
	}}})
	if r.Pinned != 1 || r.Deleted != 2 || !slices.Equal(asked, []spi.ExecutionID{"done-0", "done-1", "done-2"}) {
		t.Errorf("%+v after asking for %v", r, asked)
	}
}

func TestAPinThatFailsStopsTheRunAndTheLogStays(t *testing.T) {
	store := newStore(t)
	ended(t, store, 1)
	broken := errors.New("planned")
	_, err := retention.Apply(t.Context(), resume.New(store), retention.Policy{MaxAge: time.Hour, Pins: []retention.Pin{func(context.Context, retention.Candidate) (bool, error) { return false, broken }}})
	if e, ok := errors.AsType[*retention.Error](err); !ok || e.Execution != "done-0" || !errors.Is(err, broken) || len(left(t, store)) != 1 {
		t.Errorf("%v, and %v are left", err, left(t, store))
	}
}

func TestWhatIsArchivedIsWholeBeforeItIsDeleted(t *testing.T) {
	store := newStore(t)
	ended(t, store, 2)
	archive := map[spi.ExecutionID]int{}
	p := retention.Policy{MaxAge: time.Hour, Archive: func(_ context.Context, c retention.Candidate, log iter.Seq2[spi.Event, error]) error {
		for _, err := range log {
			if err != nil {
				return err
			}
			archive[c.Execution]++
		}
		if c.Execution == "done-1" {
			return errors.New("the archive is full")
		}
		return nil
	}}
	r, err := retention.Apply(t.Context(), resume.New(store), p)
	if err == nil || r.Archived != 1 || archive["done-0"] != 2 || !slices.Equal(left(t, store), []spi.ExecutionID{"done-1"}) {
		t.Errorf("%+v %v: %v, and %v are left", r, err, archive, left(t, store))
	}
}

func TestATruncatedLogKeepsWhatItsStateRestsOn(t *testing.T) {
	store := newStore(t)
	resumer := resume.New(store)
	const id = "order-1"
	run, err := resumer.Start(t.Context(), id, events.Started{})
	if err != nil {
		t.Fatal(err)
	}
	consumed, waiting := spi.NewEventID(), spi.NewEventID()
	for _, message := range []spi.EventID{consumed, waiting} {
		if _, err := resumer.Deliver(t.Context(), id, message, "paid", 1); err != nil {
			t.Fatal(err)
		}
	}
	if message, err := run.Receive(t.Context(), "paid"); err != nil || message.ID != consumed.String() {
		t.Fatal(message, err)
	}
	for range 5 {
		if err := run.Append(t.Context(), spi.Event{ID: spi.NewEventID(), Kind: "Noted"}); err != nil {
			t.Fatal(err)
		}
	}
	if parked, err := run.Park(t.Context(), events.Wait{ID: "w", Reason: events.ReasonExternal}); err != nil || !parked {
		t.Fatal(parked, err)
	}
	write(t, store, "running", t0, spi.KindExecutionStarted)
	before := run.State()
	everything := retention.Policy{Truncate: func(s *resume.State) int64 { return s.Head + 1 }}
	dry := everything
	dry.DryRun = true
	if r := apply(t, store, dry); r.Truncated != 1 || len(kinds(t, store, id)) != 10 {
		t.Errorf("a dry run: %+v, and %v are left", r, kinds(t, store, id))
	}
	if r := apply(t, store, everything); r.Truncated != 1 {
		t.Errorf("%+v", r)
	}
	if got, want := kinds(t, store, id), []string{spi.KindExecutionStarted, spi.KindMessageReceived, spi.KindExecutionSuspended}; !slices.Equal(got, want) {
		t.Errorf("%v are left", got)
	}
	after, err := resumer.Fold(t.Context(), id)
	if err != nil || after.Head != before.Head || after.Status != resume.Parked || after.Park.Sequence != before.Park.Sequence ||
		len(after.Inbox) != 1 || after.Inbox[0].ID != waiting.String() {
		t.Errorf("the state is %+v, %v", after, err)
	}
	if r := apply(t, store, everything); r.Truncated != 0 {
		t.Errorf("again: %+v", r)
	}
}

func kinds(t *testing.T, store *spi.Store, id spi.ExecutionID) (all []string) {
	t.Helper()
	log, err := spi.Read(t.Context(), store, spi.ReadRequest{Execution: id, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range log.Events {
		all = append(all, e.Kind)
	}
	return all
}

func TestDeletionsAreForgottenWhenNoWriterOfTheLogCanBeLeft(t *testing.T) {
	now := t0
	store, err := memory.New(memory.WithClock(func() time.Time { return now }))
	if err != nil {
		t.Fatal(err)
	}
	remove := func(id spi.ExecutionID) {
		t.Helper()
		write(t, store, id, t0, spi.KindExecutionStarted)
		head, err := spi.Head(t.Context(), store, spi.HeadRequest{Execution: id})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := spi.DeleteExecution(t.Context(), store, spi.DeleteExecutionRequest{Execution: id, Incarnation: head.Incarnation}); err != nil {
			t.Fatal(err)
		}
	}
	remove("early")
	now = now.Add(20 * time.Hour)
	remove("late")
	now = now.Add(10 * time.Hour)
	sweep := retention.Policy{SweepAfter: 24 * time.Hour, DryRun: true}
	if r := apply(t, store, sweep); r.Swept != 0 {
		t.Errorf("a dry run: %+v", r)
	}
	sweep.DryRun = false
	for _, want := range []int{1, 0} {
		if r := apply(t, store, sweep); r.Swept != want {
			t.Errorf("%+v, and not %d", r, want)
		}
	}
}

// prunable makes branch refs, of which every other points at nothing.
func prunable(tb testing.TB, store *spi.Store, n int) {
	tb.Helper()
	write(tb, store, "there", t0, spi.KindExecutionStarted)
	for i := range n {
		target := spi.ExecutionID("there")
		if i%2 == 1 {
			target = "gone"
		}
		_, err := spi.PutRef(tb.Context(), store, spi.PutRefRequest{Name: spi.RefName(fmt.Sprintf("branch-%06d", i)), Execution: target, Sequence: 1})
		if err != nil {
			tb.Fatal(err)
		}
	}
}

func TestRefsThatPointAtNothingArePrunedPageByPage(t *testing.T) {
	store := newStore(t)
	const n = 5_000
	prunable(t, store, n)
	if r := apply(t, store, retention.Policy{PruneRefs: true}); r.Refs != n || r.Pruned != n/2 {
		t.Errorf("%+v", r)
	}
	if r := apply(t, store, retention.Policy{PruneRefs: true}); r.Refs != n/2 || r.Pruned != 0 {
		t.Errorf("again: %+v", r)
	}
}

// BenchmarkPrune prunes 100,000 refs, half of which point at nothing.
func BenchmarkPrune(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		store := newStore(b)
		prunable(b, store, 100_000)
		b.StartTimer()
		if r, err := retention.Apply(b.Context(), resume.New(store), retention.Policy{PruneRefs: true}); err != nil || r.Pruned != 50_000 {
			b.Fatal(r, err)
		}
	}
}
