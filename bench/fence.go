package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/backends/remote"
	"github.com/loomgate/loomgate/backends/sqlite"
	"github.com/loomgate/loomgate/decorators/coalescing"
	"github.com/loomgate/loomgate/internal/pgtest"
	"github.com/loomgate/loomgate/spi"
)

// A shape is how one execution goes from its start to its end.
type shape struct {
	name   string
	live   func(context.Context, *spi.Store, spi.ExecutionID) error
	events int64
}

var shapes = []shape{
	{"unfenced", func(ctx context.Context, s *spi.Store, id spi.ExecutionID) error {
		return run3(ctx, s, id, 0)
	}, 3},
	{"fenced", func(ctx context.Context, s *spi.Store, id spi.ExecutionID) error {
		res, err := spi.AcquireFence(ctx, s, spi.AcquireFenceRequest{Execution: id})
		if err != nil {
			return err
		}
		return run3(ctx, s, id, res.Token)
	}, 3},
	{"park and resume, unfenced", func(ctx context.Context, s *spi.Store, id spi.ExecutionID) error {
		return errors.Join(park(ctx, s, id), resume(ctx, s, id, 0))
	}, 4},
	{"park and resume, acquire", func(ctx context.Context, s *spi.Store, id spi.ExecutionID) error {
		if err := park(ctx, s, id); err != nil {
			return err
		}
		res, err := spi.AcquireFence(ctx, s, spi.AcquireFenceRequest{Execution: id})
		if err != nil {
			return err
		}
		return resume(ctx, s, id, res.Token)
	}, 4},
	{"park and resume, conditional acquire", func(ctx context.Context, s *spi.Store, id spi.ExecutionID) error {
		if err := park(ctx, s, id); err != nil {
			return err
		}
		res, err := spi.AcquireFenceIf(ctx, s, spi.AcquireFenceIfRequest{Execution: id, ParkSeq: 2})
		if err != nil {
			return err
		}
		if !res.Acquired {
			return fmt.Errorf("%q is not parked: %+v", id, res)
		}
		return resume(ctx, s, id, res.Token)
	}, 4},
}

func step(ctx context.Context, s *spi.Store, id spi.ExecutionID, head, fence int64, events ...spi.Event) error {
	for i := range events {
		events[i].ID = spi.NewEventID()
	}
	_, err := spi.Append(ctx, s, spi.AppendRequest{Execution: id, ExpectedHead: head, Fence: fence, Events: events})
	return err
}

func kernel(kind string) spi.Event { return spi.Event{Kind: kind, Kernel: true} }

func run3(ctx context.Context, s *spi.Store, id spi.ExecutionID, fence int64) error {
	if err := step(ctx, s, id, 0, fence, kernel(spi.KindExecutionStarted)); err != nil {
		return err
	}
	if err := step(ctx, s, id, 1, fence, spi.Event{Kind: "Noted", Payload: payload}); err != nil {
		return err
	}
	return step(ctx, s, id, 2, fence, kernel(spi.KindExecutionCompleted))
}

func park(ctx context.Context, s *spi.Store, id spi.ExecutionID) error {
	if err := step(ctx, s, id, 0, 0, kernel(spi.KindExecutionStarted)); err != nil {
		return err
	}
	return step(ctx, s, id, 1, 0, kernel(spi.KindExecutionSuspended))
}

func resume(ctx context.Context, s *spi.Store, id spi.ExecutionID, fence int64) error {
	if err := step(ctx, s, id, 2, fence, kernel(spi.KindExecutionResumed)); err != nil {
		return err
	}
	return step(ctx, s, id, 3, fence, kernel(spi.KindExecutionCompleted))
}

// What record 0118 measured of the system before: what a fence leaves of the throughput.
const (
	recordFenced      = 0.85 // fenced / unfenced
	recordConditional = 0.75 // resumes: conditional acquire / unconditional acquire
)

