package model_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"

	"github.com/loomgate/loomgate/spi"
)

// forward hands every call to a store. Each broken guard overrides a method of it.
type forward struct{ inner *spi.Store }

func (f forward) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	return spi.Append(ctx, f.inner, req)
}

func (f forward) AppendBatch(ctx context.Context, req spi.AppendBatchRequest) (spi.AppendBatchResponse, error) {
	return spi.AppendBatch(ctx, f.inner, req)
}

func (f forward) AppendIfUnchanged(ctx context.Context, req spi.AppendIfUnchangedRequest) (spi.AppendIfUnchangedResponse, error) {
	return spi.AppendIfUnchanged(ctx, f.inner, req)
}

func (f forward) AcquireFence(ctx context.Context, req spi.AcquireFenceRequest) (spi.AcquireFenceResponse, error) {
	return spi.AcquireFence(ctx, f.inner, req)
}

func (f forward) AcquireFenceIf(ctx context.Context, req spi.AcquireFenceIfRequest) (spi.AcquireFenceIfResponse, error) {
	return spi.AcquireFenceIf(ctx, f.inner, req)
}

func (f forward) Read(ctx context.Context, req spi.ReadRequest) (spi.ReadResponse, error) {
	return spi.Read(ctx, f.inner, req)
}

func (f forward) Head(ctx context.Context, req spi.HeadRequest) (spi.HeadResponse, error) {
	return spi.Head(ctx, f.inner, req)
}

func (f forward) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	return spi.ListExecutions(ctx, f.inner, req)
}

func (f forward) CopyPrefix(ctx context.Context, req spi.CopyPrefixRequest) (spi.CopyPrefixResponse, error) {
	return spi.CopyPrefix(ctx, f.inner, req)
}

func (f forward) TruncatePrefixKeeping(ctx context.Context, req spi.TruncatePrefixKeepingRequest) (spi.TruncatePrefixKeepingResponse, error) {
	return spi.TruncatePrefixKeeping(ctx, f.inner, req)
}

func (f forward) DeleteExecution(ctx context.Context, req spi.DeleteExecutionRequest) (spi.DeleteExecutionResponse, error) {
	return spi.DeleteExecution(ctx, f.inner, req)
}

// head is where a log is now, to be out of date a moment later.
func (f forward) head(ctx context.Context, id spi.ExecutionID) spi.HeadResponse {
	at, _ := spi.Head(ctx, f.inner, spi.HeadRequest{Execution: id})
	runtime.Gosched()
	return at
}

// broken are guards that do not hold, by the sentence that each breaks.
var broken = map[string]func(forward) spi.EventBackend{
	"an append's token is not compared":                                      func(f forward) spi.EventBackend { return tokenIgnored{f} },
	"an append's token is compared first, and the append done later":         func(f forward) spi.EventBackend { return tokenComparedEarly{f} },
	"a conditional acquire looks for an answer first, and acquires later":    func(f forward) spi.EventBackend { return parkSeenEarly{f} },
	"a conditional acquire compares the token only":                          func(f forward) spi.EventBackend { return tokenOnly{f} },
	"an acquire hands out the token that is current":                         func(f forward) spi.EventBackend { return sameToken{f} },
	"an append that was sent again is stored again":                          func(f forward) spi.EventBackend { return duplicateStored{f} },
	"an append goes to whatever the head is":                                 func(f forward) spi.EventBackend { return headIgnored{f} },
	"a conflict tells the head that was expected":                            func(f forward) spi.EventBackend { return conflictLies{f} },
	"an append is acknowledged before it is stored, and lost":                func(f forward) spi.EventBackend { return &lost{forward: f} },
	"an append of several events is stored in pieces":                        func(f forward) spi.EventBackend { return torn{f} },
	"an append by a writer of the deleted log lands in the new one":          func(f forward) spi.EventBackend { return zombie{f} },
	"an append that happened is said not to have happened":                   func(f forward) spi.EventBackend { return &unavailable{forward: f} },
	"one append of a batch is acknowledged and not done":                     func(f forward) spi.EventBackend { return tornBatch{f} },
	"a batch is answered from a snapshot taken before it":                    func(f forward) spi.EventBackend { return staleBatch{f} },
	"an append of one who does not own the execution compares the head only": func(f forward) spi.EventBackend { return unchangedToken{f} },
	"a copy is stored in pieces":                                             func(f forward) spi.EventBackend { return copyInPieces{f} },
	"a copy takes more than was asked for":                                   func(f forward) spi.EventBackend { return copyMore{f} },
	"a truncation drops what was to be kept":                                 func(f forward) spi.EventBackend { return dropsKept{f} },
	"a deletion is acknowledged and not done":                                func(f forward) spi.EventBackend { return deletesNothing{f} },
	"a head is answered from what was read before":                           func(f forward) spi.EventBackend { return &staleHead{forward: f} },
	"a page leaves out its last execution":                                   func(f forward) spi.EventBackend { return shortPage{f} },
	"a page holds what was deleted":                                          func(f forward) spi.EventBackend { return &ghosts{forward: f} },
}

