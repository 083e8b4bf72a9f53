package transfer

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/loomgate/loomgate/spi"
)

// raiseFences acquires each execution whose events carry a token until its own is no
// lower, as it was where the events come from: whoever acquires it next gets a higher one.
// It comes last, since an acquire makes the tokens of events yet to come stale.
func (im *importer) raiseFences(ctx context.Context) error {
	if !im.store.Offered().Has(spi.CapAcquireFence) {
		return nil // nobody can acquire anything there
	}
	raise := func(ctx context.Context, id spi.ExecutionID) error { return im.raiseFence(ctx, id, im.fences[id]) }
	for err := range ahead(ctx, im.opts.InFlight, slices.Values(slices.Sorted(maps.Keys(im.fences))), raise) {
		if err != nil {
			return fmt.Errorf("every event is stored, but the tokens are not raised: %w", err)
		}
	}
	return ctx.Err()
}

// raiseFence may acquire once too often where the answer to an acquire was lost, which
// does no harm.
func (im *importer) raiseFence(ctx context.Context, id spi.ExecutionID, token int64) error {
	return im.opts.Retry.do(ctx, func() error {
		now, err := spi.Head(ctx, im.store, spi.HeadRequest{Execution: id})
		for current := now.Fence; err == nil && current < token; {
			var res spi.AcquireFenceResponse
			res, err = spi.AcquireFence(ctx, im.store, spi.AcquireFenceRequest{Execution: id})
			current = res.Token
		}
		return err
	})
}
