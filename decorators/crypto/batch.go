package crypto

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/loomgate/loomgate/spi"
)

// atOnce bounds how many keys one batch gets at the same time.
const atOnce = 16

// A batch is the writes of an AppendBatch and what they have come to.
type batch struct {
	req     spi.AppendBatchRequest
	writes  []write
	results []spi.AppendResult
}

// AppendBatch answers for each append by itself: one that gets no key does not fail the
// others.
func (l *layer) AppendBatch(ctx context.Context, req spi.AppendBatchRequest) (spi.AppendBatchResponse, error) {
	b := batch{req, make([]write, len(req.Appends)), make([]spi.AppendResult, len(req.Appends))}
	pending := make([]int, len(req.Appends))
	for i := range pending {
		pending[i], b.writes[i] = i, writeOf(req.Item(i))
	}
	for try := 0; try < maxTries && len(pending) > 0; try++ {
		again, err := l.append(ctx, &b, pending)
		switch {
		case err != nil && try == 0:
			return spi.AppendBatchResponse{}, err
		case err != nil: // of the others something may have landed
			return b.answer(pending, spi.WithoutOp(err)), nil
		}
		pending = again
	}
	return b.answer(pending, &spi.UnavailableError{Cause: errDisturbed}), nil
}

// answer returns the results, with an error for those that have none yet.
func (b *batch) answer(pending []int, err error) spi.AppendBatchResponse {
	for _, i := range pending {
		b.results[i] = spi.AppendResult{Err: err}
	}
	return spi.AppendBatchResponse{Results: b.results}
}

// append does the appends that are pending, in one batch, and returns which of them are
// to be tried again.
func (l *layer) append(ctx context.Context, b *batch, pending []int) (again []int, _ error) {
	var part spi.AppendBatchRequest
	var seals []sealed
	var places []int
	for i, get := range l.keysFor(ctx, b, pending) {
		s, err := b.writes[i].seal(get.key, get.err)
		if is[*spi.InvalidArgumentError](err) { // malformed for a layer below
			return nil, err
		}
		if err != nil {
			b.results[i] = spi.AppendResult{Err: spi.WithoutOp(err)}
			continue
		}
		part.Appends = append(part.Appends, s.as(b.req.Item(i)))
		seals, places = append(seals, s), append(places, i)
	}
	if err := ctx.Err(); err != nil || len(places) == 0 {
		return nil, err
	}
	res, err := spi.AppendBatch(ctx, l.inner, part)
	if err != nil {
		return nil, err
	}
	for n, i := range places {
		result := res.Results[n]
		if result.Err != nil {
			var repeat bool
			if repeat, result.Err = l.settle(&b.writes[i], seals[n], result.Err); repeat {
				again = append(again, i)
			}
		}
		b.results[i] = result
	}
	return again, nil
}

// A gotKey is a key or why there is none.
type gotKey struct {
	key *dataKey
	err error
}

// keysFor yields the keys of the appends that are pending, in their order.
func (l *layer) keysFor(ctx context.Context, b *batch, pending []int) func(yield func(int, gotKey) bool) {
	keys := make([]gotKey, len(pending))
	var getting errgroup.Group
	getting.SetLimit(atOnce)
	for k, i := range pending {
		get := func() error {
			keys[k].key, keys[k].err = l.keyFor(ctx, b.writes[i])
			return nil
		}
		if _, there := l.keys.data.peek(b.writes[i].execution); there {
			_ = get()
		} else {
			getting.Go(get)
		}
	}
	_ = getting.Wait() // each has its own error
	return func(yield func(int, gotKey) bool) {
		for k, i := range pending {
			if !yield(i, keys[k]) {
				return
			}
		}
	}
}
