package telemetry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/loomgate/loomgate/cmd/gateway/internal/config"
	"github.com/loomgate/loomgate/decorators/profiling"
)

func TestTheSlowLayerIsTheInnermostThatTookHalfOfTheTime(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	for want, spent := range map[string][]profiling.Spent{
		"pool/a":  {{Layer: "pool/a", Took: ms(80)}, {Layer: "sql/a", Took: ms(5)}, {Layer: "shard/a", Took: ms(90)}, {Layer: "gateway", Took: ms(95)}},
		"sql/a":   {{Layer: "pool/a", Took: ms(1)}, {Layer: "sql/a", Took: ms(50)}, {Layer: "shard/a", Took: ms(90)}, {Layer: "gateway", Took: ms(95)}},
		"shard/b": {{Layer: "sql/b", Took: ms(9)}, {Layer: "shard/b", Took: ms(60)}, {Layer: "sharded", Took: ms(61)}, {Layer: "gateway", Took: ms(62)}},
		"gateway": {{Layer: "shard/a", Took: ms(10)}, {Layer: "sharded", Took: ms(11)}, {Layer: "gateway", Took: ms(95)}},
		"api":     {{Layer: "shard/a", Took: ms(10)}, {Layer: "gateway", Took: ms(12)}},
	} {
		if got := slowest(spent, ms(100)); got != want {
			t.Errorf("%s, not %s: %v", got, want, spent)
		}
	}
}

func TestAnOutcomeIsOneOfGRPCsCodes(t *testing.T) {
	for want, err := range map[codes.Code]error{
		codes.OK:               nil,
		codes.NotFound:         status.Error(codes.NotFound, "x"),
		codes.Unavailable:      fmt.Errorf("wrapped: %w", status.Error(codes.Unavailable, "x")),
		codes.PermissionDenied: connect.NewError(connect.CodePermissionDenied, "x"),
		codes.Canceled:         context.Canceled,
		codes.DeadlineExceeded: fmt.Errorf("wrapped: %w", context.DeadlineExceeded),
		codes.Unknown:          errors.New("x"),
	} {
		if got := codeOf(err); got != want {
			t.Errorf("%v is %v, not %v", err, got, want)
		}
	}
	if got := codeOf(status.Error(4711, "x")); got != codes.Unknown {
		t.Errorf("a code that there is not is %v", got)
	}
}

func TestAStatementGoesByWhatItDoesToWhichTable(t *testing.T) {
	for sql, want := range map[string]string{
		"BEGIN ISOLATION LEVEL READ COMMITTED":                                     "BEGIN",
		"LOCK TABLE loomgate.slot_barrier IN ROW SHARE MODE":                       "LOCK slot_barrier",
		"WITH i AS (SELECT 1), c AS (\n\tINSERT INTO loomgate.events (a) SELECT 1": "INSERT events",
		"SELECT 'secret' FROM (SELECT * FROM loomgate.events) e":                   "SELECT events",
		"UPDATE loomgate.executions SET x = 'secret'":                              "UPDATE executions",
		"select version()": "SELECT",
		"":                 "?",
	} {
		if got := summary(sql); got != want {
			t.Errorf("%q goes by %q, not %q", sql, got, want)
		}
	}
}

func TestALineAboutACallHasTheIDOfItsTrace(t *testing.T) {
	var out bytes.Buffer
	log := WithTraceIDs(slog.New(slog.NewTextHandler(&out, nil))).With("a", 1)
	ctx := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{15: 7}, SpanID: trace.SpanID{7: 1}}))
	log.InfoContext(ctx, "of a call")
	log.InfoContext(t.Context(), "of none")
	lines := strings.Split(out.String(), "\n")
	if !strings.HasSuffix(lines[0], "trace=00000000000000000000000000000007") || strings.Contains(lines[1], "trace=") {
		t.Errorf("%q", lines)
	}
}

// A collector that is not there neither keeps a gateway from starting nor from stopping.
func TestACollectorThatIsNotThereStopsNobody(t *testing.T) {
	telemetry, err := New(t.Context(), Options{Config: config.Telemetry{Traces: config.Traces{Endpoint: "http://127.0.0.1:1", SampleRatio: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	_, span := telemetry.tracer().Start(t.Context(), "x")
	if !span.SpanContext().IsSampled() {
		t.Error("nothing is traced")
	}
	span.End()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // nobody waits for it
	if err := telemetry.Shutdown(ctx); err == nil {
		t.Error("spans are said to be sent to nobody")
	}
}

func TestNothingIsTracedUnlessAnEndpointIsGiven(t *testing.T) {
	telemetry, err := New(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if telemetry.Traces != nil {
		t.Error("there is a provider")
	}
	if err := telemetry.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestABatchIsTracedIfOneOfItsCallersIs(t *testing.T) {
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter), sdktrace.WithSampler(sampler(0)))
	watch := (&Telemetry{Traces: provider}).NewBatches("a", config.Log{})
	caller := func(id byte, flags trace.TraceFlags) context.Context {
		return trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{15: id}, SpanID: trace.SpanID{7: id}, TraceFlags: flags}))
	}
	for _, c := range []struct {
		callers []context.Context
		links   int // 0: there is no span
	}{
		{[]context.Context{caller(1, 0), caller(2, trace.FlagsSampled), caller(3, trace.FlagsSampled)}, 2},
		{[]context.Context{caller(1, 0), t.Context()}, 0},
		{[]context.Context{t.Context()}, 0},
	} {
		ctx, end := watch(t.Context(), c.callers)
		_, sql := provider.Tracer("").Start(ctx, "sql")
		sql.End()
		end()
		spans := exporter.GetSpans()
		exporter.Reset()
		if c.links == 0 && len(spans) > 0 {
			t.Errorf("of callers that are not traced there are %v", spans)
		}
		if c.links > 0 && (len(spans) != 2 || len(spans[1].Links) != c.links || spans[0].Parent.SpanID() != spans[1].SpanContext.SpanID()) {
			t.Errorf("there are %v", spans)
		}
	}
	if (&Telemetry{}).NewBatches("a", config.Log{}) != nil {
		t.Error("somebody looks where nobody is")
	}
}
