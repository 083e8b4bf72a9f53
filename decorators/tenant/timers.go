package tenant

import (
	"context"

	"github.com/loomgate/loomgate/spi"
)

func (v *view) ScheduleTimer(ctx context.Context, req spi.ScheduleTimerRequest) (res spi.ScheduleTimerResponse, err error) {
	if err = in(v, executionID, &req.Timer.Execution); err != nil {
		return res, err
	}
	if res, err = spi.ScheduleTimer(ctx, v.shared, req); err != nil {
		return res, v.outError(err)
	}
	return res, unsure(out(v, executionID, &res.Timer.Execution))
}

func (v *view) DueTimers(ctx context.Context, req spi.DueTimersRequest) (res spi.DueTimersResponse, err error) {
	if err = v.inPrefix(&req.Prefix); err != nil {
		return res, err
	}
	if res, err = spi.DueTimers(ctx, v.shared, req); err != nil {
		return res, v.outError(err)
	}
	for i := range res.Timers {
		if err = out(v, executionID, &res.Timers[i].Execution); err != nil {
			return res, err
		}
	}
	return res, nil
}

func (v *view) CompleteTimer(ctx context.Context, req spi.CompleteTimerRequest) (res spi.CompleteTimerResponse, err error) {
	if err = in(v, executionID, &req.Execution); err != nil {
		return res, err
	}
	res, err = spi.CompleteTimer(ctx, v.shared, req)
	return res, v.outError(err)
}
