// Package control keeps the gateway's own records: tenants, API keys and what admins
// did.
//
// They are events of one execution, of a tenant that no customer can be, in the same
// store as everything else. That log is the truth and the audit trail in one: who did
// what, when and from where. A gateway reads it as it grows, keeps a copy of what it
// comes to and answers from the copy.
//
//   - A change appends at the head that it was decided on. Of two that would exclude
//     each other, such as two creations of one name, one lands, and the other is
//     decided again.
//   - A writer sees its own change at once, every other gateway with its next look.
//   - While the log cannot be read, the copy serves for [Options.MaxStaleness]. Past
//     that every question fails with [spi.UnavailableError]: nobody is let in on the
//     strength of what may have been revoked.
//   - A log that is not the one that was read before, such as one restored from a
//     backup, is read anew from its beginning.
//
// # Records of a newer gateway
//
// Each event holds a version. One whose kind or version this build does not know stays
// in the log, and counts for nothing here: it lets nobody in. One that takes something
// away says so in the part that every version shares (restricts, with the tenant or
// API key that it is about); they are then refused until the gateway is upgraded. And
// nothing is created over such an event ([OutdatedError]), since it may have taken a
// name.
package control

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/loomgate/loomgate/spi"
)

// Where the records are.
const (
	// Tenant is whose execution the records are. No customer can have the name.
	Tenant spi.TenantName = reserved + "control"

	// Execution is the execution that holds them.
	Execution spi.ExecutionID = "control"

	// reserved begins the names that no customer can have.
	reserved = "loomgate/"
)

// Options say how a copy is kept. The zero Options are the defaults.
type Options struct {
	Poll         time.Duration // how often the log is looked at; 1 s by default
	MaxStaleness time.Duration // how old the copy may get; 5 min by default
	Log          *slog.Logger  // nil for none
}

// readTimeout is how long one read of the log may take: a shard that hangs is as good
// as down.
const readTimeout = 5 * time.Second

// Records is a copy of the records, and the way to change them. It is safe for
// concurrent use.
type Records struct {
	store   *spi.Store
	options Options

	// What tests change.
	pause time.Duration // before the second try of an append
	prove func(key *storedKey, secret string) bool

	writing lock // for a whole change: those of one gateway do not race each other
	reading lock // for folded; taken after writing
	folded  *state

	copy atomic.Pointer[snapshot] // nil until the log was read
}

// A snapshot is what questions are answered from. It never changes.
type snapshot struct {
	state
	asOf time.Time // what was in the log by then is in it
}

// New returns the records in a store, which is the view that [Tenant] has. It reads
// nothing: until the first [Records.Refresh], or Run, every question fails.
func New(store *spi.Store, o Options) *Records {
	o.Poll = cmp.Or(o.Poll, time.Second)
	o.MaxStaleness = cmp.Or(o.MaxStaleness, 5*time.Minute)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Records{store: store, options: o, pause: firstPause, prove: (*storedKey).provenBy, writing: newLock(), reading: newLock(), folded: newState()}
}

// Run keeps the copy up to date until ctx ends.
func (r *Records) Run(ctx context.Context) {
	ticker := time.NewTicker(r.options.Poll)
	defer ticker.Stop()
	failing := false
	for {
		err := r.Refresh(ctx)
		if ctx.Err() != nil {
			return
		}
		switch {
		case err != nil && !failing:
			r.options.Log.ErrorContext(ctx, "the control records cannot be read; the last copy serves for a while", "error", err, "max_staleness", r.options.MaxStaleness)
		case err == nil && failing:
			r.options.Log.InfoContext(ctx, "the control records can be read again")
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Refresh brings the copy up to date.
func (r *Records) Refresh(ctx context.Context) error {
	if err := r.reading.take(ctx); err != nil {
		return err
	}
	defer r.reading.release()
	asOf := time.Now()
	err := r.read(ctx, r.folded)
	if errors.Is(err, errAnotherLog) {
		r.options.Log.WarnContext(ctx, "the control records are not those that were read before; reading them anew")
		anew := newState()
		if err = r.read(ctx, anew); err == nil {
			r.folded = anew
		}
	}
	if err != nil {
		return err
	}
	r.publish(asOf)
	return nil
}

// publish makes what is folded the copy. It is called under reading.
func (r *Records) publish(asOf time.Time) {
	if c := r.copy.Load(); c != nil && c.asOf.After(asOf) {
		asOf = c.asOf
	}
	r.copy.Store(&snapshot{r.folded.snapshot(), asOf})
}

// pageSize is how many events are read at once.
const pageSize = 2_000

var errAnotherLog = errors.New("the log does not go on where it was read to")

// read folds what is new. It begins at the last event that it knows: if that is not
// there, this is another log.
func (r *Records) read(ctx context.Context, s *state) error {
	for {
		page, err := r.readPage(ctx, max(0, s.head-1))
		if err != nil {
			return err
		}
		events := page.Events
		if s.head > 0 {
			if len(events) == 0 || events[0].Sequence != s.head || events[0].ID != s.last {
				return errAnotherLog
			}
			events = events[1:]
		}
		s.incarnation = page.Incarnation
		for i := range events {
			if err := s.apply(&events[i]); err != nil {
				return err
			}
		}
		if !page.More {
			return nil
		}
	}
}

func (r *Records) readPage(ctx context.Context, after int64) (spi.ReadResponse, error) {
	within, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	page, err := spi.Read(within, r.store, spi.ReadRequest{Execution: Execution, After: after, Limit: pageSize})
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		err = &spi.UnavailableError{Cause: err}
	}
	return page, err
}

// Ready returns nil if questions are answered, or the [spi.UnavailableError] that they
// fail with.
func (r *Records) Ready() error {
	_, err := r.current()
	return err
}

// current returns the copy while it is good.
func (r *Records) current() (*snapshot, error) {
	c := r.copy.Load()
	if c == nil {
		return nil, &spi.UnavailableError{Cause: errNeverRead}
	}
	if age := time.Since(c.asOf); age > r.options.MaxStaleness {
		return nil, &spi.UnavailableError{Cause: &StaleError{age}}
	}
	return c, nil
}

// lock is a mutex that a context ends the wait for.
type lock chan struct{}

func newLock() lock { return make(lock, 1) }

func (l lock) take(ctx context.Context) error {
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l lock) release() { <-l }
