package sqlite

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loomgate/loomgate/spi"
)

// Limits of one transaction, so that no caller waits for too many others.
const (
	maxGroup      = 256
	maxGroupBytes = 8 << 20
)

var errClosed = &spi.UnavailableError{Cause: errors.New("sqlite: the database is closed")}

// write does one transaction of the writer. do may be called again after what it did
// was undone. Its error, unless it is a failure, says that it changed nothing.
func (s *store) write(ctx context.Context, execution spi.ExecutionID, do func(*tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r := &request{execution: execution, do: do, done: make(chan struct{})}
	if !s.writer.queue.put(r) {
		return errClosed
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		if r.state.CompareAndSwap(waiting, canceled) {
			return ctx.Err()
		}
		<-r.done // it is being done: only the commit tells how it ends
	}
	return r.err
}

// A request is a write that somebody waits for.
type request struct {
	execution spi.ExecutionID
	do        func(*tx) error
	state     atomic.Int32
	number    int
	err       error
	done      chan struct{}
}

// The states of a request. The writer and the caller race for one that waits.
const (
	waiting int32 = iota
	taken
	canceled
)

func (r *request) answer(err error) {
	r.err = err
	close(r.done)
}

// A queue holds the requests that wait, in order.
type queue struct {
	mu       sync.Mutex
	requests []*request
	last     int // the number of the last request
	closed   bool
	filled   chan struct{} // holds a token when there may be requests
}

// put adds a request, unless the queue is closed.
func (q *queue) put(r *request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.last++
	r.number = q.last
	q.requests = append(q.requests, r)
	q.signal()
	return true
}

func (q *queue) signal() {
	select {
	case q.filled <- struct{}{}:
	default:
	}
}

// take returns the first request up to a number, and nil if there is none. What was
// canceled is gone.
func (q *queue) take(last int) *request {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.requests) > 0 && q.requests[0].number <= last {
		r := q.requests[0]
		q.requests[0] = nil
		q.requests = q.requests[1:]
		if r.state.CompareAndSwap(waiting, taken) {
			return r
		}
	}
	return nil
}

// look returns the number of the last request, and whether somebody still waits.
func (q *queue) look() (last int, wanted bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range q.requests {
		if r.state.Load() == waiting {
			return q.last, true
		}
	}
	q.requests = nil
	return q.last, false
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
}

// A writer is the only goroutine of a Database that writes.
type writer struct {
	store  *store
	queue  queue
	ctx    context.Context // ends with close
	cancel context.CancelFunc
	done   chan struct{}

	// The rest is the goroutine's own.

	session  *session // nil after a failure: the next transaction opens another
	recent   recent
	commit   func(*session) error // a test can lose one
	graves   bool                 // there may be events of deleted logs
	tooLarge int64                // the size at which FILE-wal is tried to be emptied again
}

func startWriter(s *store, first *session) *writer {
	w := &writer{
		store:   s,
		queue:   queue{filled: make(chan struct{}, 1)},
		done:    make(chan struct{}),
		session: first,
		graves:  true, // a crash may have left some
		commit:  func(c *session) error { _, err := c.exec(`COMMIT`); return err },
	}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	go w.run()
	return w
}

// close ends the goroutine and waits for it.
func (w *writer) close() {
	w.cancel()
	<-w.done
}

func (w *writer) run() {
	defer close(w.done)
	for w.wait() {
		w.serve()
		w.bury()
		w.empty()
	}
	w.queue.close()
	for r := w.queue.take(w.queue.last); r != nil; r = w.queue.take(w.queue.last) {
		r.answer(errClosed)
	}
	w.drop()
}

// wait returns when there is something to do, and false at the end.
func (w *writer) wait() bool {
	var idle <-chan time.Time
	if w.graves {
		idle = time.After(time.Millisecond)
	}
	select {
	case <-w.ctx.Done():
		return false
	case <-idle:
	case <-w.queue.filled:
	}
	return w.ctx.Err() == nil
}

// errUnwanted ends a wait for the lock when nobody waits for the writer any more.
var errUnwanted = errors.New("unwanted")

