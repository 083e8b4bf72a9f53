package stack

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/loomgate/loomgate/spi"
)

// An opener opens a database, and returns what closes it.
type opener func(context.Context) (store *spi.Store, close func(), err error)

// A pending is a store that is opened as soon as it can be. Until then each call is
// [spi.UnavailableError], and says why.
type pending struct {
	open  opener
	pause time.Duration // between two tries

	breaker *breaker // once it is open

	ready atomic.Pointer[spi.Store]
	tries singleflight.Group

	mu      sync.Mutex // held while it is opened or closed
	tried   time.Time
	err     error // of the last try
	release func()

	releasing sync.WaitGroup // of what was replaced
}

// openTimeout is how long a try to open may take.
const openTimeout = 15 * time.Second

var errClosed = errors.New("the gateway is shutting down")

// newPending returns a store that offers caps, which open's has to offer.
func newPending(name string, caps spi.Caps, pause time.Duration, open opener) (*pending, *spi.Store, error) {
	p := &pending{open: open, pause: pause, breaker: newBreaker(name)}
	store, err := spi.Open(spi.Backend{Events: p, Timers: p, Refs: p, Leases: p, DataKeys: p, Ownership: p})
	if err != nil {
		return nil, nil, err
	}
	return p, spi.Only(store, caps), nil
}

// store returns the store, opened now if need be. Callers who wait share one try, which
// goes on if they give up.
func (p *pending) store(ctx context.Context) (*spi.Store, error) {
	if s := p.ready.Load(); s != nil {
		return s, nil
	}
	done := p.tries.DoChan("", func() (any, error) { return p.try(context.WithoutCancel(ctx)) })
	select {
	case r := <-done:
		s, _ := r.Val.(*spi.Store)
		return s, r.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pending) try(ctx context.Context) (*spi.Store, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.ready.Load(); s != nil {
		return s, nil
	}
	if p.err != nil && (p.err == errClosed || time.Since(p.tried) < p.pause) { //nolint:errorlint // it is that one
		return nil, &spi.UnavailableError{Cause: p.err}
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	s, release, err := p.open(ctx)
	if err != nil {
		p.tried, p.err = time.Now(), err
		return nil, &spi.UnavailableError{Cause: err}
	}
	p.release, p.err = release, nil
	p.ready.Store(s)
	return s, nil
}

// lastError returns why the last try failed, nil if it did not.
func (p *pending) lastError() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// replace goes on with another database: that of store, or if it is nil what open opens.
// The one before is closed when the calls to it have come back.
func (p *pending) replace(open opener, store *spi.Store, release func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == errClosed { //nolint:errorlint // it is that one
		if release != nil {
			release()
		}
		return
	}
	if old := p.release; old != nil {
		p.releasing.Go(old)
	}
	p.open, p.release, p.err = open, release, nil
	p.ready.Store(store)
}

// close waits for a try under way, closes the database if it was opened, and lets nobody
// open it again.
func (p *pending) close() {
	defer p.releasing.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = errClosed
	if p.release != nil {
		p.release()
		p.release = nil
	}
}

// call is what every method does.
func call[Q, R any](ctx context.Context, p *pending, method func(context.Context, *spi.Store, Q) (R, error), req Q) (R, error) {
	var none R
	s, err := p.store(ctx)
	if err != nil {
		return none, err
	}
	end, err := p.breaker.begin()
	if err != nil {
		return none, err
	}
	failed := error(&spi.UnavailableError{}) // unless the call returns
	defer func() { end(failed) }()
	var res R
	res, failed = method(ctx, s, req)
	return res, failed
}

func (p *pending) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	return call(ctx, p, spi.Append, req)
}

func (p *pending) AppendBatch(ctx context.Context, req spi.AppendBatchRequest) (spi.AppendBatchResponse, error) {
	return call(ctx, p, spi.AppendBatch, req)
}

func (p *pending) AppendIfUnchanged(ctx context.Context, req spi.AppendIfUnchangedRequest) (spi.AppendIfUnchangedResponse, error) {
	return call(ctx, p, spi.AppendIfUnchanged, req)
}

func (p *pending) Read(ctx context.Context, req spi.ReadRequest) (spi.ReadResponse, error) {
	return call(ctx, p, spi.Read, req)
}

func (p *pending) Head(ctx context.Context, req spi.HeadRequest) (spi.HeadResponse, error) {
	return call(ctx, p, spi.Head, req)
}

func (p *pending) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	return call(ctx, p, spi.ListExecutions, req)
}

func (p *pending) AcquireFence(ctx context.Context, req spi.AcquireFenceRequest) (spi.AcquireFenceResponse, error) {
	return call(ctx, p, spi.AcquireFence, req)
}

func (p *pending) AcquireFenceIf(ctx context.Context, req spi.AcquireFenceIfRequest) (spi.AcquireFenceIfResponse, error) {
	return call(ctx, p, spi.AcquireFenceIf, req)
}

