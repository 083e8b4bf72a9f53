package sharded_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/backends/postgres"
	"github.com/loomgate/loomgate/conformance/small"
	"github.com/loomgate/loomgate/decorators/sharded"
	"github.com/loomgate/loomgate/internal/pgtest"
	"github.com/loomgate/loomgate/spi"
)

// The benchmarks compare within one run, in turn, since the machine's speed drifts:
// what counts is the ratio.

// A way is a sharded store in memory, by what a call's place depends on.
type way struct {
	name   string
	shards int
	opts   sharded.Options
	pins   bool // another tenant is pinned, so each name has to be looked at
}

var ways = []way{
	{"shards=1", 1, sharded.Options{}, false},
	{"shards=4", 4, sharded.Options{}, false},
	{"shards=16", 16, sharded.Options{}, false},
	{"shards=4/by-tenant", 4, sharded.Options{Placement: sharded.ByTenant}, false},
	{"shards=4/with-pins", 4, sharded.Options{}, true},
	{"shards=4/of-views", 4, sharded.Options{Tenant: "acme"}, false},
}

// open returns the store, and one of its shards alone.
func (w way) open(tb testing.TB) (over, bare *spi.Store) {
	f := newShards(tb, w.opts.Placement, w.shards)
	if w.pins {
		f.pin(0, 0, "another")
	}
	bare = must(tb)(memory.New())
	for i, d := range f.doubles {
		f.shards[i].Store = d.inner
		if w.opts.Tenant != "" {
			f.shards[i].Store = must(tb)(small.Prefix(w.opts.Tenant, d.inner))
		}
	}
	if w.opts.Tenant != "" {
		bare = must(tb)(small.Prefix(w.opts.Tenant, bare))
	}
	return must(tb)(sharded.New(tb.Context(), f.shards, w.opts)), bare
}

const longName = "4:acme/order-12345678"

func TestACallAllocatesNothingMoreThanTheShardsOwn(t *testing.T) {
	for _, w := range ways {
		over, bare := w.open(t)
		ctx := t.Context()
		count := func(s *spi.Store) float64 {
			return testing.AllocsPerRun(100, func() {
				if _, err := spi.Head(ctx, s, spi.HeadRequest{Execution: longName}); err != nil {
					t.Fatal(err)
				}
			})
		}
		if a, b := count(over), count(bare); a != b {
			t.Errorf("%s: %v allocations instead of %v", w.name, a, b)
		}
	}
}

// BenchmarkCall compares calls through shards with calls to one of them.
func BenchmarkCall(b *testing.B) {
	const calls = 2_000
	for _, w := range ways {
		b.Run(w.name, func(b *testing.B) {
			over, bare := w.open(b)
			ctx := b.Context()
			all := events(calls)
			timed := func(s *spi.Store, id spi.ExecutionID) (appends, heads float64) {
				begin := time.Now()
				for n := range calls {
					if _, err := spi.Append(ctx, s, spi.AppendRequest{Execution: id, ExpectedHead: int64(n), Events: all[n : n+1]}); err != nil {
						b.Fatal(err)
					}
				}
				middle := time.Now()
				for range calls {
					if _, err := spi.Head(ctx, s, spi.HeadRequest{Execution: id}); err != nil {
						b.Fatal(err)
					}
				}
				appends, heads = float64(middle.Sub(begin))/calls, float64(time.Since(middle))/calls
				if _, err := spi.DeleteExecution(ctx, s, spi.DeleteExecutionRequest{Execution: id, Incarnation: 1}); err != nil {
					b.Fatal(err)
				}
				return appends, heads
			}
			var appends, heads, added []float64
			for n := 0; b.Loop(); n++ {
				id := spi.ExecutionID(fmt.Sprintf("4:acme/order-%08d", n))
				overAppend, overHead := timed(over, id)
				bareAppend, bareHead := timed(bare, id)
				appends, heads = append(appends, overAppend/bareAppend), append(heads, overHead/bareHead)
				added = append(added, overHead-bareHead)
			}
			b.ReportMetric(median(added), "ns-added/head")
			b.ReportMetric(median(heads), "head/bare")
			b.ReportMetric(median(appends), "append/bare")
		})
	}
}

func median(all []float64) float64 {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}

var idCount = flag.Int("ids", 100_000, "how many executions BenchmarkPages lists")

