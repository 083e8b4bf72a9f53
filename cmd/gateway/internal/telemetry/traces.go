package telemetry

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	apiserver "github.com/loomgate/loomgate/api/server"
)

// newTraces returns what makes spans, nil where nobody takes them.
func newTraces(ctx context.Context, o Options) (*sdktrace.TracerProvider, error) {
	self := sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", "loomgate"), attribute.String("service.version", version())))
	limits := sdktrace.WithRawSpanLimits(spanLimits())
	if o.Spans != nil {
		return sdktrace.NewTracerProvider(self, limits, sdktrace.WithSyncer(o.Spans)), nil
	}
	traces := o.Config.Traces
	if !traces.Enabled() {
		return nil, nil
	}
	exporter, err := otlptracegrpc.New(ctx, otlptracegrpc.WithEndpointURL(strings.TrimSuffix(traces.Endpoint, "/")))
	if err != nil {
		return nil, err
	}
	return sdktrace.NewTracerProvider(self, limits, sdktrace.WithSampler(sampler(traces.SampleRatio)), sdktrace.WithBatcher(exporter)), nil
}

// sampler takes that share of the traces that begin here, and those that callers take.
func sampler(ratio float64) sdktrace.Sampler {
	return sdktrace.ParentBased(linked{sdktrace.TraceIDRatioBased(ratio)})
}

// A header is the trace context that a call brings, whichever way it came in.
type header struct{ ctx context.Context }

func (h header) Get(key string) string {
	if values := apiserver.Header(h.ctx, key); len(values) == 1 {
		return values[0]
	}
	return ""
}

func (header) Set(string, string) {}

func (header) Keys() []string { return []string{"traceparent"} }

// continued returns ctx with the trace that the caller brings. Of that only the ids
// count: a caller may write anything into the rest, which would be in every span.
func continued(ctx context.Context) context.Context {
	brought := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), header{ctx}))
	if !brought.IsValid() {
		return ctx
	}
	return trace.ContextWithRemoteSpanContext(ctx, brought.WithTraceState(trace.TraceState{}))
}
