package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loomgate/loomgate/internal/pgtest"
	"github.com/loomgate/loomgate/spi"
)

// The benchmarks compare within one run, in turn, since the machine's speed drifts:
// what counts is the ratio. The server is durable (fsync on).

const appendRounds = 5

// BenchmarkAppend compares appends of one event by many workers: batched as a
// coalescing layer would batch them, one by one, and by the insert that a user would
// write by hand, which keeps fewer promises.
func BenchmarkAppend(b *testing.B) {
	for _, workers := range []int{64, 256} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			cluster := pgtest.Private(b, pgtest.Options{Durable: true})
			db := cluster.Copy(b, pgtest.ICU, migrated)
			db.DSN = with(b, db.DSN, "pool_max_conns", "16")
			db.Direct = db.DSN
			s := open(b, db).Store()
			pool, err := pgxpool.New(b.Context(), db.DSN)
			if err != nil {
				b.Fatal(err)
			}
			defer pool.Close()
			if _, err := pool.Exec(b.Context(), `CREATE TABLE by_hand (execution_id text COLLATE "C", sequence bigint, kind text, payload bytea, PRIMARY KEY (execution_id, sequence)); CREATE TABLE by_hand_fences (execution_id text COLLATE "C" PRIMARY KEY, fence bigint)`); err != nil {
				b.Fatal(err)
			}
			payload := make([]byte, 150)
			var batched, single, byHand []float64
			for b.Loop() {
				for round := range appendRounds {
					name := func(how string, w int) spi.ExecutionID {
						return spi.ExecutionID(fmt.Sprintf("%s-%d-%d-%d", how, b.N, round, w))
					}
					byHand = append(byHand, perSecond(b, workers, func(ctx context.Context, w int) func(n int64) error {
						id := name("hand", w)
						return func(n int64) error {
							_, err := pool.Exec(ctx, `INSERT INTO by_hand SELECT $1, $2, 'Noted', $3 WHERE coalesce((SELECT fence FROM by_hand_fences WHERE execution_id = $1), 0) <= $4`, string(id), n+1, payload, 0)
							return err
						}
					}))
					single = append(single, perSecond(b, workers, func(ctx context.Context, w int) func(n int64) error {
						id := name("single", w)
						return func(n int64) error {
							_, err := spi.Append(ctx, s, spi.AppendRequest{Execution: id, ExpectedHead: n, Events: []spi.Event{{ID: spi.NewEventID(), Kind: "Noted", Payload: payload}}})
							return err
						}
					}))
					batched = append(batched, batchesPerSecond(b, s, workers, func(w int) spi.ExecutionID { return name("batch", w) }, payload))
				}
			}
			b.ReportMetric(median(batched), "batched/s")
			b.ReportMetric(median(single), "single/s")
			b.ReportMetric(median(byHand), "by-hand/s")
			b.ReportMetric(median(ratios(batched, byHand)), "batched/by-hand")
			b.ReportMetric(median(ratios(batched, single)), "batched/single")
		})
	}
}

// span is how long each side works in a round.
const span = 700 * time.Millisecond

// perSecond lets workers call what work returns for a span, and counts.
func perSecond(b *testing.B, workers int, work func(ctx context.Context, w int) func(n int64) error) float64 {
	b.Helper()
	counts := make([]int64, workers)
	begin := time.Now()
	var done sync.WaitGroup
	for w := range workers {
		done.Go(func() {
			do := work(b.Context(), w)
			for n := int64(0); time.Since(begin) < span; n++ {
				if err := do(n); err != nil {
					b.Error(err)
					return
				}
				counts[w]++
			}
		})
	}
	done.Wait()
	total := int64(0)
	for _, n := range counts {
		total += n
	}
	return float64(total) / time.Since(begin).Seconds()
}

// batchesPerSecond appends one event to each of the workers' executions at a time,
// two batches under way, as a coalescing layer does.
func batchesPerSecond(b *testing.B, s *spi.Store, workers int, name func(w int) spi.ExecutionID, payload []byte) float64 {
	b.Helper()
	begin := time.Now()
	const writers = 2
	counts := make([]int, writers)
	var done sync.WaitGroup
	for writer := range writers {
		done.Go(func() {
			for n := int64(0); time.Since(begin) < span; n++ {
				var req spi.AppendBatchRequest
				for w := writer; w < workers; w += writers {
					req.Appends = append(req.Appends, spi.AppendRequest{Execution: name(w), ExpectedHead: n, Events: []spi.Event{{ID: spi.NewEventID(), Kind: "Noted", Payload: payload}}})
				}
				res, err := spi.AppendBatch(b.Context(), s, req)
				if err != nil {
					b.Error(err)
					return
				}
				for _, r := range res.Results {
					if r.Err != nil {
						b.Error(r.Err)
						return
					}
				}
				counts[writer] += len(res.Results)
			}
		})
	}
	done.Wait()
	return float64(counts[0]+counts[1]) / time.Since(begin).Seconds()
}

