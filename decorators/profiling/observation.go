package profiling

import (
	"context"
	"runtime/pprof"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// An observation is one call while it is under way.
type observation struct {
	layer  *layer
	method *method
	caller context.Context // the caller's, whose profiler labels come back at the end
	ctx    context.Context // the inner store's

	span     trace.Span
	measured bool   // somebody reads the metrics
	times    *Times // nil: nobody collects them
	started  time.Time

	class class
	sizes sizes
}

// begin starts to observe a call. Where nothing exports, what it costs is a span that
// does not record and the labels.
func (l *layer) begin(ctx context.Context, name string) observation {
	o := observation{layer: l, method: l.methods[name], caller: ctx, class: panicked}
	o.ctx, o.span = l.spans.start(ctx, o.method)
	o.ctx = pprof.WithLabels(o.ctx, o.method.labels)
	pprof.SetGoroutineLabels(o.ctx)
	if o.measured = l.metrics.enabled(o.ctx); o.measured {
		l.metrics.inFlight.Add(o.ctx, 1, o.method.labelled(succeeded).add...)
	}
	if o.times = timesOf(ctx); o.measured || o.times != nil {
		o.started = time.Now()
	}
	return o
}

// shown reports whether somebody is told of the call.
func (o *observation) shown() bool { return o.measured || o.span.IsRecording() }

// end tells of a call that has come to its end.
func (o *observation) end() {
	if o.times != nil {
		o.times.add(o.layer.name, time.Since(o.started))
	}
	if o.measured {
		o.measure()
	}
	if o.span.IsRecording() {
		o.span.SetAttributes(o.sizes.attributes()...)
		if o.class != succeeded {
			o.span.SetAttributes(errorType(o.class))
			o.span.SetStatus(codes.Error, o.class.String())
		}
	}
	o.span.End()
	pprof.SetGoroutineLabels(o.caller)
}

// measure records the metrics of a call.
func (o *observation) measure() {
	m, calls := &o.layer.metrics, o.method.labelled(succeeded)
	m.inFlight.Add(o.ctx, -1, calls.add...)
	m.duration.Record(o.ctx, time.Since(o.started).Seconds(), o.method.labelled(o.class).record...)
	if o.sizes.batch > 0 {
		m.batchSize.Record(o.ctx, int64(o.sizes.batch), calls.record...)
	}
	for class, n := range o.sizes.results {
		if n > 0 {
			m.batchResults.Add(o.ctx, n, o.method.labelled(class).add...)
		}
	}
	if o.sizes.limit > 0 {
		m.pageLimit.Record(o.ctx, int64(o.sizes.limit), calls.record...)
		m.pageItems.Record(o.ctx, int64(o.sizes.items), calls.record...)
	}
}
