package memory

import (
	"context"

	"github.com/loomgate/loomgate/spi"
)

func (s *store) AcquireFence(ctx context.Context, req spi.AcquireFenceRequest) (spi.AcquireFenceResponse, error) {
	return on(ctx, &s.mu, s.execution, req.Route, req.Execution, func(e *execution) (res spi.AcquireFenceResponse, err error) {
		if err := e.state().CheckIncarnation(req.Incarnation); err != nil {
			return res, err
		}
		s.plant(e)
		e.fence++
		return spi.AcquireFenceResponse{Token: e.fence}, nil
	})
}

func (s *store) AcquireFenceIf(ctx context.Context, req spi.AcquireFenceIfRequest) (spi.AcquireFenceIfResponse, error) {
	return on(ctx, &s.mu, s.execution, req.Route, req.Execution, func(e *execution) (res spi.AcquireFenceIfResponse, err error) {
		if err := e.state().CheckIncarnation(req.Incarnation); err != nil {
			return res, err
		}
		if res.Acquired = e.fence == req.Fence && e.parked(req.ParkSeq); res.Acquired {
			e.fence++
		}
		res.Token = e.fence
		return res, nil
	})
}

// parked reports whether there is an unanswered park at seq, not below the floor.
func (e *execution) parked(seq int64) bool {
	if seq < e.floor || seq > e.head() {
		return false
	}
	park := e.after(seq - 1)
	return e.events[park].Kind == spi.KindExecutionSuspended && !spi.AnyAnswering(e.events[park+1:])
}
