package memory_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/loomgate/loomgate/spi"
)

// BenchmarkPage shows that a page costs a seek and what it holds, however many
// executions there are.
func BenchmarkPage(b *testing.B) {
	ctx := context.Background()
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("ids=%d", n), func(b *testing.B) {
			s := open(b)
			for i := range n {
				if _, err := spi.Append(ctx, s, spi.AppendRequest{Execution: id(i), Events: event("K")}); err != nil {
					b.Fatal(err)
				}
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

func BenchmarkAppend(b *testing.B) {
	ctx := context.Background()
	payload := make([]byte, 256)
	for _, c := range []struct {
		name     string
		expected func(head int64) int64
	}{
		{"expected head", func(head int64) int64 { return head }},
		{"any head", func(int64) int64 { return spi.AnyHead }},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := open(b)
			b.ReportAllocs()
			head, i := int64(0), 0
			for b.Loop() {
				events := event("K")
				events[0].Payload = payload
				res, err := spi.Append(ctx, s, spi.AppendRequest{Execution: id(i), ExpectedHead: c.expected(head), Events: events})
				if err != nil {
					b.Fatal(err)
				}
				if head = res.Head; head == 1000 {
					head, i = 0, i+1
				}
			}
		})
	}
}

func id(i int) spi.ExecutionID { return spi.ExecutionID(fmt.Sprintf("execution-%08d", i)) }
