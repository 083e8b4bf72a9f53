package mutants

import (
	"context"
	"slices"
	"strings"

	"github.com/loomgate/loomgate/spi"
)

const (
	ownNames      = "isolation/tenants of any names that write the same ids each read and list their own"
	reachesOthers = "isolation/no name that a tenant can choose reaches what is another's"
)

var tenants = []Mutant{
	{
		"tenant prefix without a terminator",
		"What stands in front of a tenant's ids is the beginning of another tenant's.",
		ownNames,
		isolation(func(t tenant) methods { return withoutTerminator{t} }),
	},
	{
		"tenant error shows the inner id",
		"An error names the execution as the shared store knows it.",
		"isolation/no answer and no error tells a name that the tenant did not choose",
		isolation(func(t tenant) methods { return showsInnerID{t} }),
	},
	{
		"tenant sees the others' pins",
		"Ownership is shown as the shared store tells it.",
		"isolation/ownership cannot be changed through a view, and other tenants' pins are not seen",
		isolation(func(t tenant) methods { return seesPins{t} }),
	},
	{
		"receipt shows the others' pins",
		"The receipt of a page is that of the shared store.",
		"isolation/ownership cannot be changed through a view, and other tenants' pins are not seen",
		isolation(func(t tenant) methods { return receiptShowsPins{t} }),
	},
	{
		"inner cursor",
		"The cursor is that of the shared store.",
		ownNames,
		isolation(func(t tenant) methods { return innerCursor{t} }),
	},
	{
		"tenant left out after the limit",
		"The timers of others use the limit up.",
		"isolation/refs, timers, leases and keys of the same names are each tenant's own",
		isolation(func(t tenant) methods { return timersOfAll{t} }),
	},
	{
		"lease of all tenants",
		"Lease names have no scope.",
		"isolation/refs, timers, leases and keys of the same names are each tenant's own",
		isolation(func(t tenant) methods { return leaseOfAll{t} }),
	},
	{
		"sweep of all tenants",
		"A sweep takes the tombstones of the others.",
		"isolation/a tenant's answers and errors are the same whatever the others do (invariant 15)",
		isolation(func(t tenant) methods { return sweepOfAll{t} }),
	},
	{
		"tenant ids of any length",
		"A tenant may use up what the scope in front needs.",
		"isolation/a tenant may use ids of 512 bytes, and none of 513",
		isolation(func(t tenant) methods { return anyLength{t} }),
	},
	{
		"batch without a scope",
		"The appends of a batch go to the shared store as they are.",
		"isolation/a tenant's answers and errors are the same whatever the others do (invariant 15)",
		isolation(func(t tenant) methods { return batchWithoutScope{t} }),
	},
	{
		"deletion by an inner id",
		"One method forgets the scope, so a tenant that writes another's scope itself deletes what is not its own.",
		reachesOthers,
		isolation(func(t tenant) methods { return deletesByInnerID{t} }),
	},
	{
		"key by an inner name",
		"One method forgets the scope, so a tenant that writes another's scope itself gets a key that is not its own.",
		reachesOthers,
		isolation(func(t tenant) methods { return keyByInnerName{t} }),
	},
}

// A tenant is a sound view that can reach past itself.
type tenant struct {
	sound
	shared *spi.Store
	scope  spi.Scope
}

// withoutTerminator puts the tenant's bare name in front.
type withoutTerminator struct{ tenant }

func (m withoutTerminator) in() string {
	name, _, _ := spi.SplitScope(m.scope.Prefix())
	return string(name)
}

func (m withoutTerminator) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	req.Execution = spi.ExecutionID(m.in()) + req.Execution
	return spi.Append(ctx, m.shared, req)
}

func (m withoutTerminator) Read(ctx context.Context, req spi.ReadRequest) (spi.ReadResponse, error) {
	req.Execution = spi.ExecutionID(m.in()) + req.Execution
	return spi.Read(ctx, m.shared, req)
}

func (m withoutTerminator) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	req.Prefix, req.After = m.in()+req.Prefix, m.in()+req.After
	res, err := spi.ListExecutions(ctx, m.shared, req)
	for i, id := range res.Executions {
		res.Executions[i] = spi.ExecutionID(strings.TrimPrefix(string(id), m.in()))
	}
	res.Next = strings.TrimPrefix(res.Next, m.in())
	return res, err
}

type showsInnerID struct{ tenant }

func (m showsInnerID) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	req.Execution = spi.ExecutionID(m.scope.Prefix()) + req.Execution
	return spi.Append(ctx, m.shared, req)
}

type seesPins struct{ tenant }

func (m seesPins) GetOwnership(ctx context.Context, req spi.GetOwnershipRequest) (spi.GetOwnershipResponse, error) {
	return spi.GetOwnership(ctx, m.shared, req)
}

type receiptShowsPins struct{ tenant }

func (m receiptShowsPins) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	res, err := m.sound.ListExecutions(ctx, req)
	inner, _ := spi.ListExecutions(ctx, m.shared, spi.ListExecutionsRequest{Limit: 1})
	res.Receipt = inner.Receipt
	return res, err
}

type innerCursor struct{ tenant }

func (m innerCursor) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	req.After = strings.TrimPrefix(req.After, m.scope.Prefix())
	res, err := m.sound.ListExecutions(ctx, req)
	if res.Next != "" {
		res.Next = m.scope.Prefix() + res.Next
	}
	return res, err
}

type timersOfAll struct{ tenant }

func (m timersOfAll) DueTimers(ctx context.Context, req spi.DueTimersRequest) (spi.DueTimersResponse, error) {
	prefix := m.scope.Prefix() + req.Prefix
	req.Prefix = ""
	res, err := spi.DueTimers(ctx, m.shared, req)
	res.Timers = slices.DeleteFunc(res.Timers, func(t spi.Timer) bool { return !strings.HasPrefix(string(t.Execution), prefix) })
	for i := range res.Timers {
		res.Timers[i].Execution, _ = spi.Unscoped(m.scope, res.Timers[i].Execution)
	}
	return res, err
}

type leaseOfAll struct{ tenant }

func (m leaseOfAll) AcquireLease(ctx context.Context, req spi.AcquireLeaseRequest) (spi.AcquireLeaseResponse, error) {
	return spi.AcquireLease(ctx, m.shared, req)
}

type sweepOfAll struct{ tenant }

func (m sweepOfAll) SweepTombstones(ctx context.Context, req spi.SweepTombstonesRequest) (spi.SweepTombstonesResponse, error) {
	return spi.SweepTombstones(ctx, m.shared, req)
}

type anyLength struct{ tenant }

func (m anyLength) Head(ctx context.Context, req spi.HeadRequest) (spi.HeadResponse, error) {
	req.Execution = spi.ExecutionID(m.scope.Prefix()) + req.Execution
	return spi.Head(ctx, m.shared, req)
}

type batchWithoutScope struct{ tenant }

func (m batchWithoutScope) AppendBatch(ctx context.Context, req spi.AppendBatchRequest) (spi.AppendBatchResponse, error) {
	return spi.AppendBatch(ctx, m.shared, req)
}

type deletesByInnerID struct{ tenant }

func (m deletesByInnerID) DeleteExecution(ctx context.Context, req spi.DeleteExecutionRequest) (spi.DeleteExecutionResponse, error) {
	return spi.DeleteExecution(ctx, m.shared, req)
}

type keyByInnerName struct{ tenant }

func (m keyByInnerName) GetDataKey(ctx context.Context, req spi.GetDataKeyRequest) (spi.GetDataKeyResponse, error) {
	return spi.GetDataKey(ctx, m.shared, req)
}
