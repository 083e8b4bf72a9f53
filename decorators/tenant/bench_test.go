package tenant_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/loomgate/loomgate/decorators/tenant"
	"github.com/loomgate/loomgate/spi"
)

// instant is a shared store that answers at once: what is measured is the way there.
type instant struct {
	spi.EventMethods
	page []spi.ExecutionID
}

func (instant) Append(context.Context, spi.AppendRequest) (spi.AppendResponse, error) {
	return spi.AppendResponse{Head: 1}, nil
}

func (instant) Head(context.Context, spi.HeadRequest) (spi.HeadResponse, error) {
	return spi.HeadResponse{Head: 1}, nil
}

// ListExecutions answers with one slice again and again, so the names in it have to be
// made new: that is counted for the store, not for the view.
func (s instant) ListExecutions(context.Context, spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	page := append([]spi.ExecutionID(nil), s.page...)
	return spi.ListExecutionsResponse{Executions: page, Next: string(page[len(page)-1])}, nil
}

func (instant) AppendBatch(_ context.Context, req spi.AppendBatchRequest) (spi.AppendBatchResponse, error) {
	return spi.AppendBatchResponse{Results: make([]spi.AppendResult, len(req.Appends))}, nil
}

// BenchmarkCall reports what a view adds to a call, in ns and allocations: for a name
// that goes in, one concatenation at least.
func BenchmarkCall(b *testing.B) {
	const id = "order-12345678"
	store := instant{}
	for i := range 100 {
		store.page = append(store.page, spi.ExecutionID(fmt.Sprint("4:acme/order-", i)))
	}
	shared, err := spi.Open(spi.Backend{Events: store})
	if err != nil {
		b.Fatal(err)
	}
	appends := batch(id)
	for i := range 99 {
		appends.Appends = append(appends.Appends, batch(spi.ExecutionID(fmt.Sprint(id, i))).Appends...)
	}
	for _, c := range []struct {
		name string
		do   call
	}{
		{"Head", calling(spi.Head, spi.HeadRequest{Execution: id})},
		{"Append", calling(spi.Append, appends.Appends[0])},
		{"AppendBatch of 100", calling(spi.AppendBatch, appends)},
		{"ListExecutions of 100", calling(spi.ListExecutions, spi.ListExecutionsRequest{Limit: 100})},
	} {
		b.Run(c.name, func(b *testing.B) { compare(b, c.do, shared, view(b, "acme", shared)) })
	}
}

// compare reports what a call through a view takes over the same on the shared store,
// taking turns so that both see the same machine.
func compare(b *testing.B, do call, shared, view *spi.Store) {
	const turn = 200
	var took [2]time.Duration
	var turns int
	b.ReportAllocs()
	for b.Loop() {
		for i, s := range []*spi.Store{shared, view} {
			start := time.Now()
			for range turn {
				if _, err := do(b.Context(), s); err != nil {
					b.Fatal(err)
				}
			}
			took[i] += time.Since(start)
		}
		turns++
	}
	calls := float64(turns * turn)
	b.ReportMetric(float64((took[1]-took[0]).Nanoseconds())/calls, "ns-added/call")
	b.ReportMetric(float64(took[1])/float64(took[0]), "times-without")
	added := testing.AllocsPerRun(turn, func() { _, _ = do(b.Context(), view) }) - testing.AllocsPerRun(turn, func() { _, _ = do(b.Context(), shared) })
	b.ReportMetric(added, "allocs-added/call")
}

// BenchmarkNew measures one handle, which an application makes for each request.
func BenchmarkNew(b *testing.B) {
	shared, err := spi.Open(spi.Backend{Events: instant{}})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tenant.New("acme-corporation", shared); err != nil {
			b.Fatal(err)
		}
	}
}
