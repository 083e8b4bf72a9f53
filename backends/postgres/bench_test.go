package postgres_test

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
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
			for n := 0; b.Loop(); n++ {
				for round := range appendRounds {
					name := func(how string, w int) spi.ExecutionID {
						return spi.ExecutionID(fmt.Sprintf("%s-%d-%d-%d", how, n, round, w))
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
			var ids []spi.ExecutionID
			for w := writer; w < workers; w += writers {
				ids = append(ids, name(w))
			}
			for n := int64(0); time.Since(begin) < span; n++ {
				req := spi.AppendBatchRequest{Appends: make([]spi.AppendRequest, len(ids))}
				for i, id := range ids {
					req.Appends[i] = spi.AppendRequest{Execution: id, ExpectedHead: n, Events: []spi.Event{{ID: spi.NewEventID(), Kind: "Noted", Payload: payload}}}
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

var largest = flag.Int("executions", 1_000_000, "the size of the largest directory of BenchmarkPage")

// BenchmarkPage compares a page of 1,000 with the bare query that it could be, and
// with the page of the first case: small and large directories, short and long logs.
func BenchmarkPage(b *testing.B) {
	type pages struct {
		name       string
		executions int
		store      *spi.Store
		pool       *pgxpool.Pool
		ours, bare []float64
	}
	var cases []*pages
	add := func(executions, events int) {
		db := migrated.Fresh(b, pgtest.ICU)
		pool, err := pgxpool.New(b.Context(), with(b, db.DSN, "statement_timeout", "0"))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(pool.Close)
		for _, sql := range []string{
			fmt.Sprintf(`INSERT INTO loomgate.executions (execution_id, slot, live) SELECT 'order-' || lpad(g::text, 8, '0'), 0, true FROM generate_series(1, %d) g`, executions),
			fmt.Sprintf(`INSERT INTO loomgate.events SELECT 'order-' || lpad(g::text, 8, '0'), s, gen_random_uuid(), 'Noted', false, false, 0, now(), 5 FROM generate_series(1, %d) g, generate_series(1, %d) s`, executions, events),
			"VACUUM ANALYZE loomgate.executions",
		} {
			if _, err := pool.Exec(b.Context(), sql); err != nil {
				b.Fatal(err)
			}
		}
		cases = append(cases, &pages{fmt.Sprintf("%d-executions-of-%d", executions, events), executions, open(b, db).Store(), pool, nil, nil})
	}
	for _, size := range []int{10_000, 1_000_000, 10_000_000} {
		if size <= *largest {
			add(size, 0)
		}
	}
	add(10_000, 2)
	add(10_000, 100)
	for n := 0; b.Loop(); n++ {
		for _, p := range cases {
			after := fmt.Sprintf("order-%08d", n*7919%(p.executions-1000))
			begin := time.Now()
			res, err := spi.ListExecutions(b.Context(), p.store, spi.ListExecutionsRequest{After: after, Limit: 1000})
			if err != nil || len(res.Executions) != 1000 {
				b.Fatal(len(res.Executions), err)
			}
			middle := time.Now()
			if n, err := bareIDs(b.Context(), p.pool, after); err != nil || n != 1000 {
				b.Fatal(n, err)
			}
			p.ours, p.bare = append(p.ours, float64(middle.Sub(begin))), append(p.bare, float64(time.Since(middle)))
		}
	}
	for _, p := range cases {
		b.ReportMetric(median(ratios(p.ours, p.bare)), p.name+"/bare")
		b.ReportMetric(median(ratios(p.ours, cases[0].ours)), p.name+"/first")
	}
	b.ReportMetric(median(cases[0].ours)/1e6, "ms/page")
}

// bareIDs reads 1,000 ids, and keeps none.
func bareIDs(ctx context.Context, pool *pgxpool.Pool, after string) (n int, err error) {
	rows, err := pool.Query(ctx, `SELECT execution_id FROM loomgate.executions WHERE live AND execution_id > $1 ORDER BY execution_id LIMIT 1000`, after)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for ; rows.Next(); n++ {
		var id string
		if err := rows.Scan(&id); err != nil {
			return 0, err
		}
	}
	return n, rows.Err()
}

// BenchmarkAcquire compares the conditional acquire with the unconditional one, and
// with the transaction that a user would write by hand, of six round trips.
func BenchmarkAcquire(b *testing.B) {
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
	const workers = 64
	var ids [workers]spi.ExecutionID
	for w := range ids {
		ids[w] = spi.ExecutionID(fmt.Sprint("e-", w))
		_, err := spi.Append(b.Context(), s, spi.AppendRequest{Execution: ids[w], Events: []spi.Event{{ID: spi.NewEventID(), Kind: spi.KindExecutionSuspended, Kernel: true}}})
		if err != nil {
			b.Fatal(err)
		}
	}
	var tokens [workers]int64
	var conditional, plain, byHand []float64
	for b.Loop() {
		plain = append(plain, perSecond(b, workers, func(ctx context.Context, w int) func(int64) error {
			return func(int64) error {
				res, err := spi.AcquireFence(ctx, s, spi.AcquireFenceRequest{Execution: ids[w]})
				tokens[w] = res.Token
				return err
			}
		}))
		byHand = append(byHand, perSecond(b, workers, func(ctx context.Context, w int) func(int64) error {
			return func(int64) error { return acquireByHand(ctx, pool, string(ids[w]), &tokens[w]) }
		}))
		conditional = append(conditional, perSecond(b, workers, func(ctx context.Context, w int) func(int64) error {
			return func(int64) error {
				res, err := spi.AcquireFenceIf(ctx, s, spi.AcquireFenceIfRequest{Execution: ids[w], Fence: tokens[w], ParkSeq: 1})
				if err == nil && !res.Acquired {
					return fmt.Errorf("not acquired: %+v", res)
				}
				tokens[w] = res.Token
				return err
			}
		}))
	}
	b.ReportMetric(median(conditional), "conditional/s")
	b.ReportMetric(median(ratios(conditional, plain)), "conditional/unconditional")
	b.ReportMetric(median(ratios(conditional, byHand)), "conditional/by-hand")
}

// acquireByHand raises a token in six round trips: it begins, locks the row, reads the
// token, looks for an answer, updates and commits.
func acquireByHand(ctx context.Context, pool *pgxpool.Pool, id string, token *int64) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT FROM loomgate.executions WHERE execution_id = $1 FOR NO KEY UPDATE`, id); err != nil {
			return err
		}
		var fence int64
		if err := tx.QueryRow(ctx, `SELECT fence FROM loomgate.executions WHERE execution_id = $1`, id).Scan(&fence); err != nil {
			return err
		}
		var answered bool
		if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM loomgate.events WHERE execution_id = $1 AND sequence > 1 AND answering)`, id).Scan(&answered); err != nil {
			return err
		}
		if answered || fence != *token {
			return fmt.Errorf("not acquired: answered %v, token %d", answered, fence)
		}
		*token++
		_, err := tx.Exec(ctx, `UPDATE loomgate.executions SET fence = fence + 1 WHERE execution_id = $1`, id)
		return err
	})
}