// BenchmarkPages compares pages of four Postgres databases with those of one that holds
// as much.
func BenchmarkPages(b *testing.B) {
	const shards = 4
	var databases []pgtest.Database
	for i := range shards {
		databases = append(databases, postgresShard(i, shards).Fresh(b, pgtest.ICU))
	}
	whole := pgtest.NewTemplate(postgres.Migrate).Fresh(b, pgtest.ICU)
	cluster, err := sharded.Open(b.Context(), openDatabases(b, databases...), sharded.Options{})
	if err != nil {
		b.Fatal(err)
	}
	fillDatabases(b, whole, databases, *idCount)
	one := openDatabases(b, whole)[0].Store

	b.Run(fmt.Sprintf("ids=%d/page", *idCount), func(b *testing.B) {
		var ratios, ms []float64
		for b.Loop() {
			after := executionName(rand.IntN(*idCount - 1000))
			ours := timedPage(b, cluster.Store(), after, 1000)
			ratios, ms = append(ratios, ours/timedPage(b, one, after, 1000)), append(ms, ours)
		}
		b.ReportMetric(median(ms), "ms/page")
		b.ReportMetric(median(ratios), "page/unsharded")
	})
	b.Run(fmt.Sprintf("ids=%d/pass", *idCount), func(b *testing.B) {
		var ratios, ratiosOfLargePages []float64
		for b.Loop() {
			begin := time.Now()
			n := 0
			for _, err := range cluster.Executions(b.Context(), "", "") {
				if err != nil {
					b.Fatal(err)
				}
				n++
			}
			ours := time.Since(begin)
			if n != *idCount {
				b.Fatal(n)
			}
			ratios = append(ratios, float64(ours)/timedPass(b, one, 1000))
			ratiosOfLargePages = append(ratiosOfLargePages, float64(ours)/timedPass(b, one, spi.MaxLimit))
		}
		b.ReportMetric(median(ratios), "pass/unsharded")
		b.ReportMetric(median(ratiosOfLargePages), "pass/unsharded-10k")
	})
}

func executionName(i int) string { return fmt.Sprintf("order-%08d", i) }

// timedPage returns how many milliseconds a page takes.
func timedPage(b *testing.B, s *spi.Store, after string, limit int) float64 {
	b.Helper()
	begin := time.Now()
	res, err := spi.ListExecutions(b.Context(), s, spi.ListExecutionsRequest{After: after, Limit: limit})
	if err != nil || len(res.Executions) != limit {
		b.Fatal(len(res.Executions), err)
	}
	return float64(time.Since(begin)) / float64(time.Millisecond)
}

// timedPass returns how many nanoseconds it takes to go through all pages.
func timedPass(b *testing.B, s *spi.Store, limit int) float64 {
	b.Helper()
	begin := time.Now()
	n := 0
	for after := ""; ; {
		res, err := spi.ListExecutions(b.Context(), s, spi.ListExecutionsRequest{After: after, Limit: limit})
		if err != nil {
			b.Fatal(err)
		}
		n += len(res.Executions)
		if after = res.Next; after == "" {
			break
		}
	}
	if n != *idCount {
		b.Fatal(n)
	}
	return float64(time.Since(begin))
}

// fillDatabases makes n executions in one database, and the same in those of a cluster.
func fillDatabases(b *testing.B, whole pgtest.Database, parts []pgtest.Database, n int) {
	b.Helper()
	all := make([][][]any, len(parts)+1)
	owner := map[spi.Slot]int{}
	for i, share := range sharded.Share(len(parts)) {
		for _, r := range share {
			owner[r.Slot] = i
		}
	}
	for i := range n {
		name := executionName(i)
		slot := sharded.ByExecution.Slot(name)
		all[owner[slot]] = append(all[owner[slot]], []any{name, int32(slot), true})
		all[len(parts)] = append(all[len(parts)], []any{name, int32(0), true})
	}
	for i, db := range append(slices.Clone(parts), whole) {
		conn, err := pgx.Connect(b.Context(), db.DSN)
		if err != nil {
			b.Fatal(err)
		}
		defer conn.Close(b.Context())
		if _, err := conn.CopyFrom(b.Context(), pgx.Identifier{"loomgate", "executions"}, []string{"execution_id", "slot", "live"}, pgx.CopyFromRows(all[i])); err != nil {
			b.Fatal(err)
		}
		if _, err := conn.Exec(b.Context(), "VACUUM ANALYZE loomgate.executions"); err != nil {
			b.Fatal(err)
		}
	}
}
