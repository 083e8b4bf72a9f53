package model

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/loomgate/loomgate/spi"
)

// Options says how much happens in a run.
type Options struct {
	Seed       uint64
	Clients    int // at most 8, for the search for an order to end
	Calls      int // by each client
	Executions int // that are written at random; at least 2

	// Retried says that a layer of the store sends requests again, and calls new what
	// it then finds.
	Retried bool

	// CallTimeout is how long one call may take before its client gives up; 0: a
	// minute.
	CallTimeout time.Duration
}

// perExecution is how many calls there may be to one execution.
const perExecution = 200

// Run lets clients work on a store that holds nothing by the names that they use, until
// each has made its calls, and then reads what is there. The store should be sound again
// when the clients end. It returns a history to check.
func Run(ctx context.Context, store *spi.Store, opts Options) (*History, error) {
	if opts.Clients < 1 || opts.Clients > 8 || opts.Executions < 2 || opts.Calls < 1 || opts.Clients*opts.Calls > perExecution*opts.Executions {
		return nil, fmt.Errorf("model: %+v is more than can be checked", opts)
	}
	if opts.CallTimeout == 0 {
		opts.CallTimeout = time.Minute
	}
	r := &run{History: &History{}, store: store, Options: opts}
	if err := r.writeSources(ctx); err != nil {
		return nil, err
	}
	var clients sync.WaitGroup
	for i := range opts.Clients {
		clients.Go(func() { newClient(r, i).work(ctx) })
	}
	done := make(chan struct{})
	var lister sync.WaitGroup
	lister.Go(func() { r.list(ctx, done) })
	clients.Wait()
	close(done)
	lister.Wait()
	return r.History, r.readAll(ctx)
}

type run struct {
	*History
	Options
	store   *spi.Store
	sources [2][]spi.Event // what is there to copy, as it was written
}

const sourceLength = 6

func source(i int) spi.ExecutionID { return spi.ExecutionID(fmt.Sprintf("source-%d", i)) }

// writeSources writes the executions to copy from, which nobody writes later.
func (r *run) writeSources(ctx context.Context) error {
	rnd := rand.New(rand.NewPCG(r.Seed, 0))
	for i := range r.sources {
		r.sources[i] = newEvents(rnd, sourceLength)
		req := spi.AppendRequest{Execution: source(i), Events: r.sources[i]}
		if err := do(ctx, r, 0, req.Execution, req, spi.Append, req); err != nil {
			return fmt.Errorf("model: write a source: %w", err)
		}
	}
	return nil
}

// readAll reads every execution at the end, and lists once more.
func (r *run) readAll(ctx context.Context) error {
	for _, id := range executions(r.calls) {
		req := spi.ReadRequest{Execution: id, Limit: spi.MaxLimit}
		if err := do(ctx, r, 0, id, req, spi.Read, req); err != nil {
			return fmt.Errorf("model: read %q at the end: %w", id, err)
		}
	}
	return r.listOnce(ctx)
}

// list pages through everything again and again.
func (r *run) list(ctx context.Context, done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		default:
			_ = r.listOnce(ctx) // while others break things a page may fail
		}
	}
}

func (r *run) listOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.CallTimeout)
	defer cancel()
	for after := ""; ; {
		begin := r.now()
		res, err := spi.ListExecutions(ctx, r.store, spi.ListExecutionsRequest{After: after, Limit: 3})
		if err != nil {
			return err
		}
		r.addPage(page{begin, r.now(), after, res, res.Next == ""})
		if after = res.Next; after == "" {
			return nil
		}
	}
}

// do calls the store and records what it answers.
func do[Q, R any](ctx context.Context, r *run, client int, id spi.ExecutionID, in input, method func(context.Context, *spi.Store, Q) (R, error), req Q) error {
	_, err := ask(ctx, r, client, id, in, method, req)
	return err
}

func ask[Q, R any](ctx context.Context, r *run, client int, id spi.ExecutionID, in input, method func(context.Context, *spi.Store, Q) (R, error), req Q) (R, error) {
	ctx, cancel := context.WithTimeout(ctx, r.CallTimeout)
	defer cancel()
	begin := r.now()
	res, err := method(ctx, r.store, req)
	r.add(call{client, id, begin, r.now(), in, output{res, err, r.Retried}})
	return res, err
}