func (p *pending) CopyPrefix(ctx context.Context, req spi.CopyPrefixRequest) (spi.CopyPrefixResponse, error) {
	return call(ctx, p, spi.CopyPrefix, req)
}

func (p *pending) TruncatePrefixKeeping(ctx context.Context, req spi.TruncatePrefixKeepingRequest) (spi.TruncatePrefixKeepingResponse, error) {
	return call(ctx, p, spi.TruncatePrefixKeeping, req)
}

func (p *pending) DeleteExecution(ctx context.Context, req spi.DeleteExecutionRequest) (spi.DeleteExecutionResponse, error) {
	return call(ctx, p, spi.DeleteExecution, req)
}

func (p *pending) SweepTombstones(ctx context.Context, req spi.SweepTombstonesRequest) (spi.SweepTombstonesResponse, error) {
	return call(ctx, p, spi.SweepTombstones, req)
}

func (p *pending) ScheduleTimer(ctx context.Context, req spi.ScheduleTimerRequest) (spi.ScheduleTimerResponse, error) {
	return call(ctx, p, spi.ScheduleTimer, req)
}

func (p *pending) DueTimers(ctx context.Context, req spi.DueTimersRequest) (spi.DueTimersResponse, error) {
	return call(ctx, p, spi.DueTimers, req)
}

func (p *pending) CompleteTimer(ctx context.Context, req spi.CompleteTimerRequest) (spi.CompleteTimerResponse, error) {
	return call(ctx, p, spi.CompleteTimer, req)
}

func (p *pending) PutRef(ctx context.Context, req spi.PutRefRequest) (spi.PutRefResponse, error) {
	return call(ctx, p, spi.PutRef, req)
}

func (p *pending) GetRef(ctx context.Context, req spi.GetRefRequest) (spi.GetRefResponse, error) {
	return call(ctx, p, spi.GetRef, req)
}

func (p *pending) DeleteRef(ctx context.Context, req spi.DeleteRefRequest) (spi.DeleteRefResponse, error) {
	return call(ctx, p, spi.DeleteRef, req)
}

func (p *pending) ListRefs(ctx context.Context, req spi.ListRefsRequest) (spi.ListRefsResponse, error) {
	return call(ctx, p, spi.ListRefs, req)
}

func (p *pending) PromoteRef(ctx context.Context, req spi.PromoteRefRequest) (spi.PromoteRefResponse, error) {
	return call(ctx, p, spi.PromoteRef, req)
}

func (p *pending) RefLineage(ctx context.Context, req spi.RefLineageRequest) (spi.RefLineageResponse, error) {
	return call(ctx, p, spi.RefLineage, req)
}

func (p *pending) AcquireLease(ctx context.Context, req spi.AcquireLeaseRequest) (spi.AcquireLeaseResponse, error) {
	return call(ctx, p, spi.AcquireLease, req)
}

func (p *pending) RenewLease(ctx context.Context, req spi.RenewLeaseRequest) (spi.RenewLeaseResponse, error) {
	return call(ctx, p, spi.RenewLease, req)
}

func (p *pending) ReleaseLease(ctx context.Context, req spi.ReleaseLeaseRequest) (spi.ReleaseLeaseResponse, error) {
	return call(ctx, p, spi.ReleaseLease, req)
}

func (p *pending) CreateDataKey(ctx context.Context, req spi.CreateDataKeyRequest) (spi.CreateDataKeyResponse, error) {
	return call(ctx, p, spi.CreateDataKey, req)
}

func (p *pending) GetDataKey(ctx context.Context, req spi.GetDataKeyRequest) (spi.GetDataKeyResponse, error) {
	return call(ctx, p, spi.GetDataKey, req)
}

func (p *pending) DestroyDataKey(ctx context.Context, req spi.DestroyDataKeyRequest) (spi.DestroyDataKeyResponse, error) {
	return call(ctx, p, spi.DestroyDataKey, req)
}

func (p *pending) ListDataKeys(ctx context.Context, req spi.ListDataKeysRequest) (spi.ListDataKeysResponse, error) {
	return call(ctx, p, spi.ListDataKeys, req)
}

func (p *pending) RewrapDataKey(ctx context.Context, req spi.RewrapDataKeyRequest) (spi.RewrapDataKeyResponse, error) {
	return call(ctx, p, spi.RewrapDataKey, req)
}

func (p *pending) GetOwnership(ctx context.Context, req spi.GetOwnershipRequest) (spi.GetOwnershipResponse, error) {
	return call(ctx, p, spi.GetOwnership, req)
}

func (p *pending) ChangeOwnership(ctx context.Context, req spi.ChangeOwnershipRequest) (spi.ChangeOwnershipResponse, error) {
	return call(ctx, p, spi.ChangeOwnership, req)
}
