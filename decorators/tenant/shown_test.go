package tenant_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/loomgate/loomgate/decorators/profiling"
	"github.com/loomgate/loomgate/spi"
)

// TestNoSpanAndNoMetricNamesATenantOrAnExecution has two tenants work with profiling
// above and below their views, and looks for their names in all that is exported.
func TestNoSpanAndNoMetricNamesATenantOrAnExecution(t *testing.T) {
	spans, reader := tracetest.NewInMemoryExporter(), sdkmetric.NewManualReader()
	traces := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	shown := func(inner *spi.Store, name string) *spi.Store {
		s, err := profiling.New(inner, profiling.Options{Name: name, TracerProvider: traces, MeterProvider: meters})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	marks := []string{"zebra-tenant", "yak-tenant", "gnu-execution"}
	shared, failures := shown(inMemory(t), "below"), 0
	for _, name := range marks[:2] {
		s := shown(view(t, spi.TenantName(name), shared), "above")
		n := 0
		choose := plain()
		choose.name = func() string { n++; return fmt.Sprint(marks[2], n%3) }
		for range 3 {
			for _, method := range slices.Sorted(maps.Keys(calls)) {
				if _, err := calls[method](choose)(t.Context(), s); err != nil && strings.Contains(err.Error(), marks[2]) {
					failures++
				}
			}
		}
	}
	var measured metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &measured); err != nil {
		t.Fatal(err)
	}
	exported := fmt.Sprintf("%+v\n%+v", spans.GetSpans(), measured)
	for _, there := range []string{"above", "below", "loomgate.Append", "not_found", "loomgate.calls.in_flight"} {
		if failures == 0 || !strings.Contains(exported, there) {
			t.Errorf("after %d errors %q is not exported: the test looks in the wrong place", failures, there)
		}
	}
	for _, mark := range marks {
		if at := strings.Index(exported, mark); at >= 0 {
			t.Errorf("exported is …%.200s", exported[max(0, at-100):])
		}
	}
}
