package mutants

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/loomgate/loomgate/conformance"
	"github.com/loomgate/loomgate/spi"
)

var decorators = []Mutant{
	{
		"dropped optional method",
		"The decorator says that it offers what its inner store does, and one method was forgotten.",
		"decorator/alone/claims/a method that is offered never says that it is unsupported",
		decorator(func(s sound) methods { return droppedMethod{s} }),
	},
	{
		"claims more than its inner store",
		"The decorator offers every method that it has, whatever is below.",
		"decorator/without AppendBatch/claims/a method that is offered never says that it is unsupported",
		func(t *testing.T) {
			t.Run("decorator", func(t *testing.T) {
				conformance.Decorator(t, conformance.PerTest(opener(nothing)), func(inner ...*spi.Store) (*spi.Store, error) {
					d := sound{Inner: inner[0]}
					return spi.Open(spi.Backend{Events: d, Timers: d, Refs: d, Leases: d, DataKeys: d, Ownership: d})
				})
			})
		},
	},
	{
		"tokens counted in the decorator",
		"The decorator hands out tokens of its own, from 1 again when it starts again.",
		"decorator/alone/fences/a token is still there when the store is opened again",
		decorator(func(s sound) methods { return &countsTokens{sound: s} }),
	},
	{
		"conflict tried again",
		"The decorator repeats an append at the head that a conflict told.",
		"decorator/alone/appends/an append at another head is a conflict that tells the head and stores nothing",
		decorator(func(s sound) methods { return conflictTriedAgain{s} }),
	},
	{
		"errors as text",
		"The decorator makes errors of its own of those that it gets.",
		"decorator/alone/claims/an error names the method and the execution as the caller knows it",
		decorator(func(s sound) methods { return errorsWithoutType{s} }),
	},
	{
		"forgotten field",
		"The decorator makes the request anew, and leaves the incarnation out.",
		"decorator/alone/deletions/a writer of the old incarnation does not write the new one",
		decorator(func(s sound) methods { return forgottenField{s} }),
	},
	{
		"batch without the last result",
		"The decorator answers a batch with a result too few.",
		"decorator/alone/batches/a batch has one result for each append, in the caller's order",
		decorator(func(s sound) methods { return resultTooFew{s} }),
	},
}

type droppedMethod struct{ sound }

func (droppedMethod) CopyPrefix(context.Context, spi.CopyPrefixRequest) (spi.CopyPrefixResponse, error) {
	return spi.CopyPrefixResponse{}, &spi.UnsupportedError{Cap: spi.CapCopyPrefix}
}

type countsTokens struct {
	sound
	mu     sync.Mutex
	tokens map[spi.ExecutionID]int64
}

func (m *countsTokens) AcquireFence(ctx context.Context, req spi.AcquireFenceRequest) (spi.AcquireFenceResponse, error) {
	if _, err := m.sound.AcquireFence(ctx, req); err != nil {
		return spi.AcquireFenceResponse{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tokens == nil {
		m.tokens = map[spi.ExecutionID]int64{}
	}
	m.tokens[req.Execution]++
	return spi.AcquireFenceResponse{Token: m.tokens[req.Execution]}, nil
}

type conflictTriedAgain struct{ sound }

func (m conflictTriedAgain) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	for {
		res, err := m.sound.Append(ctx, req)
		conflict, ok := errors.AsType[*spi.ConflictError](err)
		if !ok || conflict.Reused {
			return res, err
		}
		req.ExpectedHead, req.SinceSeq = conflict.Head, 0
	}
}

// asText returns an error that only says what err says.
func asText(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(err.Error())
}

type forgottenField struct{ sound }

func (m forgottenField) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	return m.sound.Append(ctx, spi.AppendRequest{
		Route: req.Route, Execution: req.Execution, ExpectedHead: req.ExpectedHead,
		Fence: req.Fence, SinceSeq: req.SinceSeq, KeyID: req.KeyID, Events: req.Events,
	})
}

type resultTooFew struct{ sound }

func (m resultTooFew) AppendBatch(ctx context.Context, req spi.AppendBatchRequest) (spi.AppendBatchResponse, error) {
	res, err := m.sound.AppendBatch(ctx, req)
	res.Results = res.Results[:max(len(res.Results), 1)-1]
	return res, err
}
