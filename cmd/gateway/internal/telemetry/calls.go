package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"connectrpc.com/connect/v2"
	"go.opentelemetry.io/otel/attribute"
	otelcodes "go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/loomgate/loomgate/cmd/gateway/internal/config"
	"github.com/loomgate/loomgate/decorators/profiling"
)

// Calls shows the calls of the API, as interceptors: they see no method that is not
// registered, so that a caller makes up no label and no span's name.
type Calls struct {
	tracer   trace.Tracer
	duration metric.Float64Histogram
	inFlight metric.Int64UpDownCounter
	tenants  *tenants
	slow     time.Duration // 0: none is
	log      *slog.Logger
}

// The labels, by their names in OpenTelemetry's conventions.
const (
	systemKey  = attribute.Key("rpc.system.name")
	methodKey  = attribute.Key("rpc.method")
	outcomeKey = attribute.Key("rpc.response.status_code")
)

var seconds = metric.WithExplicitBucketBoundaries(.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30)

// NewCalls returns the interceptors of a process.
func (t *Telemetry) NewCalls(cfg *config.Config, log *slog.Logger) (*Calls, error) {
	c := &Calls{tracer: t.tracer(), slow: cfg.Log.SlowCall, log: log}
	var errs [3]error
	c.duration, errs[0] = t.Meter().Float64Histogram("loomgate.api.duration", seconds, metric.WithUnit("s"),
		metric.WithDescription("How long calls of the API take."))
	c.inFlight, errs[1] = t.Meter().Int64UpDownCounter("loomgate.api.in_flight", metric.WithUnit("{call}"),
		metric.WithDescription("Calls of the API that are under way."))
	c.tenants, errs[2] = newTenants(t.Meter(), cfg.Telemetry.Tenants)
	return c, errors.Join(errs[:]...)
}

// Unary is the interceptor of gRPC's calls.
func (c *Calls) Unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (res any, err error) {
	call := c.begin(ctx, "grpc", info.FullMethod)
	ctx = call.collectTimes()
	defer func() { call.end(codeOf(err)) }()
	return handler(ctx, req)
}

// Stream is the interceptor of gRPC's streams. What a stream does, the layers show; that
// it lasts is no slowness, but see [Calls.Append].
func (c *Calls) Stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	call := c.begin(stream.Context(), "grpc", info.FullMethod)
	defer func() { call.end(codeOf(err)) }()
	return handler(srv, &streamOf{stream, call.ctx})
}

// streamOf is a stream with another context.
type streamOf struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *streamOf) Context() context.Context { return s.ctx }

// Connect is the interceptor of calls over HTTP.
func (c *Calls) Connect(next connect.ServerFunc) connect.ServerFunc {
	return func(ctx context.Context, spec connect.Spec, stream connect.ServerStream) (err error) {
		call := c.begin(ctx, "connectrpc", spec.Procedure)
		ctx = call.collectTimes()
		defer func() { call.end(codeOf(err)) }()
		return next(ctx, spec, stream)
	}
}

// A call is one that is under way.
type call struct {
	*Calls
	ctx     context.Context
	span    trace.Span
	started time.Time
	method  string
	labels  []attribute.KeyValue
	times   *profiling.Times // nil: they are not collected
	tenant  atomic.Pointer[string]
}

type callKey struct{}

func (c *Calls) begin(ctx context.Context, system, procedure string) *call {
	method := strings.TrimPrefix(procedure, "/")
	started := &call{Calls: c, started: time.Now(), method: method, labels: []attribute.KeyValue{systemKey.String(system), methodKey.String(method)}}
	ctx = context.WithValue(continued(ctx), callKey{}, started)
	started.ctx, started.span = c.tracer.Start(ctx, method, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(started.labels...))
	c.inFlight.Add(started.ctx, 1, metric.WithAttributes(started.labels...))
	return started
}

// collectTimes returns the call's context, under which its layers tell their times if
// slow calls are logged.
func (c *call) collectTimes() context.Context {
	if c.slow > 0 {
		c.ctx, c.times = profiling.CollectTimes(c.ctx)
	}
	return c.ctx
}

func (c *call) end(code codes.Code) {
	took := time.Since(c.started)
	c.inFlight.Add(c.ctx, -1, metric.WithAttributes(c.labels...))
	outcome := outcomeKey.String(code.String())
	c.duration.Record(c.ctx, took.Seconds(), metric.WithAttributes(c.labels[0], c.labels[1], outcome))
	if tenant := c.tenant.Load(); tenant != nil {
		c.tenants.record(c.ctx, *tenant, took, outcome)
	}
	c.logSlow(took, code)
	c.span.SetAttributes(outcome)
	if code != codes.OK {
		c.span.SetStatus(otelcodes.Error, code.String())
	}
	c.span.End()
}

// codeOf returns what a call came to, as one of gRPC's codes.
func codeOf(err error) codes.Code {
	if err == nil {
		return codes.OK
	}
	var code codes.Code
	if refused, ok := errors.AsType[*connect.Error](err); ok {
		code = codes.Code(refused.Code())
	} else if st, ok := status.FromError(err); ok {
		code = st.Code()
	} else {
		code = status.FromContextError(err).Code()
	}
	if code > codes.Unauthenticated { // a label has no others
		code = codes.Unknown
	}
	return code
}
