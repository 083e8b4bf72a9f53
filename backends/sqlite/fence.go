package sqlite

import (
	"context"

	"github.com/loomgate/loomgate/spi"
)

func (s *store) AcquireFence(ctx context.Context, req spi.AcquireFenceRequest) (spi.AcquireFenceResponse, error) {
	return on(ctx, s.write, (*tx).execution, req.Route, req.Execution, func(t *tx, e *execution) (res spi.AcquireFenceResponse, err error) {
		if err := e.state().CheckIncarnation(req.Incarnation); err != nil {
			return res, err
		}
		e.fence++
		return spi.AcquireFenceResponse{Token: e.fence}, t.save(e)
	})
}

func (s *store) AcquireFenceIf(ctx context.Context, req spi.AcquireFenceIfRequest) (spi.AcquireFenceIfResponse, error) {
	return on(ctx, s.write, (*tx).execution, req.Route, req.Execution, func(t *tx, e *execution) (res spi.AcquireFenceIfResponse, err error) {
		if err := e.state().CheckIncarnation(req.Incarnation); err != nil {
			return res, err
		}
		if e.fence == req.Fence {
			if res.Acquired, err = t.parked(e, req.ParkSeq); err != nil {
				return res, err
			}
		}
		if res.Acquired {
			e.fence++
			err = t.save(e)
		}
		res.Token = e.fence
		return res, err
	})
}

// parked reports whether there is an unanswered park at seq, not below the floor.
// What answers is judged here, not when it was written: a node that has learned of
// a kind knows better than one that had not.
func (t *tx) parked(e *execution, seq int64) (parked bool, err error) {
	if seq < e.floor || seq > e.head {
		return false, nil
	}
	err = t.each(`SELECT kind, kernel FROM events WHERE log = ? AND sequence >= ? ORDER BY sequence`,
		[]any{*e.log, seq}, func(scan scan) (bool, error) {
			var kind string
			var kernel bool
			if err := scan(&kind, &kernel); err != nil {
				return false, err
			}
			if !parked { // the first row
				parked = kind == spi.KindExecutionSuspended
				return parked, nil
			}
			parked = !spi.IsAnswering(kind, kernel)
			return parked, nil
		})
	return parked, err
}
