package resume

import (
	"context"
	"errors"

	"github.com/loomgate/loomgate/runtime/events"
	"github.com/loomgate/loomgate/spi"
)

// An attempt is a resume on its way.
type attempt struct {
	resumer   *Resumer
	req       Request
	at        int64  // the park's sequence
	state     *State // as last read
	expect    int64  // the token that the next acquire expects
	principal string
	id        spi.EventID // of the resume, so that it lands once however often it is sent
}

// try acquires and resumes. It returns nothing if somebody else has acquired the
// execution while its park stayed open.
func (a *attempt) try(ctx context.Context) (*Run, error) {
	token, err := a.acquire(ctx)
	if err == nil && token > 0 {
		var run *Run
		if run, err = a.land(ctx, token); run != nil {
			return run, nil
		}
		if stale, ok := errors.AsType[*spi.StaleFenceError](err); ok {
			a.expect, err = stale.Current, nil
		}
	}
	if err != nil {
		return nil, a.refused(err)
	}
	return nil, a.read(ctx)
}

// acquire is last of all that can refuse, because an acquire is never undone. It
// returns 0 if the token has moved, and expects the one that the store returned from
// then on. The park stays the same: a rival that acquired may have resumed it since,
// which the store sees by its answer and not by its token.
func (a *attempt) acquire(ctx context.Context) (token int64, err error) {
	store := a.resumer.store
	if !store.Offered().Has(spi.CapAcquireFenceIf) {
		res, err := spi.AcquireFence(ctx, store, spi.AcquireFenceRequest{Execution: a.req.Execution, Incarnation: a.state.Incarnation})
		return res.Token, a.lost(ctx, err)
	}
	res, err := spi.AcquireFenceIf(ctx, store, spi.AcquireFenceIfRequest{
		Execution: a.req.Execution, Incarnation: a.state.Incarnation, Fence: a.expect, ParkSeq: a.at,
	})
	if err != nil {
		return 0, a.lost(ctx, err)
	}
	if !res.Acquired {
		a.expect = res.Token
		return 0, nil
	}
	return res.Token, nil
}

// lost turns the lost answer of an acquire into a token that has moved, since it may
// have: nothing resolves it but to acquire again.
func (a *attempt) lost(ctx context.Context, err error) error {
	if _, ambiguous := errors.AsType[*spi.AmbiguousError](err); !ambiguous {
		return err
	}
	head, err := spi.Head(ctx, a.resumer.store, spi.HeadRequest{Execution: a.req.Execution})
	a.expect = head.Fence
	return err
}

// land appends the answer under a token, at the head of the state that it is made
// from. Events that answer nothing may come in between, and move the head.
func (a *attempt) land(ctx context.Context, token int64) (*Run, error) {
	since := a.state.Head + 1
	for range patience {
		if err := a.read(ctx); err != nil {
			return nil, err
		}
		batch, err := a.events()
		if err != nil {
			return nil, err
		}
		run := &Run{resumer: a.resumer, state: a.state, token: token}
		err = run.write(ctx, since, batch)
		if err == nil {
			return run, nil
		}
		if conflict, ok := errors.AsType[*spi.ConflictError](err); !ok || conflict.Reused {
			return nil, a.refused(err)
		}
	}
	return nil, &ContendedError{a.req.Execution, patience}
}

// patience is how many events of others may come in between, one after another.
const patience = 32

// events returns the answer as it is appended.
func (a *attempt) events() ([]spi.Event, error) {
	answer, err := a.state.answer(a.req)
	if err != nil {
		return nil, err
	}
	payload := events.Resumed{Waits: answer.Waits}
	if payload.Value, err = marshal(answer.Value); err != nil {
		return nil, err
	}
	resumed, err := events.New(a.id, spi.KindExecutionResumed, payload)
	if a.principal != "" {
		resumed.Metadata = map[string]string{MetadataPrincipal: a.principal}
	}
	return append(answer.Companions[:len(answer.Companions):len(answer.Companions)], resumed), err
}

// read brings the state up to date, and refuses if the park is no longer open.
func (a *attempt) read(ctx context.Context) error {
	if err := a.resumer.advance(ctx, a.state); err != nil {
		return a.refused(err)
	}
	return a.state.parkedAt(a.at)
}

// refused is err, or a [RefusedError] if the execution has been deleted since.
func (a *attempt) refused(err error) error {
	if _, deleted := errors.AsType[*spi.IncarnationError](err); deleted {
		return &RefusedError{a.req.Execution, ReasonNotSuspended}
	}
	return err
}
