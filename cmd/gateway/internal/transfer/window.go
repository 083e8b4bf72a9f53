package transfer

import (
	"fmt"
	"io"
	"iter"

	"github.com/loomgate/loomgate/spi"
)

// Limits on what is sent at once. A single event may be larger.
const (
	defaultWindow = 10_000   // lines of a window
	windowBytes   = 16 << 20 // bytes of a window's lines
	runEvents     = 1_000    // events of one append
	batchAppends  = 256      // appends of one call
	batchBytes    = 1 << 20  // bytes of one call's events, and of one append's
)

// A run is consecutive events of one execution, which one append stores.
type run struct {
	spi.AppendRequest
	lines []place // of the events that are not known to be stored
	size  int     // of all its events
	round int     // how many runs of its execution the window has before it
	begin bool    // it has the execution's first event
	err   error   // why it is not stored
}

// A place is where an event came from.
type place struct {
	line int64
	size int // bytes
}

// A window is consecutive lines of a file as appends. Those of one round are to one
// execution each; the rounds have to be stored one after another.
type window struct {
	rounds [][]*run
	last   map[spi.ExecutionID]*run
	lines  int
	bytes  int
	err    error // why it is the last window; nil at the end of the file
}

func (w *window) add(line *Line, ordinal int64) {
	size := line.Event.Size()
	r := w.last[line.Execution]
	if r == nil || r.Fence != line.Event.Fence || len(r.Events) == runEvents || r.size+size > batchBytes {
		r = w.open(line, ordinal, r)
	}
	event := line.Event
	event.Sequence, event.Fence = 0, 0
	r.Events = append(r.Events, event)
	r.lines = append(r.lines, place{line.Number, line.Size})
	r.size += size
	w.lines++
	w.bytes += line.Size
}

func (w *window) open(line *Line, ordinal int64, before *run) *run {
	r := &run{begin: ordinal == 1}
	r.Execution, r.ExpectedHead, r.Fence = line.Execution, ordinal-1, line.Event.Fence
	if before != nil {
		r.round = before.round + 1
	}
	if r.round == len(w.rounds) {
		w.rounds = append(w.rounds, nil)
	}
	w.rounds[r.round] = append(w.rounds[r.round], r)
	w.last[line.Execution] = r
	return r
}

// runs yields every run of the window.
func (w *window) runs() iter.Seq[*run] {
	return func(yield func(*run) bool) {
		for _, round := range w.rounds {
			for _, r := range round {
				if !yield(r) {
					return
				}
			}
		}
	}
}

// windows yields a file's windows. It counts each execution's lines as it goes.
func (im *importer) windows(r io.Reader) iter.Seq[*window] {
	return func(yield func(*window) bool) {
		fresh := func() *window { return &window{last: map[spi.ExecutionID]*run{}} }
		w := fresh()
		for line, err := range Lines(r) {
			if err == nil {
				err = im.take(w, &line)
			}
			if err != nil {
				w.err = err
				break
			}
			if w.lines == im.opts.Window || w.bytes >= windowBytes {
				if !yield(w) {
					return
				}
				w = fresh()
			}
		}
		yield(w)
	}
}

// take puts a line's event into a window.
func (im *importer) take(w *window, line *Line) error {
	ordinal := im.heads[line.Execution] + 1
	switch {
	case line.Floor > 1:
		return line.wrong(floor, fmt.Sprintf("execution %q was truncated below %d: what is gone cannot be made anew, nor the rest without it", line.Execution, line.Floor))
	case line.Event.Sequence != 0 && line.Event.Sequence != ordinal:
		return line.wrong(sequence, fmt.Sprintf("the sequence is %d, but the file has %d events of execution %q before it: a log comes in whole and in order", line.Event.Sequence, ordinal-1, line.Execution))
	}
	im.heads[line.Execution] = ordinal
	if line.Event.Fence > 0 {
		im.fences[line.Execution] = max(im.fences[line.Execution], line.Event.Fence)
	}
	if line.Event.ID == (spi.EventID{}) {
		line.Event.ID = im.ids.make(im.opts.Tenant, line.Execution, ordinal, &line.Event)
	}
	w.add(line, ordinal)
	return nil
}
