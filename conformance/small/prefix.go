package small

import (
	"context"
	"slices"

	"github.com/loomgate/loomgate/spi"
)

// prefix is one tenant's view of a store that tenants share.
type prefix struct {
	inner *spi.Store
	scope spi.Scope
}

// Prefix returns inner as a tenant sees it: every name goes in with the tenant's
// scope in front and comes out without.
func Prefix(tenant spi.TenantName, inner *spi.Store) (*spi.Store, error) {
	scope, err := spi.ScopeOf(tenant)
	if err != nil {
		return nil, err
	}
	return spi.Wrap(&prefix{inner, scope}, inner)
}

// Caps leaves out what only an operator may do.
func (p *prefix) Caps(inner spi.Caps) spi.Caps { return inner &^ spi.CapChangeOwnership }
func (p *prefix) Layer() spi.Layer             { return spi.Layer{Name: "prefix", Isolates: true} }

// execution, ref, lease and owner check a name as the tenant chose it, and put the
// scope in front.
func (p *prefix) execution(id *spi.ExecutionID) (err error) {
	*id, err = spi.Scoped(p.scope, "execution id", *id)
	return err
}

func (p *prefix) ref(n *spi.RefName) (err error) {
	*n, err = spi.Scoped(p.scope, "ref name", *n)
	return err
}

func (p *prefix) lease(n *spi.LeaseName) (err error) {
	*n, err = spi.Scoped(p.scope, "lease name", *n)
	return err
}

func (p *prefix) owner(o *spi.KeyOwner) (err error) {
	*o, err = spi.Scoped(p.scope, "key owner", *o)
	return err
}

// page puts the scope in front of a listing's prefix and cursor.
func (p *prefix) page(prefix, after *string) {
	*prefix, *after = p.scope.Prefix()+*prefix, p.scope.Prefix()+*after
}

// out takes the scope off a name that the inner store answered.
func out[N ~string](p *prefix, name *N) { *name, _ = spi.Unscoped(p.scope, *name) }

// err takes the scope out of an error.
func (p *prefix) err(err error) error {
	return spi.RenameError(err, func(name string) string {
		outer, _ := spi.Unscoped(p.scope, name)
		return outer
	})
}

// receipt leaves out the pins, which are other tenants' business.
func (p *prefix) receipt(r spi.Receipt) spi.Receipt {
	for i, s := range r {
		r[i].Slots = slices.DeleteFunc(slices.Clone(s.Slots), func(r spi.SlotRange) bool { return r.First >= spi.FirstPin })
		if n := len(r[i].Slots); n > 0 {
			last := &r[i].Slots[n-1]
			last.Last = min(last.Last, spi.FirstPin-1)
		}
	}
	return r
}

func (p *prefix) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	if err := p.execution(&req.Execution); err != nil {
		return spi.AppendResponse{}, err
	}
	res, err := spi.Append(ctx, p.inner, req)
	return res, p.err(err)
}

func (p *prefix) Read(ctx context.Context, req spi.ReadRequest) (spi.ReadResponse, error) {
	if err := p.execution(&req.Execution); err != nil {
		return spi.ReadResponse{}, err
	}
	res, err := spi.Read(ctx, p.inner, req)
	return res, p.err(err)
}

func (p *prefix) Head(ctx context.Context, req spi.HeadRequest) (spi.HeadResponse, error) {
	if err := p.execution(&req.Execution); err != nil {
		return spi.HeadResponse{}, err
	}
	res, err := spi.Head(ctx, p.inner, req)
	return res, p.err(err)
}

func (p *prefix) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	p.page(&req.Prefix, &req.After)
	res, err := spi.ListExecutions(ctx, p.inner, req)
	for i := range res.Executions {
		out(p, &res.Executions[i])
	}
	out(p, &res.Next)
	res.Receipt = p.receipt(res.Receipt)
	return res, p.err(err)
}

func (p *prefix) AppendBatch(ctx context.Context, req spi.AppendBatchRequest) (spi.AppendBatchResponse, error) {
	req.Appends = slices.Clone(req.Appends)
	for i := range req.Appends {
		if err := p.execution(&req.Appends[i].Execution); err != nil {
			return spi.AppendBatchResponse{}, err
		}
	}
	res, err := spi.AppendBatch(ctx, p.inner, req)
	for i := range res.Results {
		res.Results[i].Err = p.err(res.Results[i].Err)
	}
	return res, p.err(err)
}

func (p *prefix) AcquireFence(ctx context.Context, req spi.AcquireFenceRequest) (spi.AcquireFenceResponse, error) {
	if err := p.execution(&req.Execution); err != nil {
		return spi.AcquireFenceResponse{}, err
	}
	res, err := spi.AcquireFence(ctx, p.inner, req)
	return res, p.err(err)
}

func (p *prefix) AcquireFenceIf(ctx context.Context, req spi.AcquireFenceIfRequest) (spi.AcquireFenceIfResponse, error) {
	if err := p.execution(&req.Execution); err != nil {
		return spi.AcquireFenceIfResponse{}, err
	}
	res, err := spi.AcquireFenceIf(ctx, p.inner, req)
	return res, p.err(err)
}

