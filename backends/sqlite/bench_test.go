package sqlite_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/loomgate/loomgate/backends/sqlite"
	"github.com/loomgate/loomgate/spi"
)

func id(i int) spi.ExecutionID { return spi.ExecutionID(fmt.Sprintf("execution-%08d", i)) }

func event(kind string) spi.Event { return spi.Event{ID: spi.NewEventID(), Kind: kind} }

func must[R any](tb testing.TB) func(R, error) R {
	return func(res R, err error) R {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return res
	}
}

// BenchmarkAppend lets 64 callers append one event at a time, each to executions of
// its own, with every commit on disk. "ratio" is against the same appends in a
// transaction each, measured in turn with them.
func BenchmarkAppend(b *testing.B) {
	const callers, rounds = 64, 50
	folder := b.TempDir()
	grouped := newAppenders(b, filepath.Join(folder, "grouped.db"), callers)
	single := newAppenders(b, filepath.Join(folder, "single.db"), callers)
	single.alone()
	var groupedTime, singleTime time.Duration
	for b.Loop() {
		groupedTime += grouped.run(rounds)
		singleTime += single.run(rounds)
	}
	n := float64(b.N * callers * rounds)
	b.ReportMetric(n/groupedTime.Seconds(), "grouped/s")
	b.ReportMetric(n/singleTime.Seconds(), "single/s")
	b.ReportMetric(singleTime.Seconds()/groupedTime.Seconds(), "ratio")
	b.ReportMetric(0, "ns/op")
}

type appenders struct {
	b     *testing.B
	db    *sqlite.Database
	heads []int64
	lock  sync.Locker
}

func newAppenders(b *testing.B, path string, n int) *appenders {
	db := must[*sqlite.Database](b)(sqlite.Open(b.Context(), path))
	b.Cleanup(func() { db.Close() })
	return &appenders{b: b, db: db, heads: make([]int64, n), lock: noLock{}}
}

// alone makes each append wait for the one before it, so that none are grouped.
func (a *appenders) alone() { a.lock = &sync.Mutex{} }

type noLock struct{}

func (noLock) Lock()   {}
func (noLock) Unlock() {}

// run lets each caller append some events.
func (a *appenders) run(rounds int) time.Duration {
	const perExecution = 50
	payload := make([]byte, 256)
	start := time.Now()
	var callers sync.WaitGroup
	for c := range a.heads {
		callers.Go(func() {
			for range rounds {
				head := a.heads[c]
				e := event("OrderPlaced")
				e.Payload = payload
				req := spi.AppendRequest{
					Execution:    id(c*1_000_000 + int(head/perExecution)),
					ExpectedHead: head % perExecution,
					Events:       []spi.Event{e},
				}
				a.lock.Lock()
				_, err := spi.Append(a.b.Context(), a.db.Store(), req)
				a.lock.Unlock()
				if err != nil {
					a.b.Error(err)
					return
				}
				a.heads[c]++
			}
		})
	}
	callers.Wait()
	return time.Since(start)
}

// BenchmarkAppendAny shows that an append to any head does not read the last ten
// thousand events each time.
func BenchmarkAppendAny(b *testing.B) {
	for _, length := range []int{100, 20_000} {
		b.Run(fmt.Sprintf("events=%d", length), func(b *testing.B) {
			ctx := context.Background()
			s := open(b, filepath.Join(b.TempDir(), "store.db"), sqlite.WithNormalSync())
			fill(b, s, "e", length)
			for b.Loop() {
				must[spi.AppendResponse](b)(spi.Append(ctx, s, spi.AppendRequest{Execution: "e", ExpectedHead: spi.AnyHead, Events: []spi.Event{event("K")}}))
			}
		})
	}
}

// fill gives an execution events.
func fill(tb testing.TB, s *spi.Store, id spi.ExecutionID, n int) {
	tb.Helper()
	for head := 0; head < n; {
		events := make([]spi.Event, min(1000, n-head))
		for i := range events {
			events[i] = event("K")
			events[i].Payload = make([]byte, 256)
		}
		must[spi.AppendResponse](tb)(spi.Append(tb.Context(), s, spi.AppendRequest{Execution: id, ExpectedHead: int64(head), Events: events}))
		head += len(events)
	}
}

// BenchmarkPage shows that a page costs a seek and what it holds, however many
// executions there are.
func BenchmarkPage(b *testing.B) {
	ctx := context.Background()
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("ids=%d", n), func(b *testing.B) {
			s := open(b, filepath.Join(b.TempDir(), "store.db"), sqlite.WithNormalSync())
			for i := 0; i < n; i += spi.MaxBatch {
				var batch spi.AppendBatchRequest
				for j := range spi.MaxBatch {
					batch.Appends = append(batch.Appends, spi.AppendRequest{Execution: id(i + j), Events: []spi.Event{event("K")}})
				}
				must[spi.AppendBatchResponse](b)(spi.AppendBatch(ctx, s, batch))
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				after := string(id(i * 7919 % (n - 1000)))
				page, err := spi.ListExecutions(ctx, s, spi.ListExecutionsRequest{After: after, Limit: 1000})
				if err != nil || len(page.Executions) < 999 {
					b.Fatal(len(page.Executions), err)
				}
			}
		})
	}
}

func BenchmarkRead(b *testing.B) {
	ctx := context.Background()
	s := open(b, filepath.Join(b.TempDir(), "store.db"))
	fill(b, s, "e", 1000)
	b.ReportAllocs()
	for i := int64(0); b.Loop(); i++ {
		res, err := spi.Read(ctx, s, spi.ReadRequest{Execution: "e", After: i * 37 % 900, Limit: 100})
		if err != nil || len(res.Events) != 100 {
			b.Fatal(len(res.Events), err)
		}
	}
}

// BenchmarkOpen opens a new file, as each case of the conformance kit does.
func BenchmarkOpen(b *testing.B) {
	folder := b.TempDir()
	for i := 0; b.Loop(); i++ {
		db := must[*sqlite.Database](b)(sqlite.Open(b.Context(), filepath.Join(folder, fmt.Sprint(i))))
		db.Close()
	}
}

// BenchmarkAppendMany appends a thousand events at once.
func BenchmarkAppendMany(b *testing.B) {
	s := open(b, filepath.Join(b.TempDir(), "store.db"))
	for i := 0; b.Loop(); i++ {
		fill(b, s, id(i), 1000)
	}
}
