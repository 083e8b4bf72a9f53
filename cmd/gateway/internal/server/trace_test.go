package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

const (
	traceID  = "0af7651916cd43dd8448eb211c80319c"
	parentID = "b7ad6b7169203331"
)

// path returns the spans from that of the caller to one, by name and layer.
func path(spans tracetest.SpanStubs, to tracetest.SpanStub) (names []string) {
	for {
		name := to.Name
		if set := attribute.NewSet(to.Attributes...); set.HasValue("loomgate.layer") {
			layer, _ := set.Value("loomgate.layer")
			name += "@" + layer.AsString()
		}
		names = append(names, name)
		i := slices.IndexFunc(spans, func(s tracetest.SpanStub) bool { return s.SpanContext.SpanID() == to.Parent.SpanID() })
		if i < 0 {
			slices.Reverse(names)
			return append([]string{to.Parent.SpanID().String()}, names...)
		}
		to = spans[i]
	}
}

func TestATraceGoesThroughEveryLayerToTheSQL(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	g := seen(t, spans, "")
	traceparent := "00-" + traceID + "-" + parentID + "-01"
	events := pb.NewEventServiceClient(g.conn())
	for what, call := range map[string]func(execution string){
		"gRPC": func(execution string) {
			ctx := g.as("traceparent", traceparent, "tracestate", "vendor="+execution)
			_, err := events.Append(ctx, &pb.AppendRequest{Execution: execution, Events: []*pb.Event{{
				Id: spi.NewEventID().String(), Kind: "Kindly", Content: &pb.Event_Payload{Payload: []byte(`"payload-of-` + execution + `"`)},
			}}})
			if err != nil {
				t.Fatal(err)
			}
		},
		"HTTP": func(execution string) {
			res := g.post("loomgate.v1.EventService/Append", fmt.Sprintf(`{"execution":%q,"events":[{"id":%q,"kind":"Kindly","json":"\"payload-of-it\""}]}`,
				execution, spi.NewEventID()), "traceparent", traceparent, "tracestate", "vendor="+execution)
			if res.StatusCode != http.StatusOK {
				t.Fatalf("HTTP answers %d", res.StatusCode)
			}
		},
	} {
		const execution = "order-of-somebody"
		call(execution + "-" + strings.ToLower(what)) // makes the tenant's key, too
		spans.Reset()
		call(execution + "-2-" + strings.ToLower(what))

		all := spans.GetSpans()
		all = slices.DeleteFunc(all, func(s tracetest.SpanStub) bool { return s.SpanContext.TraceID().String() != traceID })
		var paths []string
		for _, s := range all {
			if strings.HasPrefix(s.Name, "postgres.") {
				paths = append(paths, strings.Join(path(all, s), " "))
			}
		}
		for _, sql := range []string{"postgres.acquire", "postgres.batch"} {
			if !slices.ContainsFunc(paths, func(p string) bool {
				for _, shard := range []string{"shard-0", "shard-1"} {
					if p == parentID+" loomgate.v1.EventService/Append loomgate.Append@gateway loomgate.Append@sharded loomgate.Append@shard/"+shard+" "+sql+"@sql/"+shard {
						return true
					}
				}
				return false
			}) {
				t.Errorf("%s: no %s is under the call; there are\n%s", what, sql, strings.Join(paths, "\n"))
			}
		}
		raw, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(raw), "INSERT events") {
			t.Errorf("%s: no span says what its SQL does:\n%s", what, raw)
		}
		for _, secret := range []string{execution, tenant, "Kindly", "payload-of", "VALUES", g.key, "vendor"} {
			if strings.Contains(string(raw), secret) {
				t.Errorf("%s: the spans hold %q:\n%s", what, secret, raw)
			}
		}
	}
}

func TestASlowCallHasALineThatNamesItsLayers(t *testing.T) {
	g := seen(t, nil, "log: {slow_call: 1ns}")
	body := fmt.Sprintf(`{"execution":"order-of-somebody","events":[{"id":%q,"kind":"Kindly","json":"1"}]}`, spi.NewEventID())
	if res := g.post("loomgate.v1.EventService/Append", body, "traceparent", "00-"+traceID+"-"+parentID+"-00"); res.StatusCode != http.StatusOK {
		t.Fatalf("it answers %d", res.StatusCode)
	}
	var line string
	for l := range strings.Lines(g.log.String()) {
		if strings.Contains(l, "a call was slow") {
			line = l
		}
	}
	for _, want := range []string{
		"method=loomgate.v1.EventService/Append", "outcome=OK", "took=", "slow=", "trace=" + traceID,
		"layers.gateway=", "layers.sharded=", "layers.shard/shard-", "layers.pool/shard-", "layers.sql/shard-",
	} {
		if !strings.Contains(line, want) {
			t.Errorf("the line has no %s: %q", want, line)
		}
	}
	for _, secret := range []string{"somebody", tenant, "Kindly", g.key} {
		if strings.Contains(line, secret) {
			t.Errorf("the line has %q: %s", secret, line)
		}
	}
}

func TestASlowAppendOfAStreamHasALineThatNamesItsLayers(t *testing.T) {
	g := seen(t, nil, "log: {slow_call: 1ns}")
	ctx := g.as("traceparent", "00-"+traceID+"-"+parentID+"-00")
	stream, err := pb.NewAppendStreamServiceClient(g.conn()).AppendStream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for tag, expected := range []int64{0, 7} {
		req := &pb.AppendRequest{Execution: "order-of-somebody", ExpectedHead: expected, Events: []*pb.Event{{Id: spi.NewEventID().String(), Kind: "Kindly"}}}
		_ = stream.Send(&pb.AppendStreamRequest{Tag: uint64(tag), Append: req}) // what is wrong, Recv tells
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	var lines []string
	for l := range strings.Lines(g.log.String()) {
		if strings.Contains(l, "a call was slow") {
			lines = append(lines, l)
		}
	}
	if len(lines) != 2 {
		t.Fatalf("of two appends there are the lines %q", lines)
	}
	for i, outcome := range []string{"OK", "Aborted"} {
		for _, want := range []string{
			"method=loomgate.v1.AppendStreamService/AppendStream", "outcome=" + outcome, "took=", "slow=", "trace=" + traceID,
			"layers.gateway=", "layers.sharded=", "layers.shard/shard-", "layers.sql/shard-",
		} {
			if !strings.Contains(lines[i], want) {
				t.Errorf("the line has no %s: %q", want, lines[i])
			}
		}
		for _, secret := range []string{"somebody", tenant, "Kindly", g.key} {
			if strings.Contains(lines[i], secret) {
				t.Errorf("the line has %q: %s", secret, lines[i])
			}
		}
	}
}
