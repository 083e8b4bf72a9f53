package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loomgate/loomgate/decorators/sharded"
	"github.com/loomgate/loomgate/decorators/tenant"
	"github.com/loomgate/loomgate/internal/pgtest"
	"github.com/loomgate/loomgate/spi"
)

// growth shows what a page and an append cost as one thing grows at a time.
func growth(ctx context.Context, b *bench) error {
	s, err := startServer(ctx)
	if err != nil {
		return err
	}
	defer s.Remove()
	for _, axis := range []struct {
		name  string
		sizes []int
		quick int // how many of the sizes a short look takes
		make  func(ctx context.Context, a *arena, size int) (grown, error)
	}{
		{"executions", []int{10_000, 100_000, 1_000_000, 10_000_000}, 2, ofExecutions},
		{"events an execution", []int{2, 10, 100, 1000}, 3, ofEvents},
		{"tenants", []int{1, 10, 100, 1000, 10_000}, 3, ofTenants},
		{"shards", []int{1, 2, 4, 8, 16}, 3, ofShards},
	} {
		sizes := axis.sizes
		if b.quick {
			sizes = sizes[:axis.quick]
		}
		a := &arena{server: s}
		var all []grown
		for _, size := range sizes {
			g, err := axis.make(ctx, a, size)
			if err != nil {
				a.close()
				return fmt.Errorf("%d %s: %w", size, axis.name, err)
			}
			all = append(all, g)
		}
		err := tellGrowth(ctx, b, axis.name, sizes, all)
		a.close()
		if err != nil {
			return fmt.Errorf("%s: %w", axis.name, err)
		}
	}
	return nil
}

// A grown is a store of one size, and what can be asked of it.
type grown struct {
	store *spi.Store
	after func(round int) string // where a page of 1,000 begins
	page  int                    // its length
}

func tellGrowth(ctx context.Context, b *bench, axis string, sizes []int, all []grown) error {
	pageTimes, appendTimes := make([][]float64, len(all)), make([][]float64, len(all))
	for round := range b.rounds * 20 {
		for i, g := range all {
			begin := time.Now()
			res, err := spi.ListExecutions(ctx, g.store, spi.ListExecutionsRequest{After: g.after(round), Limit: pageLimit})
			if err != nil || len(res.Executions) < g.page {
				return fmt.Errorf("a page of %d has %d ids (%w)", g.page, len(res.Executions), err)
			}
			pageTimes[i] = append(pageTimes[i], time.Since(begin).Seconds()*1000)
			begin = time.Now()
			if _, err := spi.Append(ctx, g.store, one(spi.ExecutionID(fmt.Sprintf("zz-%d", round)), 0)); err != nil {
				return err
			}
			appendTimes[i] = append(appendTimes[i], time.Since(begin).Seconds()*1000)
		}
	}
	drawn := plot{title: "Cost over " + axis, x: axis, y: "ms", lines: []line{{name: "page"}, {name: "append"}}}
	var rows [][]string
	for i, size := range sizes {
		rows = append(rows, []string{fmt.Sprint(size), fmt.Sprintf("%.2f", medianOf(pageTimes[i])), fmt.Sprintf("%.2f", medianOf(appendTimes[i]))})
		drawn.lines[0].points = append(drawn.lines[0].points, point{X: float64(size), Y: medianOf(pageTimes[i])})
		drawn.lines[1].points = append(drawn.lines[1].points, point{X: float64(size), Y: medianOf(appendTimes[i])})
	}
	b.report.table([]string{axis, "ms a page of 1,000", "ms an append"}, rows)
	last := len(all) - 1
	b.report.ratio(fmt.Sprintf("a page at %d / at %d %s", sizes[last], sizes[0], axis), neighbours(pageTimes[last], pageTimes[0]), 0, lower)
	b.report.ratio(fmt.Sprintf("an append at %d / at %d %s", sizes[last], sizes[0], axis), neighbours(appendTimes[last], appendTimes[0]), 0, lower)
	b.report.draw(drawn)
	b.report.say("")
	return nil
}

