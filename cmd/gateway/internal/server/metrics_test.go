package server_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

// scrape returns what a scrape holds, by name.
func (g *gateway) scrape() map[string]*dto.MetricFamily {
	g.Helper()
	status, body := g.get("/metrics")
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	if status != http.StatusOK || err != nil {
		g.Fatalf("%d, %v", status, err)
	}
	return families
}

// allowed are the values of labels. Each is one of few, whatever callers send.
var allowed = map[string]*regexp.Regexp{
	"rpc_system_name":          regexp.MustCompile(`^(grpc|connectrpc)$`),
	"rpc_method":               regexp.MustCompile(`^(loomgate\.v1\.[A-Z][A-Za-z]+Service|grpc\.(health|reflection)\.v1(alpha)?\.[A-Z][A-Za-z]+)/[A-Z][A-Za-z]+$`),
	"rpc_response_status_code": regexp.MustCompile(`^[A-Z][A-Za-z]+$`),
	"loomgate_layer":           regexp.MustCompile(`^(gateway|sharded|shard/shard-[01])$`),
	"loomgate_method":          regexp.MustCompile(`^[A-Z][A-Za-z]+$`),
	"loomgate_shard":           regexp.MustCompile(`^shard-[01]$`),
	"loomgate_state":           regexp.MustCompile(`^(in_use|idle)$`),
	"loomgate_tenant":          regexp.MustCompile(`^(listed|other)$`),
	"error_type":               regexp.MustCompile(`^[a-z_]+$`),
	"version":                  regexp.MustCompile(`^[-+().\w ]+$`),
	"go_version":               regexp.MustCompile(`^go1`),
	"revision":                 regexp.MustCompile(`^([0-9a-f]{40}|unknown)$`), // built from no checkout
}

// attack sends what a caller may think up, each round another.
func (g *gateway) attack(round int) {
	conn := g.conn()
	events := pb.NewEventServiceClient(conn)
	for i := range 20 {
		hostile := fmt.Sprintf("hostile-%d-%d", round, i)
		body := fmt.Sprintf(`{"execution":%q,"events":[{"id":%q,"kind":%q,"json":"1"}]}`, hostile, spi.NewEventID(), hostile)
		g.post("loomgate.v1.EventService/Append", body)
		g.post("loomgate.v1.EventService/Append", body, "Loomgate-Tenant", hostile)
		g.post("loomgate.v1.EventService/"+hostile, body)
		g.post("loomgate.v1."+hostile+"/Append", body)
		g.post("loomgate.v1.EventService/Append", body, "Content-Type", "application/"+hostile)
		g.do(strings.ToUpper(hostile), g.HTTP.String(), "/"+hostile, "")
		g.do(http.MethodGet, g.Admin.String(), "/debug/pprof/"+hostile, "")
		for _, method := range []string{"/loomgate.v1.EventService/" + hostile, "/" + hostile + "/Append"} {
			if err := conn.Invoke(g.as(), method, &emptypb.Empty{}, &emptypb.Empty{}); err == nil {
				g.Errorf("%s is answered", method)
			}
		}
		if _, err := events.Read(g.as("loomgate-tenant", hostile), &pb.ReadRequest{Execution: hostile, Limit: 1}); err == nil {
			g.Error("another's tenant is read")
		}
		_, _ = events.Read(g.as(), &pb.ReadRequest{Execution: hostile, Limit: 1})
	}
}

func TestNoCallerMakesUpALabel(t *testing.T) {
	g := seen(t, nil, "telemetry: {tenants: [listed]}")
	g.attack(0)
	before := g.series()
	g.attack(1)
	for name := range g.series() {
		if !before[name] && !strings.Contains(name, "_bucket") {
			t.Errorf("a second attack makes the series %s", name)
		}
	}
	for _, want := range []string{
		"loomgate_api_duration_seconds", "loomgate_api_in_flight", "loomgate_call_duration_seconds", "loomgate_calls_in_flight",
		"loomgate_shard_up", "loomgate_pool_connections", "loomgate_pool_max", "loomgate_pool_waiting", "loomgate_pool_waits_total",
		"loomgate_pool_wait_duration_seconds_total", "loomgate_control_age_seconds", "loomgate_ready", "loomgate_draining",
		"loomgate_build_info", "loomgate_tenant_duration_seconds", "go_goroutines", "process_start_time_seconds",
	} {
		if g.scrape()[want] == nil {
			t.Errorf("there is no %s", want)
		}
	}
}

