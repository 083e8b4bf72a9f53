package conformance

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/loomgate/loomgate/spi"
)

var cancellations = topic{"cancellations", []testCase{
	{
		"a call whose context has ended answers with the context's error and changes nothing",
		0,
		func(f *fixture) {
			ctx, cancel := context.WithCancel(f.ctx)
			cancel()
			for _, m := range methods {
				if !f.store.Offered().Has(m.need) {
					continue
				}
				if err := m.call(ctx, f.store); !errors.Is(err, context.Canceled) {
					f.Errorf("%s answers %v", m.name, err)
				}
			}
			f.wantNothing("e")
		},
	},
	{
		"a call canceled at any point leaves the next caller clean",
		0,
		func(f *fixture) {
			const writers, rounds = 4, 30
			var wrote [writers]int64
			together(writers, func(w int) {
				e := id("e%d", w)
				random := rand.New(rand.NewPCG(5, uint64(w)))
				for range rounds {
					req := spi.AppendRequest{Execution: e, ExpectedHead: wrote[w], Events: events(2)}
					if err := f.appendCanceled(req, random.IntN(2000)); err != nil && !isCanceledOrAmbiguous(err) {
						f.Errorf("a canceled append answers %v", err)
					}
					// The same request resolves whatever has become of it.
					if _, err := spi.Append(f.ctx, f.store, req); err != nil {
						f.Errorf("the append after a canceled one: %v", err)
						return
					}
					wrote[w] += 2
				}
			})
			for w := range writers {
				f.wantLog(id("e%d", w), upTo(wrote[w])...)
			}
		},
	},
	{
		"a page canceled at any point is an error or whole",
		0,
		func(f *fixture) {
			f.fill(awkwardNames)
			random := rand.New(rand.NewPCG(6, 7))
			for range 50 {
				ctx, cancel := context.WithCancel(f.ctx)
				spins := random.IntN(3000)
				var done sync.WaitGroup
				done.Go(func() {
					spin(spins)
					cancel()
				})
				res, err := spi.ListExecutions(ctx, f.store, spi.ListExecutionsRequest{Limit: spi.MaxLimit})
				done.Wait()
				if err != nil && !errors.Is(err, context.Canceled) {
					f.Errorf("a canceled page answers %v", err)
				}
				if err == nil && len(res.Executions) != len(awkwardNames) {
					f.Errorf("a canceled page holds %d of %d", len(res.Executions), len(awkwardNames))
				}
			}
		},
	},
}}

// appendCanceled appends under a context that ends after some spins.
func (f *fixture) appendCanceled(req spi.AppendRequest, spins int) error {
	ctx, cancel := context.WithCancel(f.ctx)
	var done sync.WaitGroup
	done.Go(func() {
		spin(spins)
		cancel()
	})
	_, err := spi.Append(ctx, f.store, req)
	done.Wait()
	return err
}

func isCanceledOrAmbiguous(err error) bool {
	_, ambiguous := errors.AsType[*spi.AmbiguousError](err)
	return ambiguous || errors.Is(err, context.Canceled)
}

// spin takes a while that no clock measures.
func spin(n int) {
	var work atomic.Int64
	for range n {
		work.Add(1)
	}
}