// fences measures executions a second, 64 at once, each from its start to its end.
func fences(ctx context.Context, b *bench) error {
	stores, closeAll, err := fenceStores(ctx)
	defer closeAll()
	if err != nil {
		return err
	}
	const workers = 64
	var rows [][]string
	type pair struct{ fenced, conditional float64 }
	var pairs []pair
	for _, s := range stores {
		var sides []side
		for _, shape := range shapes {
			sides = append(sides, side{shape.name, func(turn, w int) (func(context.Context, int64) error, int) {
				return func(ctx context.Context, n int64) error {
					return shape.live(ctx, s.store, spi.ExecutionID(fmt.Sprintf("%s-%d-%d-%d", shape.name, turn, w, n)))
				}, 1
			}})
		}
		turns, err := inTurn(ctx, b.rounds, workers, b.span, processes{}, sides)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		row := []string{s.name}
		for i, shape := range shapes {
			row = append(row, fmt.Sprintf("%.0f (%.1f)", median(turns[i], perSecond), median(turns[i], p50)))
			at, err := spi.Head(ctx, s.store, spi.HeadRequest{Execution: spi.ExecutionID(fmt.Sprintf("%s-0-0-0", shape.name))})
			if err != nil || at.Head != shape.events {
				return fmt.Errorf("%s, %s: an execution has %d events (%w)", s.name, shape.name, at.Head, err)
			}
		}
		rows = append(rows, row)
		pairs = append(pairs, pair{ratio(turns[1], turns[0], perSecond), ratio(turns[4], turns[3], perSecond)})
	}
	header := []string{"executions/s (p50 ms)"}
	for _, shape := range shapes {
		header = append(header, shape.name)
	}
	b.report.table(header, rows)
	for i, s := range stores {
		b.report.ratio(s.name+": fenced / unfenced executions", pairs[i].fenced, recordFenced, higher)
		b.report.ratio(s.name+": resumes under the conditional / the unconditional acquire", pairs[i].conditional, recordConditional, higher)
	}
	b.report.say("\nThe targets are what the record has of an older system over Postgres: %.2f and %.2f.\n", recordFenced, recordConditional)
	return nil
}

type namedStore struct {
	name  string
	store *spi.Store
}

func fenceStores(ctx context.Context) (stores []namedStore, closeAll func(), err error) {
	a := &arena{}
	add := func(name string, s *spi.Store, err error) error {
		stores = append(stores, namedStore{name, s})
		return err
	}
	m, err := memory.New()
	if err := add("memory", m, err); err != nil {
		return nil, a.close, err
	}
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return nil, a.close, err
	}
	a.cleanup(func() { os.RemoveAll(dir) })
	file, err := sqlite.Open(ctx, filepath.Join(dir, "store.db"))
	if err != nil {
		return nil, a.close, err
	}
	a.cleanup(func() { file.Close() })
	addr, key, err := a.startGateway(ctx)
	if err != nil {
		return nil, a.close, err
	}
	direct, _, err := a.backend(ctx, pgtest.ICU)
	if err != nil {
		return nil, a.close, err
	}
	a.cleanup(func() { direct.Close() })
	under, _, err := a.backend(ctx, pgtest.ICU)
	if err != nil {
		return nil, a.close, err
	}
	a.cleanup(func() { under.Close() })
	c, err := coalescing.New(under.Store(), coalescing.Options{})
	if err != nil {
		return nil, a.close, err
	}
	a.cleanup(func() { c.Close() })
	whole, err := wholeStack(ctx, c.Store())
	if err != nil {
		return nil, a.close, err
	}
	client, err := remote.Open(ctx, addr, remote.Options{APIKey: key, Tenant: "bench", Plaintext: true})
	if err != nil {
		return nil, a.close, err
	}
	a.cleanup(func() { client.Close() })
	return append(stores, namedStore{"SQLite", file.Store()}, namedStore{"Postgres", direct.Store()},
		namedStore{"the full stack over Postgres", whole}, namedStore{"the gateway over Postgres", client.Store()}), a.close, nil
}
