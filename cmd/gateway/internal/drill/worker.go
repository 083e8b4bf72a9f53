package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loomgate/loomgate/backends/remote"
	"github.com/loomgate/loomgate/spi"
)

// A worker is a tenant's application: it appends to one execution after the other, and
// keeps sending an append until it is acknowledged, through whichever gateway answers.
type worker struct {
	*drill
	number  int
	tenant  string
	shard   string
	clients [2]*remote.Client

	acknowledged map[spi.ExecutionID][]spi.EventID
	open         map[spi.EventID]bool // sent and never acknowledged: it may be there
	unaffected   []time.Duration      // calls while another tenant's shard was down
	calm         []time.Duration      // calls while all shards were up
	retries      int
}

const eventsAnExecution = 20

// work appends while there is load, and until the last append is acknowledged.
func (w *worker) work(loading, ctx context.Context) {
	w.acknowledged, w.open = map[spi.ExecutionID][]spi.EventID{}, map[spi.EventID]bool{}
	through := w.number % len(w.clients)
	for e := 0; loading.Err() == nil; e++ {
		id := spi.ExecutionID(fmt.Sprintf("order-%06d", e))
		for head := int64(0); head < eventsAnExecution && loading.Err() == nil; head++ {
			event := spi.Event{ID: spi.NewEventID(), Kind: "Noted", Payload: []byte(`{"total": 12.30}`)}
			w.open[event.ID] = true
			if !w.append(ctx, &through, spi.AppendRequest{Execution: id, ExpectedHead: head, Events: []spi.Event{event}}) {
				return
			}
			delete(w.open, event.ID)
			w.acknowledged[id] = append(w.acknowledged[id], event.ID)
		}
	}
}

// patience is how long a worker waits for what was killed to come back.
const patience = time.Minute

// append sends an append until it is acknowledged.
func (w *worker) append(ctx context.Context, through *int, req spi.AppendRequest) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		down := w.shardDown()
		begin := time.Now()
		_, err := spi.Append(ctx, w.clients[*through].Store(), req)
		if err == nil {
			w.note(down, time.Since(begin))
			return true
		}
		w.retries++
		*through = (*through + 1) % len(w.clients)
		if pause(ctx, 20*time.Millisecond) != nil {
			return false
		}
	}
}

// note keeps how long a call took, if the same was down all the time.
func (w *worker) note(down string, took time.Duration) {
	switch {
	case down != w.shardDown() || down == w.shard:
	case down == "":
		w.calm = append(w.calm, took)
	default:
		w.unaffected = append(w.unaffected, took)
	}
}

// shardDown returns the shard that is down, "" if none has been for a while.
func (w *worker) shardDown() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down == "" && !w.since.IsZero() && time.Since(w.since) < time.Second {
		return "coming back"
	}
	return w.down
}

func (w *worker) close() {
	for _, c := range w.clients {
		if c != nil {
			c.Close()
		}
	}
}

// stored reads everything of the tenant, however long it takes until all shards answer
// again.
func (w *worker) stored(ctx context.Context) (all map[spi.ExecutionID][]spi.EventID, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		all, err = w.read(ctx)
		if _, unavailable := errors.AsType[*spi.UnavailableError](err); !unavailable || pause(ctx, 100*time.Millisecond) != nil {
			return all, err
		}
	}
}

func (w *worker) read(ctx context.Context) (map[spi.ExecutionID][]spi.EventID, error) {
	store := w.clients[0].Store()
	all := map[spi.ExecutionID][]spi.EventID{}
	for after := ""; ; {
		page, err := spi.ListExecutions(ctx, store, spi.ListExecutionsRequest{After: after, Limit: spi.MaxLimit})
		if err != nil {
			return nil, err
		}
		for _, id := range page.Executions {
			log, err := spi.Read(ctx, store, spi.ReadRequest{Execution: id, Limit: eventsAnExecution + 1})
			if err != nil {
				return nil, err
			}
			for i, e := range log.Events {
				if e.Sequence != int64(i)+1 {
					return nil, fmt.Errorf("tenant %s, execution %q: event %d has sequence %d", w.tenant, id, i+1, e.Sequence)
				}
				all[id] = append(all[id], e.ID)
			}
		}
		if after = page.Next; after == "" {
			return all, nil
		}
	}
}

var errForeign = errors.New("something is stored that was never sent")
