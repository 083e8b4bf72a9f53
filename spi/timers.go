package spi

import (
	"context"
	"fmt"
	"math"
	"time"
)

// TimerBackend is what a store can do with timers: rows that say when an execution
// is to be woken. The store fires nothing; somebody polls.
//
// A row is known by its execution and its time. The execution need not exist;
// deleting it removes its timers.
type TimerBackend interface {
	// ScheduleTimer stores a row, or lands on the one that has the same execution
	// and time. A redrive row keeps its flag and attempt when a plain one lands on
	// it, and a plain row takes them over from a redrive one. Either way the row
	// has a new version, so that whoever saw the old one cannot complete it.
	// Repeating a call is safe. Whoever parks an execution calls it.
	ScheduleTimer(context.Context, ScheduleTimerRequest) (ScheduleTimerResponse, error)

	// DueTimers returns the rows whose time has come by the store's own clock, by
	// time and then by execution id, of the slots that a page would list. It is no page: rows that nobody completes are
	// returned again. Shards that could not be asked are named in Missing, and the
	// rows of the others are returned all the same. A poller calls it; there may be
	// several.
	DueTimers(context.Context, DueTimersRequest) (DueTimersResponse, error)

	// CompleteTimer removes a row if it still has the version that the caller saw.
	// A row that is gone, or has been scheduled again since, is no error. The poller
	// calls it when what the timer wakes is done (invariant 14).
	CompleteTimer(context.Context, CompleteTimerRequest) (CompleteTimerResponse, error)
}

// TimerMethods is the whole group.
type TimerMethods interface{ TimerBackend }

// Requests and responses of the group.
type (
	// A Timer is a row.
	Timer struct {
		Execution ExecutionID
		WakeAt    time.Time // whole microseconds, required; comes back in UTC

		// Redrive marks a row that is handed to a re-driver instead of waking a
		// wait; Attempt counts from 0.
		Redrive bool
		Attempt int

		// Version is the store's, from 1; different each time the row is scheduled.
		Version int64
	}

	// A ScheduleTimerRequest holds a row without a version.
	ScheduleTimerRequest struct {
		Route Route
		Timer Timer
	}

	// A ScheduleTimerResponse holds the row as it is now.
	ScheduleTimerResponse struct{ Timer Timer }

	// A DueTimersRequest asks for rows that are due.
	DueTimersRequest struct {
		Prefix string // only executions whose id starts with it
		Limit  int    // 1 to MaxLimit

		// ExcludeRedrive leaves out redrive rows, before the limit is applied: a
		// poller that cannot handle them is not starved by them.
		ExcludeRedrive bool
	}

	// A DueTimersResponse holds rows that are due.
	DueTimersResponse struct {
		Now     time.Time // the store's clock, in whole microseconds; with several shards, the earliest
		Timers  []Timer
		Missing []string // shards that did not answer
	}

	// A CompleteTimerRequest names a row and the version that was seen.
	CompleteTimerRequest struct {
		Route     Route
		Execution ExecutionID
		WakeAt    time.Time
		Version   int64
	}

	// A CompleteTimerResponse says whether this call removed the row.
	CompleteTimerResponse struct{ Completed bool }
)

// Validate implements the rules of [ScheduleTimerRequest].
func (r ScheduleTimerRequest) Validate() error {
	t := r.Timer
	if err := first(r.Route.validate(), t.Execution.Validate(), validWake(t.WakeAt), notNegative("attempt", int64(t.Attempt))); err != nil {
		return err
	}
	if t.Attempt > math.MaxInt32 {
		return &InvalidArgumentError{"attempt", fmt.Sprintf("is %d, more than %d", t.Attempt, math.MaxInt32)}
	}
	if t.Attempt > 0 && !t.Redrive {
		return &InvalidArgumentError{"attempt", "is set on a timer that is no redrive"}
	}
	if t.Version != 0 {
		return &InvalidArgumentError{"version", "is set, but the store assigns it"}
	}
	return nil
}

// Validate implements the rules of [DueTimersRequest].
func (r DueTimersRequest) Validate() error {
	return first(validName("prefix", r.Prefix, 0, MaxID), validLimit(r.Limit))
}

// Validate implements the rules of [CompleteTimerRequest].
func (r CompleteTimerRequest) Validate() error {
	return first(r.Route.validate(), r.Execution.Validate(), validWake(r.WakeAt), positive("version", r.Version))
}

func validWake(t time.Time) error {
	if t.IsZero() {
		return &InvalidArgumentError{"wake time", "is missing"}
	}
	if rule := timeFault(t); rule != "" {
		return &InvalidArgumentError{"wake time", rule}
	}
	return nil
}

// ScheduleTimer stores a row; see [TimerBackend.ScheduleTimer].
func ScheduleTimer(ctx context.Context, s *Store, req ScheduleTimerRequest) (ScheduleTimerResponse, error) {
	return call(ctx, s, CapTimers, "ScheduleTimer", req, methods.ScheduleTimer)
}

// DueTimers returns the rows whose time has come; see [TimerBackend.DueTimers].
func DueTimers(ctx context.Context, s *Store, req DueTimersRequest) (DueTimersResponse, error) {
	return call(ctx, s, CapTimers, "DueTimers", req, methods.DueTimers)
}

// CompleteTimer removes a row; see [TimerBackend.CompleteTimer].
func CompleteTimer(ctx context.Context, s *Store, req CompleteTimerRequest) (CompleteTimerResponse, error) {
	return call(ctx, s, CapTimers, "CompleteTimer", req, methods.CompleteTimer)
}
