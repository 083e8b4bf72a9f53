// Package retry sends a request again when it can be settled or done that way: after
// an [spi.AmbiguousError], if the method makes it safe to, and after an error that
// says that nothing has changed and may be over soon. Tries are bounded in number and
// in time, with growing random waits between them.
//
// Which method is sent again after what is a table in docs/retry.md, to which a test
// holds this package.
package retry

import (
	"math/rand/v2"
	"time"

	"github.com/loomgate/loomgate/spi"
)

// Options bound the tries. A zero field has its default.
type Options struct {
	Tries  int           // of one call, the first included; 8
	Within time.Duration // no try begins later than that after the first one failed; 10 s

	// The wait after the n-th try is random: up to Base, doubled n-1 times, but no
	// more than Cap.
	Base time.Duration // 10 ms
	Cap  time.Duration // 1 s

	// Jitter returns a wait from 0 to longest. Many goroutines call it at once.
	// Without one, all waits are equally likely.
	Jitter func(longest time.Duration) time.Duration
}

type retry struct {
	inner   *spi.Store
	options Options
}

// New returns inner with its requests sent again. A negative option is an
// [spi.InvalidArgumentError].
func New(inner *spi.Store, o Options) (*spi.Store, error) {
	if o.Tries < 0 || o.Within < 0 || o.Base < 0 || o.Cap < 0 {
		return nil, &spi.InvalidArgumentError{Field: "options", Rule: "has a negative bound"}
	}
	o.Tries = orDefault(o.Tries, 8)
	o.Within = orDefault(o.Within, 10*time.Second)
	o.Base = orDefault(o.Base, 10*time.Millisecond)
	o.Cap = orDefault(o.Cap, time.Second)
	if o.Jitter == nil {
		o.Jitter = func(longest time.Duration) time.Duration { return rand.N(longest + 1) }
	}
	return spi.Wrap(&retry{inner, o}, inner)
}

func orDefault[N int | time.Duration](n, otherwise N) N {
	if n == 0 {
		return otherwise
	}
	return n
}

// Caps offers what inner does.
func (r *retry) Caps(inner spi.Caps) spi.Caps { return inner }
func (r *retry) Layer() spi.Layer             { return spi.Layer{Name: "retry"} }
