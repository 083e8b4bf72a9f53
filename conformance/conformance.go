// Package conformance proves that a backend or a decorator keeps the contract of
// package spi.
//
// A backend proves itself in one call:
//
//	func TestConformance(t *testing.T) {
//		conformance.Store(t, func(t *testing.T) *spi.Store { … })
//	}
//
// and so does a decorator, with [Decorator]. [Isolation] is for decorators that
// give each tenant a view of its own, [Sharding] for those that spread one store
// over several.
//
// Each case is named after the sentence that it proves, and stands in the file of
// its topic. A case that needs what the store does not offer is left out; that the
// store then says so when asked is a case too. All failures are reported.
package conformance

import (
	"context"
	"sync"
	"testing"

	"github.com/loomgate/loomgate/spi"
)

// Store runs the kit over a store.
//
// open returns a store that holds nothing, in storage that belongs to the test it
// is given. Called again with the same test it reaches the same storage, as a
// process does that starts again; [PerTest] helps with that. What is to be closed,
// open leaves to the test's Cleanup.
func Store(t *testing.T, open func(t *testing.T) *spi.Store) {
	run(t, open)
}

func run(t *testing.T, open func(t *testing.T) *spi.Store) {
	offered := open(t).Offered()
	for _, topic := range topics {
		t.Run(topic.name, func(t *testing.T) {
			for _, c := range topic.cases {
				if offered.Has(c.needs) {
					t.Run(c.sentence, func(t *testing.T) { c.prove(newFixture(t, open)) })
				}
			}
		})
	}
}

// PerTest returns a function that makes a value once for each test, and returns
// the same one when the test asks again: what holds the storage of a test's store.
//
//	dir := conformance.PerTest(func(t *testing.T) string { return t.TempDir() })
//	conformance.Store(t, func(t *testing.T) *spi.Store { return openAt(t, dir(t)) })
func PerTest[V any](make func(t *testing.T) V) func(t *testing.T) V {
	var mu sync.Mutex
	values := map[*testing.T]V{}
	return func(t *testing.T) V {
		mu.Lock()
		defer mu.Unlock()
		v, ok := values[t]
		if !ok {
			v = make(t)
			values[t] = v
			t.Cleanup(func() {
				mu.Lock()
				defer mu.Unlock()
				delete(values, t)
			})
		}
		return v
	}
}

// A topic is the cases about one thing.
type topic struct {
	name  string
	cases []testCase
}

// A testCase proves one sentence of the contract.
type testCase struct {
	sentence string
	needs    spi.Caps // beyond the events group, what the sentence is about
	prove    func(*fixture)
}

// topics is the kit, in the order in which a backend is best brought up.
var topics = []topic{
	claims,
	appends,
	duplicates,
	reads,
	payloads,
	listings,
	batches,
	fences,
	conditionalFences,
	races,
	interleavings,
	unchangedAppends,
	truncations,
	deletions,
	copies,
	timers,
	refs,
	leases,
	dataKeys,
	ownership,
	badInput,
	cancellations,
}

// Sentences returns the names of all cases of [Store], each as topic/sentence, as
// the test runner prints them but for the underscores.
func Sentences() []string {
	var all []string
	for _, topic := range topics {
		for _, c := range topic.cases {
			all = append(all, topic.name+"/"+c.sentence)
		}
	}
	return all
}

// A fixture is what a case works with: a store that holds nothing, and short ways
// to call it that fail the test where an error is not what the case is about.
type fixture struct {
	*testing.T
	ctx   context.Context
	store *spi.Store
	open  func(*testing.T) *spi.Store
}

func newFixture(t *testing.T, open func(*testing.T) *spi.Store) *fixture {
	return &fixture{t, t.Context(), open(t), open}
}

// reopen reaches the same storage through another store.
func (f *fixture) reopen() { f.store = f.open(f.T) }
