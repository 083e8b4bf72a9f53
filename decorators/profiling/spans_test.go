package profiling

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"reflect"
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/loomgate/loomgate/spi"
)

// TestEveryMethodCallsItsOwnAndShowsItself calls each with a request that says nothing:
// the error names the method that was called below.
func TestEveryMethodCallsItsOwnAndShowsItself(t *testing.T) {
	e, inner := newExporter(), inMemory(t)
	meter, err := newMetrics(e.meters.Meter(scope))
	if err != nil {
		t.Fatal(err)
	}
	l := &layer{"shard-a", inner, newSpans(e.traces), meter, newMethods("shard-a")}
	points := map[string]string{}
	eachMethod(l, func(name string, method reflect.Value) {
		e.spans.Reset()
		answer := method.Call([]reflect.Value{reflect.ValueOf(t.Context()), reflect.Zero(method.Type().In(1))})
		class := ""
		if err, failed := answer[1].Interface().(error); failed {
			op, ok := errors.AsType[*spi.OpError](err)
			if !ok || op.Op != name {
				t.Errorf("%s calls another: %v", name, err)
			}
			class = "error.type=invalid_argument,"
		} else if name != "GetOwnership" {
			t.Errorf("%s lets an empty request pass", name)
		}
		if spans := e.spans.GetSpans(); len(spans) != 1 || spans[0].Name != "loomgate."+name {
			t.Errorf("%s shows the spans %v", name, spans)
		}
		points["loomgate.call.duration s {"+class+"loomgate.layer=shard-a,loomgate.method="+name+"}"] = "1"
		points["loomgate.calls.in_flight {call} {loomgate.layer=shard-a,loomgate.method="+name+"}"] = "0"
	})
	wantMetrics(t, e.metrics(t), points)
}

// wantSpan checks all that a span says.
func wantSpan(t *testing.T, span tracetest.SpanStub, name string, status sdktrace.Status, attributes ...attribute.KeyValue) {
	t.Helper()
	got, want := attribute.NewSet(span.Attributes...), attribute.NewSet(attributes...)
	if span.Name != name || span.Status != status || !got.Equals(&want) || span.SpanKind != trace.SpanKindInternal || len(span.Events)+len(span.Links) > 0 {
		t.Errorf("the span is %q, %v, %v, %v, %v, not %q, %v, %v", span.Name, span.Status, span.Attributes, span.SpanKind, span.Events, name, status, attributes)
	}
	if span.EndTime.Before(span.StartTime) {
		t.Errorf("%s has not ended", span.Name)
	}
}

func TestASpanTellsLayerSizesAndClassAndNothingElse(t *testing.T) {
	e := newExporter()
	e.meters = sdkmetric.NewMeterProvider() // which nobody reads
	s := e.over(t, inMemory(t), "shard-a")
	layer := attribute.String("loomgate.layer", "shard-a")
	ctx := t.Context()

	_, _ = spi.AppendBatch(ctx, s, spi.AppendBatchRequest{Appends: []spi.AppendRequest{appendTo("a", 0), appendTo("b", 3), appendTo("c", 0)}})
	_, _ = spi.ListExecutions(ctx, s, spi.ListExecutionsRequest{Limit: 10})
	_, _ = spi.Append(ctx, s, appendTo("a", 0))
	_, _ = spi.ListExecutions(canceledContext(), s, spi.ListExecutionsRequest{Limit: 10})
	_, _ = spi.AppendBatch(canceledContext(), s, spi.AppendBatchRequest{Appends: []spi.AppendRequest{appendTo("a", 1)}})

	spans := e.spans.GetSpans()
	if len(spans) != 5 {
		t.Fatalf("there are %d spans", len(spans))
	}
	wantSpan(t, spans[0], "loomgate.AppendBatch", sdktrace.Status{}, layer, attribute.Int("loomgate.batch.size", 3))
	wantSpan(t, spans[1], "loomgate.ListExecutions", sdktrace.Status{}, layer, attribute.Int("loomgate.page.limit", 10), attribute.Int("loomgate.page.items", 2))
	wantSpan(t, spans[2], "loomgate.Append", failed("conflict"), layer, attribute.String("error.type", "conflict"))
	wantSpan(t, spans[3], "loomgate.ListExecutions", failed("canceled"), layer, attribute.String("error.type", "canceled"))
	wantSpan(t, spans[4], "loomgate.AppendBatch", failed("canceled"), layer, attribute.Int("loomgate.batch.size", 1), attribute.String("error.type", "canceled"))
}

