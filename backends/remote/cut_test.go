package remote_test

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"

	"github.com/loomgate/loomgate/spi"
)

// A cutter passes connections on to a gateway, and cuts each one after a random number
// of bytes that the gateway has sent.
type cutter struct {
	listener net.Listener
	gateway  string
	running  sync.WaitGroup

	mu     sync.Mutex
	random *rand.Rand
	open   map[net.Conn]bool
	closed bool
	cuts   int
}

func startCutter(t *testing.T, gateway string) *cutter {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{listener: listener, gateway: gateway, random: rand.New(rand.NewPCG(1, 2)), open: map[net.Conn]bool{}}
	c.running.Go(c.accept)
	t.Cleanup(c.stop)
	return c
}

func (c *cutter) accept() {
	for {
		client, err := c.listener.Accept()
		if err != nil {
			return
		}
		c.running.Go(func() { c.pass(client) })
	}
}

func (c *cutter) pass(client net.Conn) {
	gateway, err := net.Dial("tcp", c.gateway)
	if err != nil {
		client.Close()
		return
	}
	if !c.keep(client, gateway) {
		return
	}
	var up sync.WaitGroup
	up.Go(func() {
		io.Copy(gateway, client) //nolint:errcheck // it is cut
	})
	io.CopyN(client, gateway, c.budget()) //nolint:errcheck // likewise
	c.cut(client, gateway)
	up.Wait()
}

func (c *cutter) budget() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cuts++
	return 300 + c.random.Int64N(2000)
}

func (c *cutter) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cuts
}

// keep notes connections, for stop to close; after that it closes them.
func (c *cutter) keep(connections ...net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range connections {
		if c.closed {
			conn.Close()
			continue
		}
		c.open[conn] = true
	}
	return !c.closed
}

func (c *cutter) cut(connections ...net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range connections {
		conn.Close()
		delete(c.open, conn)
	}
}

func (c *cutter) stop() {
	c.listener.Close()
	c.mu.Lock()
	c.closed = true
	for conn := range c.open {
		conn.Close()
	}
	c.mu.Unlock()
	c.running.Wait()
}

// TestOverConnectionsThatAreCutEveryAppendIsStoredOnce repeats a request as long as it
// is unavailable or ambiguous, as the contract says.
func TestOverConnectionsThatAreCutEveryAppendIsStoredOnce(t *testing.T) {
	stored := newMemory(t)
	proxy := startCutter(t, serve(t, stored))
	store := open(t, proxy.listener.Addr().String())
	const writers, appends = 8, 60
	var done sync.WaitGroup
	for w := range writers {
		done.Go(func() {
			id := spi.ExecutionID("e" + strconv.Itoa(w))
			for n := range appends {
				req := spi.AppendRequest{Execution: id, ExpectedHead: int64(2 * n), Events: []spi.Event{event(), event()}}
				if n%3 == 0 {
					req.ExpectedHead, req.SinceSeq = spi.AnyHead, int64(2*n)+1
				}
				if err := insist(func() error {
					_, err := spi.Append(t.Context(), store, req)
					return err
				}); err != nil {
					t.Errorf("append %d to %s: %v", n, id, err)
					return
				}
			}
		})
	}
	done.Wait()
	for w := range writers {
		id := spi.ExecutionID("e" + strconv.Itoa(w))
		head, err := spi.Head(t.Context(), stored, spi.HeadRequest{Execution: id})
		if err != nil || head.Head != 2*appends {
			t.Errorf("%s ends at %d, %v", id, head.Head, err)
		}
	}
	if n := proxy.count(); n < 20 {
		t.Errorf("only %d connections were there to be cut", n)
	}
}

// insist calls until it is known what has become of a call.
func insist(call func() error) error {
	for {
		err := call()
		_, unavailable := errors.AsType[*spi.UnavailableError](err)
		_, ambiguous := errors.AsType[*spi.AmbiguousError](err)
		if !unavailable && !ambiguous {
			return err
		}
	}
}