// newEvents makes events of kinds that matter to fences.
func newEvents(rnd *rand.Rand, n int) []spi.Event {
	events := make([]spi.Event, n)
	for i := range events {
		e := spi.Event{ID: spi.NewEventID(), Kind: "Noted"}
		switch rnd.IntN(6) {
		case 0, 1:
			e.Kind, e.Kernel = spi.KindExecutionSuspended, true
		case 2:
			e.Kind, e.Kernel = spi.KindExecutionResumed, true
		}
		events[i] = e
	}
	return events
}

// A client knows of each execution what it has read last.
type client struct {
	*run
	number int
	rnd    *rand.Rand
	known  map[spi.ExecutionID]*knowledge
	copies int
}

type knowledge struct {
	spi.HeadResponse
	park    int64               // the last park that was read
	token   int64               // the client's own
	again   []spi.AppendRequest // whose outcome is unknown
	settled []spi.AppendRequest // that were acknowledged
}

func newClient(r *run, number int) *client {
	return &client{r, number, rand.New(rand.NewPCG(r.Seed, uint64(number)+1)), map[spi.ExecutionID]*knowledge{}, 0}
}

func (c *client) work(ctx context.Context) {
	for range c.Calls {
		if ctx.Err() != nil {
			return
		}
		id := spi.ExecutionID(fmt.Sprintf("e-%d", c.rnd.IntN(c.Executions)))
		k := c.known[id]
		if k == nil {
			k = &knowledge{}
			c.known[id] = k
		}
		c.act(ctx, id, k)
	}
	for id, k := range c.known { // what is unknown is asked about before the end
		for len(k.again) > 0 && ctx.Err() == nil {
			c.append(ctx, id, k, k.again[0])
		}
	}
}

// act does one thing, more often what matters more.
func (c *client) act(ctx context.Context, id spi.ExecutionID, k *knowledge) {
	offered := c.store.Offered()
	if len(k.again) > 0 && c.rnd.IntN(2) == 0 {
		c.append(ctx, id, k, k.again[0])
		return
	}
	switch n := c.rnd.IntN(100); {
	case n < 25:
		c.append(ctx, id, k, c.newAppend(id, k))
	case n < 30 && len(k.settled) > 0:
		c.append(ctx, id, k, k.settled[c.rnd.IntN(len(k.settled))])
	case n < 40 && offered.Has(spi.CapAppendBatch):
		c.batch(ctx)
	case n < 48 && offered.Has(spi.CapAcquireFence):
		res, err := ask(ctx, c.run, c.number, id, spi.AcquireFenceRequest{Execution: id}, spi.AcquireFence, spi.AcquireFenceRequest{Execution: id})
		if err == nil {
			k.token, k.Fence = res.Token, res.Token
		}
	case n < 60 && offered.Has(spi.CapAcquireFenceIf):
		req := spi.AcquireFenceIfRequest{Execution: id, Fence: k.Fence, ParkSeq: k.park, Incarnation: c.perhaps(k.Incarnation)}
		res, err := ask(ctx, c.run, c.number, id, req, spi.AcquireFenceIf, req)
		if err == nil {
			if k.Fence = res.Token; res.Acquired {
				k.token = res.Token
			}
		}
	case n < 66 && offered.Has(spi.CapAppendIfUnchanged):
		req := spi.AppendIfUnchangedRequest{Execution: id, Head: k.Head, Fence: k.Fence, Incarnation: c.perhaps(k.Incarnation), Events: newEvents(c.rnd, 1)}
		res, err := ask(ctx, c.run, c.number, id, req, spi.AppendIfUnchanged, req)
		if err == nil {
			k.Head = res.Head
		}
	case n < 69 && offered.Has(spi.CapDeleteExecution) && k.Incarnation > 0:
		req := spi.DeleteExecutionRequest{Execution: id, Incarnation: k.Incarnation}
		_ = do(ctx, c.run, c.number, id, req, spi.DeleteExecution, req)
	case n < 73 && offered.Has(spi.CapTruncatePrefixKeeping) && k.Head > 2:
		req := spi.TruncatePrefixKeepingRequest{Execution: id, Incarnation: k.Incarnation, Before: 1 + c.rnd.Int64N(k.Head), Keep: []int64{1 + c.rnd.Int64N(k.Head)}}
		_ = do(ctx, c.run, c.number, id, req, spi.TruncatePrefixKeeping, req)
	case n < 77 && offered.Has(spi.CapCopyPrefix):
		c.copy(ctx)
	case n < 88:
		c.read(ctx, id, k)
	default:
		req := spi.HeadRequest{Execution: id}
		res, err := ask(ctx, c.run, c.number, id, req, spi.Head, req)
		if err == nil {
			k.HeadResponse = res
		}
	}
}

