// The supervisor runs a parent with three children against a gateway: each child
// sleeps, the node that would have resumed the parent crashes, and another finds what
// was left undone.
//
//	gateway serve                      # prints a key
//	LOOMGATE_KEY=… go run ./examples/supervisor
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/loomgate/loomgate/backends/remote"
	"github.com/loomgate/loomgate/runtime/events"
	"github.com/loomgate/loomgate/runtime/resume"
	"github.com/loomgate/loomgate/runtime/supervise"
	"github.com/loomgate/loomgate/runtime/timers"
	"github.com/loomgate/loomgate/spi"
)

func main() {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	addr := "127.0.0.1:7070"
	if a := os.Getenv("LOOMGATE_ADDR"); a != "" {
		addr = a
	}
	client, err := remote.Open(ctx, addr, remote.Options{APIKey: os.Getenv("LOOMGATE_KEY"), Plaintext: true})
	if err == nil {
		err = errors.Join(run(ctx, client.Store(), fmt.Sprintf("trip-%d", time.Now().Unix()), os.Stdout), client.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var bookings = []string{"flight", "hotel", "car"}

// A node is a process that wakes what is due and supervises. The first one crashes
// before it tells a parent that its last child has settled.
type node struct {
	name       string
	crashes    bool
	resumer    *resume.Resumer
	timers     *timers.Service
	supervisor *supervise.Supervisor
	crash      context.CancelFunc
	say        func(format string, args ...any)
	trip       spi.ExecutionID
}

func run(ctx context.Context, store *spi.Store, name string, out io.Writer) error {
	var mu sync.Mutex
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(out, format+"\n", args...)
	}
	trip := spi.ExecutionID(name)

	if err := start(ctx, store, trip); err != nil {
		return err
	}
	say("%d children sleep, and their parent waits for them", len(bookings))

	for _, n := range []*node{{name: "A", crashes: true}, {name: "B"}} {
		n.say, n.trip = say, trip
		if err := n.run(ctx, store); err != nil {
			return err
		}
	}
	return nil
}

// start begins the parent and its children. Each body runs until it parks.
func start(ctx context.Context, store *spi.Store, trip spi.ExecutionID) error {
	r := resume.New(store)
	parent, err := r.Start(ctx, trip, events.Started{})
	if err != nil {
		return err
	}
	wait := events.Wait{ID: "bookings", Reason: events.ReasonChildren, Group: "bookings"}
	for i, key := range bookings {
		id := trip + "/" + spi.ExecutionID(key)
		edge := &events.Parent{Execution: trip, Key: key, Group: "bookings"}
		child, err := r.Start(ctx, id, events.Started{Parent: edge})
		if err != nil {
			return err
		}
		nap := events.Wait{ID: "nap", Reason: events.ReasonTimer, WakeAt: time.Now().Add(time.Duration(i+1) * 50 * time.Millisecond)}
		if _, err := child.Park(ctx, nap); err != nil {
			return err
		}
		wait.Children = append(wait.Children, events.Child{Key: key, Execution: id})
	}
	_, err = parent.Park(ctx, wait)
	return err
}

// run is a node's life: its services, until it crashes or the trip is booked.
func (n *node) run(ctx context.Context, store *spi.Store) (err error) {
	alive, crash := context.WithCancel(ctx)
	defer crash()
	n.crash, n.resumer = crash, resume.New(store)
	n.timers, err = timers.New(n.resumer, timers.Config{
		Holder: n.name, Prefix: string(n.trip), LeaseTTL: time.Second, Interval: 20 * time.Millisecond, Redrive: true,
		Body: n.body, OnError: n.failed,
	})
	if err != nil {
		return err
	}
	n.supervisor = supervise.New(n.resumer, supervise.Config{
		Prefix: string(n.trip), Interval: 50 * time.Millisecond, Timers: n.timers, Body: n.body, OnError: n.failed,
	})
	var services sync.WaitGroup
	services.Go(func() { _ = n.timers.Run(alive) })
	if !n.crashes {
		services.Go(func() { _ = n.supervisor.Run(alive) })
	}
	services.Wait()
	return ctx.Err()
}

func (n *node) failed(err error) { n.say("node %s: %v", n.name, err) }

// body goes on where an execution was parked.
func (n *node) body(ctx context.Context, run *resume.Run) {
	id := run.State().Execution
	if err := run.Complete(ctx, "booked"); err != nil {
		n.failed(err)
		return
	}
	if id != n.trip {
		n.settled(ctx, id)
		return
	}
	var outcomes []events.Outcome
	if err := json.Unmarshal(run.State().Answer.Value, &outcomes); err != nil {
		n.failed(err)
	}
	for _, o := range outcomes {
		n.say("%s: %s", o.Key, o.Result)
	}
	n.say("node %s resumed the parent, which is done", n.name)
	n.crash() // there is nothing left to do
}

func (n *node) settled(ctx context.Context, child spi.ExecutionID) {
	if n.crashes && child == n.trip+"/"+spi.ExecutionID(bookings[len(bookings)-1]) {
		n.say("node %s crashes before it can tell the parent of the last child", n.name)
		n.crash()
		return
	}
	if err := n.supervisor.Settled(ctx, child); err != nil {
		n.failed(err)
	}
}
