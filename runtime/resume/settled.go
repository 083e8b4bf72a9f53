package resume

import (
	"context"
	"errors"

	"github.com/loomgate/loomgate/spi"
)

// resolutions is how often a write whose answer was lost is sent again to find out.
const resolutions = 4

// settled does a write that may be repeated, until its outcome is known or it has
// been sent often enough.
func settled[Q, R any](ctx context.Context, store *spi.Store, method func(context.Context, *spi.Store, Q) (R, error), req Q) (res R, err error) {
	for range resolutions {
		res, err = method(ctx, store, req)
		if _, ambiguous := errors.AsType[*spi.AmbiguousError](err); !ambiguous {
			return res, err
		}
	}
	return res, err
}

// retry is settled for a write whose answer does not matter.
func retry[Q, R any](ctx context.Context, store *spi.Store, method func(context.Context, *spi.Store, Q) (R, error), req Q) error {
	_, err := settled(ctx, store, method, req)
	return err
}
