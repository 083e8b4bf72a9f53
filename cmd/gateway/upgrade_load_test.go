package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loomgate/loomgate/backends/remote"
	"github.com/loomgate/loomgate/runtime/resume"
	"github.com/loomgate/loomgate/runtime/timers"
	"github.com/loomgate/loomgate/spi"
)

// A fleet is what a load balancer in front of gateways of one cluster knows.
type fleet struct {
	*testing.T
	mu      sync.Mutex
	clients map[string]*remote.Client // by address
}

// add lets a gateway get a tenant's calls.
func (f *fleet) add(p *process, keyFile string) {
	f.Helper()
	key, err := os.ReadFile(keyFile)
	if err != nil {
		f.Fatal(err)
	}
	client, err := remote.Open(f.Context(), p.grpc, remote.Options{APIKey: strings.TrimSpace(string(key)), Plaintext: true, Connections: 1})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { client.Close() })
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clients[p.grpc] = client
}

// drain stops a gateway, which gets calls until it has gone.
func (f *fleet) drain(p *process) {
	p.stop()
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.clients, p.grpc)
}

func (f *fleet) pick() *spi.Store {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := slices.Collect(maps.Values(f.clients))
	return all[rand.N(len(all))].Store()
}

// do sends a request through one gateway or another until one answers it.
func do[Q, R any](ctx context.Context, f *fleet, method func(context.Context, *spi.Store, Q) (R, error), req Q) (R, error) {
	for {
		limited, cancel := context.WithTimeout(ctx, 10*time.Second)
		res, err := method(limited, f.pick(), req)
		cancel()
		_, unavailable := errors.AsType[*spi.UnavailableError](err)
		_, ambiguous := errors.AsType[*spi.AmbiguousError](err)
		if !unavailable && !ambiguous && !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			return res, err
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// A load is an application that works all the while that gateways come and go.
type load struct {
	*fleet
	ctx    context.Context
	ending atomic.Bool
	steps  [5]atomic.Int64 // of each worker

	mu           sync.Mutex
	acknowledged map[spi.ExecutionID][]spi.EventID
	wakes        map[spi.ExecutionID]bool // scheduled; true: and woken
	redrives     map[spi.ExecutionID]bool // scheduled; true: and done
	misread      []spi.ExecutionID        // by nodes that take a redrive row for a wake

	working sync.WaitGroup
}

// begin starts the workers. Each has something of its own to do.
func (l *load) begin() {
	for i, work := range [...]func(step int) error{l.appendOne(0), l.appendOne(1), l.acquire(), l.schedule, l.contend} {
		l.working.Go(func() {
			for step := 0; !l.ending.Load(); step++ {
				if err := work(step); err != nil {
					l.Errorf("worker %d, step %d: %v", i, step, err)
					return
				}
				l.steps[i].Add(1)
			}
		})
	}
}

// goOn waits until each worker has come some steps further.
func (l *load) goOn() {
	l.Helper()
	for i := range l.steps {
		for want := l.steps[i].Load() + 4; l.steps[i].Load() < want; {
			select {
			case <-time.After(time.Millisecond):
			case <-l.ctx.Done():
				l.Fatalf("worker %d has come to a stand", i)
			}
			if l.Failed() {
				l.FailNow()
			}
		}
	}
}

// end lets every worker finish what it is at.
func (l *load) end() {
	l.ending.Store(true)
	l.working.Wait()
}

const appendsAnExecution = 10

func (l *load) appendOne(worker int) func(step int) error {
	return func(step int) error {
		id := spi.ExecutionID(fmt.Sprintf("log-%d-%04d", worker, step/appendsAnExecution))
		event := spi.Event{ID: spi.NewEventID(), Kind: "Noted", Payload: []byte("1")}
		res, err := do(l.ctx, l.fleet, spi.Append, spi.AppendRequest{
			Execution: id, ExpectedHead: int64(step % appendsAnExecution), Events: []spi.Event{event},
		})
		if err != nil {
			return err
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.acknowledged[id] = append(l.acknowledged[id], event.ID)
		if len(l.acknowledged[id]) != int(res.FirstSeq) {
			return fmt.Errorf("event %d is stored as %d", len(l.acknowledged[id]), res.FirstSeq)
		}
		return nil
	}
}

func (l *load) acquire() func(step int) error {
	last := map[spi.ExecutionID]int64{}
	return func(step int) error {
		id := spi.ExecutionID(fmt.Sprint("fenced-", step%4))
		res, err := do(l.ctx, l.fleet, spi.AcquireFence, spi.AcquireFenceRequest{Execution: id})
		if err == nil && res.Token <= last[id] {
			err = fmt.Errorf("token %d after %d", res.Token, last[id])
		}
		last[id] = res.Token
		return err
	}
}

var longDue = time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)

// schedule writes a timer for a wait.
func (l *load) schedule(step int) error {
	id := spi.ExecutionID(fmt.Sprintf("wait-%05d", step))
	l.mu.Lock()
	l.wakes[id] = false
	l.mu.Unlock()
	_, err := do(l.ctx, l.fleet, spi.ScheduleTimer, spi.ScheduleTimerRequest{Timer: spi.Timer{Execution: id, WakeAt: longDue}})
	return err
}

// contend is a resume that was contended: its redrive row is written where those are
// switched on.
func (l *load) contend(step int) error {
	on, err := l.redriveOn()
	if err != nil {
		return err
	}
	l.handleRedrives(on)
	id := spi.ExecutionID(fmt.Sprintf("contended-%05d", step))
	if on {
		l.mu.Lock()
		l.redrives[id] = false
		l.mu.Unlock()
	}
	for {
		written, err := l.node(on).ScheduleRedrive(l.ctx, id)
		if err == nil && written != on {
			return fmt.Errorf("switched on: %v; a redrive row written: %v", on, written)
		}
		if err == nil || l.ctx.Err() != nil {
			return err
		}
	}
}

// handleRedrives does what redrive rows are for, once, if a gateway answers.
func (l *load) handleRedrives(on bool) {
	node := l.node(on)
	node.Register(func(_ context.Context, id spi.ExecutionID) (timers.Outcome, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.redrives[id] = true
		return timers.Done, nil
	})
	_ = node.Poll(l.ctx) // what cannot be read now can be later
}

// node is one that knows redrive rows, which go to executions of their own here.
func (l *load) node(on bool) *timers.Service {
	node, err := timers.New(resume.New(l.pick()), timers.Config{
		Holder: "node", Prefix: "contended-", Redrive: on, Now: func() time.Time { return longDue },
	})
	if err != nil {
		panic(err) // the store offers timers
	}
	return node
}

// redriveOn reports whether every shard refuses the writers that do not know redrive rows.
func (l *load) redriveOn() (bool, error) {
	res, err := do(l.ctx, l.fleet, spi.GetOwnership, spi.GetOwnershipRequest{})
	for _, shard := range res.Shards {
		if shard.Identity.MinWriter != newer {
			return false, err
		}
	}
	return err == nil, err
}

// olderNode wakes what waits, as a node does that does not know redrive rows: to it one is
// a wake whose wait has ended. It polls until ctx ends.
func (l *load) olderNode(ctx context.Context) {
	for ctx.Err() == nil {
		l.poll(spi.DueTimersRequest{Limit: 100})
	}
}

// poll wakes what waits.
func (l *load) poll(req spi.DueTimersRequest) (rows int) {
	due, err := do(l.ctx, l.fleet, spi.DueTimers, req)
	if err != nil {
		l.Error(err)
		return 0
	}
	for _, row := range due.Timers {
		l.mu.Lock()
		if _, waits := l.wakes[row.Execution]; waits {
			l.wakes[row.Execution] = true
		} else {
			l.misread = append(l.misread, row.Execution)
		}
		l.mu.Unlock()
		if _, err := do(l.ctx, l.fleet, spi.CompleteTimer, spi.CompleteTimerRequest{Execution: row.Execution, WakeAt: row.WakeAt, Version: row.Version}); err != nil {
			l.Error(err)
		}
	}
	return len(due.Timers)
}
