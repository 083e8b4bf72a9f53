// Package profiling shows what one layer of a stack, or one shard, does: a span, metrics
// and profiler labels for every call that passes. It changes nothing of a call, and there
// may be several in a stack, each with a name of its own.
//
//	shard, err := profiling.New(backend, profiling.Options{Name: "shard-a"})
//
// Names, units and labels are in docs/profiling.md. None of them ever holds a tenant, an
// id, a payload or the text of an error: a span is named after its method, and an error
// goes by its class.
package profiling

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/loomgate/loomgate/spi"
)

// scope names this package to OpenTelemetry.
const scope = "github.com/loomgate/loomgate/decorators/profiling"

// Options say how a layer shows itself.
type Options struct {
	// Name tells the layer from the others of a stack: 1 to [spi.MaxDescription] bytes,
	// such as a shard's name or "above sharding". It is a label on everything, so it
	// must be one of few and no tenant's.
	Name string

	TracerProvider trace.TracerProvider // nil: the global one
	MeterProvider  metric.MeterProvider // nil: the global one
}

// layer is one of a stack.
type layer struct {
	name    string
	inner   *spi.Store
	spans   *spans
	metrics metrics
	methods map[string]*method
}

// New returns inner, shown. It offers what inner does. The error is an
// [spi.InvalidArgumentError] where the name or the store is missing, or the meter
// provider's own.
func New(inner *spi.Store, opts Options) (*spi.Store, error) {
	if len(opts.Name) == 0 || len(opts.Name) > spi.MaxDescription {
		return nil, &spi.InvalidArgumentError{Field: "layer name", Rule: "is missing or too long"}
	}
	if opts.MeterProvider == nil {
		opts.MeterProvider = otel.GetMeterProvider()
	}
	metrics, err := newMetrics(opts.MeterProvider.Meter(scope))
	if err != nil {
		return nil, err
	}
	return spi.Wrap(&layer{opts.Name, inner, newSpans(opts.TracerProvider), metrics, newMethods(opts.Name)}, inner)
}

// Caps offers what inner does: nothing here needs more.
func (l *layer) Caps(inner spi.Caps) spi.Caps { return inner }
func (l *layer) Layer() spi.Layer             { return spi.Layer{Name: "profiling"} }

// observe is the whole of every method: the same call on the inner store, shown.
func observe[Q, R any](ctx context.Context, l *layer, name string, req Q, call func(context.Context, *spi.Store, Q) (R, error)) (res R, err error) {
	o := l.begin(ctx, name)
	defer o.end() // also if the call panics
	res, err = call(o.ctx, l.inner, req)
	o.class = classOf(err)
	if o.shown() {
		o.sizes = sizesOf(req, res, err)
	}
	return res, err
}
