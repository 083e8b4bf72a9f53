package api

import (
	"context"
	"errors"

	"github.com/loomgate/loomgate/spi"
)

// An Audience is who is told of an error.
type Audience struct {
	// Operator may hear of shards and slots. A tenant reads that something is
	// unavailable.
	Operator bool

	// Incident notes an error of which something is held back, for an operator's
	// log, and returns what to find it by there.
	Incident func(whole error) string
}

// Mask returns what of err its audience may be told, as errors of package spi.
// Whatever is held back is an [spi.InternalError] around an [IncidentError].
func (a Audience) Mask(err error) error {
	if err == nil {
		return nil
	}
	return a.mask(err, err)
}

// mask returns what of err may be told; whole is what to note if that is not all.
func (a Audience) mask(err, whole error) error {
	for e := err; e != nil; e = errors.Unwrap(e) {
		switch e := e.(type) { //nolint:errorlint // the loop unwraps
		case *spi.OpError:
			return &spi.OpError{Op: e.Op, Err: a.mask(e.Err, whole)}
		case *spi.AmbiguousError:
			return &spi.AmbiguousError{Execution: e.Execution, Cause: a.mask(e.Cause, whole)}
		case *spi.UnavailableError:
			return &spi.UnavailableError{Cause: a.mask(e.Cause, whole)}
		case *spi.ShardError:
			return a.maskShard(e, whole)

		case *spi.InvalidArgumentError, *spi.UnsupportedError, *spi.NotFoundError, *spi.ConflictError,
			*spi.RefVersionError, *spi.LeaseHeldError, *spi.LeaseLostError, *spi.KeyMismatchError,
			*spi.StaleFenceError, *spi.IncarnationError, *spi.ShreddedError, *spi.TooLargeError,
			*spi.TruncatedError, *spi.RangeError, *spi.ThrottledError:
			return e

		case *spi.MisroutedError, *spi.SlotMovingError, *spi.CoverageError:
			if a.Operator {
				return e
			}
			return &spi.UnavailableError{Cause: a.hide(whole)}
		case *spi.OwnershipError, *spi.CompatibilityError, *spi.LayerOrderError, *spi.EmbeddingError:
			if a.Operator {
				return e
			}
			return a.hide(whole)

		case *spi.InternalError:
			return a.hide(whole)
		}
		if e == context.Canceled || e == context.DeadlineExceeded { //nolint:errorlint // the loop unwraps
			return e
		}
	}
	return a.hide(whole)
}

// maskShard drops a shard's name for a tenant. What the tenant could make nothing
// of is a shard that is unavailable.
func (a Audience) maskShard(e *spi.ShardError, whole error) error {
	told := a.mask(e.Err, whole)
	if a.Operator {
		return &spi.ShardError{Shard: e.Shard, Err: told}
	}
	_, internal := told.(*spi.InternalError)                                      //nolint:errorlint // mask returns nothing wrapped
	if internal || told == context.Canceled || told == context.DeadlineExceeded { //nolint:errorlint // likewise
		return &spi.UnavailableError{Cause: told}
	}
	return told
}

func (a Audience) hide(whole error) error {
	return &spi.InternalError{Cause: &IncidentError{a.Incident(whole)}}
}
