package transfer_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/loomgate/loomgate/spi"
)

// A fault is what goes wrong with one call.
type fault struct {
	refuse error // it is not done
	lose   error // it is done, and its answer lost
	late   error // it is answered with that, and done before the next call but one
}

// A call is one that a store gets.
type call struct {
	method string
	n      int // of this method, from 1
	id     spi.ExecutionID
	req    any
}

// faulty hands every call to inner, and does what a test wants to go wrong.
type faulty struct {
	inner *spi.Store
	plan  func(call) fault                               // nil: nothing fails
	read  func(spi.ReadRequest, *spi.ReadResponse) error // changes what is read
	head  func(spi.ExecutionID, *spi.HeadResponse)       // changes heads
	list  func(*spi.ListExecutionsResponse)              // changes pages
	slow  time.Duration                                  // up to twice that a call takes

	mu        sync.Mutex // held while the plan is asked
	calls     map[string]int
	late      []func()
	now, most int // calls under way
}

// open returns a store that offers what inner does of what is imported and exported with.
func (f *faulty) open(inner *spi.Store) *spi.Store {
	f.inner, f.calls = inner, map[string]int{}
	return spi.Only(must(spi.Open(spi.Backend{Events: f})), inner.Offered())
}

// withPlan returns inner with the faults of a plan.
func withPlan(inner *spi.Store, plan func(call) fault) *spi.Store {
	return (&faulty{plan: plan}).open(inner)
}

func do[Q, R any](
	ctx context.Context, f *faulty, method string, id spi.ExecutionID, req Q,
	method_ func(context.Context, *spi.Store, Q) (R, error),
) (res R, err error) {
	planned := f.next(call{method: method, id: id, req: req})
	defer f.end()
	if f.slow > 0 {
		time.Sleep(rand.N(2 * f.slow))
	}
	switch {
	case planned.refuse != nil:
		return res, planned.refuse
	case planned.late != nil:
		f.mu.Lock()
		defer f.mu.Unlock()
		f.late = append(f.late, func() {
			_, _ = method_(context.WithoutCancel(ctx), f.inner, req) // nobody waits for the answer any more
		})
		return res, planned.late
	}
	answer, err := method_(ctx, f.inner, req)
	if planned.lose != nil {
		return res, planned.lose
	}
	return answer, err
}

// next does the late calls whose time has come, and asks the plan.
func (f *faulty) next(c call) (planned fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.late) > 1 {
		f.late[0]()
		f.late = f.late[1:]
	}
	f.now++
	f.most = max(f.most, f.now)
	f.calls[c.method]++
	c.n = f.calls[c.method]
	if f.plan != nil {
		planned = f.plan(c)
	}
	return planned
}

func (f *faulty) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now--
}

// finish does the calls that are late still.
func (f *faulty) finish() {
	for _, late := range f.late {
		late()
	}
	f.late = nil
}

func (f *faulty) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	return do(ctx, f, "Append", req.Execution, req, spi.Append)
}

func (f *faulty) AppendBatch(ctx context.Context, req spi.AppendBatchRequest) (spi.AppendBatchResponse, error) {
	return do(ctx, f, "AppendBatch", "", req, spi.AppendBatch)
}

func (f *faulty) AcquireFence(ctx context.Context, req spi.AcquireFenceRequest) (spi.AcquireFenceResponse, error) {
	return do(ctx, f, "AcquireFence", req.Execution, req, spi.AcquireFence)
}

func (f *faulty) Read(ctx context.Context, req spi.ReadRequest) (spi.ReadResponse, error) {
	res, err := do(ctx, f, "Read", req.Execution, req, spi.Read)
	if f.read != nil && err == nil {
		err = f.read(req, &res)
	}
	return res, err
}

func (f *faulty) Head(ctx context.Context, req spi.HeadRequest) (spi.HeadResponse, error) {
	res, err := do(ctx, f, "Head", req.Execution, req, spi.Head)
	if f.head != nil && err == nil {
		f.head(req.Execution, &res)
	}
	return res, err
}

func (f *faulty) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	res, err := do(ctx, f, "ListExecutions", "", req, spi.ListExecutions)
	if f.list != nil && err == nil {
		f.list(&res)
	}
	return res, err
}
