package telemetry

import (
	"context"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/loomgate/loomgate/decorators/profiling"
)

// SQL shows what a shard's Postgres is asked, and what is waited for. A transaction goes
// there in one round trip and so is one span, which says what its statements do but
// neither their text nor their arguments.
type SQL struct {
	tracer      trace.Tracer
	shard       trace.SpanStartOption
	layer, pool string
	waiting     atomic.Int64
}

var (
	_ pgx.QueryTracer       = (*SQL)(nil)
	_ pgx.BatchTracer       = (*SQL)(nil)
	_ pgxpool.AcquireTracer = (*SQL)(nil)
)

// NewSQL returns what shows the database of a shard.
func (t *Telemetry) NewSQL(shard string) *SQL {
	return &SQL{
		tracer: t.tracer(), layer: "sql/" + shard, pool: "pool/" + shard,
		shard: trace.WithAttributes(attribute.String("loomgate.layer", "sql/"+shard), attribute.String("db.system.name", "postgresql")),
	}
}

// Waiting returns how many wait for a connection.
func (s *SQL) Waiting() int64 { return s.waiting.Load() }

// A step is something that is being waited for.
type step struct {
	span    trace.Span
	started time.Time
}

type stepKey struct{}

func (s *SQL) start(ctx context.Context, name string) (context.Context, *step) {
	ctx, span := s.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient), s.shard)
	begun := &step{span, time.Now()}
	return context.WithValue(ctx, stepKey{}, begun), begun
}

// end tells how long a step took. Of an error it says nothing: the layers above name
// its class.
func (s *SQL) end(ctx context.Context, layer string, err error) {
	begun, ok := ctx.Value(stepKey{}).(*step)
	if !ok {
		return
	}
	profiling.AddTime(ctx, layer, time.Since(begun.started))
	if err != nil {
		begun.span.SetStatus(codes.Error, "")
	}
	begun.span.End()
}

// TraceQueryStart is called by the driver.
func (s *SQL) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	ctx, begun := s.start(ctx, "postgres.query")
	if begun.span.IsRecording() {
		begun.span.SetAttributes(attribute.String("db.query.summary", summary(data.SQL)))
	}
	return ctx
}

// TraceQueryEnd is called by the driver.
func (s *SQL) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	s.end(ctx, s.layer, data.Err)
}

// TraceBatchStart is called by the driver.
func (s *SQL) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	ctx, begun := s.start(ctx, "postgres.batch")
	if begun.span.IsRecording() && data.Batch != nil {
		var all []string
		for _, q := range data.Batch.QueuedQueries {
			all = append(all, summary(q.SQL))
		}
		begun.span.SetAttributes(attribute.Int("db.operation.batch.size", len(all)), attribute.String("db.query.summary", strings.Join(all, "; ")))
	}
	return ctx
}

// TraceBatchQuery is called by the driver.
func (s *SQL) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd is called by the driver.
func (s *SQL) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchEndData) {
	s.end(ctx, s.layer, data.Err)
}

// TraceAcquireStart is called by the pool.
func (s *SQL) TraceAcquireStart(ctx context.Context, _ *pgxpool.Pool, _ pgxpool.TraceAcquireStartData) context.Context {
	s.waiting.Add(1)
	ctx, _ = s.start(ctx, "postgres.acquire")
	return ctx
}

// TraceAcquireEnd is called by the pool.
func (s *SQL) TraceAcquireEnd(ctx context.Context, _ *pgxpool.Pool, data pgxpool.TraceAcquireEndData) {
	s.waiting.Add(-1)
	s.end(ctx, s.pool, data.Err)
}

var (
	change = regexp.MustCompile(`\b(INSERT INTO|UPDATE|DELETE FROM|LOCK TABLE) loomgate\.([a-z_]+)`)
	source = regexp.MustCompile(`\b(?:FROM|JOIN) loomgate\.([a-z_]+)`)
	verb   = regexp.MustCompile(`^\s*([A-Za-z]+)`)
)

// summary names a statement by what it does to which table: INSERT events.
func summary(sql string) string {
	if m := change.FindStringSubmatch(sql); m != nil {
		name, _, _ := strings.Cut(m[1], " ")
		return name + " " + m[2]
	}
	if m := source.FindStringSubmatch(sql); m != nil {
		return "SELECT " + m[1]
	}
	if m := verb.FindStringSubmatch(sql); m != nil {
		return strings.ToUpper(m[1])
	}
	return "?"
}