func median(all []float64) float64 {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}

func ratios(a, b []float64) []float64 {
	all := make([]float64, len(a))
	for i := range a {
		all[i] = a[i] / b[i]
	}
	return all
}

// BenchmarkPage compares a page of 1,000 with the bare query that it could be, over
// directories of several sizes.
func BenchmarkPage(b *testing.B) {
	for _, size := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprintf("executions=%d", size), func(b *testing.B) {
			db := migrated.Fresh(b, pgtest.ICU)
			s := open(b, db).Store()
			pool, err := pgxpool.New(b.Context(), db.DSN)
			if err != nil {
				b.Fatal(err)
			}
			defer pool.Close()
			if _, err := pool.Exec(b.Context(), `INSERT INTO loomgate.executions (execution_id, slot, live) SELECT 'order-' || lpad(g::text, 8, '0'), 0, true FROM generate_series(1, $1) g`, size); err != nil {
				b.Fatal(err)
			}
			if _, err := pool.Exec(b.Context(), "VACUUM ANALYZE loomgate.executions"); err != nil {
				b.Fatal(err)
			}
			var ours, bare []float64
			for n := 0; b.Loop(); n++ {
				after := fmt.Sprintf("order-%08d", n*7919%(size-1000))
				begin := time.Now()
				res, err := spi.ListExecutions(b.Context(), s, spi.ListExecutionsRequest{After: after, Limit: 1000})
				if err != nil || len(res.Executions) != 1000 {
					b.Fatal(len(res.Executions), err)
				}
				middle := time.Now()
				rows, err := pool.Query(b.Context(), `SELECT execution_id FROM loomgate.executions WHERE live AND execution_id > $1 ORDER BY execution_id LIMIT 1000`, after)
				if err != nil {
					b.Fatal(err)
				}
				count := 0
				for rows.Next() {
					var id string
					if err := rows.Scan(&id); err != nil {
						b.Fatal(err)
					}
					count++
				}
				if count != 1000 {
					b.Fatal(count, rows.Err())
				}
				ours, bare = append(ours, float64(middle.Sub(begin))), append(bare, float64(time.Since(middle)))
			}
			b.ReportMetric(median(ours)/1e6, "ms/page")
			b.ReportMetric(median(ratios(ours, bare)), "page/bare")
		})
	}
}

// BenchmarkAcquire compares the conditional acquire with the unconditional one.
func BenchmarkAcquire(b *testing.B) {
	cluster := pgtest.Private(b, pgtest.Options{Durable: true})
	s := open(b, cluster.Copy(b, pgtest.ICU, migrated)).Store()
	for i := range 64 {
		_, err := spi.Append(b.Context(), s, spi.AppendRequest{Execution: spi.ExecutionID(fmt.Sprint("e-", i)), Events: []spi.Event{{ID: spi.NewEventID(), Kind: spi.KindExecutionSuspended, Kernel: true}}})
		if err != nil {
			b.Fatal(err)
		}
	}
	tokens := make([]int64, 64)
	var conditional, plain []float64
	for b.Loop() {
		plain = append(plain, perSecond(b, 64, func(ctx context.Context, w int) func(int64) error {
			return func(int64) error {
				res, err := spi.AcquireFence(ctx, s, spi.AcquireFenceRequest{Execution: spi.ExecutionID(fmt.Sprint("e-", w))})
				tokens[w] = res.Token
				return err
			}
		}))
		conditional = append(conditional, perSecond(b, 64, func(ctx context.Context, w int) func(int64) error {
			return func(int64) error {
				res, err := spi.AcquireFenceIf(ctx, s, spi.AcquireFenceIfRequest{Execution: spi.ExecutionID(fmt.Sprint("e-", w)), Fence: tokens[w], ParkSeq: 1})
				if err == nil && !res.Acquired {
					return fmt.Errorf("not acquired: %+v", res)
				}
				tokens[w] = res.Token
				return err
			}
		}))
	}
	b.ReportMetric(median(conditional), "conditional/s")
	b.ReportMetric(median(plain), "unconditional/s")
	b.ReportMetric(median(ratios(conditional, plain)), "conditional/unconditional")
}
