package profiling

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/metric"
)

// metrics are the instruments. Layers of one provider share them, and differ in labels.
type metrics struct {
	duration     metric.Float64Histogram
	inFlight     metric.Int64UpDownCounter
	batchSize    metric.Int64Histogram
	batchResults metric.Int64Counter
	pageLimit    metric.Int64Histogram
	pageItems    metric.Int64Histogram
}

// Where histograms are cut.
var (
	seconds = metric.WithExplicitBucketBoundaries(.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30)
	appends = metric.WithExplicitBucketBoundaries(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000)
	items   = metric.WithExplicitBucketBoundaries(0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)
)

func newMetrics(meter metric.Meter) (m metrics, err error) {
	var errs [6]error
	m.duration, errs[0] = meter.Float64Histogram("loomgate.call.duration", seconds, metric.WithUnit("s"),
		metric.WithDescription("How long calls of a layer take."))
	m.inFlight, errs[1] = meter.Int64UpDownCounter("loomgate.calls.in_flight", metric.WithUnit("{call}"),
		metric.WithDescription("Calls of a layer that are under way."))
	m.batchSize, errs[2] = meter.Int64Histogram("loomgate.batch.size", appends, metric.WithUnit("{append}"),
		metric.WithDescription("Appends that a batch holds."))
	m.batchResults, errs[3] = meter.Int64Counter("loomgate.batch.results", metric.WithUnit("{append}"),
		metric.WithDescription("Appends of batches, by what each came to."))
	m.pageLimit, errs[4] = meter.Int64Histogram("loomgate.page.limit", items, metric.WithUnit("{item}"),
		metric.WithDescription("Items that a page is asked for."))
	m.pageItems, errs[5] = meter.Int64Histogram("loomgate.page.items", items, metric.WithUnit("{item}"),
		metric.WithDescription("Items that a page returns."))
	return m, errors.Join(errs[:]...)
}

// enabled reports whether somebody reads one of them.
func (m *metrics) enabled(ctx context.Context) bool {
	return m.duration.Enabled(ctx) || m.inFlight.Enabled(ctx) || m.batchSize.Enabled(ctx) ||
		m.batchResults.Enabled(ctx) || m.pageLimit.Enabled(ctx) || m.pageItems.Enabled(ctx)
}
