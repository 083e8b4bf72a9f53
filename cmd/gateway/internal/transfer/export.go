package transfer

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"

	"github.com/loomgate/loomgate/spi"
)

// ExportOptions say what to export, and how.
type ExportOptions struct {
	Format Format // Simple if empty
	Gzip   bool
	Prefix string // only executions whose id starts with it
	After  string // only executions after that one: where an earlier export got to
	Retry  Retry

	// Progress, if there is one, is called with what is written by now: by one goroutine
	// at a time, and never beside Retry.Notify.
	Progress func(ExportReport)
}

// An ExportReport counts what is written.
type ExportReport struct {
	Executions int64 // whole ones
	Truncated  int64 // those of them that have lost events to a truncation
	Events     int64
	Bytes      int64 // uncompressed

	// Last is the last execution that is there as a whole: the After of an export that
	// goes on, into another file. After an error of the writer it is where the export
	// began.
	Last string
}

// readAhead is how many logs an export begins to read before they are written, with a
// page each.
const readAhead = 16

// Export writes all executions in code point order, each with its events in the order of
// its log. An execution that comes into being or grows meanwhile may be there or not, and
// as it was at some moment; one that was deleted before its turn is left out.
//
// An error leaves a file that is well-formed as far as it goes, and may end with a part of
// the execution after Report.Last; an import of that file and of the one that goes on after
// Last has everything once. A log of more than one page (1 MiB) that is deleted or
// truncated while it is written is a [ChangedError].
//
// Memory: 16 pages and two pages of ids, whatever there is to export.
func Export(ctx context.Context, store *spi.Store, w io.Writer, opts ExportOptions) (ExportReport, error) {
	opts.Format = cmp.Or(opts.Format, Simple)
	if opts.Format != Simple && opts.Format != Full {
		return ExportReport{}, &spi.InvalidArgumentError{Field: "format", Rule: fmt.Sprintf("is neither %s nor %s", Simple, Full)}
	}
	out := bufio.NewWriterSize(w, 64<<10)
	ex := &exporter{opts: opts, out: out, report: ExportReport{Last: opts.After}}
	finish := out.Flush
	if opts.Gzip {
		z := gzip.NewWriter(out)
		ex.out, finish = z, func() error { return errors.Join(z.Close(), out.Flush()) }
	}
	retry := opts.Retry.under(&ex.mu)
	err := ex.export(ctx, listing{store: store, retry: retry, prefix: opts.Prefix, after: opts.After})
	if finished := finish(); finished != nil {
		err = &writeError{finished}
	}
	if _, failed := errors.AsType[*writeError](err); failed {
		ex.report.Last = opts.After
	}
	return ex.report, err
}

// A writeError is the writer's.
type writeError struct{ err error }

func (e *writeError) Error() string { return "write: " + e.err.Error() }
func (e *writeError) Unwrap() error { return e.err }

type exporter struct {
	opts ExportOptions
	out  io.Writer
	buf  []byte

	mu     sync.Mutex // held while the caller's functions run
	report ExportReport
}

// An opened log is one whose first page was read.
type opened struct {
	log
	page []spi.Event
	err  error
}

func (ex *exporter) export(ctx context.Context, all listing) error {
	for o := range ahead(ctx, readAhead, all.logs(ctx), open) {
		if o.err != nil {
			return o.err
		}
		if len(o.page) == 0 {
			continue // deleted since it was listed
		}
		if err := ex.write(ctx, o); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// logs yields a log for each execution, not read yet, or with the error of the listing.
func (l listing) logs(ctx context.Context) iter.Seq[opened] {
	return func(yield func(opened) bool) {
		for id, err := range l.ids(ctx) {
			if !yield(opened{log: log{store: l.store, retry: l.retry, id: id}, err: err}) {
				return
			}
		}
	}
}

func open(ctx context.Context, o opened) opened {
	if o.err == nil {
		o.page, o.err = o.next(ctx)
	}
	return o
}

// write writes a log from its first page on.
func (ex *exporter) write(ctx context.Context, o opened) (err error) {
	for page := o.page; ; {
		ex.buf = ex.buf[:0]
		for i := range page {
			ex.buf = AppendLine(ex.buf, ex.opts.Format, o.id, &page[i], o.floor)
		}
		if _, err := ex.out.Write(ex.buf); err != nil {
			return &writeError{err}
		}
		ex.count(&o, len(page))
		if !o.more {
			return nil
		}
		if page, err = o.next(ctx); err != nil {
			return err
		}
	}
}

// count takes a page as written; the last one of a log makes that whole.
func (ex *exporter) count(o *opened, events int) {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	ex.report.Events += int64(events)
	ex.report.Bytes += int64(len(ex.buf))
	if !o.more {
		ex.report.Last = string(o.id)
		ex.report.Executions++
		if o.floor > 1 {
			ex.report.Truncated++
		}
	}
	if ex.opts.Progress != nil {
		ex.opts.Progress(ex.report)
	}
}