type tokenIgnored struct{ forward }

func (b tokenIgnored) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	if stale := req.Fence; stale > 0 {
		req.Fence = max(stale, b.head(ctx, req.Execution).Fence)
	}
	return b.forward.Append(ctx, req)
}

type tokenComparedEarly struct{ forward }

func (b tokenComparedEarly) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	at := b.head(ctx, req.Execution)
	res, err := b.forward.Append(ctx, req)
	if _, stale := errors.AsType[*spi.StaleFenceError](err); stale && req.Fence == at.Fence {
		req.Fence = b.head(ctx, req.Execution).Fence
		return b.forward.Append(ctx, req)
	}
	return res, err
}

type parkSeenEarly struct{ forward }

func (b parkSeenEarly) AcquireFenceIf(ctx context.Context, req spi.AcquireFenceIfRequest) (spi.AcquireFenceIfResponse, error) {
	at := b.head(ctx, req.Execution)
	log, err := b.Read(ctx, spi.ReadRequest{Execution: req.Execution, Limit: spi.MaxLimit})
	if err != nil {
		return spi.AcquireFenceIfResponse{}, err
	}
	parked := false
	for _, e := range log.Events {
		parked = e.Sequence == req.ParkSeq && e.Kind == spi.KindExecutionSuspended || parked && !e.Answering()
	}
	runtime.Gosched()
	if at.Fence != req.Fence || !parked || req.ParkSeq < log.Floor || req.Incarnation != 0 && req.Incarnation != log.Incarnation {
		return b.forward.AcquireFenceIf(ctx, req)
	}
	res, err := b.AcquireFence(ctx, spi.AcquireFenceRequest{Execution: req.Execution, Incarnation: req.Incarnation})
	return spi.AcquireFenceIfResponse{Acquired: err == nil, Token: res.Token}, err
}

type tokenOnly struct{ forward }

func (b tokenOnly) AcquireFenceIf(ctx context.Context, req spi.AcquireFenceIfRequest) (spi.AcquireFenceIfResponse, error) {
	if at := b.head(ctx, req.Execution); at.Fence != req.Fence || req.ParkSeq == 0 {
		return b.forward.AcquireFenceIf(ctx, req)
	}
	res, err := b.AcquireFence(ctx, spi.AcquireFenceRequest{Execution: req.Execution, Incarnation: req.Incarnation})
	return spi.AcquireFenceIfResponse{Acquired: err == nil, Token: res.Token}, err
}

type sameToken struct{ forward }

func (b sameToken) AcquireFence(ctx context.Context, req spi.AcquireFenceRequest) (spi.AcquireFenceResponse, error) {
	if at := b.head(ctx, req.Execution); at.Fence > 0 {
		return spi.AcquireFenceResponse{Token: at.Fence}, nil
	}
	return b.forward.AcquireFence(ctx, req)
}

type duplicateStored struct{ forward }

func (b duplicateStored) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	res, err := b.forward.Append(ctx, req)
	if err == nil && res.Duplicate {
		req.ExpectedHead, req.SinceSeq, req.Fence = spi.AnyHead, res.Head+1, b.head(ctx, req.Execution).Fence
		return b.forward.Append(ctx, req)
	}
	return res, err
}

