package profiling

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime/pprof"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/loomgate/loomgate/conformance/small"
	"github.com/loomgate/loomgate/spi"
)

func TestCallsAreCountedByMethodAndClass(t *testing.T) {
	e := newExporter()
	s := e.over(t, inMemory(t), "shard-a")
	for range 3 {
		_, _ = spi.Append(t.Context(), s, appendTo("a", 0)) // the second and the third conflict
	}
	_ = head(t.Context(), s)
	_ = head(canceledContext(), s)
	wantMetrics(t, e.metrics(t), map[string]string{
		"loomgate.call.duration s {loomgate.layer=shard-a,loomgate.method=Append}":                     "1",
		"loomgate.call.duration s {error.type=conflict,loomgate.layer=shard-a,loomgate.method=Append}": "2",
		"loomgate.call.duration s {loomgate.layer=shard-a,loomgate.method=Head}":                       "1",
		"loomgate.call.duration s {error.type=canceled,loomgate.layer=shard-a,loomgate.method=Head}":   "1",
		"loomgate.calls.in_flight {call} {loomgate.layer=shard-a,loomgate.method=Append}":              "0",
		"loomgate.calls.in_flight {call} {loomgate.layer=shard-a,loomgate.method=Head}":                "0",
	})
}

func TestABatchIsCountedByItemAndClass(t *testing.T) {
	e := newExporter()
	s := e.over(t, inMemory(t), "shard-a")
	_, err := spi.AppendBatch(t.Context(), s, spi.AppendBatchRequest{Appends: []spi.AppendRequest{appendTo("a", 0), appendTo("b", 3), appendTo("c", 0), appendTo("d", 9), appendTo("e", 0)}})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = spi.AppendBatch(canceledContext(), s, spi.AppendBatchRequest{Appends: []spi.AppendRequest{appendTo("a", 1)}})
	const method = "loomgate.layer=shard-a,loomgate.method=AppendBatch}"
	wantMetrics(t, e.metrics(t), map[string]string{
		"loomgate.call.duration s {" + method:                            "1",
		"loomgate.call.duration s {error.type=canceled," + method:        "1",
		"loomgate.calls.in_flight {call} {" + method:                     "0",
		"loomgate.batch.size {append} {" + method:                        "2: 6",
		"loomgate.batch.results {append} {" + method:                     "3",
		"loomgate.batch.results {append} {error.type=conflict," + method: "2",
	})
}

