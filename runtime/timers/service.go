// Package timers wakes executions whose time has come, and tries again what others
// could not do because they were contended.
//
// A row of the store's timers is either a plain wake, which answers a wait, or a
// redrive row, which is handed to the registered re-drivers. The store's clock decides
// what is due. A lease keeps all nodes but one from polling; it is a hint, and two that
// poll at once do no harm.
package timers

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/loomgate/loomgate/runtime/resume"
	"github.com/loomgate/loomgate/spi"
)

// Config says how a [Service] works. The zero value of a field stands for what is
// said there.
type Config struct {
	// Holder tells this node from others in the lease. It is required where the
	// store offers leases.
	Holder string

	// Lease is the name of the lease: "loomgate/timers" and the prefix.
	Lease spi.LeaseName

	LeaseTTL time.Duration // 30 s
	Interval time.Duration // between two polls: 250 ms
	Limit    int           // rows of one poll: 500
	Prefix   string        // only executions whose id starts with it

	// Redrive switches redrive rows on: they are written and handled. Switch it on
	// when every node of a fleet knows them.
	Redrive bool

	Backoff Backoff
	Now     func() time.Time // this node's clock: time.Now

	// Body is given each execution that was resumed. It should hand one that takes
	// long to a goroutine of its own: the poll goes on when it returns. nil leaves
	// what was resumed to recovery.
	Body func(context.Context, *resume.Run)

	// OnError is told what went wrong with one row or one poll, and is not told of
	// the same exhaustion twice.
	OnError func(error)
}

// A Service polls timers. Its methods are for one goroutine, but Register and
// ScheduleRedrive, which are safe beside the others.
type Service struct {
	resumer   *resume.Resumer
	store     *spi.Store
	config    Config
	redrivers redrivers
	waiting   waiting
}

// New returns a service over the store of a resumer, which must offer timers.
func New(resumer *resume.Resumer, config Config) (*Service, error) {
	store := resumer.Store()
	if !store.Offered().Has(spi.CapTimers) {
		return nil, &spi.UnsupportedError{Cap: spi.CapTimers}
	}
	if store.Offered().Has(spi.CapLeases) && config.Holder == "" {
		return nil, &spi.InvalidArgumentError{Field: "holder", Rule: "is missing"}
	}
	defaults(&config)
	return &Service{resumer: resumer, store: store, config: config, waiting: waiting{}}, nil
}

func defaults(c *Config) {
	set(&c.Lease, spi.LeaseName("loomgate/timers"+c.Prefix))
	set(&c.LeaseTTL, 30*time.Second)
	set(&c.Interval, 250*time.Millisecond)
	set(&c.Limit, 500)
	set(&c.Backoff.Base, 200*time.Millisecond)
	set(&c.Backoff.Cap, 30*time.Second)
	set(&c.Backoff.MaxAttempts, 8)
	if c.Backoff.Random == nil {
		c.Backoff.Random = rand.Float64
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Body == nil {
		c.Body = func(context.Context, *resume.Run) {}
	}
	if c.OnError == nil {
		c.OnError = func(error) {}
	}
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Run polls until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	ticker := time.NewTicker(s.config.Interval)
	defer ticker.Stop()
	for {
		if err := s.Poll(ctx); err != nil && ctx.Err() == nil {
			s.config.OnError(err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// Poll does what is due now, once, if this node has or gets the lease. What goes
// wrong with a row goes to OnError, and the row stays.
func (s *Service) Poll(ctx context.Context) error {
	if held, err := s.lease(ctx); !held {
		return err
	}
	due, err := spi.DueTimers(ctx, s.store, spi.DueTimersRequest{
		Prefix: s.config.Prefix, Limit: s.config.Limit, ExcludeRedrive: !s.handlesRedrive(),
	})
	if err != nil {
		return err
	}
	renewed := s.config.Now()
	for _, row := range due.Timers {
		if err := ctx.Err(); err != nil {
			return err
		}
		if s.config.Now().Sub(renewed) > s.config.LeaseTTL/3 {
			if held, err := s.lease(ctx); !held {
				return err
			}
			renewed = s.config.Now()
		}
		if err := s.fire(ctx, row, due.Now); err != nil {
			s.config.OnError(err)
		}
	}
	return nil
}

// lease reports whether this node may poll.
func (s *Service) lease(ctx context.Context) (bool, error) {
	if !s.store.Offered().Has(spi.CapLeases) {
		return true, nil
	}
	_, err := spi.AcquireLease(ctx, s.store, spi.AcquireLeaseRequest{Name: s.config.Lease, Holder: s.config.Holder, TTL: s.config.LeaseTTL})
	if _, held := errors.AsType[*spi.LeaseHeldError](err); held {
		return false, nil
	}
	return err == nil, err
}

func (s *Service) fire(ctx context.Context, row spi.Timer, now time.Time) error {
	if row.Redrive {
		if !s.handlesRedrive() {
			return nil // of a store that returns them all the same
		}
		return s.redrive(ctx, row, now)
	}
	return s.wake(ctx, row)
}

// retire removes a row, and reports whether it was this call that did.
func (s *Service) retire(ctx context.Context, row spi.Timer) (bool, error) {
	delete(s.waiting, keyOf(row))
	res, err := spi.CompleteTimer(ctx, s.store, spi.CompleteTimerRequest{Execution: row.Execution, WakeAt: row.WakeAt, Version: row.Version})
	return res.Completed, err
}
