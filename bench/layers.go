package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/decorators/coalescing"
	"github.com/loomgate/loomgate/decorators/crypto"
	"github.com/loomgate/loomgate/decorators/profiling"
	"github.com/loomgate/loomgate/decorators/retry"
	"github.com/loomgate/loomgate/decorators/sharded"
	"github.com/loomgate/loomgate/decorators/tenant"
	"github.com/loomgate/loomgate/spi"
)

// logLength is how many events an execution gets: a log that grows without end costs its
// store more than any layer does.
const logLength = 1000

// layers measures what each decorator adds to an append over memory, alone and added one
// by one, and to a read of the head.
func layers(ctx context.Context, b *bench) error {
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ring, err := crypto.CreateKeyring(filepath.Join(dir, "keyring"), []byte("a secret of the benchmark's, long enough"))
	if err != nil {
		return err
	}
	// Each turn has a store of its own: what the ones before have stored would be the
	// garbage collector's work in all later ones.
	var gathering *coalescing.Coalescer
	all := []struct {
		name string
		over func(*spi.Store) (*spi.Store, error)
	}{
		{"coalescing", func(s *spi.Store) (_ *spi.Store, err error) {
			gathering, err = coalescing.New(s, coalescing.Options{})
			if err != nil {
				return nil, err
			}
			return gathering.Store(), nil
		}},
		{"profiling", func(s *spi.Store) (*spi.Store, error) { return profiling.New(s, profiling.Options{Name: "bench"}) }},
		{"sharded", func(s *spi.Store) (*spi.Store, error) {
			return sharded.New(ctx, []sharded.Shard{{Store: s}}, sharded.Options{Exclusive: true})
		}},
		{"crypto", func(s *spi.Store) (*spi.Store, error) { return crypto.New(s, ring, crypto.Options{}) }},
		{"tenant", func(s *spi.Store) (*spi.Store, error) { return tenant.New("bench", s) }},
		{"retry", func(s *spi.Store) (*spi.Store, error) { return retry.New(s, retry.Options{}) }},
	}
	build := func(layers ...int) (*spi.Store, error) {
		if gathering != nil {
			gathering.Close()
			gathering = nil
		}
		s, err := memory.New()
		for _, l := range layers {
			if err == nil {
				s, err = all[l].over(s)
			}
		}
		runtime.GC()
		return s, err
	}
	defer func() {
		if gathering != nil {
			gathering.Close()
		}
	}()
	var sides []side
	add := func(name string, layers ...int) {
		sides = append(sides, side{name, func(turn, w int) (func(context.Context, int64) error, int) {
			s, err := build(layers...)
			return func(ctx context.Context, n int64) error {
				if err == nil {
					_, err = spi.Append(ctx, s, one(id(name, turn, w, int(n/logLength)), n%logLength))
				}
				return err
			}, 1
		}})
	}
	add("memory")
	for i, l := range all {
		add(l.name+" alone", i)
	}
	name := "memory"
	var stacked []int
	for i, l := range all {
		name = l.name + " over " + name
		stacked = append(stacked, i)
		add(name, slices.Clone(stacked)...)
	}
	turns, err := inTurn(ctx, 3*b.rounds, 1, b.span/10, processes{}, sides)
	if err != nil {
		return err
	}
	cost := func(i int) float64 { return 1e6 / median(turns[i], perSecond) }
	var rows [][]string
	for i, s := range sides {
		added := "" // alone: to memory; together: to the one below
		switch {
		case i > len(all)+1:
			added = fmt.Sprintf("%+.2f", cost(i)-cost(i-1))
		case i == len(all)+1, i > 0:
			added = fmt.Sprintf("%+.2f", cost(i)-cost(0))
		}
		rows = append(rows, []string{s.name, fmt.Sprintf("%.2f", cost(i)), added})
	}
	b.report.say("One caller, appends of %d bytes over memory. What is below 0.2 µs is noise:\n", len(payload))
	b.report.table([]string{"", "µs an append", "µs added"}, rows)
	for i, s := range sides[1:] {
		b.report.ratio("an append over "+s.name+" / over memory", ratio(turns[i+1], turns[0], func(t turn) float64 { return 1 / t.perSecond }), 0, lower)
	}
	return nil
}
