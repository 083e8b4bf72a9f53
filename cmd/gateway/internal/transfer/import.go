package transfer

import (
	"cmp"
	"context"
	"io"
	"sync"
	"sync/atomic"

	"github.com/loomgate/loomgate/spi"
)

// ImportOptions say how to import.
type ImportOptions struct {
	// Tenant is whose view the store is. The ids of events depend on it.
	Tenant spi.TenantName

	// Window is how many lines are gathered before they are sent; 10,000 if 0. It
	// changes how fast an import is, not what it does.
	Window int

	// InFlight is how many calls are under way at once; 8 if 0.
	InFlight int

	// Retry is how patient to be with the store.
	Retry Retry

	// Progress, if there is one, is called with what is stored by now: by one goroutine
	// at a time, and never beside Retry.Notify.
	Progress func(ImportReport)
}

// An ImportReport counts what of a file is stored.
type ImportReport struct {
	Lines      int64 // with an event: New and Present together
	New        int64 // events
	Present    int64 // events that were there already, also by a try whose answer was lost
	Executions int64
	Bytes      int64 // of the lines, uncompressed
}

// Import stores the events of a file, each once, however often it is called with the file
// and wherever it was stopped before.
//
// An execution's events go in the order of its lines, from sequence 1 on. It may be there
// already only as far as the file itself has it, and beyond all of that. Else the error is
// a [StoreError] with a [ForeignError], and nothing is added to that execution; events of
// others in the same window may be stored. An execution that was deleted is written anew.
//
// A bad line is a [LineError]: what comes before it is stored. When the store cannot answer
// within opts.Retry, or refuses, the error is a [StoreError]. Import does not return before a
// read of r that is under way.
//
// Memory: some 100 bytes and the id an execution, twice that for those with tokens; and two
// windows, each of at most Window lines, or of 16 MiB and one line.
func Import(ctx context.Context, store *spi.Store, r io.Reader, opts ImportOptions) (ImportReport, error) {
	if err := opts.Tenant.Validate(); err != nil {
		return ImportReport{}, err
	}
	opts.Window, opts.InFlight = cmp.Or(opts.Window, defaultWindow), cmp.Or(opts.InFlight, 8)
	im := &importer{
		store: store, opts: opts,
		heads: map[spi.ExecutionID]int64{}, fences: map[spi.ExecutionID]int64{},
	}
	im.opts.Retry = opts.Retry.under(&im.mu)
	same := func(_ context.Context, w *window) *window { return w }
	for w := range ahead(ctx, 1, im.windows(r), same) {
		if err := im.write(ctx, w); err != nil {
			return im.report, err
		}
		if w.err != nil {
			return im.report, w.err
		}
	}
	if err := ctx.Err(); err != nil {
		return im.report, err
	}
	return im.report, im.raiseFences(ctx)
}

type importer struct {
	store *spi.Store
	opts  ImportOptions

	// How many lines each execution has by now, and the highest token of those that
	// have one. Only the goroutine that reads the file uses them, until it has ended.
	heads  map[spi.ExecutionID]int64
	fences map[spi.ExecutionID]int64
	ids    idMaker

	mu     sync.Mutex // held while the caller's functions run
	report ImportReport
}

// write stores a window.
func (im *importer) write(ctx context.Context, w *window) error {
	for _, round := range w.rounds {
		if !im.writeRound(ctx, round) {
			return w.stopped()
		}
	}
	return nil
}

// writeRound stores runs of different executions, in several calls at once, and reports
// whether all are stored. After a failure it begins no more calls.
func (im *importer) writeRound(ctx context.Context, round []*run) bool {
	var calls sync.WaitGroup
	free := make(chan struct{}, im.opts.InFlight)
	var failed atomic.Bool
	for batch := range batches(round) {
		if free <- struct{}{}; failed.Load() {
			break
		}
		calls.Go(func() {
			if !im.writeBatch(ctx, batch) {
				failed.Store(true)
			}
			<-free
		})
	}
	calls.Wait()
	return !failed.Load()
}

// stopped says where a window that is not stored as a whole ended.
func (w *window) stopped() error {
	stop := &StoreError{}
	for r := range w.runs() {
		if len(r.lines) == 0 {
			continue
		}
		line := r.lines[0].line
		if stop.From == 0 || line < stop.From {
			stop.From = line
		}
		if r.err != nil && (stop.Err == nil || line < stop.Line) {
			stop.Execution, stop.Line, stop.Err = r.Execution, line, r.err
		}
	}
	return stop
}