// perhaps states an incarnation, or none.
func (c *client) perhaps(incarnation int64) int64 { return incarnation * int64(c.rnd.IntN(2)) }

func (c *client) newAppend(id spi.ExecutionID, k *knowledge) spi.AppendRequest {
	req := spi.AppendRequest{Execution: id, ExpectedHead: k.Head, Incarnation: k.Incarnation, Events: newEvents(c.rnd, 1+c.rnd.IntN(3))}
	if c.rnd.IntN(3) == 0 {
		req.ExpectedHead, req.SinceSeq = spi.AnyHead, k.Head+1
	}
	switch c.rnd.IntN(4) {
	case 0:
		req.Fence = k.token
	case 1, 2:
		req.Fence = k.Fence
	}
	return req
}

// append appends, and remembers what has to be asked about and may be repeated.
func (c *client) append(ctx context.Context, id spi.ExecutionID, k *knowledge, req spi.AppendRequest) {
	res, err := ask(ctx, c.run, c.number, id, req, spi.Append, req)
	c.learn(k, req, res, err)
}

func (c *client) learn(k *knowledge, req spi.AppendRequest, res spi.AppendResponse, err error) {
	k.again = slices.DeleteFunc(k.again, func(r spi.AppendRequest) bool { return r.Events[0].ID == req.Events[0].ID })
	switch outcomeOf(err) {
	case unknown, ineffective:
		k.again = append(k.again, req)
	case answered:
		if err == nil {
			k.Head, k.Incarnation, k.Floor = res.Head, res.Incarnation, res.Floor
			k.settled = append(k.settled, req)
		}
	}
}

// batch appends to several executions at once.
func (c *client) batch(ctx context.Context) {
	var req spi.AppendBatchRequest
	for i := range c.Executions {
		id := spi.ExecutionID(fmt.Sprintf("e-%d", i))
		if k := c.known[id]; k != nil && c.rnd.IntN(2) == 0 {
			req.Appends = append(req.Appends, c.newAppend(id, k))
		}
	}
	if len(req.Appends) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, c.CallTimeout)
	defer cancel()
	begin := c.now()
	res, err := spi.AppendBatch(ctx, c.store, req)
	end := c.now()
	for i, item := range req.Appends {
		out := spi.AppendResult{Err: err}
		if err == nil {
			out = res.Results[i]
		}
		c.add(call{c.number, item.Execution, begin, end, item, output{out.AppendResponse, out.Err, c.Retried}})
		c.learn(c.known[item.Execution], item, out.AppendResponse, out.Err)
	}
}

// copy copies a source to a target that others copy to as well.
func (c *client) copy(ctx context.Context) {
	from, n := c.rnd.IntN(len(c.sources)), 1+c.rnd.IntN(sourceLength+1)
	to := spi.ExecutionID(fmt.Sprintf("copy-%d", c.copies))
	if c.rnd.IntN(2) == 0 {
		c.copies++
	}
	req := spi.CopyPrefixRequest{From: source(from), To: to, N: int64(n)}
	_ = do(ctx, c.run, c.number, to, copied{req, c.sources[from][:min(n, sourceLength)]}, spi.CopyPrefix, req)
	read := spi.ReadRequest{Execution: to, Limit: spi.MaxLimit}
	_ = do(ctx, c.run, c.number, to, read, spi.Read, read)
}

func (c *client) read(ctx context.Context, id spi.ExecutionID, k *knowledge) {
	req := spi.ReadRequest{Execution: id, Limit: spi.MaxLimit}
	res, err := ask(ctx, c.run, c.number, id, req, spi.Read, req)
	if err != nil {
		return
	}
	k.Incarnation, k.Floor, k.Head, k.park = res.Incarnation, res.Floor, 0, 0
	for _, e := range res.Events {
		if k.Head = e.Sequence; e.Kind == spi.KindExecutionSuspended {
			k.park = e.Sequence
		}
	}
}