type headIgnored struct{ forward }

func (b headIgnored) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	res, err := b.forward.Append(ctx, req)
	if conflict, ok := errors.AsType[*spi.ConflictError](err); ok && !conflict.Reused {
		req.ExpectedHead = spi.AnyHead
		return b.forward.Append(ctx, req)
	}
	return res, err
}

type conflictLies struct{ forward }

func (b conflictLies) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	res, err := b.forward.Append(ctx, req)
	if conflict, ok := errors.AsType[*spi.ConflictError](err); ok && !conflict.Reused {
		conflict.Head = req.ExpectedHead
	}
	return res, err
}

// every counts calls, and picks one of three.
type every struct {
	mu sync.Mutex
	n  int
}

func (e *every) third() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.n++
	return e.n%3 == 0
}

type lost struct {
	forward
	every
}

func (b *lost) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	at := b.head(ctx, req.Execution)
	if n := int64(len(req.Events)); at.Head > 0 && req.ExpectedHead == at.Head && req.Fence >= at.Fence && req.Incarnation == at.Incarnation && b.third() {
		return spi.AppendResponse{FirstSeq: at.Head + 1, Head: at.Head + n, Incarnation: at.Incarnation, Floor: at.Floor}, nil
	}
	return b.forward.Append(ctx, req)
}

type torn struct{ forward }

func (b torn) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	all := req.Events
	if len(all) == 1 || req.ExpectedHead == spi.AnyHead {
		return b.forward.Append(ctx, req)
	}
	req.Events = all[:1]
	res, err := b.forward.Append(ctx, req)
	if err != nil || res.Duplicate {
		return res, err
	}
	for range 100 { // while others do what they do
		runtime.Gosched()
	}
	req.ExpectedHead, req.SinceSeq, req.Incarnation, req.Events = res.Head, 0, res.Incarnation, all[1:]
	rest, err := b.forward.Append(ctx, req)
	rest.FirstSeq = res.FirstSeq
	return rest, err
}

type zombie struct{ forward }

func (b zombie) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	res, err := b.forward.Append(ctx, req)
	if now, ok := errors.AsType[*spi.IncarnationError](err); ok {
		req.Incarnation, req.ExpectedHead, req.SinceSeq = now.Current, spi.AnyHead, 0
		return b.forward.Append(ctx, req)
	}
	return res, err
}

type unavailable struct {
	forward
	every
}

func (b *unavailable) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	res, err := b.forward.Append(ctx, req)
	if err == nil && !res.Duplicate && b.third() {
		return spi.AppendResponse{}, &spi.UnavailableError{Cause: errors.New("it was done all the same")}
	}
	return res, err
}

type tornBatch struct{ forward }

func (b tornBatch) AppendBatch(ctx context.Context, req spi.AppendBatchRequest) (spi.AppendBatchResponse, error) {
	last := req.Item(len(req.Appends) - 1)
	at := b.head(ctx, last.Execution)
	if len(req.Appends) == 1 || at.Head == 0 || last.ExpectedHead != at.Head || last.Incarnation != at.Incarnation || last.Fence < at.Fence {
		return b.forward.AppendBatch(ctx, req)
	}
	req.Appends = req.Appends[:len(req.Appends)-1]
	res, err := b.forward.AppendBatch(ctx, req)
	done := spi.AppendResponse{FirstSeq: at.Head + 1, Head: at.Head + int64(len(last.Events)), Incarnation: at.Incarnation, Floor: at.Floor}
	return spi.AppendBatchResponse{Results: append(res.Results, spi.AppendResult{AppendResponse: done})}, err
}

type staleBatch struct{ forward }

func (b staleBatch) AppendBatch(ctx context.Context, req spi.AppendBatchRequest) (spi.AppendBatchResponse, error) {
	var before []spi.HeadResponse
	for _, item := range req.Appends {
		before = append(before, b.head(ctx, item.Execution))
	}
	res, err := b.forward.AppendBatch(ctx, req)
	for i := range res.Results {
		if conflict, ok := errors.AsType[*spi.ConflictError](res.Results[i].Err); ok {
			conflict.Head = max(0, before[i].Head-1)
		}
	}
	return res, err
}