// TestOverFetchIsTheItemsBelowOverTheItemsAbove reads it as docs/profiling.md says.
func TestOverFetchIsTheItemsBelowOverTheItemsAbove(t *testing.T) {
	e := newExporter()
	split, err := small.Split(t.Context(), e.over(t, inMemory(t), "shard-a"), e.over(t, inMemory(t), "shard-b"))
	if err != nil {
		t.Fatal(err)
	}
	s := e.over(t, split, "above")
	for i := range 40 {
		if _, err := spi.Append(t.Context(), s, appendTo(spi.ExecutionID(fmt.Sprint("e", i)), 0)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if _, err := spi.ListExecutions(t.Context(), s, spi.ListExecutionsRequest{Limit: 5}); err != nil {
			t.Fatal(err)
		}
	}
	points := e.metrics(t)
	for layer, want := range map[string]string{"above": "2: 10", "shard-a": "2: 10", "shard-b": "2: 10"} { // each shard is asked for all five
		for _, name := range []string{"limit", "items"} {
			if got := points["loomgate.page."+name+" {item} {loomgate.layer="+layer+",loomgate.method=ListExecutions}"]; got != want {
				t.Errorf("the %s of %s are %q, not %q", name, layer, got, want)
			}
		}
	}
}

func TestAPageIsMeasuredByWhatItHoldsNotByWhatItWasAskedFor(t *testing.T) {
	e := newExporter()
	s := e.over(t, inMemory(t), "shard-a")
	for _, id := range []spi.ExecutionID{"a", "b"} {
		if _, err := spi.Append(t.Context(), s, appendTo(id, 0)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		_, _ = spi.ListExecutions(t.Context(), s, spi.ListExecutionsRequest{Limit: 10})
		_, _ = spi.ListExecutions(canceledContext(), s, spi.ListExecutionsRequest{Limit: 10})
	}
	points := e.metrics(t)
	for name, want := range map[string]string{"limit": "2: 20", "items": "2: 4"} {
		if got := points["loomgate.page."+name+" {item} {loomgate.layer=shard-a,loomgate.method=ListExecutions}"]; got != want {
			t.Errorf("the %s are %q, not %q", name, got, want)
		}
	}
}

// TestEachInstrumentIsMeasuredAlone drops all others in the SDK, and the spans.
func TestEachInstrumentIsMeasuredAlone(t *testing.T) {
	all := []string{"loomgate.call.duration", "loomgate.calls.in_flight", "loomgate.batch.size", "loomgate.batch.results", "loomgate.page.limit", "loomgate.page.items"}
	for _, name := range all {
		e := newExporter()
		var others []sdkmetric.View
		for _, other := range all {
			if other != name {
				others = append(others, sdkmetric.NewView(sdkmetric.Instrument{Name: other}, sdkmetric.Stream{Aggregation: sdkmetric.AggregationDrop{}}))
			}
		}
		e.traces = sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))
		e.reader = sdkmetric.NewManualReader()
		e.meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(e.reader), sdkmetric.WithView(others...))
		s := e.over(t, inMemory(t), "shard-a")
		_, err := spi.AppendBatch(t.Context(), s, spi.AppendBatchRequest{Appends: []spi.AppendRequest{appendTo("a", 0)}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := spi.ListExecutions(t.Context(), s, spi.ListExecutionsRequest{Limit: 10}); err != nil {
			t.Fatal(err)
		}
		points := e.metrics(t)
		for point := range points {
			if !strings.HasPrefix(point, name+" ") {
				t.Errorf("beside %s there is %s", name, point)
			}
		}
		if len(points) == 0 {
			t.Errorf("%s alone is not measured", name)
		}
	}
}

// TestEveryRequestWithALimitIsOfAPage finds a method whose pages nobody measures.
func TestEveryRequestWithALimitIsOfAPage(t *testing.T) {
	for m := range reflect.TypeFor[spi.Decorator]().Methods() {
		if m.Name == "Caps" || m.Name == "Layer" {
			continue
		}
		req, res := reflect.New(m.Type.In(1)).Elem(), reflect.New(m.Type.Out(0)).Elem()
		limit, want := req.FieldByName("Limit"), 0
		if limit.IsValid() {
			limit.SetInt(7)
			want = 7
		}
		items := 0
		for i := range res.NumField() {
			switch field := res.Field(i); {
			case m.Name != "AppendBatch" && field.Kind() == reflect.Slice && res.Type().Field(i).Name != "Receipt" && res.Type().Field(i).Name != "Missing" && want > 0:
				field.Set(reflect.MakeSlice(field.Type(), 3, 3))
				items = 3
			case res.Type().Field(i).Name == "Swept":
				field.SetInt(3)
				items = 3
			}
		}
		if m.Name == "ListDataKeys" {
			items = 1 // three keys of one owner
		}
		if got := sizesOf(req.Interface(), res.Interface(), nil); got.limit != want || got.items != items {
			t.Errorf("%s: %+v, not %d of %d", m.Name, got, items, want)
		}
		if got := sizesOf(req.Interface(), res.Interface(), errors.ErrUnsupported); got.limit != 0 || got.items != 0 {
			t.Errorf("%s that failed: %+v", m.Name, got)
		}
	}
}

func TestAPageOfKeysIsAsLongAsItsOwnersAreMany(t *testing.T) {
	keys := []spi.DataKey{{Owner: "a", Version: 1}, {Owner: "a", Version: 2}, {Owner: "b", Version: 1}, {Owner: "c", Version: 1}, {Owner: "c", Version: 4}}
	if n := owners(keys); n != 3 {
		t.Errorf("it is %d", n)
	}
}

func TestACallIsInFlightWhileItIsUnderWay(t *testing.T) {
	const inFlight = "loomgate.calls.in_flight {call} {loomgate.layer=shard-a,loomgate.method=Head}"
	e := newExporter()
	var s *spi.Store
	depth := 0
	s = e.over(t, hooked(t, func(ctx context.Context) error {
		depth++
		if got := e.metrics(t)[inFlight]; got != fmt.Sprint(depth) {
			t.Errorf("with %d under way it is %q", depth, got)
		}
		if depth < 3 {
			return head(ctx, s)
		}
		return nil
	}), "shard-a")
	if err := head(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if got := e.metrics(t)[inFlight]; got != "0" {
		t.Errorf("at the end it is %q", got)
	}
}

func TestADurationIsInSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in which time passes only while one sleeps
		e := newExporter()
		s := e.over(t, hooked(t, func(context.Context) error {
			time.Sleep(1500 * time.Millisecond)
			return nil
		}), "shard-a")
		if err := head(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		_, seconds := e.collect(t)
		if seconds != 1.5 {
			t.Errorf("it is %v", seconds)
		}
	})
}

func TestACallThatPanicsIsShownToo(t *testing.T) {
	e := newExporter()
	s := e.over(t, hooked(t, func(context.Context) error { panic("of e") }), "shard-a")
	func() {
		defer func() {
			if recover() != "of e" {
				t.Error("the panic is lost")
			}
		}()
		_ = head(t.Context(), s)
	}()
	spans := e.spans.GetSpans()
	if len(spans) != 1 {
		t.Fatalf("there are %d spans", len(spans))
	}
	wantSpan(t, spans[0], "loomgate.Head", failed("panic"), attribute.String("loomgate.layer", "shard-a"), attribute.String("error.type", "panic"))
	wantMetrics(t, e.metrics(t), map[string]string{
		"loomgate.call.duration s {error.type=panic,loomgate.layer=shard-a,loomgate.method=Head}": "1",
		"loomgate.calls.in_flight {call} {loomgate.layer=shard-a,loomgate.method=Head}":           "0",
	})
}

// goroutineLabels returns the profiler's labels of this goroutine.
func goroutineLabels(t *testing.T) string {
	t.Helper()
	var text bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&text, 1); err != nil {
		t.Fatal(err)
	}
	for stack := range strings.SplitSeq(text.String(), "\n\n") {
		if strings.Contains(stack, "goroutineLabels") {
			_, labels, _ := strings.Cut(stack, "# labels: ")
			labels, _, _ = strings.Cut(labels, "\n")
			return labels
		}
	}
	t.Fatal("this goroutine is in no profile")
	return ""
}

func TestAProfileTellsTheInnermostLayerAndItsMethod(t *testing.T) {
	e := newExporter()
	inside := ""
	s := e.over(t, e.over(t, hooked(t, func(context.Context) error {
		inside = goroutineLabels(t)
		return nil
	}), "below"), "above")
	pprof.Do(t.Context(), pprof.Labels("job", "nightly"), func(ctx context.Context) {
		if err := head(ctx, s); err != nil {
			t.Error(err)
		}
		if after := goroutineLabels(t); after != `{"job":"nightly"}` {
			t.Errorf("after the call it tells %s", after)
		}
	})
	if want := `{"job":"nightly", "loomgate.layer":"below", "loomgate.method":"Head"}`; inside != want {
		t.Errorf("within the call it tells %s, not %s", inside, want)
	}
}