func failed(class string) sdktrace.Status {
	return sdktrace.Status{Code: codes.Error, Description: class}
}

func canceledContext() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func TestTheSpansOfLayersAreNestedInTheCallers(t *testing.T) {
	e := newExporter()
	s := e.over(t, e.over(t, hooked(t, func(ctx context.Context) error {
		_, span := e.traces.Tracer("test").Start(ctx, "backend")
		span.End()
		return nil
	}), "below"), "above")
	ctx, caller := e.traces.Tracer("test").Start(t.Context(), "caller")
	if err := head(ctx, s); err != nil {
		t.Fatal(err)
	}
	caller.End()
	spans := e.spans.GetSpans() // in the order in which they ended
	if len(spans) != 4 {
		t.Fatalf("there are %d spans", len(spans))
	}
	for i, span := range spans[:3] {
		if above := spans[i+1]; span.Parent.SpanID() != above.SpanContext.SpanID() || span.SpanContext.TraceID() != caller.SpanContext().TraceID() {
			t.Errorf("%q is not in %q", span.Name, above.Name)
		}
	}
	for i, name := range []string{"below", "above"} {
		wantSpan(t, spans[i+1], "loomgate.Head", sdktrace.Status{}, attribute.String("loomgate.layer", name))
	}
}

func TestASamplerSeesTheLayer(t *testing.T) {
	e, seen := newExporter(), ""
	e.traces = sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler(func(p sdktrace.SamplingParameters) {
		set := attribute.NewSet(p.Attributes...)
		value, _ := set.Value("loomgate.layer")
		seen = p.Name + " of " + value.AsString()
	})))
	if err := head(t.Context(), e.over(t, inMemory(t), "shard-a")); err != nil || seen != "loomgate.Head of shard-a" {
		t.Errorf("it sees %q (%v)", seen, err)
	}
}

type sampler func(sdktrace.SamplingParameters)

func (s sampler) Description() string { return "test" }

func (s sampler) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	s(p)
	return sdktrace.SamplingResult{Decision: sdktrace.Drop}
}

// TestTheGlobalProvidersCountFromWhenTheyAreSet sets them under a layer that has been in
// use. That can be done once in a process, so it has one of its own.
func TestTheGlobalProvidersCountFromWhenTheyAreSet(t *testing.T) {
	const own = "LOOMGATE_TEST_SETS_GLOBALS"
	if os.Getenv(own) == "" {
		again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
		again.Env = append(os.Environ(), own+"=1")
		if out, err := again.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	var inside trace.Span
	s, err := New(hooked(t, func(ctx context.Context) error {
		inside = trace.SpanFromContext(ctx)
		return nil
	}), Options{Name: "shard-a"})
	if err != nil {
		t.Fatal(err)
	}
	callers := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}}))
	for range 2 { // the first call shows that there is none; later ones leave the caller's span in its place
		if err := errors.Join(head(t.Context(), s), head(callers, s)); err != nil {
			t.Fatal(err)
		}
		if want := trace.SpanFromContext(callers); inside.SpanContext().SpanID() != (trace.SpanID{2}) || reflect.TypeOf(inside) != reflect.TypeOf(want) {
			t.Errorf("the backend is in the span %T %v", inside, inside.SpanContext())
		}
	}
	e := newExporter()
	otel.SetTracerProvider(e.traces)
	otel.SetMeterProvider(e.meters)
	if err := errors.Join(head(t.Context(), s), head(t.Context(), s)); err != nil {
		t.Fatal(err)
	}
	if spans := e.spans.GetSpans(); len(spans) != 2 || spans[1].SpanContext.SpanID() != inside.SpanContext().SpanID() {
		t.Errorf("there are %v", spans)
	}
	if points := e.metrics(t); points["loomgate.call.duration s {loomgate.layer=shard-a,loomgate.method=Head}"] != "2" {
		t.Errorf("measured is %v", points)
	}
}
