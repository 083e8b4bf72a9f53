// Package untaken bounds how much of a server's answers waits for clients to take it.
//
// What a client does not take is memory, and neither TCP nor HTTP/2 makes anybody take
// anything. So all that waits is counted, by connection, and when it comes to more than it
// may, the connection is closed that has left the most. Clients that take their answers
// notice nothing.
package untaken

import (
	"log/slog"
	"net"
	"sync"
)

// Answers are those of one process that wait. It is safe for concurrent use.
type Answers struct {
	limit int64
	log   *slog.Logger

	mu    sync.Mutex
	bytes int64
	conns map[*conn]struct{} // those with something that waits
}

// New returns no answers yet, of which no more than so many bytes may ever wait.
func New(limit int64, log *slog.Logger) *Answers {
	return &Answers{limit: limit, log: log, conns: map[*conn]struct{}{}}
}

// Bytes returns how much waits.
func (a *Answers) Bytes() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.bytes
}

// An answer is one that waits.
type answer struct {
	conn *conn
	size int64
	then func()
	once sync.Once
}

// put counts an answer until it is taken or its connection ends, and calls then. It closes
// connections, perhaps this one, while more waits than may.
func (a *Answers) put(c *conn, size int64, then func()) *answer {
	w := &answer{conn: c, size: size, then: then}
	a.mu.Lock()
	if c.closed {
		a.mu.Unlock()
		w.once.Do(then)
		return w
	}
	c.waiting[w] = struct{}{}
	c.bytes += size
	a.bytes += size
	a.conns[c] = struct{}{}
	a.mu.Unlock()
	for {
		worst := a.worst()
		if worst == nil {
			return w
		}
		a.log.Warn("a client is disconnected: it does not take its answers", "peer", worst.RemoteAddr().String())
		worst.Close()
	}
}

// worst returns the connection that has left the most, if more waits than may.
func (a *Answers) worst() (worst *conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.bytes <= a.limit {
		return nil
	}
	for c := range a.conns {
		if worst == nil || c.bytes > worst.bytes {
			worst = c
		}
	}
	return worst
}

// taken counts an answer no more.
func (w *answer) taken() {
	w.once.Do(func() {
		a := w.conn.answers
		a.mu.Lock()
		if _, waits := w.conn.waiting[w]; waits {
			delete(w.conn.waiting, w)
			w.conn.bytes -= w.size
			a.bytes -= w.size
			if len(w.conn.waiting) == 0 {
				delete(a.conns, w.conn)
			}
		}
		a.mu.Unlock()
		w.then()
	})
}

// Listener returns a listener whose connections are known here.
func (a *Answers) Listener(l net.Listener) net.Listener { return &listener{l, a} }

type listener struct {
	net.Listener
	answers *Answers
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, answers: l.answers, waiting: map[*answer]struct{}{}}, nil
}

// A conn is a connection. All but Conn is under the lock of its answers.
type conn struct {
	net.Conn
	answers *Answers

	closed  bool
	bytes   int64
	waiting map[*answer]struct{}
}

// Close ends the wait of what was not taken.
func (c *conn) Close() error {
	err := c.Conn.Close()
	c.answers.mu.Lock()
	c.closed = true
	left := c.waiting
	c.waiting = nil
	c.answers.bytes -= c.bytes
	c.bytes = 0
	delete(c.answers.conns, c)
	c.answers.mu.Unlock()
	for w := range left {
		w.taken()
	}
	return err
}

// RemoteAddr returns an address that knows its connection: it is all that servers pass on.
func (c *conn) RemoteAddr() net.Addr { return &addr{c.Conn.RemoteAddr(), c} }

type addr struct {
	net.Addr
	conn *conn
}