// series returns the name and the labels of every series of the gateway's own, and checks
// their values.
func (g *gateway) series() map[string]bool {
	g.Helper()
	all := map[string]bool{}
	for name, family := range g.scrape() {
		if strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
			continue // of the runtime, which knows no caller
		}
		for _, m := range family.GetMetric() {
			series := name
			for _, l := range m.GetLabel() {
				series += " " + l.GetName() + "=" + l.GetValue()
				if rule := allowed[l.GetName()]; rule == nil || !rule.MatchString(l.GetValue()) || strings.Contains(strings.ToLower(l.GetValue()), "hostile") {
					g.Errorf("%s has the label %s=%q", name, l.GetName(), l.GetValue())
				}
			}
			all[series] = true
		}
	}
	return all
}

func TestADrainIsSeenUntilTheLastCallHasEnded(t *testing.T) {
	g := seen(t, nil, "deadlines: {drain: 1h}")
	draining := func() float64 { return g.scrape()["loomgate_draining"].GetMetric()[0].GetGauge().GetValue() }
	stream, err := pb.NewAppendStreamServiceClient(g.conn()).AppendStream(g.as())
	if err != nil {
		t.Fatal(err)
	}
	appended := func() {
		t.Helper()
		_ = stream.Send(&pb.AppendStreamRequest{Append: appendOne("e")}) // what is wrong, Recv tells
		if res, err := stream.Recv(); err != nil || res.GetAppended() == nil {
			t.Errorf("%v, %v", res, err)
		}
	}
	appended()
	if draining() != 0 {
		t.Error("it drains before it is stopped")
	}
	g.stop()
	for end := time.Now().Add(time.Minute); draining() != 1; {
		if time.Now().After(end) {
			t.Fatal("it never drains")
		}
	}
	appended() // a call under way goes on
	if draining() != 1 {
		t.Error("it has ended the drain before the call")
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

func TestTheAdminPortIsForOperatorsAlone(t *testing.T) {
	g := seen(t, nil, "")
	for path, want := range map[string]string{
		"/healthz": "ok", "/readyz": `"ready":true`, "/metrics": "loomgate_shard_up", "/debug/pprof/": "goroutine", "/debug/pprof/goroutine?debug=1": "goroutine profile",
	} {
		if status, body := g.get(path); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d %.200s", path, status, body)
		}
		if path == "/healthz" || path == "/readyz" {
			continue
		}
		if res := g.do(http.MethodGet, g.HTTP.String(), path, ""); res.StatusCode != http.StatusNotFound {
			t.Errorf("the port of the API answers %s with %d", path, res.StatusCode)
		}
	}
	if res := g.do(http.MethodPost, g.Admin.String(), "/loomgate.v1.EventService/Append", "{}"); res.StatusCode != http.StatusNotFound {
		t.Errorf("the admin port answers the API with %d", res.StatusCode)
	}
	if names := g.scrape(); names["loomgate_tenant_duration_seconds"] != nil {
		t.Error("a metric tells tenants apart though none is named")
	}
}

func TestOnlyPagesOfTheOriginsGivenMayCall(t *testing.T) {
	g := seen(t, nil, "http: {cors_origins: ['https://console.example.com']}")
	const append = "/loomgate.v1.EventService/Append"
	for origin, want := range map[string]string{
		"https://console.example.com":      "https://console.example.com",
		"https://evil.example.com":         "",
		"http://console.example.com":       "",
		"https://console.example.com:8443": "",
		"https://console.example.com.evil": "",
		"null":                             "",
	} {
		for _, res := range []*http.Response{
			g.do(http.MethodOptions, g.HTTP.String(), append, "", "Origin", origin, "Access-Control-Request-Method", "POST",
				"Access-Control-Request-Headers", "authorization,connect-protocol-version,content-type,loomgate-tenant"),
			g.do(http.MethodPost, g.HTTP.String(), append, "{}", "Origin", origin, "Content-Type", "application/json"),
		} {
			if got := res.Header.Get("Access-Control-Allow-Origin"); got != want {
				t.Errorf("%s %s: the origin that may call is %q", res.Request.Method, origin, got)
			}
			if got := res.Header.Get("Access-Control-Allow-Credentials"); got != "" {
				t.Errorf("%s: credentials %q", origin, got)
			}
		}
	}
	off := seen(t, nil, "")
	res := off.do(http.MethodOptions, off.HTTP.String(), append, "", "Origin", "https://console.example.com", "Access-Control-Request-Method", "POST")
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatal(err)
	}
	if got := res.Header.Values("Access-Control-Allow-Origin"); len(got) > 0 || slices.Contains([]int{200, 204}, res.StatusCode) {
		t.Errorf("without origins: %d, %q", res.StatusCode, got)
	}
}
