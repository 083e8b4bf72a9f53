package profiling

import (
	"context"
	"reflect"
	"sync/atomic"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"
)

// spans starts them.
//
// Even a span that nobody records takes as long as all the rest of a call. So once the
// global provider has shown that it makes none, none is started while it stays the
// global one. A provider that makes spans gives each a valid context, sampled or not.
type spans struct {
	tracer trace.Tracer
	global bool
	nobody atomic.Pointer[trace.TracerProvider] // a global provider that makes no spans
}

// newSpans returns the spans of a provider; nil is the global one.
func newSpans(provider trace.TracerProvider) *spans {
	if provider == nil {
		return &spans{tracer: otel.GetTracerProvider().Tracer(scope), global: true}
	}
	return &spans{tracer: provider.Tracer(scope)}
}

// none records nothing.
var none = trace.SpanFromContext(context.Background())

// start returns a span of a call, and the context that carries it.
func (s *spans) start(ctx context.Context, m *method) (context.Context, trace.Span) {
	if !s.global {
		return s.tracer.Start(ctx, m.span, m.start...)
	}
	provider := otel.GetTracerProvider() // before the span: if it changes now, the span is the next one's
	if nobody := s.nobody.Load(); nobody != nil && *nobody == provider {
		return ctx, none
	}
	ctx, span := s.tracer.Start(ctx, m.span, m.start...)
	if !span.SpanContext().IsValid() && reflect.TypeOf(provider).Comparable() {
		nobody := provider // a copy, so that the heap is for this one call only
		s.nobody.Store(&nobody)
	}
	return ctx, span
}
