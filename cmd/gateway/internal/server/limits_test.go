package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/loomgate/loomgate/api"
	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

const otherTenant = "globex"

// limited is a gateway whose tenants have the limits given, and one of them none. It
// counts executions once: what begins while they are counted a count may miss.
func limited(t *testing.T, limits string) (*gateway, pb.AdminServiceClient) {
	t.Helper()
	g := seen(t, nil, "control: {poll: 10ms}\nlimits: {count_executions: 1h, tenant: "+limits+"}")
	admin := pb.NewAdminServiceClient(g.conn())
	if _, err := admin.CreateTenant(g.as(), &pb.CreateTenantRequest{Name: otherTenant}); err != nil {
		t.Fatal(err)
	}
	g.setLimits(admin, otherTenant, &pb.TenantLimits{
		RequestsPerSecond: new(int64(math.MaxInt64)), BytesPerSecond: new(int64(math.MaxInt64)), EventsPerSecond: new(int64(math.MaxInt64)),
		InFlight: new(int64(math.MaxInt64)), Executions: new(int64(math.MaxInt64)),
	})
	return g, admin
}

func (g *gateway) setLimits(admin pb.AdminServiceClient, name string, limits *pb.TenantLimits) {
	g.Helper()
	if _, err := admin.SetTenantLimits(g.as(), &pb.SetTenantLimitsRequest{Name: name, Limits: limits}); err != nil {
		g.Fatal(err)
	}
}

// append appends one event for a tenant.
func (g *gateway) append(tenant, execution string) error {
	g.Helper()
	_, err := pb.NewEventServiceClient(g.conn()).Append(g.asTenant(tenant), appendOne(execution))
	return err
}

func (g *gateway) asTenant(name string) context.Context {
	ctx, cancel := context.WithTimeout(g.Context(), time.Minute)
	g.Cleanup(cancel)
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+g.key, "loomgate-tenant", name)
}

func appendOne(execution string) *pb.AppendRequest {
	return &pb.AppendRequest{Execution: execution, ExpectedHead: spi.AnyHead, Events: []*pb.Event{{Id: spi.NewEventID().String(), Kind: "k"}}}
}

// wantThrottled checks that an error is for a limit, and says when to come again in both
// ways.
func wantThrottled(t *testing.T, err error, limit string) {
	t.Helper()
	st := status.Convert(err)
	told, _ := api.FromStatus(st)
	throttled, ok := errors.AsType[*spi.ThrottledError](told)
	if !ok || st.Code() != codes.ResourceExhausted || throttled.Limit != limit || throttled.RetryAfter <= 0 {
		t.Errorf("%v, want one for the limit of %s", err, limit)
		return
	}
	for _, detail := range st.Details() {
		if retry, ok := detail.(*errdetails.RetryInfo); ok && retry.GetRetryDelay().AsDuration() == throttled.RetryAfter {
			return
		}
	}
	t.Errorf("%v has no RetryInfo", err)
}

func TestATenantOverItsLimitIsToldWhenToComeAgainAndNobodyElseNotices(t *testing.T) {
	g, _ := limited(t, "{requests_per_second: 0}")
	wantThrottled(t, g.append(tenant, "e"), "requests a second")
	res := g.post("loomgate.v1.EventService/Append", fmt.Sprintf(`{"execution":"e","events":[{"id":%q,"kind":"k"}]}`, spi.NewEventID()))
	body, _ := io.ReadAll(res.Body)
	if res.StatusCode != http.StatusTooManyRequests || res.Header.Get("Retry-After") != "60" || !strings.Contains(string(body), "resource_exhausted") {
		t.Errorf("over HTTP: %d, retry after %q: %s", res.StatusCode, res.Header.Get("Retry-After"), body)
	}
	if err := g.append(otherTenant, "e"); err != nil {
		t.Errorf("the other tenant: %v", err)
	}
}

