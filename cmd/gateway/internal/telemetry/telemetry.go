// Package telemetry shows what a gateway does: metrics for Prometheus, traces by OTLP and
// a log of slow calls.
//
// Every label is one of few: a method that is registered, an outcome, a shard of the
// configuration, a tenant that the configuration names. No span, label or line holds an
// execution, a payload or an argument of SQL.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	nometrics "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	notraces "go.opentelemetry.io/otel/trace/noop"

	"github.com/loomgate/loomgate/cmd/gateway/internal/config"
)

// scope names the gateway to OpenTelemetry.
const scope = "github.com/loomgate/loomgate/cmd/gateway"

// Options say what is shown.
type Options struct {
	Config  config.Telemetry
	Metrics bool // somebody reads them

	// Spans, if there is one, takes all spans instead of the endpoint.
	Spans sdktrace.SpanExporter
}

// Telemetry is the providers of a process.
type Telemetry struct {
	// Traces is nil where no traces are taken: layers then cost the least.
	Traces trace.TracerProvider
	Meters metric.MeterProvider

	registry *prometheus.Registry
	stops    []func(context.Context) error
}

// New makes the providers. Nothing is connected to yet: a collector that is not there
// keeps no gateway from serving.
func New(ctx context.Context, o Options) (*Telemetry, error) {
	t := &Telemetry{Meters: nometrics.NewMeterProvider(), registry: prometheus.NewRegistry()}
	if o.Metrics {
		if err := t.measure(); err != nil {
			return nil, err
		}
	}
	provider, err := newTraces(ctx, o)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("telemetry.traces: %w", err), t.Shutdown(ctx))
	}
	if provider != nil {
		t.Traces = provider
		t.stops = append(t.stops, provider.Shutdown)
	}
	return t, nil
}

func (t *Telemetry) measure() error {
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(t.registry), otelprometheus.WithoutScopeInfo(), otelprometheus.WithoutTargetInfo())
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter))
	t.Meters = provider
	t.stops = append(t.stops, provider.Shutdown)
	t.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return buildInfo(t.Meter())
}

// Meter makes the gateway's own instruments.
func (t *Telemetry) Meter() metric.Meter { return t.Meters.Meter(scope) }

func (t *Telemetry) tracer() trace.Tracer {
	if t.Traces == nil {
		return notraces.NewTracerProvider().Tracer(scope)
	}
	return t.Traces.Tracer(scope)
}

// Metrics answers scrapes.
func (t *Telemetry) Metrics() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}

// Shutdown sends the spans that are left and stops.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	var errs []error
	for _, stop := range t.stops {
		errs = append(errs, stop(ctx))
	}
	return errors.Join(errs...)
}
