package telemetry

import (
	"context"
	"runtime/debug"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// version is the build's.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

// buildInfo is a metric that is always 1, for the labels that it has.
func buildInfo(meter metric.Meter) error {
	labels := []attribute.KeyValue{attribute.String("version", version())}
	if info, ok := debug.ReadBuildInfo(); ok {
		labels = append(labels, attribute.String("go_version", info.GoVersion))
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				labels = append(labels, attribute.String("revision", s.Value))
			}
		}
	}
	set := metric.WithAttributes(labels...)
	_, err := meter.Int64ObservableGauge("loomgate.build.info", metric.WithDescription("1, for its labels: what was built from what."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(1, set)
			return nil
		}))
	return err
}