func TestAppendsOverTheLimitLeaveFencesTimersAndLeasesAlone(t *testing.T) {
	g, _ := limited(t, "{in_flight: 2, events_per_second: 1}")
	var err error
	for err == nil {
		err = g.append(tenant, "e")
	}
	wantThrottled(t, err, "events a second")
	ctx := g.asTenant(tenant)
	leases, timers, events := pb.NewLeaseServiceClient(g.conn()), pb.NewTimerServiceClient(g.conn()), pb.NewEventServiceClient(g.conn())
	if _, err := leases.AcquireLease(ctx, &pb.AcquireLeaseRequest{Name: "l", Holder: "h", Ttl: durationpb.New(time.Minute)}); err != nil {
		t.Error(err)
	}
	if _, err := events.AcquireFence(ctx, &pb.AcquireFenceRequest{Execution: "e"}); err != nil {
		t.Error(err)
	}
	if _, err := timers.DueTimers(ctx, &pb.DueTimersRequest{Limit: 1}); err != nil {
		t.Error(err)
	}
}

func TestAStreamHasAPlaceInFlightUntilItEnds(t *testing.T) {
	g, admin := limited(t, "{in_flight: 2}")
	open := func() pb.AppendStreamService_AppendStreamClient {
		stream, err := pb.NewAppendStreamServiceClient(g.conn()).AppendStream(g.asTenant(tenant))
		if err != nil {
			t.Fatal(err)
		}
		_ = stream.Send(&pb.AppendStreamRequest{Append: appendOne("e")}) // what is wrong, Recv tells
		return stream
	}
	first := open()
	if res, err := first.Recv(); err != nil || res.GetAppended() == nil {
		t.Fatalf("%v, %v", res, err)
	}
	g.setLimits(admin, tenant, &pb.TenantLimits{InFlight: new(int64(1))})
	_, err := open().Recv()
	wantThrottled(t, err, "calls in flight")
	if err := first.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Recv(); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if err := g.append(tenant, "e"); err != nil {
		t.Errorf("when the stream has ended: %v", err)
	}
}

func TestExecutionsStoredAreCountedAndLimitedAndCanBeDeleted(t *testing.T) {
	g, admin := limited(t, "{}")
	for i := range 3 {
		if err := g.append(tenant, fmt.Sprint("e", i)); err != nil {
			t.Fatal(err)
		}
	}
	g.setLimits(admin, tenant, &pb.TenantLimits{Executions: new(int64(4))})
	var shown *pb.GetTenantLimitsResponse
	for shown.GetCountedAt() == nil {
		var err error
		if shown, err = admin.GetTenantLimits(g.asTenant(tenant), &pb.GetTenantLimitsRequest{Name: tenant}); err != nil {
			t.Fatal(err)
		}
	}
	if shown.GetExecutions() != 3 || shown.GetEffective().GetExecutions() != 4 || shown.GetOwn().GetExecutions() != 4 || shown.GetOwn().InFlight != nil {
		t.Errorf("it shows %v", shown)
	}
	if err := g.append(tenant, "e3"); err != nil {
		t.Errorf("the fourth: %v", err)
	}
	wantThrottled(t, g.append(tenant, "e4"), "executions stored")
	if err := g.append(tenant, "e3"); err != nil {
		t.Errorf("one that is there: %v", err)
	}
	if _, err := pb.NewEventServiceClient(g.conn()).DeleteExecution(g.asTenant(tenant), &pb.DeleteExecutionRequest{Execution: "e0", Incarnation: 1}); err != nil {
		t.Fatal(err)
	}
	if err := g.append(tenant, "e4"); err != nil {
		t.Errorf("after one was deleted: %v", err)
	}
	if err := g.append(otherTenant, "e4"); err != nil {
		t.Errorf("the other tenant: %v", err)
	}
	g.setLimits(admin, tenant, &pb.TenantLimits{Executions: new(int64(0))})
	wantThrottled(t, g.append(tenant, "e5"), "executions stored")
	if _, err := admin.SetTenantLimits(g.as(), &pb.SetTenantLimitsRequest{Name: tenant, Limits: &pb.TenantLimits{InFlight: new(int64(-1))}}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a negative limit: %v", err)
	}
	if _, err := admin.SetTenantLimits(g.as(), &pb.SetTenantLimitsRequest{Name: tenant, Reset_: true}); err != nil {
		t.Fatal(err)
	}
	if err := g.append(tenant, "e5"); err != nil {
		t.Errorf("without limits of its own: %v", err)
	}
}