type unchangedToken struct{ forward }

func (b unchangedToken) AppendIfUnchanged(ctx context.Context, req spi.AppendIfUnchangedRequest) (spi.AppendIfUnchangedResponse, error) {
	req.Fence = b.head(ctx, req.Execution).Fence
	return b.forward.AppendIfUnchanged(ctx, req)
}

type copyInPieces struct{ forward }

func (b copyInPieces) CopyPrefix(ctx context.Context, req spi.CopyPrefixRequest) (spi.CopyPrefixResponse, error) {
	all := req.N
	if at := b.head(ctx, req.To); at.Head > 0 || all < 2 || all > 6 {
		return b.forward.CopyPrefix(ctx, req)
	}
	req.N = 1
	if res, err := b.forward.CopyPrefix(ctx, req); err != nil {
		return res, err
	}
	runtime.Gosched()
	log, err := b.Read(ctx, spi.ReadRequest{Execution: req.From, After: 1, Until: all, Limit: spi.MaxLimit})
	if err != nil {
		return spi.CopyPrefixResponse{}, err
	}
	for i := range log.Events {
		log.Events[i].Sequence, log.Events[i].Fence = 0, 0
	}
	res, err := b.Append(ctx, spi.AppendRequest{Execution: req.To, ExpectedHead: 1, Events: log.Events})
	return spi.CopyPrefixResponse{Head: res.Head, Incarnation: res.Incarnation}, err
}

type copyMore struct{ forward }

func (b copyMore) CopyPrefix(ctx context.Context, req spi.CopyPrefixRequest) (spi.CopyPrefixResponse, error) {
	req.N++
	return b.forward.CopyPrefix(ctx, req)
}

type dropsKept struct{ forward }

func (b dropsKept) TruncatePrefixKeeping(ctx context.Context, req spi.TruncatePrefixKeepingRequest) (spi.TruncatePrefixKeepingResponse, error) {
	req.Keep = nil
	return b.forward.TruncatePrefixKeeping(ctx, req)
}

type deletesNothing struct{ forward }

func (b deletesNothing) DeleteExecution(ctx context.Context, req spi.DeleteExecutionRequest) (spi.DeleteExecutionResponse, error) {
	at := b.head(ctx, req.Execution)
	if at.Incarnation != req.Incarnation || at.Head == 0 {
		return b.forward.DeleteExecution(ctx, req)
	}
	return spi.DeleteExecutionResponse{Existed: true, Incarnation: at.Incarnation + 1}, nil
}

type staleHead struct {
	forward
	mu   sync.Mutex
	seen map[spi.ExecutionID]spi.HeadResponse
}

func (b *staleHead) Head(ctx context.Context, req spi.HeadRequest) (spi.HeadResponse, error) {
	now, err := b.forward.Head(ctx, req)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seen == nil {
		b.seen = map[spi.ExecutionID]spi.HeadResponse{}
	}
	before, ok := b.seen[req.Execution]
	b.seen[req.Execution] = now
	if ok {
		return before, err
	}
	return now, err
}

type shortPage struct{ forward }

func (b shortPage) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	res, err := b.forward.ListExecutions(ctx, req)
	if res.Next != "" {
		res.Executions = slices.Delete(res.Executions, 1, 2)
	}
	return res, err
}

type ghosts struct {
	forward
	mu   sync.Mutex
	seen []spi.ExecutionID
}

func (b *ghosts) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	res, err := b.forward.ListExecutions(ctx, req)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen = append(b.seen, res.Executions...)
	slices.Sort(b.seen)
	b.seen = slices.Compact(b.seen)
	if res.Next == "" {
		return res, err
	}
	res.Executions = slices.DeleteFunc(slices.Clone(b.seen), func(id spi.ExecutionID) bool {
		return string(id) <= req.After || string(id) > res.Next
	})
	return res, err
}
