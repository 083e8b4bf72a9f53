// Package mutants holds stores and decorators that are broken on purpose, each in
// one way that a real one could be. The conformance kit has to catch every one;
// the command conformance/prove shows that it does.
//
// They stand in files by topic, and read as a list of what goes wrong. Most are
// sound stores over memory with one method broken. Some wait between two steps
// that ought to be one, so that what may come between does come.
package mutants

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/conformance"
	"github.com/loomgate/loomgate/conformance/internal/passthrough"
	"github.com/loomgate/loomgate/conformance/small"
	"github.com/loomgate/loomgate/spi"
)

// A Mutant is broken in one way.
type Mutant struct {
	Name   string
	Breaks string // what it does

	// CaughtBy is the case that has to fail, maybe with others: topic/sentence of
	// the kit for stores, or that after decorator/variant, or a sentence after
	// isolation or sharding.
	CaughtBy string

	run func(t *testing.T) // the kit over the mutant
}

// Control is the name of what is broken in no way: a store, a decorator, a tenant's
// view and a split as the mutants are made of. The kit has to pass over all four.
const Control = "control"

// All returns the mutants. No two have the same name, and none is [Control].
func All() []Mutant {
	return slices.Concat(
		claims, appends, duplicates, reads, payloads, listings, batches, fences, unchangedAppends, truncations, deletions, copies,
		timers, refs, leases, dataKeys, ownership, decorators, tenants, shards,
	)
}

type (
	sound   = passthrough.Backend
	methods = passthrough.Methods
)

// store makes a mutant of a sound store over memory.
func store(broken func(sound) methods, options ...memory.Option) func(*testing.T) {
	return func(t *testing.T) { conformance.Store(t, conformance.PerTest(opener(broken, options...))) }
}

// decorator makes a mutant of a decorator that changes nothing. It begins anew each
// time that the store is opened again.
func decorator(broken func(sound) methods) func(*testing.T) {
	return func(t *testing.T) {
		inner := conformance.PerTest(opener(nothing))
		t.Run("decorator", func(t *testing.T) {
			conformance.Decorator(t, inner, func(inner ...*spi.Store) (*spi.Store, error) {
				return passthrough.Open(broken(sound{Inner: inner[0]}), inner[0])
			})
		})
	}
}

// isolation makes a mutant of a tenant's view.
func isolation(broken func(tenant) methods) func(*testing.T) {
	return func(t *testing.T) {
		t.Run("isolation", func(t *testing.T) {
			conformance.Isolation(t, conformance.PerTest(opener(nothing)), func(name spi.TenantName, shared *spi.Store) (*spi.Store, error) {
				view, err := small.Prefix(name, shared)
				if err != nil {
					return nil, err
				}
				scope, err := spi.ScopeOf(name)
				if err != nil {
					return nil, err
				}
				return passthrough.Open(broken(tenant{sound{Inner: view}, shared, scope}), view)
			})
		})
	}
}

// sharding makes a mutant of a split.
func sharding(broken func(split) methods) func(*testing.T) {
	return func(t *testing.T) {
		t.Run("sharding", func(t *testing.T) {
			conformance.Sharding(t, "kit", func(shards ...*spi.Store) (*spi.Store, error) {
				whole, err := small.Split(t.Context(), shards...)
				if err != nil {
					return nil, err
				}
				return passthrough.Open(broken(split{sound{Inner: whole}, shards}), whole)
			})
		})
	}
}

// opener returns a function that opens a mutant over a memory of its own.
func opener(broken func(sound) methods, options ...memory.Option) func(*testing.T) *spi.Store {
	return func(t *testing.T) *spi.Store {
		inner, err := memory.New(options...)
		if err != nil {
			t.Fatal(err)
		}
		s, err := passthrough.Open(broken(sound{Inner: inner}), inner)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

// nothing breaks nothing.
func nothing(s sound) methods { return s }

// pause is what lies between two steps of a store that is slower than memory.
func pause() { time.Sleep(100 * time.Microsecond) }

// headOf returns where a log is, as far as the store answers.
func headOf(ctx context.Context, s *spi.Store, route spi.Route, id spi.ExecutionID) spi.HeadResponse {
	res, _ := spi.Head(ctx, s, spi.HeadRequest{Route: route, Execution: id})
	return res
}