// generated makes a database whose rows SQL makes.
func (a *arena) generated(ctx context.Context, sql ...string) (*spi.Store, error) {
	db, dsn, err := a.backend(ctx, pgtest.ICU)
	if err != nil {
		return nil, err
	}
	a.cleanup(func() { db.Close() })
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	for _, statement := range append(sql, "VACUUM ANALYZE loomgate.executions") {
		if _, err := pool.Exec(ctx, statement); err != nil {
			return nil, err
		}
	}
	return db.Store(), nil
}

const generateExecutions = `INSERT INTO loomgate.executions (execution_id, slot, live) SELECT 'order-' || lpad(g::text, 8, '0'), 0, true FROM generate_series(1, %d) g`

func ofExecutions(ctx context.Context, a *arena, n int) (grown, error) {
	s, err := a.generated(ctx, fmt.Sprintf(generateExecutions, n))
	return grown{s, func(round int) string { return fmt.Sprintf("order-%08d", round*7919%(n-pageLimit)) }, pageLimit}, err
}

func ofEvents(ctx context.Context, a *arena, events int) (grown, error) {
	const n = 2_000
	s, err := a.generated(ctx, fmt.Sprintf(generateExecutions, n), fmt.Sprintf(
		`INSERT INTO loomgate.events SELECT 'order-' || lpad(g::text, 8, '0'), s, gen_random_uuid(), 'Noted', false, false, 0, now(), 5 FROM generate_series(1, %d) g, generate_series(1, %d) s`, n, events))
	return grown{s, func(round int) string { return fmt.Sprintf("order-%08d", round*7919%(n-pageLimit)) }, pageLimit}, err
}

// ofTenants is 2,000 executions of one tenant among those of others.
func ofTenants(ctx context.Context, a *arena, tenants int) (grown, error) {
	const n = 2_000
	scope, err := spi.ScopeOf("bench")
	if err != nil {
		return grown{}, err
	}
	others := fmt.Sprintf(`INSERT INTO loomgate.executions (execution_id, slot, live) SELECT length(t) || ':' || t || '/order-' || lpad(g::text, 8, '0'), 0, true
FROM (SELECT 'tenant-' || t AS t FROM generate_series(1, %d) t) t, generate_series(1, %d) g`, tenants, n/min(tenants, 100))
	s, err := a.generated(ctx, others, fmt.Sprintf(`INSERT INTO loomgate.executions (execution_id, slot, live) SELECT '%s' || lpad(g::text, 8, '0'), 0, true FROM generate_series(1, %d) g`, scope.Prefix()+"order-", n))
	if err != nil {
		return grown{}, err
	}
	view, err := tenant.New("bench", s)
	return grown{view, func(round int) string { return fmt.Sprintf("order-%08d", round*7919%(n-pageLimit)) }, pageLimit}, err
}

func ofShards(ctx context.Context, a *arena, shards int) (grown, error) {
	const n = 50_000
	var list []sharded.Shard
	for i := range shards {
		s, err := a.generated(ctx)
		if err != nil {
			return grown{}, err
		}
		list = append(list, sharded.Shard{Name: fmt.Sprintf("shard-%02d", i), Store: s})
	}
	if err := sharded.Init(ctx, "bench", sharded.ByExecution, list); err != nil {
		return grown{}, err
	}
	s, err := sharded.New(ctx, list, sharded.Options{})
	if err != nil {
		return grown{}, err
	}
	const batch = 1000
	for from := 0; from < n; from += batch {
		req := spi.AppendBatchRequest{Appends: make([]spi.AppendRequest, batch)}
		for i := range req.Appends {
			req.Appends[i] = one(spi.ExecutionID(fmt.Sprintf("order-%08d", from+i)), 0)
		}
		if _, err := spi.AppendBatch(ctx, s, req); err != nil {
			return grown{}, err
		}
	}
	return grown{s, func(round int) string { return fmt.Sprintf("order-%08d", round*7919%(n-pageLimit)) }, pageLimit}, nil
}
