package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/loomgate/loomgate/cmd/gateway/internal/build"
)

// version is the build's.
func version() string { return build.Read().Version }

// buildInfo is a metric that is always 1, for the labels that it has.
func buildInfo(meter metric.Meter) error {
	info := build.Read()
	labels := []attribute.KeyValue{
		attribute.String("version", info.Version), attribute.String("go_version", info.GoVersion), attribute.String("revision", info.Commit),
	}
	set := metric.WithAttributes(labels...)
	_, err := meter.Int64ObservableGauge("loomgate.build.info", metric.WithDescription("1, for its labels: what was built from what."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(1, set)
			return nil
		}))
	return err
}
