package coalescing_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/backends/postgres"
	"github.com/loomgate/loomgate/internal/pgtest"
	"github.com/loomgate/loomgate/spi"
)

// BenchmarkPostgres compares appends of one event by many workers, each to an execution
// of its own, with and without the layer. The server is durable (fsync on). The two are
// measured in turn within one run, since the machine's speed drifts: what counts is the
// ratio.
func BenchmarkPostgres(b *testing.B) {
	const rounds = 5
	for _, workers := range []int{1, 8, 64, 256} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			cluster := pgtest.Private(b, pgtest.Options{Durable: true})
			db, err := postgres.Open(b.Context(), cluster.Copy(b, pgtest.ICU, migrated).DSN+"&pool_max_conns=16")
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			gathered := coalesced(b, db.Store())
			turn := 0
			appends := func(s *spi.Store) measured {
				turn++
				return appendFor(b, s, workers, func(w int) spi.ExecutionID { return spi.ExecutionID(fmt.Sprintf("%d-%d", turn, w)) })
			}
			var with, without []measured
			for b.Loop() {
				for range rounds {
					without = append(without, appends(db.Store()))
					with = append(with, appends(gathered))
				}
			}
			b.ReportMetric(median(with, perSecond), "coalesced/s")
			b.ReportMetric(median(without, perSecond), "single/s")
			b.ReportMetric(median(with, p50), "coalesced-p50-ms")
			b.ReportMetric(median(without, p50), "single-p50-ms")
			b.ReportMetric(ratio(with, without, perSecond), "throughput-ratio")
			b.ReportMetric(ratio(with, without, p50), "p50-ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// span is how long each side works in a round.
const span = 700 * time.Millisecond

// A measured is what workers did in a span.
type measured struct{ perSecond, p50 float64 }

func perSecond(m measured) float64 { return m.perSecond }
func p50(m measured) float64       { return m.p50 }

func appendFor(b *testing.B, s *spi.Store, workers int, name func(w int) spi.ExecutionID) measured {
	b.Helper()
	payload := make([]byte, 150)
	took := make([][]time.Duration, workers)
	begin := time.Now()
	var done sync.WaitGroup
	for w := range workers {
		done.Go(func() {
			id := name(w)
			for n := int64(0); time.Since(begin) < span; n++ {
				start := time.Now()
				_, err := spi.Append(b.Context(), s, spi.AppendRequest{Execution: id, ExpectedHead: n, Events: []spi.Event{{ID: spi.NewEventID(), Kind: "Noted", Payload: payload}}})
				if err != nil {
					b.Error(err)
					return
				}
				took[w] = append(took[w], time.Since(start))
			}
		})
	}
	done.Wait()
	elapsed := time.Since(begin)
	all := slices.Concat(took...)
	slices.Sort(all)
	return measured{float64(len(all)) / elapsed.Seconds(), all[len(all)/2].Seconds() * 1000}
}

func median(all []measured, of func(measured) float64) float64 {
	var values []float64
	for _, m := range all {
		values = append(values, of(m))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// ratio returns the median of the ratios of neighbours.
func ratio(a, b []measured, of func(measured) float64) float64 {
	var values []float64
	for i := range a {
		values = append(values, of(a[i])/of(b[i]))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// BenchmarkMemory is what the layer costs a single caller.
func BenchmarkMemory(b *testing.B) {
	bare, err := memory.New()
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		store *spi.Store
	}{{"bare", bare}, {"coalesced", coalesced(b, bare)}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			id := spi.ExecutionID(fmt.Sprint(c.name, b.N))
			events := []spi.Event{{Kind: "Noted", Payload: make([]byte, 150)}}
			for n := int64(0); b.Loop(); n++ {
				events[0].ID = spi.NewEventID()
				if _, err := spi.Append(b.Context(), c.store, spi.AppendRequest{Execution: id, ExpectedHead: n, Events: events}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
