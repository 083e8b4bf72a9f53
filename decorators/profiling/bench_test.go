package profiling_test

import (
	"context"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/loomgate/loomgate/decorators/profiling"
	"github.com/loomgate/loomgate/spi"
)

// instant answers at once: what is measured is the way there.
type instant struct{ spi.EventMethods }

func (instant) Head(context.Context, spi.HeadRequest) (spi.HeadResponse, error) {
	return spi.HeadResponse{Head: 1}, nil
}

func (instant) Append(context.Context, spi.AppendRequest) (spi.AppendResponse, error) {
	return spi.AppendResponse{Head: 1}, nil
}

// BenchmarkCall reports what a layer adds to a call: at most 500 ns where nothing
// exports. The SDK's own cost is there for information.
func BenchmarkCall(b *testing.B) {
	inner, err := spi.Open(spi.Backend{Events: instant{}})
	if err != nil {
		b.Fatal(err)
	}
	reader := sdkmetric.NewManualReader()
	for _, c := range []struct {
		name   string
		traces trace.TracerProvider
		meters metric.MeterProvider
	}{
		{"global, nothing exports", nil, nil},
		{"no-op", tracenoop.NewTracerProvider(), metricnoop.NewMeterProvider()},
		{"SDK, not sampled", sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample())), sdkmetric.NewMeterProvider()},
		{"SDK metrics", tracenoop.NewTracerProvider(), sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))},
		{"SDK spans", sdktrace.NewTracerProvider(), metricnoop.NewMeterProvider()},
	} {
		layer, err := profiling.New(inner, profiling.Options{Name: "shard-a", TracerProvider: c.traces, MeterProvider: c.meters})
		if err != nil {
			b.Fatal(err)
		}
		b.Run("Head/"+c.name, func(b *testing.B) {
			compare(b, inner, layer, func(s *spi.Store) error {
				_, err := spi.Head(b.Context(), s, spi.HeadRequest{Execution: "order-12345678"})
				return err
			})
		})
		b.Run("Append/"+c.name, func(b *testing.B) {
			req := spi.AppendRequest{Execution: "order-12345678", Events: []spi.Event{{ID: spi.NewEventID(), Kind: "Noted"}}}
			compare(b, inner, layer, func(s *spi.Store) error {
				_, err := spi.Append(b.Context(), s, req)
				return err
			})
		})
	}
}

// compare reports what a call through a layer takes over the same below it, taking
// turns so that both see the same machine.
func compare(b *testing.B, inner, layer *spi.Store, do func(*spi.Store) error) {
	const turn = 200
	var took [2]time.Duration
	turns := 0
	for b.Loop() {
		for i, s := range []*spi.Store{inner, layer} {
			start := time.Now()
			for range turn {
				if err := do(s); err != nil {
					b.Fatal(err)
				}
			}
			took[i] += time.Since(start)
		}
		turns++
	}
	b.ReportMetric(float64((took[1]-took[0]).Nanoseconds())/float64(turns*turn), "ns-added/call")
	b.ReportMetric(testing.AllocsPerRun(turn, func() { _ = do(layer) })-testing.AllocsPerRun(turn, func() { _ = do(inner) }), "allocs-added/call")
}
