package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loomgate/loomgate/cmd/gateway/internal/transfer"
	"github.com/loomgate/loomgate/spi"
)

// long writes an execution of several pages.
func long(store *spi.Store, id spi.ExecutionID, n int) {
	payload := fmt.Appendf(nil, `"%s"`, strings.Repeat("x", 500))
	for head := int64(0); head < int64(n); {
		var some []spi.Event
		for range min(1_000, n-int(head)) {
			some = append(some, spi.Event{ID: spi.NewEventID(), Kind: "K", Payload: payload})
		}
		head = must(spi.Append(ctx, store, spi.AppendRequest{Execution: id, ExpectedHead: head, Events: some})).Head
	}
}

func TestExecutionsAreWrittenInCodePointOrderEachInItsLogsOrder(t *testing.T) {
	onEach(t, func(t *testing.T, store *spi.Store) {
		long(store, "a long one", 12_000)
		importAll(t, store, file(line("𝄞", `"payload":1`), line("\uFFFD", `"payload":1`), line("Z", `"payload":1`), line("é", `"payload":1`), line("a", `"payload":1`)))
		var ids []spi.ExecutionID
		n := int64(0)
		for l, err := range transfer.Lines(strings.NewReader(export(t, store, transfer.ExportOptions{Format: transfer.Full}))) {
			if err != nil {
				t.Fatal(err)
			}
			if len(ids) == 0 || ids[len(ids)-1] != l.Execution {
				ids, n = append(ids, l.Execution), 0
			}
			if n++; l.Event.Sequence != n {
				t.Fatalf("%q: %d comes after %d", l.Execution, l.Event.Sequence, n-1)
			}
		}
		if want := "[Z a a long one é \uFFFD 𝄞]"; fmt.Sprint(ids) != want {
			t.Errorf("%v, not %v", ids, want)
		}
	})
}

func TestAnExportGoesOnInAnotherFile(t *testing.T) {
	onEach(t, func(t *testing.T, store *spi.Store) {
		log := sample(10, 60, 2_000)
		importAll(t, store, bytes.NewReader(log))
		long(store, "Case 1 is long", 5_000)
		all := export(t, store, transfer.ExportOptions{})
		for _, stop := range []int64{1, 500, 1_999, 3_000, 6_000} {
			ctx, cancel := context.WithCancel(ctx)
			var first, second bytes.Buffer
			report, err := transfer.Export(ctx, store, &first, transfer.ExportOptions{Gzip: true, Progress: func(r transfer.ExportReport) {
				if r.Events >= stop {
					cancel()
				}
			}})
			if cancel(); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			if _, err := transfer.Export(t.Context(), store, &second, transfer.ExportOptions{After: report.Last}); err != nil {
				t.Error(err)
			}
			to := inMemory()
			one := importAll(t, to, &first) // it is a whole gzip file
			two := importAll(t, to, &second)
			if one.New+two.New != 7_000 || one.Executions < report.Executions {
				t.Errorf("after %d: %+v and %+v", stop, one, two)
			}
			if got := export(t, to, transfer.ExportOptions{}); got != all {
				t.Errorf("after %d: the two files hold something else", stop)
			}
		}
	})
}

func TestOnlyWhatIsAskedForIsExported(t *testing.T) {
	store := inMemory()
	importAll(t, store, file(line("a", `"payload":1`), line("b1", `"payload":1`), line("b2", `"payload":1`), line("c", `"payload":1`)))
	out := export(t, store, transfer.ExportOptions{Prefix: "b", After: "b1"})
	if want := line("b2", `"payload":1`) + "\n"; out != want {
		t.Errorf("%s, not %s", out, want)
	}
	_, err := transfer.Export(ctx, store, io.Discard, transfer.ExportOptions{Format: "brief"})
	want[*spi.InvalidArgumentError](t, err)
}

func TestWhatIsDeletedBeforeItsTurnIsLeftOut(t *testing.T) {
	inner := inMemory()
	importAll(t, inner, file(line("a", `"payload":1`), line("b", `"payload":1`), line("c", `"payload":1`)))
	store := withPlan(inner, func(c call) fault {
		if c.method == "Read" && c.id == "b" {
			must(spi.DeleteExecution(ctx, inner, spi.DeleteExecutionRequest{Execution: "b", Incarnation: 1}))
		}
		return fault{}
	})
	var out bytes.Buffer
	report := must(transfer.Export(ctx, store, &out, transfer.ExportOptions{}))
	if report.Executions != 2 || strings.Contains(out.String(), `"b"`) {
		t.Errorf("%+v: %s", report, out.String())
	}
}

