package profiling

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/spi"
)

// An exporter keeps what layers show.
type exporter struct {
	spans  *tracetest.InMemoryExporter
	reader *sdkmetric.ManualReader
	traces *sdktrace.TracerProvider
	meters *sdkmetric.MeterProvider
}

func newExporter() *exporter {
	e := &exporter{spans: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader()}
	e.traces = sdktrace.NewTracerProvider(sdktrace.WithSyncer(e.spans))
	e.meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(e.reader))
	return e
}

// over returns a layer over a store.
func (e *exporter) over(t *testing.T, inner *spi.Store, name string) *spi.Store {
	t.Helper()
	s, err := New(inner, Options{Name: name, TracerProvider: e.traces, MeterProvider: e.meters})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// metrics returns what is measured now, each point as "name unit {labels}" with its
// value: of a histogram the number and the sum, of one of times the number.
func (e *exporter) metrics(t *testing.T) map[string]string {
	t.Helper()
	points, _ := e.collect(t)
	return points
}

// collect returns also the sum of all times.
func (e *exporter) collect(t *testing.T) (points map[string]string, seconds float64) {
	t.Helper()
	var read metricdata.ResourceMetrics
	if err := e.reader.Collect(context.Background(), &read); err != nil {
		t.Fatal(err)
	}
	points = map[string]string{}
	for _, s := range read.ScopeMetrics {
		for _, m := range s.Metrics {
			point := func(labels attribute.Set, value string) {
				points[fmt.Sprintf("%s %s {%s}", m.Name, m.Unit, labels.Encoded(attribute.DefaultEncoder()))] = value
			}
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					point(p.Attributes, fmt.Sprint(p.Value))
				}
			case metricdata.Histogram[int64]:
				for _, p := range data.DataPoints {
					point(p.Attributes, fmt.Sprintf("%d: %d", p.Count, p.Sum))
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					seconds += p.Sum
					point(p.Attributes, fmt.Sprint(p.Count))
				}
			default:
				t.Errorf("%s is a %T", m.Name, data)
			}
		}
	}
	return points, seconds
}

func wantMetrics(t *testing.T, got, want map[string]string) {
	t.Helper()
	for point, value := range want {
		if got[point] != value {
			t.Errorf("%s is %q, not %q", point, got[point], value)
		}
	}
	for point, value := range got {
		if _, wanted := want[point]; !wanted {
			t.Errorf("%s is %q, which nobody wants", point, value)
		}
	}
}

// hook is a backend that does something in each Head, and answers with its error.
type hook struct {
	spi.EventMethods
	head func(context.Context) error
}

func (h hook) Head(ctx context.Context, _ spi.HeadRequest) (spi.HeadResponse, error) {
	return spi.HeadResponse{}, h.head(ctx)
}

func hooked(t *testing.T, head func(context.Context) error) *spi.Store {
	t.Helper()
	s, err := spi.Open(spi.Backend{Events: hook{head: head}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func inMemory(t *testing.T) *spi.Store {
	t.Helper()
	s, err := memory.New()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func head(ctx context.Context, s *spi.Store) error {
	_, err := spi.Head(ctx, s, spi.HeadRequest{Execution: "e"})
	return err
}

func appendTo(id spi.ExecutionID, expected int64) spi.AppendRequest {
	return spi.AppendRequest{Execution: id, ExpectedHead: expected, Events: []spi.Event{{ID: spi.NewEventID(), Kind: "Noted"}}}
}

// eachMethod calls do with each method of a layer that is the interface's, by name.
func eachMethod(l *layer, do func(name string, method reflect.Value)) {
	for m := range reflect.TypeFor[spi.Decorator]().Methods() {
		if m.Name != "Caps" && m.Name != "Layer" {
			do(m.Name, reflect.ValueOf(l).MethodByName(m.Name))
		}
	}
}
