package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/loomgate/loomgate/cmd/gateway/internal/config"
	"github.com/loomgate/loomgate/decorators/coalescing"
	"github.com/loomgate/loomgate/decorators/profiling"
)

// A BatchWatcher is what [coalescing.Options] take.
type BatchWatcher = func(batch context.Context, callers []context.Context) (_ context.Context, end func())

// NewBatches returns what shows the appends to a shard that were gathered, nil where
// nobody looks. A batch is in no caller's trace, but in one of its own: it and the
// traces of its callers have links to each other. Its time in each layer is its callers'.
func (t *Telemetry) NewBatches(shard string, cfg config.Log) BatchWatcher {
	if t.Traces == nil && cfg.SlowCall == 0 {
		return nil
	}
	tracer, layer := t.tracer(), attribute.String("loomgate.layer", "coalescing/"+shard)
	return func(ctx context.Context, callers []context.Context) (context.Context, func()) {
		ctx, span := startBatch(ctx, tracer, callers, layer, attribute.Int("loomgate.batch.size", len(callers)))
		ctx, times := profiling.CollectTimes(ctx)
		return ctx, func() {
			for _, s := range times.Spent() {
				for _, caller := range callers {
					profiling.AddTime(caller, s.Layer, s.Took)
				}
			}
			span.End()
		}
	}
}

// startBatch starts the span of a batch, if one of the callers is traced.
func startBatch(ctx context.Context, tracer trace.Tracer, callers []context.Context, attributes ...attribute.KeyValue) (context.Context, trace.Span) {
	var links []trace.Link
	for _, caller := range callers {
		if of := trace.SpanContextFromContext(caller); of.IsSampled() {
			links = append(links, trace.Link{SpanContext: of})
		}
	}
	if len(links) == 0 { // so that nothing beneath is traced by itself
		ctx = trace.ContextWithSpanContext(ctx, trace.SpanContextFromContext(callers[0]))
		return ctx, trace.SpanFromContext(ctx)
	}
	ctx, span := tracer.Start(ctx, "coalescing.batch", trace.WithLinks(links...), trace.WithAttributes(attributes...))
	for _, caller := range callers {
		trace.SpanFromContext(caller).AddLink(trace.Link{SpanContext: span.SpanContext()})
	}
	return ctx, span
}

// linked takes what is linked to a trace that is taken, and asks another sampler about
// everything else.
type linked struct{ sdktrace.Sampler }

func (s linked) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	for _, link := range p.Links {
		if link.SpanContext.IsSampled() {
			return sdktrace.AlwaysSample().ShouldSample(p)
		}
	}
	return s.Sampler.ShouldSample(p)
}

// spanLimits are OpenTelemetry's, with room for a link to each append of a batch.
func spanLimits() sdktrace.SpanLimits {
	limits := sdktrace.NewSpanLimits()
	limits.LinkCountLimit = max(limits.LinkCountLimit, coalescing.MaxAppends)
	return limits
}