func (p *prefix) AppendIfUnchanged(ctx context.Context, req spi.AppendIfUnchangedRequest) (spi.AppendIfUnchangedResponse, error) {
	if err := p.execution(&req.Execution); err != nil {
		return spi.AppendIfUnchangedResponse{}, err
	}
	res, err := spi.AppendIfUnchanged(ctx, p.inner, req)
	return res, p.err(err)
}

func (p *prefix) CopyPrefix(ctx context.Context, req spi.CopyPrefixRequest) (spi.CopyPrefixResponse, error) {
	if err := p.execution(&req.From); err != nil {
		return spi.CopyPrefixResponse{}, err
	}
	if err := p.execution(&req.To); err != nil {
		return spi.CopyPrefixResponse{}, err
	}
	res, err := spi.CopyPrefix(ctx, p.inner, req)
	return res, p.err(err)
}

func (p *prefix) TruncatePrefixKeeping(ctx context.Context, req spi.TruncatePrefixKeepingRequest) (spi.TruncatePrefixKeepingResponse, error) {
	if err := p.execution(&req.Execution); err != nil {
		return spi.TruncatePrefixKeepingResponse{}, err
	}
	res, err := spi.TruncatePrefixKeeping(ctx, p.inner, req)
	return res, p.err(err)
}

func (p *prefix) DeleteExecution(ctx context.Context, req spi.DeleteExecutionRequest) (spi.DeleteExecutionResponse, error) {
	if err := p.execution(&req.Execution); err != nil {
		return spi.DeleteExecutionResponse{}, err
	}
	res, err := spi.DeleteExecution(ctx, p.inner, req)
	return res, p.err(err)
}

func (p *prefix) SweepTombstones(ctx context.Context, req spi.SweepTombstonesRequest) (spi.SweepTombstonesResponse, error) {
	req.Prefix = p.scope.Prefix() + req.Prefix
	res, err := spi.SweepTombstones(ctx, p.inner, req)
	return res, p.err(err)
}

func (p *prefix) ScheduleTimer(ctx context.Context, req spi.ScheduleTimerRequest) (spi.ScheduleTimerResponse, error) {
	if err := p.execution(&req.Timer.Execution); err != nil {
		return spi.ScheduleTimerResponse{}, err
	}
	res, err := spi.ScheduleTimer(ctx, p.inner, req)
	out(p, &res.Timer.Execution)
	return res, p.err(err)
}

func (p *prefix) DueTimers(ctx context.Context, req spi.DueTimersRequest) (spi.DueTimersResponse, error) {
	req.Prefix = p.scope.Prefix() + req.Prefix
	res, err := spi.DueTimers(ctx, p.inner, req)
	for i := range res.Timers {
		out(p, &res.Timers[i].Execution)
	}
	return res, p.err(err)
}

func (p *prefix) CompleteTimer(ctx context.Context, req spi.CompleteTimerRequest) (spi.CompleteTimerResponse, error) {
	if err := p.execution(&req.Execution); err != nil {
		return spi.CompleteTimerResponse{}, err
	}
	res, err := spi.CompleteTimer(ctx, p.inner, req)
	return res, p.err(err)
}

func (p *prefix) refOut(r spi.Ref) spi.Ref {
	out(p, &r.Name)
	out(p, &r.Execution)
	return r
}

func (p *prefix) PutRef(ctx context.Context, req spi.PutRefRequest) (spi.PutRefResponse, error) {
	if err := p.ref(&req.Name); err != nil {
		return spi.PutRefResponse{}, err
	}
	if err := p.execution(&req.Execution); err != nil {
		return spi.PutRefResponse{}, err
	}
	res, err := spi.PutRef(ctx, p.inner, req)
	return spi.PutRefResponse{Ref: p.refOut(res.Ref)}, p.err(err)
}

func (p *prefix) GetRef(ctx context.Context, req spi.GetRefRequest) (spi.GetRefResponse, error) {
	if err := p.ref(&req.Name); err != nil {
		return spi.GetRefResponse{}, err
	}
	res, err := spi.GetRef(ctx, p.inner, req)
	return spi.GetRefResponse{Ref: p.refOut(res.Ref)}, p.err(err)
}

func (p *prefix) DeleteRef(ctx context.Context, req spi.DeleteRefRequest) (spi.DeleteRefResponse, error) {
	if err := p.ref(&req.Name); err != nil {
		return spi.DeleteRefResponse{}, err
	}
	res, err := spi.DeleteRef(ctx, p.inner, req)
	return res, p.err(err)
}

func (p *prefix) ListRefs(ctx context.Context, req spi.ListRefsRequest) (spi.ListRefsResponse, error) {
	p.page(&req.Prefix, &req.After)
	res, err := spi.ListRefs(ctx, p.inner, req)
	for i := range res.Refs {
		res.Refs[i] = p.refOut(res.Refs[i])
	}
	out(p, &res.Next)
	res.Receipt = p.receipt(res.Receipt)
	return res, p.err(err)
}

