package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loomgate/loomgate/cmd/gateway/internal/transfer"
	"github.com/loomgate/loomgate/spi"
)

func TestATruncatedLogIsRefusedBeforeAnyOfItIsWritten(t *testing.T) {
	store := inMemory()
	importAll(t, store, file(line("a", `"payload":1`), line("e", `"payload":1`), line("e", `"payload":2`), line("e", `"payload":3`), line("e", `"payload":4`)))
	must(spi.TruncatePrefixKeeping(ctx, store, spi.TruncatePrefixKeepingRequest{Execution: "e", Incarnation: 1, Before: 4, Keep: []int64{1}}))
	full, to := export(t, store, transfer.ExportOptions{Format: transfer.Full}), inMemory()
	_, err := transfer.Import(ctx, to, strings.NewReader(full), options())
	if wrong := want[*transfer.LineError](t, err); wrong.Line != 2 || !strings.Contains(wrong.Reason, "truncated below 4") {
		t.Error(err)
	}
	wantIDs(t, to, "a")

	to = inMemory() // the simple format tells no sequences
	importAll(t, to, strings.NewReader(export(t, store, transfer.ExportOptions{})))
	wantPayloads(t, to, "e", "1", "4")
}

func TestTheWindowChangesNothing(t *testing.T) {
	log := sample(4, 30, 500)
	for _, window := range []int{1, 7, 499, 500, 501} {
		store, opts := inMemory(), options()
		opts.Window = window
		first := must(transfer.Import(ctx, store, bytes.NewReader(log), opts))
		opts.Window = 1 + window*3%200
		again := must(transfer.Import(ctx, store, bytes.NewReader(log), opts))
		if first.New != 500 || again.Present != 500 || first.Executions != 30 || again.Executions != 30 || first.Bytes != again.Bytes {
			t.Errorf("windows of %d: %+v, then %+v", window, first, again)
		}
		wantSame(t, strings.NewReader(export(t, store, transfer.ExportOptions{})), bytes.NewReader(log))
	}
}

func TestALongLogGoesInOrderInSeveralAppends(t *testing.T) {
	var log []string
	for n := range 5_000 {
		size := 1
		if n%2_000 == 1_500 {
			size = 2 << 20 // larger than an append of several events may be
		}
		log = append(log, line("e", fmt.Sprintf(`"fence":%d,"payload":"%d%s"`, n/1_700, n, strings.Repeat(" ", size))))
	}
	for _, offered := range []spi.Caps{spi.AllCaps, spi.AllCaps &^ spi.CapAppendBatch} {
		most, large := 0, 0
		f := &faulty{plan: func(c call) fault {
			if req, ok := c.req.(spi.AppendRequest); ok {
				most = max(most, len(req.Events))
				if len(req.Events[0].Payload) > 1<<20 && len(req.Events) == 1 {
					large++
				}
			}
			return fault{}
		}}
		store := spi.Only(f.open(inMemory()), offered)
		opts := options()
		opts.Window = 4_000
		must(transfer.Import(ctx, store, file(log...), opts))
		for n, e := range events(t, store, "e") {
			if !strings.HasPrefix(string(e.Payload), fmt.Sprintf(`"%d `, n)) || e.Fence != int64(n/1_700) {
				t.Fatalf("sequence %d holds %.10q under %d", n+1, e.Payload, e.Fence)
			}
		}
		if most > 1_000 || most < 100 || large != 2 {
			t.Errorf("an append had %d events, and %d of 2 large ones were alone", most, large)
		}
	}
}

func TestOneOfABatchThatIsRefusedIsTold(t *testing.T) {
	inner := inMemory()
	store := withPlan(inner, func(c call) fault {
		if c.method == "AppendBatch" || c.id == "b" {
			return fault{refuse: &spi.InvalidArgumentError{Field: "payload", Rule: "is more than this gateway takes"}}
		}
		return fault{}
	})
	_, err := transfer.Import(ctx, store, file(line("a", `"payload":1`), line("b", `"payload":1`), line("c", `"payload":1`)), options())
	if stop := want[*transfer.StoreError](t, err); stop.Execution != "b" || stop.Line != 2 || stop.From != 2 {
		t.Error(err)
	}
	wantIDs(t, inner, "a", "c")
}

func TestOneCallHoldsABoundedAmount(t *testing.T) {
	var log []string
	for n := range 600 {
		log = append(log, line(fmt.Sprint("small ", n), `"payload":1`))
	}
	for n := range 30 {
		log = append(log, line(fmt.Sprint("large ", n), `"payload":"`+strings.Repeat("x", 100<<10)+`"`))
	}
	log = append(log, line("larger", `"payload":"`+strings.Repeat("x", 3<<20)+`"`))
	most, largest := 0, 0
	store := withPlan(inMemory(), func(c call) fault {
		size := 0
		if batch, ok := c.req.(spi.AppendBatchRequest); ok {
			for _, a := range batch.Appends {
				size += a.Events[0].Size()
			}
			most, largest = max(most, len(batch.Appends)), max(largest, size)
		}
		return fault{}
	})
	if must(transfer.Import(ctx, store, file(log...), options())); most != 256 || largest > 1<<20 || largest < 9*100<<10 {
		t.Errorf("a call held up to %d appends and %d bytes", most, largest)
	}
}

func TestCallsAreInFlightTogetherAndBounded(t *testing.T) {
	var log []string
	for n := range 5 * 256 {
		log = append(log, line(fmt.Sprint("e", n), `"payload":1`))
	}
	synctest.Test(t, func(t *testing.T) {
		f, opts := &faulty{slow: time.Second}, options()
		opts.InFlight = 3
		must(transfer.Import(ctx, f.open(inMemory()), file(log...), opts))
		if f.most != 3 {
			t.Errorf("%d calls were in flight, not 3", f.most)
		}
	})
}

func TestProgressIsWhatIsStored(t *testing.T) {
	store, opts := inMemory(), options()
	opts.Window = 100
	var seen []transfer.ImportReport
	opts.Progress = func(r transfer.ImportReport) { seen = append(seen, r) }
	report := must(transfer.Import(ctx, store, bytes.NewReader(sample(5, 20, 1_000)), opts))
	if !slices.IsSortedFunc(seen, func(a, b transfer.ImportReport) int { return int(a.Lines - b.Lines) }) || seen[len(seen)-1] != report {
		t.Errorf("%+v of %+v", seen[len(seen)-1], report)
	}
}

func TestAnImportThatIsCancelledEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which also sees to it that no goroutine is left
		ctx, cancel := context.WithCancel(ctx)
		store, opts := inMemory(), options()
		opts.Window = 10
		opts.Progress = func(r transfer.ImportReport) {
			if r.Lines > 100 {
				cancel()
			}
		}
		_, err := transfer.Import(ctx, store, bytes.NewReader(sample(6, 20, 1_000)), opts)
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestATenantWithoutANameIsRefused(t *testing.T) {
	_, err := transfer.Import(ctx, inMemory(), file(), transfer.ImportOptions{})
	want[*spi.InvalidArgumentError](t, err)
}
