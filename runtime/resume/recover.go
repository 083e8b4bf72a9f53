package resume

import (
	"context"
	"errors"
	"time"

	"github.com/loomgate/loomgate/spi"
)

// Recover takes over an execution that runs and whose owner is gone. There is no park
// to make the acquire depend on; in its place are the execution's lease, which a
// living owner holds, and a look at its status once the lease is there. The run is
// nil if the execution does not run, or if somebody holds the lease.
func (r *Resumer) Recover(ctx context.Context, id spi.ExecutionID, holder string, ttl time.Duration) (*Run, error) {
	lease, err := r.Hold(ctx, id, holder, ttl)
	if _, held := errors.AsType[*spi.LeaseHeldError](err); held {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	run, err := r.takeOver(ctx, id)
	if run == nil {
		err = errors.Join(err, r.LetGo(ctx, id, lease))
	}
	return run, err
}

func (r *Resumer) takeOver(ctx context.Context, id spi.ExecutionID) (*Run, error) {
	state, err := r.Fold(ctx, id)
	if err != nil || state.Status != Running {
		return nil, err
	}
	run := &Run{resumer: r, state: state}
	if r.store.Offered().Has(spi.CapAcquireFence) {
		res, err := spi.AcquireFence(ctx, r.store, spi.AcquireFenceRequest{Execution: id, Incarnation: state.Incarnation})
		if err != nil {
			return nil, err
		}
		run.token = res.Token
	}
	if err := r.advance(ctx, state); err != nil || state.Status != Running {
		return nil, err
	}
	return run, nil
}

// Hold takes or prolongs the lease that says that an execution's owner lives. Owners
// of bodies that take long call it, well before ttl is over.
func (r *Resumer) Hold(ctx context.Context, id spi.ExecutionID, holder string, ttl time.Duration) (token int64, err error) {
	res, err := settled(ctx, r.store, spi.AcquireLease, spi.AcquireLeaseRequest{Name: spi.LeaseName(id), Holder: holder, TTL: ttl})
	return res.Token, err
}

// LetGo gives the lease up.
func (r *Resumer) LetGo(ctx context.Context, id spi.ExecutionID, token int64) error {
	return retry(ctx, r.store, spi.ReleaseLease, spi.ReleaseLeaseRequest{Name: spi.LeaseName(id), Token: token})
}