func (p *prefix) PromoteRef(ctx context.Context, req spi.PromoteRefRequest) (spi.PromoteRefResponse, error) {
	if err := p.ref(&req.Name); err != nil {
		return spi.PromoteRefResponse{}, err
	}
	if err := p.execution(&req.Execution); err != nil {
		return spi.PromoteRefResponse{}, err
	}
	res, err := spi.PromoteRef(ctx, p.inner, req)
	return spi.PromoteRefResponse{Ref: p.refOut(res.Ref)}, p.err(err)
}

func (p *prefix) RefLineage(ctx context.Context, req spi.RefLineageRequest) (spi.RefLineageResponse, error) {
	if err := p.ref(&req.Name); err != nil {
		return spi.RefLineageResponse{}, err
	}
	res, err := spi.RefLineage(ctx, p.inner, req)
	for i := range res.Refs {
		res.Refs[i] = p.refOut(res.Refs[i])
	}
	return res, p.err(err)
}

func (p *prefix) AcquireLease(ctx context.Context, req spi.AcquireLeaseRequest) (spi.AcquireLeaseResponse, error) {
	if err := p.lease(&req.Name); err != nil {
		return spi.AcquireLeaseResponse{}, err
	}
	res, err := spi.AcquireLease(ctx, p.inner, req)
	return res, p.err(err)
}

func (p *prefix) RenewLease(ctx context.Context, req spi.RenewLeaseRequest) (spi.RenewLeaseResponse, error) {
	if err := p.lease(&req.Name); err != nil {
		return spi.RenewLeaseResponse{}, err
	}
	res, err := spi.RenewLease(ctx, p.inner, req)
	return res, p.err(err)
}

func (p *prefix) ReleaseLease(ctx context.Context, req spi.ReleaseLeaseRequest) (spi.ReleaseLeaseResponse, error) {
	if err := p.lease(&req.Name); err != nil {
		return spi.ReleaseLeaseResponse{}, err
	}
	res, err := spi.ReleaseLease(ctx, p.inner, req)
	return res, p.err(err)
}

func (p *prefix) CreateDataKey(ctx context.Context, req spi.CreateDataKeyRequest) (spi.CreateDataKeyResponse, error) {
	if err := p.owner(&req.Key.Owner); err != nil {
		return spi.CreateDataKeyResponse{}, err
	}
	res, err := spi.CreateDataKey(ctx, p.inner, req)
	out(p, &res.Key.Owner)
	return res, p.err(err)
}

func (p *prefix) GetDataKey(ctx context.Context, req spi.GetDataKeyRequest) (spi.GetDataKeyResponse, error) {
	if err := p.owner(&req.Owner); err != nil {
		return spi.GetDataKeyResponse{}, err
	}
	res, err := spi.GetDataKey(ctx, p.inner, req)
	out(p, &res.Key.Owner)
	return res, p.err(err)
}

func (p *prefix) DestroyDataKey(ctx context.Context, req spi.DestroyDataKeyRequest) (spi.DestroyDataKeyResponse, error) {
	if err := p.owner(&req.Owner); err != nil {
		return spi.DestroyDataKeyResponse{}, err
	}
	res, err := spi.DestroyDataKey(ctx, p.inner, req)
	return res, p.err(err)
}

func (p *prefix) ListDataKeys(ctx context.Context, req spi.ListDataKeysRequest) (spi.ListDataKeysResponse, error) {
	p.page(&req.Prefix, &req.After)
	res, err := spi.ListDataKeys(ctx, p.inner, req)
	for i := range res.Keys {
		out(p, &res.Keys[i].Owner)
	}
	out(p, &res.Next)
	res.Receipt = p.receipt(res.Receipt)
	return res, p.err(err)
}

func (p *prefix) RewrapDataKey(ctx context.Context, req spi.RewrapDataKeyRequest) (spi.RewrapDataKeyResponse, error) {
	if err := p.owner(&req.Owner); err != nil {
		return spi.RewrapDataKeyResponse{}, err
	}
	res, err := spi.RewrapDataKey(ctx, p.inner, req)
	return res, p.err(err)
}

// GetOwnership leaves out the pins of other tenants.
func (p *prefix) GetOwnership(ctx context.Context, req spi.GetOwnershipRequest) (spi.GetOwnershipResponse, error) {
	res, err := spi.GetOwnership(ctx, p.inner, req)
	tenant, _, _ := spi.SplitScope(p.scope.Prefix())
	for i, s := range res.Shards {
		res.Shards[i].Slots = slices.DeleteFunc(s.Slots, func(r spi.SlotRecord) bool { return r.Tenant != "" && r.Tenant != tenant })
	}
	return res, p.err(err)
}

// ChangeOwnership is not offered.
func (p *prefix) ChangeOwnership(context.Context, spi.ChangeOwnershipRequest) (spi.ChangeOwnershipResponse, error) {
	return spi.ChangeOwnershipResponse{}, &spi.UnsupportedError{Cap: spi.CapChangeOwnership}
}
