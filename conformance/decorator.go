package conformance

import (
	"errors"
	"testing"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/conformance/small"
	"github.com/loomgate/loomgate/spi"
)

// Decorator runs the kit through a decorator.
//
// open is as for [Store]. wrap puts the decorator over one store; it is called
// anew each time that a store is opened again, so what the decorator knows has to
// be in the store.
//
// The whole kit runs over a store that offers everything that open's does; over one
// stripped of each optional method and each group in turn, where the decorator must
// offer no more than it can do; and composed with a small decorator that scopes
// names and one that splits a store over two, above the decorator and below it.
//
// One that must not stand above a tenant's view, see [spi.LayerOrderError], is not put
// there. A decorator that is nothing without some method may refuse to be built over a store
// that lacks it, with an [spi.UnsupportedError] that names it.
//
// One of the two stores that a split needs is open's, the other is in memory.
//
// A decorator offers what the store below it does. What it leaves out on purpose is
// stated in without: whatever else is missing was forgotten.
func Decorator(t *testing.T, open func(t *testing.T) *spi.Store, wrap func(inner ...*spi.Store) (*spi.Store, error), without ...spi.Caps) {
	wrapped := func(t *testing.T, inner ...*spi.Store) *spi.Store { return must(t)(wrap(inner...)) }
	second := PerTest(func(t *testing.T) *spi.Store { return must(t)(memory.New()) })

	t.Run("it offers what the store below it does, but for what it says", func(t *testing.T) {
		want := open(t).Offered()
		for _, c := range without {
			want &^= c
		}
		if missing := want &^ wrapped(t, open(t)).Offered(); missing != 0 {
			t.Errorf("it leaves out %v", missing)
		}
	})
	t.Run("alone", func(t *testing.T) {
		run(t, func(t *testing.T) *spi.Store { return wrapped(t, open(t)) })
	})
	for _, c := range strippable {
		t.Run("without "+c.String(), func(t *testing.T) {
			if _, err := wrap(spi.Only(open(t), ^c)); refuses(err, c) {
				return
			}
			run(t, func(t *testing.T) *spi.Store { return wrapped(t, spi.Only(open(t), ^c)) })
		})
	}
	for _, composed := range []struct {
		name string
		open func(t *testing.T) *spi.Store
	}{
		{overPrefix, func(t *testing.T) *spi.Store { return wrapped(t, must(t)(small.Prefix("kit", open(t)))) }},
		{"under a prefix", func(t *testing.T) *spi.Store { return must(t)(small.Prefix("kit", wrapped(t, open(t)))) }},
		{"over a split", func(t *testing.T) *spi.Store {
			return wrapped(t, must(t)(small.Split(t.Context(), open(t), second(t))))
		}},
		{"under a split", func(t *testing.T) *spi.Store {
			return must(t)(small.Split(t.Context(), wrapped(t, open(t)), wrapped(t, second(t))))
		}},
	} {
		t.Run(composed.name, func(t *testing.T) {
			if composed.name == overPrefix && misplaced(wrap(must(t)(small.Prefix("kit", open(t))))) {
				return
			}
			run(t, composed.open)
		})
	}
}

const overPrefix = "over a prefix"

// misplaced reports whether a decorator must not stand where it was put, such as one that
// batches above a tenant's view.
func misplaced(_ *spi.Store, err error) bool {
	_, ok := errors.AsType[*spi.LayerOrderError](err)
	return ok
}

// refuses reports whether a decorator says that it cannot be without c.
func refuses(err error, c spi.Caps) bool {
	unsupported, ok := errors.AsType[*spi.UnsupportedError](err)
	return ok && unsupported.Cap.Has(c)
}

// strippable is what a store can do without: each optional method, and each group
// but events.
var strippable = func() []spi.Caps {
	var all []spi.Caps
	for c := spi.Caps(1); spi.AllCaps.Has(c); c <<= 1 {
		if c != spi.CapEvents {
			all = append(all, c)
		}
	}
	return all
}()

// must returns a store, or ends the test.
func must(t *testing.T) func(*spi.Store, error) *spi.Store {
	return func(s *spi.Store, err error) *spi.Store {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}
