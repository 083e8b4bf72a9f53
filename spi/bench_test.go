package spi

import (
	"context"
	"fmt"
	"testing"
)

// headOnly answers Head from a register, so that what is measured is the way there.
type headOnly struct{ EventMethods }

func (headOnly) Head(context.Context, HeadRequest) (HeadResponse, error) {
	return HeadResponse{Head: 1}, nil
}

func (headOnly) Append(context.Context, AppendRequest) (AppendResponse, error) {
	return AppendResponse{Head: 1}, nil
}

// BenchmarkCall measures a call through the handle and through layers: at most
// 50 ns and no allocation each.
func BenchmarkCall(b *testing.B) {
	for _, layers := range []int{0, 1, 2, 4} {
		s := mustOpen(b, Backend{Events: headOnly{}})
		for range layers {
			s = mustWrap(b, &stub{inner: s}, s)
		}
		b.Run(fmt.Sprintf("Head/layers=%d", layers), func(b *testing.B) {
			b.ReportAllocs()
			req := HeadRequest{Execution: "order-12345678"}
			for b.Loop() {
				if _, err := Head(b.Context(), s, req); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(layers+1), "ns/layer")
		})
		b.Run(fmt.Sprintf("Append/layers=%d", layers), func(b *testing.B) {
			b.ReportAllocs()
			req := AppendRequest{Execution: "order-12345678", Events: someEvents(1)}
			for b.Loop() {
				if _, err := Append(b.Context(), s, req); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(layers+1), "ns/layer")
		})
	}
}

// BenchmarkWrap measures what one handle a request would cost: at most 200 ns.
func BenchmarkWrap(b *testing.B) {
	s := mustOpen(b, Backend{Events: headOnly{}})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Wrap(&stub{inner: s}, s); err != nil {
			b.Fatal(err)
		}
	}
}
