package server_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

// holdWrites lets no append to a shard come to an end until release is called.
func (g *gateway) holdWrites() (release func()) {
	g.Helper()
	var all []*pgx.Conn
	for _, db := range g.databases {
		conn, err := pgx.Connect(g.Context(), db.Direct)
		if err != nil {
			g.Fatal(err)
		}
		all = append(all, conn)
		for _, sql := range []string{"BEGIN", "LOCK TABLE loomgate.slot_barrier IN ACCESS EXCLUSIVE MODE"} {
			if _, err := conn.Exec(g.Context(), sql); err != nil {
				g.Fatal(err)
			}
		}
	}
	return func() {
		for _, conn := range all {
			conn.Close(context.WithoutCancel(g.Context()))
		}
	}
}

// appendsAtShards is how many appends the shards' layers have under way.
func (g *gateway) appendsAtShards() (n float64) {
	g.Helper()
	for _, m := range g.scrape()["loomgate_calls_in_flight"].GetMetric() {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		if strings.HasPrefix(labels["loomgate_layer"], "shard/") && labels["loomgate_method"] == "Append" {
			n += m.GetGauge().GetValue()
		}
	}
	return n
}

// appendAtOnce appends to many executions, in one batch or few of each shard. Each append
// is in a trace of its own.
func (g *gateway) appendAtOnce(n int, traced func(i int) string) {
	g.Helper()
	events := pb.NewEventServiceClient(g.conn())
	do := func(i int, head int64, headers ...string) {
		_, err := events.Append(g.as(headers...), &pb.AppendRequest{Execution: fmt.Sprint("order-of-somebody-", i), ExpectedHead: head, Events: []*pb.Event{{
			Id: spi.NewEventID().String(), Kind: "Kindly", Content: &pb.Event_Payload{Payload: []byte(`"payload-of-it"`)},
		}}})
		if err != nil {
			g.Error(err)
		}
	}
	for i := range n {
		do(i, 0) // makes the execution's key
	}
	release := g.holdWrites()
	var calls sync.WaitGroup
	for i := range n {
		calls.Go(func() { do(i, 1, "traceparent", traced(i)) })
	}
	for end := time.Now().Add(time.Minute); g.appendsAtShards() < float64(n); {
		if time.Now().After(end) {
			g.Fatalf("%v appends have come to the shards", g.appendsAtShards())
		}
	}
	release()
	calls.Wait()
}

func TestGatheredAppendsAreLinkedWithTheTracesOfTheirCallers(t *testing.T) {
	exporter := tracetest.NewInMemoryExporter()
	g := seen(t, exporter, "")
	const callers = 16
	traceOf := func(i int) string { return fmt.Sprintf("%032x", 0xcafe00+i) }
	g.appendAtOnce(callers, func(i int) string { return "00-" + traceOf(i) + "-" + parentID + "-01" })

	spans := exporter.GetSpans()
	underneath := func(s tracetest.SpanStub, name string) bool {
		return slices.ContainsFunc(spans, func(c tracetest.SpanStub) bool { return c.Name == name && c.Parent.SpanID() == s.SpanContext.SpanID() })
	}
	batches := map[trace.SpanID]tracetest.SpanStub{}
	gathered := map[trace.SpanID]bool{} // spans of callers that batches have links to
	most := 0
	for _, s := range spans {
		if s.Name != "coalescing.batch" {
			continue
		}
		batches[s.SpanContext.SpanID()] = s
		most = max(most, len(s.Links))
		if s.Parent.IsValid() || !underneath(s, "postgres.acquire") || !underneath(s, "postgres.batch") {
			t.Errorf("a batch with the parent %v has no SQL", s.Parent)
		}
		for _, link := range s.Links {
			gathered[link.SpanContext.SpanID()] = true
		}
	}
	if most < 2 {
		t.Errorf("no batch has links to several callers")
	}
	for i := range callers {
		at := slices.IndexFunc(spans, func(s tracetest.SpanStub) bool {
			return s.SpanContext.TraceID().String() == traceOf(i) && strings.Contains(strings.Join(path(spans, s), " "), "loomgate.Append@shard/") && s.Name == "loomgate.Append"
		})
		if at < 0 {
			t.Errorf("append %d has no span at its shard", i)
			continue
		}
		own := spans[at]
		if underneath(own, "postgres.batch") { // by itself
			continue
		}
		if len(own.Links) != 1 || !gathered[own.SpanContext.SpanID()] {
			t.Errorf("append %d has the links %v; of a batch has one: %t", i, own.Links, gathered[own.SpanContext.SpanID()])
			continue
		}
		if _, there := batches[own.Links[0].SpanContext.SpanID()]; !there {
			t.Errorf("append %d is linked to no batch", i)
		}
	}
}

func TestATraceOfABatchOfTheAPIGoesThroughEveryShardsLayerToTheSQL(t *testing.T) {
	exporter := tracetest.NewInMemoryExporter()
	g := seen(t, exporter, "")
	batch := &pb.AppendBatchRequest{}
	for i := range 16 { // of both shards
		batch.Appends = append(batch.Appends, appendOne(fmt.Sprint("e", i)))
	}
	res, err := pb.NewEventServiceClient(g.conn()).AppendBatch(g.as("traceparent", "00-"+traceID+"-"+parentID+"-01"), batch)
	if err != nil || len(res.GetResults()) != len(batch.GetAppends()) {
		t.Fatal(res, err)
	}
	spans := exporter.GetSpans()
	for _, shard := range []string{"shard-0", "shard-1"} {
		want := parentID + " loomgate.v1.EventService/AppendBatch loomgate.AppendBatch@gateway loomgate.AppendBatch@sharded loomgate.AppendBatch@shard/" + shard + " postgres.batch@sql/" + shard
		if !slices.ContainsFunc(spans, func(s tracetest.SpanStub) bool { return strings.Join(path(spans, s), " ") == want }) {
			t.Errorf("there is no %s", want)
		}
	}
}

func TestASlowAppendThatWasGatheredTellsWhatItsBatchWaitedFor(t *testing.T) {
	g := seen(t, nil, "log: {slow_call: 1ns}")
	const callers = 16
	g.appendAtOnce(callers, func(i int) string { return fmt.Sprintf("00-%032x-%s-00", 0xcafe00+i, parentID) })
	told := 0
	for line := range strings.Lines(g.log.String()) {
		if strings.Contains(line, "trace=00000000000000000000000000cafe") {
			told++
			for _, want := range []string{"a call was slow", "layers.pool/shard-", "layers.sql/shard-", "layers.shard/shard-"} {
				if !strings.Contains(line, want) {
					t.Errorf("a line has no %s: %s", want, line)
				}
			}
		}
	}
	if told != callers {
		t.Errorf("of %d appends %d have a line", callers, told)
	}
}
