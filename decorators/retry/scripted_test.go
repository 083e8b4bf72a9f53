package retry_test

import (
	"context"
	"sync"

	"github.com/loomgate/loomgate/spi"
)

// scripted is a store that answers calls with errors by script, and past its end, or
// where the script has none, with success.
type scripted struct {
	mu      sync.Mutex
	script  []error
	calls   int
	batches []spi.AppendBatchRequest

	// whole is the script of what batches answer as a whole; those do not use up
	// the other one.
	whole []error

	// each has the script of an execution's appends in batches, in place of script.
	each map[spi.ExecutionID][]error

	acquireIf spi.AcquireFenceIfResponse
	create    spi.CreateDataKeyResponse
	append    spi.AppendResponse
}

func (s *scripted) next() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	return pop(&s.script)
}

func pop(script *[]error) error {
	if len(*script) == 0 {
		return nil
	}
	err := (*script)[0]
	*script = (*script)[1:]
	return err
}

func (s *scripted) open() (*spi.Store, error) {
	return spi.Open(spi.Backend{Events: s, Timers: s, Refs: s, Leases: s, DataKeys: s, Ownership: s})
}

// AppendBatch uses up one error for each append.
func (s *scripted) AppendBatch(_ context.Context, req spi.AppendBatchRequest) (res spi.AppendBatchResponse, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	s.batches = append(s.batches, req)
	if err := pop(&s.whole); err != nil {
		return res, err
	}
	for _, a := range req.Appends {
		var r spi.AppendResult
		if script, ok := s.each[a.Execution]; ok {
			r.Err = pop(&script)
			s.each[a.Execution] = script
		} else {
			r.Err = pop(&s.script)
		}
		if r.Err == nil {
			r.AppendResponse = s.append
		}
		res.Results = append(res.Results, r)
	}
	return res, nil
}

func (s *scripted) Append(context.Context, spi.AppendRequest) (spi.AppendResponse, error) {
	err := s.next()
	return s.append, err
}

func (s *scripted) AcquireFenceIf(context.Context, spi.AcquireFenceIfRequest) (spi.AcquireFenceIfResponse, error) {
	err := s.next()
	return s.acquireIf, err
}

func (s *scripted) CreateDataKey(context.Context, spi.CreateDataKeyRequest) (spi.CreateDataKeyResponse, error) {
	err := s.next()
	return s.create, err
}

func (s *scripted) AppendIfUnchanged(context.Context, spi.AppendIfUnchangedRequest) (res spi.AppendIfUnchangedResponse, _ error) {
	return res, s.next()
}

func (s *scripted) CopyPrefix(context.Context, spi.CopyPrefixRequest) (res spi.CopyPrefixResponse, _ error) {
	return res, s.next()
}

func (s *scripted) AcquireFence(context.Context, spi.AcquireFenceRequest) (res spi.AcquireFenceResponse, _ error) {
	return res, s.next()
}

func (s *scripted) TruncatePrefixKeeping(context.Context, spi.TruncatePrefixKeepingRequest) (res spi.TruncatePrefixKeepingResponse, _ error) {
	return res, s.next()
}

func (s *scripted) DeleteExecution(context.Context, spi.DeleteExecutionRequest) (res spi.DeleteExecutionResponse, _ error) {
	return res, s.next()
}

func (s *scripted) SweepTombstones(context.Context, spi.SweepTombstonesRequest) (res spi.SweepTombstonesResponse, _ error) {
	return res, s.next()
}

func (s *scripted) Read(context.Context, spi.ReadRequest) (res spi.ReadResponse, _ error) {
	return res, s.next()
}

func (s *scripted) Head(context.Context, spi.HeadRequest) (res spi.HeadResponse, _ error) {
	return res, s.next()
}

func (s *scripted) ListExecutions(context.Context, spi.ListExecutionsRequest) (res spi.ListExecutionsResponse, _ error) {
	return res, s.next()
}

func (s *scripted) ScheduleTimer(context.Context, spi.ScheduleTimerRequest) (res spi.ScheduleTimerResponse, _ error) {
	return res, s.next()
}

func (s *scripted) DueTimers(context.Context, spi.DueTimersRequest) (res spi.DueTimersResponse, _ error) {
	return res, s.next()
}

func (s *scripted) CompleteTimer(context.Context, spi.CompleteTimerRequest) (res spi.CompleteTimerResponse, _ error) {
	return res, s.next()
}

func (s *scripted) PutRef(context.Context, spi.PutRefRequest) (res spi.PutRefResponse, _ error) {
	return res, s.next()
}

func (s *scripted) PromoteRef(context.Context, spi.PromoteRefRequest) (res spi.PromoteRefResponse, _ error) {
	return res, s.next()
}

func (s *scripted) DeleteRef(context.Context, spi.DeleteRefRequest) (res spi.DeleteRefResponse, _ error) {
	return res, s.next()
}

func (s *scripted) GetRef(context.Context, spi.GetRefRequest) (res spi.GetRefResponse, _ error) {
	return res, s.next()
}

func (s *scripted) ListRefs(context.Context, spi.ListRefsRequest) (res spi.ListRefsResponse, _ error) {
	return res, s.next()
}

func (s *scripted) RefLineage(context.Context, spi.RefLineageRequest) (res spi.RefLineageResponse, _ error) {
	return res, s.next()
}

func (s *scripted) AcquireLease(context.Context, spi.AcquireLeaseRequest) (res spi.AcquireLeaseResponse, _ error) {
	return res, s.next()
}

func (s *scripted) RenewLease(context.Context, spi.RenewLeaseRequest) (res spi.RenewLeaseResponse, _ error) {
	return res, s.next()
}

func (s *scripted) ReleaseLease(context.Context, spi.ReleaseLeaseRequest) (res spi.ReleaseLeaseResponse, _ error) {
	return res, s.next()
}

func (s *scripted) GetDataKey(context.Context, spi.GetDataKeyRequest) (res spi.GetDataKeyResponse, _ error) {
	return res, s.next()
}

func (s *scripted) DestroyDataKey(context.Context, spi.DestroyDataKeyRequest) (res spi.DestroyDataKeyResponse, _ error) {
	return res, s.next()
}

func (s *scripted) RewrapDataKey(context.Context, spi.RewrapDataKeyRequest) (res spi.RewrapDataKeyResponse, _ error) {
	return res, s.next()
}

func (s *scripted) ListDataKeys(context.Context, spi.ListDataKeysRequest) (res spi.ListDataKeysResponse, _ error) {
	return res, s.next()
}

func (s *scripted) GetOwnership(context.Context, spi.GetOwnershipRequest) (res spi.GetOwnershipResponse, _ error) {
	return res, s.next()
}

func (s *scripted) ChangeOwnership(context.Context, spi.ChangeOwnershipRequest) (res spi.ChangeOwnershipResponse, _ error) {
	return res, s.next()
}
