package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// tenants measures calls by tenant: those that the configuration names, and "other".
type tenants struct {
	named    map[string]bool
	duration metric.Float64Histogram
}

const tenantKey = attribute.Key("loomgate.tenant")

// newTenants returns nil where no tenant is named.
func newTenants(meter metric.Meter, names []string) (t *tenants, err error) {
	if len(names) == 0 {
		return nil, nil
	}
	t = &tenants{named: map[string]bool{}}
	for _, name := range names {
		t.named[name] = true
	}
	t.duration, err = meter.Float64Histogram("loomgate.tenant.duration", seconds, metric.WithUnit("s"),
		metric.WithDescription("How long calls of the tenants take that the configuration names; of all others as other."))
	return t, err
}

func (t *tenants) record(ctx context.Context, tenant string, took time.Duration, outcome attribute.KeyValue) {
	if t == nil {
		return
	}
	if !t.named[tenant] {
		tenant = "other"
	}
	t.duration.Record(ctx, took.Seconds(), metric.WithAttributes(tenantKey.String(tenant), outcome))
}

// SetTenant says whose call that of ctx is, once its credential has been found good.
func SetTenant(ctx context.Context, tenant string) {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		c.tenant.Store(&tenant)
	}
}
