package profiling_test

import (
	"errors"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/conformance"
	"github.com/loomgate/loomgate/decorators/profiling"
	"github.com/loomgate/loomgate/spi"
)

func inMemory(tb testing.TB) *spi.Store {
	tb.Helper()
	s, err := memory.New()
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func TestConformance(t *testing.T) {
	open := conformance.PerTest(func(t *testing.T) *spi.Store { return inMemory(t) })
	shown := profiling.Options{
		Name:           "kit",
		TracerProvider: sdktrace.NewTracerProvider(),
		MeterProvider:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())),
	}
	conformance.Decorator(t, open, func(inner ...*spi.Store) (*spi.Store, error) { return profiling.New(inner[0], shown) })
}

func TestALayerNeedsANameAndAStore(t *testing.T) {
	for what, make := range map[string]func() (*spi.Store, error){
		"no name": func() (*spi.Store, error) { return profiling.New(inMemory(t), profiling.Options{}) },
		"a long name": func() (*spi.Store, error) {
			return profiling.New(inMemory(t), profiling.Options{Name: strings.Repeat("n", spi.MaxDescription+1)})
		},
		"no store": func() (*spi.Store, error) { return profiling.New(nil, profiling.Options{Name: "shard-a"}) },
	} {
		s, err := make()
		if _, ok := errors.AsType[*spi.InvalidArgumentError](err); !ok || s != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := profiling.New(inMemory(t), profiling.Options{Name: strings.Repeat("n", spi.MaxDescription)}); err != nil {
		t.Error(err)
	}
}

// refusing is a meter provider whose meter refuses one instrument.
type refusing struct {
	metricnoop.MeterProvider
	instrument string
}

func (r refusing) Meter(string, ...metric.MeterOption) metric.Meter {
	return refusingMeter{instrument: r.instrument}
}

type refusingMeter struct {
	metricnoop.Meter
	instrument string
}

var errRefused = errors.New("refused")

func (r refusingMeter) err(name string) error {
	if name == r.instrument {
		return errRefused
	}
	return nil
}

func (r refusingMeter) Int64Counter(name string, _ ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return metricnoop.Int64Counter{}, r.err(name)
}

func (r refusingMeter) Int64UpDownCounter(name string, _ ...metric.Int64UpDownCounterOption) (metric.Int64UpDownCounter, error) {
	return metricnoop.Int64UpDownCounter{}, r.err(name)
}

func (r refusingMeter) Int64Histogram(name string, _ ...metric.Int64HistogramOption) (metric.Int64Histogram, error) {
	return metricnoop.Int64Histogram{}, r.err(name)
}

func (r refusingMeter) Float64Histogram(name string, _ ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return metricnoop.Float64Histogram{}, r.err(name)
}

func TestALayerWithoutAnInstrumentIsNotMade(t *testing.T) {
	for _, name := range []string{"loomgate.call.duration", "loomgate.calls.in_flight", "loomgate.batch.size", "loomgate.batch.results", "loomgate.page.limit", "loomgate.page.items"} {
		_, err := profiling.New(inMemory(t), profiling.Options{Name: "shard-a", MeterProvider: refusing{instrument: name}})
		if !errors.Is(err, errRefused) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}