// serve does what waits in one transaction. It takes requests after it has the lock,
// so that they can be canceled until then, and those that come meanwhile join in.
func (w *writer) serve() {
	last, wanted := w.queue.look()
	if !wanted {
		return
	}
	t, err := w.begin(func() bool { _, wanted := w.queue.look(); return wanted })
	if err != nil {
		for r := w.queue.take(last); r != nil; r = w.queue.take(last) {
			r.answer(w.refusal(err))
		}
		w.queue.signal() // for those that came later
		return
	}
	var group []*request
	for len(group) < maxGroup && t.written < maxGroupBytes {
		last, _ = w.queue.look()
		r := w.queue.take(last)
		if r == nil {
			break
		}
		group = append(group, r)
		if r.err = r.do(t); failed(r.err) {
			w.undo()
			w.oneByOne(group)
			return
		}
	}
	w.finish(t, group)
}

// oneByOne does each request of a group again in a transaction of its own, after
// one of them failed midway and all were undone.
func (w *writer) oneByOne(group []*request) {
	defer w.queue.signal()
	if len(group) == 1 {
		group[0].answer(unchanged(group[0].err))
		return
	}
	for _, r := range group {
		t, err := w.begin(func() bool { return true })
		if err != nil {
			r.answer(w.refusal(err))
			continue
		}
		if r.err = r.do(t); failed(r.err) {
			w.undo()
			r.answer(unchanged(r.err))
			continue
		}
		w.finish(t, []*request{r})
	}
}

// begin starts a transaction that may write from the start: one that begins by
// reading could not always be upgraded.
func (w *writer) begin(wanted func() bool) (t *tx, err error) {
	err = patiently(w.ctx, w.store.busyTimeout, func() error {
		if !wanted() {
			return errUnwanted
		}
		if w.session == nil {
			session, err := connect(w.store.writerDSN())
			if err != nil {
				return err
			}
			w.session = session
		}
		if _, err := w.session.exec(`BEGIN IMMEDIATE`); err != nil {
			return err
		}
		owned, err := w.store.ownershipIn(w.session)
		if err != nil {
			w.undo()
			return err
		}
		t = &tx{session: w.session, ctx: context.Background(), ownership: owned, recent: &w.recent}
		return nil
	})
	return t, err
}

// refusal is the answer to a request for which no transaction began.
func (w *writer) refusal(err error) error {
	if w.ctx.Err() != nil {
		return errClosed
	}
	return unchanged(err)
}

// finish commits what a group did, and answers it. If the commit fails, it may have
// happened all the same: its last page may be in FILE-wal. Who was refused learns
// that nothing changed, but not the refusal: it may rest on what was lost.
func (w *writer) finish(t *tx, group []*request) {
	defer w.queue.signal()
	if err := w.commit(t.session); err != nil {
		w.drop()
		for _, r := range group {
			if r.err != nil {
				r.answer(&spi.UnavailableError{Cause: err})
			} else {
				r.answer(&spi.AmbiguousError{Execution: r.execution, Cause: err})
			}
		}
		return
	}
	w.store.ownership.Store(t.ownership)
	for _, r := range group {
		close(r.done)
	}
}

// undo rolls the transaction back.
func (w *writer) undo() {
	w.recent.forget()
	if _, err := w.session.exec(`ROLLBACK`); err != nil {
		w.drop() // SQLite rolls some failures back by itself
	}
}

// drop closes the connection.
func (w *writer) drop() {
	w.recent.forget()
	if w.session != nil {
		w.session.close()
		w.session = nil
	}
}

// empty tries to empty FILE-wal where it has grown past its limit, and waits a
// moment for short reads to end. It keeps everybody from writing meanwhile, so where
// a long read is in its way it tries again only after some more growth.
func (w *writer) empty() {
	info, err := os.Stat(w.store.path + "-wal")
	if err != nil || info.Size() <= max(w.store.walLimit, w.tooLarge) || w.session == nil {
		return
	}
	w.tooLarge = info.Size() + w.store.walLimit/4
	var blocked int
	var rest any
	_, _ = w.session.exec(`PRAGMA busy_timeout = 50`)
	_, err = w.session.get(`PRAGMA wal_checkpoint(TRUNCATE)`, nil, &blocked, &rest, &rest)
	_, _ = w.session.exec(`PRAGMA busy_timeout = 0`)
	if err == nil && blocked == 0 {
		w.tooLarge = 0
	}
}
