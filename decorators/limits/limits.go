// Package limits holds the caller of a store to limits: requests, bytes and events a
// second, calls in flight, executions stored.
//
//	account := limits.NewAccount(limits.Limits{RequestsPerSecond: 500, ...})
//	store, err := limits.New(inner, account)
//
// An [Account] is whoever is limited, such as a tenant, and outlives the stores that are
// made over it: one a request is fine. What is over a limit is refused with an
// [spi.ThrottledError] before anything is done.
//
// Fences, timers and leases are counted apart from everything else: each limit on
// requests and on calls in flight holds for the one and, once more, for the other. A flood
// of appends never keeps its own writer from renewing a lease.
package limits

import (
	"fmt"
	"math"

	"github.com/loomgate/loomgate/spi"
)

// Unlimited is no limit. Any lower one is a limit, also if nothing ever reaches it.
const Unlimited int64 = math.MaxInt64

// Limits are what an account may use; 0 refuses everything of the kind. The rates allow a
// burst of one second's worth.
type Limits struct {
	// RequestsPerSecond is how many calls there may be. A batch is one.
	RequestsPerSecond int64

	// BytesPerSecond is how much may be appended and read, by [spi.Event.Size], and
	// listed, by the lengths of the names. A call that begins within it may go over:
	// what comes next waits until that is made up for.
	BytesPerSecond int64

	// EventsPerSecond is how many events may be appended and copied; likewise.
	EventsPerSecond int64

	// InFlight is how many calls may be under way.
	InFlight int64

	// Executions is how many executions may be stored. Whatever would start another is
	// refused; those that are there go on.
	Executions int64
}

// None limits nothing.
var None = Limits{Unlimited, Unlimited, Unlimited, Unlimited, Unlimited}

// Validate returns an [spi.InvalidArgumentError] if a limit is negative.
func (l Limits) Validate() error {
	for _, f := range []struct {
		name string
		n    int64
	}{
		{"requests per second", l.RequestsPerSecond},
		{"bytes per second", l.BytesPerSecond},
		{"events per second", l.EventsPerSecond},
		{"in flight", l.InFlight},
		{"executions", l.Executions},
	} {
		if f.n < 0 {
			return &spi.InvalidArgumentError{Field: "limit of " + f.name, Rule: fmt.Sprintf("is %d, which is negative", f.n)}
		}
	}
	return nil
}

// limited is one account's way to a store.
type limited struct {
	inner   *spi.Store
	account *Account
}

// New returns inner, limited. It offers what inner does.
func New(inner *spi.Store, account *Account) (*spi.Store, error) {
	if account == nil {
		return nil, &spi.InvalidArgumentError{Field: "account", Rule: "is missing"}
	}
	return spi.Wrap(&limited{inner, account}, inner)
}

// Caps offers what inner does.
func (l *limited) Caps(inner spi.Caps) spi.Caps { return inner }
func (l *limited) Layer() spi.Layer             { return spi.Layer{Name: "limits"} }