func TestHalfOfALogIsNeverWrittenAsAWholeOne(t *testing.T) {
	for name, change := range map[string]func(*spi.Store){
		"deleted": func(s *spi.Store) {
			must(spi.DeleteExecution(ctx, s, spi.DeleteExecutionRequest{Execution: "e", Incarnation: 1}))
		},
		"deleted and written anew": func(s *spi.Store) {
			must(spi.DeleteExecution(ctx, s, spi.DeleteExecutionRequest{Execution: "e", Incarnation: 1}))
			must(spi.Append(ctx, s, spi.AppendRequest{Execution: "e", Incarnation: 2, Events: []spi.Event{{ID: spi.NewEventID(), Kind: "K"}}}))
		},
		"truncated ahead of it": func(s *spi.Store) {
			must(spi.TruncatePrefixKeeping(ctx, s, spi.TruncatePrefixKeepingRequest{Execution: "e", Incarnation: 1, Before: 4_000}))
		},
	} {
		inner := inMemory()
		importAll(t, inner, file(line("a", `"payload":1`)))
		long(inner, "e", 5_000)
		store := withPlan(inner, func(c call) fault {
			if c.method == "Read" && c.id == "e" && c.n == 3 {
				change(inner)
			}
			return fault{}
		})
		report, err := transfer.Export(ctx, store, io.Discard, transfer.ExportOptions{})
		if changed := want[*transfer.ChangedError](t, err); changed.Execution != "e" || report.Last != "a" || report.Executions != 1 {
			t.Errorf("%s: %v, after %+v", name, err, report)
		}
	}
}

func TestATruncationBehindAnExportDoesNotDisturbIt(t *testing.T) {
	inner := inMemory()
	long(inner, "e", 5_000)
	store := withPlan(inner, func(c call) fault {
		if c.method == "Read" && c.n == 2 {
			must(spi.TruncatePrefixKeeping(ctx, inner, spi.TruncatePrefixKeepingRequest{Execution: "e", Incarnation: 1, Before: 1_000}))
		}
		return fault{}
	})
	if report := must(transfer.Export(ctx, store, io.Discard, transfer.ExportOptions{})); report.Events != 5_000 {
		t.Errorf("%+v", report)
	}
}

func TestAnExportOfAnUnsoundStoreIsAnError(t *testing.T) {
	inner := inMemory()
	importAll(t, inner, file(line("a", `"payload":1`), line("b", `"payload":1`), line("b", `"payload":2`), line("b", `"payload":3`), line("c", `"payload":1`)))
	hide := func(n int) func(spi.ReadRequest, *spi.ReadResponse) error {
		return func(req spi.ReadRequest, res *spi.ReadResponse) error {
			if req.Execution == "b" {
				res.Events = append(res.Events[:n:n], res.Events[n+1:]...)
			}
			return nil
		}
	}
	for name, f := range map[string]*faulty{
		"the first event is missing": {read: hide(0)},
		"an event is missing":        {read: hide(1)},
		"an event repeats": {read: func(_ spi.ReadRequest, res *spi.ReadResponse) error {
			res.Events = append(res.Events, res.Events...)
			return nil
		}},
		"a page holds nothing": {read: func(req spi.ReadRequest, res *spi.ReadResponse) error {
			if res.More = true; req.After > 0 {
				res.Events = nil
			}
			return nil
		}},
		"an id repeats":         {list: func(p *spi.ListExecutionsResponse) { p.Executions[1] = "a" }},
		"the ids go back":       {list: func(p *spi.ListExecutionsResponse) { p.Executions[1], p.Executions[2] = "c", "b" }},
		"the pages do not move": {list: func(p *spi.ListExecutionsResponse) { p.Next = "b" }},
	} {
		_, err := transfer.Export(ctx, f.open(inner), io.Discard, transfer.ExportOptions{})
		if f.list != nil {
			want[*transfer.OrderError](t, err)
		} else if gap := want[*transfer.GapError](t, err); gap.Sequence == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAWriterThatFailsLeavesNothingToGoOnFrom(t *testing.T) {
	store := inMemory()
	long(store, "a", 200)
	long(store, "b", 200)
	for _, gzip := range []bool{false, true} {
		full := errors.New("the disk is full")
		report, err := transfer.Export(ctx, store, writer(func([]byte) (int, error) { return 0, full }), transfer.ExportOptions{After: "A", Gzip: gzip})
		if !errors.Is(err, full) || report.Last != "A" {
			t.Errorf("%v, after %+v", err, report)
		}
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

func TestLogsAreReadAheadAndWrittenInOrder(t *testing.T) {
	store := inMemory()
	importAll(t, store, bytes.NewReader(sample(11, 200, 400)))
	want := export(t, store, transfer.ExportOptions{})
	synctest.Test(t, func(t *testing.T) {
		slow := &faulty{slow: time.Second}
		if got := export(t, slow.open(store), transfer.ExportOptions{}); got != want {
			t.Error("the order is another")
		}
		if slow.most < 16 || slow.most > 17 {
			t.Errorf("%d calls were in flight", slow.most)
		}
	})
}

func TestMemoryIsFlatWhileManyExecutionsAreExported(t *testing.T) {
	store := inMemory()
	for n := range 100_000 {
		must(spi.Append(ctx, store, spi.AppendRequest{Execution: spi.ExecutionID(fmt.Sprintf("execution-%06d", n)), Events: []spi.Event{{ID: spi.NewEventID(), Kind: "K", Payload: []byte(`{"a":1}`)}}}))
	}
	live := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before, most := live(), int64(0)
	report := must(transfer.Export(ctx, store, io.Discard, transfer.ExportOptions{Progress: func(r transfer.ExportReport) {
		if r.Executions%10_000 == 5_000 {
			most = max(most, live()-before)
		}
	}}))
	if report.Executions != 100_000 || most > 8<<20 {
		t.Errorf("%+v, with %d bytes more in use", report, most)
	}
}
