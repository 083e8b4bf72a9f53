package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/decorators/coalescing"
	"github.com/loomgate/loomgate/decorators/crypto"
	"github.com/loomgate/loomgate/decorators/profiling"
	"github.com/loomgate/loomgate/decorators/retry"
	"github.com/loomgate/loomgate/decorators/sharded"
	"github.com/loomgate/loomgate/decorators/tenant"
	"github.com/loomgate/loomgate/spi"
)

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
	var gather []*coalescing.Coalescer
	defer func() {
		for _, c := range gather {
			c.Close()
		}
	}()
	all := []struct {
		name string
		over func(*spi.Store) (*spi.Store, error)
	}{
		{"coalescing", func(s *spi.Store) (*spi.Store, error) {
			c, err := coalescing.New(s, coalescing.Options{})
			if err != nil {
				return nil, err
			}
			gather = append(gather, c)
			return c.Store(), nil
		}},
		{"profiling", func(s *spi.Store) (*spi.Store, error) { return profiling.New(s, profiling.Options{Name: "bench"}) }},
		{"sharded", func(s *spi.Store) (*spi.Store, error) {
			return sharded.New(ctx, []sharded.Shard{{Store: s}}, sharded.Options{Exclusive: true})
		}},
		{"crypto", func(s *spi.Store) (*spi.Store, error) { return crypto.New(s, ring, crypto.Options{}) }},
		{"tenant", func(s *spi.Store) (*spi.Store, error) { return tenant.New("bench", s) }},
		{"retry", func(s *spi.Store) (*spi.Store, error) { return retry.New(s, retry.Options{}) }},
	}
	var sides []side
	add := func(name string, s *spi.Store) {
		sides = append(sides, side{name, func(turn, w int) (func(context.Context, int64) error, int) {
			id := id(name, turn, w, 0)
			return func(ctx context.Context, n int64) error {
				_, err := spi.Append(ctx, s, one(id, n))
				return err
			}, 1
		}})
	}
	fresh := func() (*spi.Store, error) { return memory.New() }
	bare, err := fresh()
	if err != nil {
		return err
	}
	add("memory", bare)
	stacked, err := fresh()
	if err != nil {
		return err
	}
	var together []side
	name := "memory"
	for _, l := range all {
		alone, err := fresh()
		if err != nil {
			return err
		}
		if alone, err = l.over(alone); err != nil {
			return err
		}
		add(l.name+" alone", alone)
		if stacked, err = l.over(stacked); err != nil {
			return err
		}
		name = l.name + " over " + name
		layers := stacked
		n := name
		together = append(together, side{n, func(turn, w int) (func(context.Context, int64) error, int) {
			id := id(n, turn, w, 0)
			return func(ctx context.Context, n int64) error {
				_, err := spi.Append(ctx, layers, one(id, n))
				return err
			}, 1
		}})
	}
	sides = append(sides, together...)
	turns, err := inTurn(ctx, b.rounds, 1, b.span/10, processes{}, sides)
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
	b.report.say("One caller, appends of %d bytes over memory:\n", len(payload))
	b.report.table([]string{"", "µs an append", "µs added"}, rows)
	for i, s := range sides[1:] {
		b.report.ratio("an append over "+s.name+" / over memory", ratio(turns[i+1], turns[0], func(t turn) float64 { return 1 / t.perSecond }), 0, lower)
	}
	return nil
}
