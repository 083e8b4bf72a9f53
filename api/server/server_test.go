package server_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/loomgate/loomgate/api"
	"github.com/loomgate/loomgate/api/server"
	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/conformance/small"
	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

// tenant resolves every caller to a tenant's view of a store.
func tenant(t *testing.T, store *spi.Store) server.Resolver {
	t.Helper()
	view, err := small.Prefix("acme", store)
	if err != nil {
		t.Fatal(err)
	}
	return as(server.Caller{Store: view})
}

func as(c server.Caller) server.Resolver {
	return func(context.Context) (server.Caller, error) { return c, nil }
}

func newMemory(t *testing.T) *spi.Store {
	t.Helper()
	store, err := memory.New()
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// dial serves s on a port of its own and returns a connection to it.
func dial(t *testing.T, s *server.Server, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	g, _ := s.GRPC()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := g.Serve(listener); err != nil {
			t.Error(err)
		}
	})
	options = append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(api.MaxMessageBytes), grpc.MaxCallSendMsgSize(2*api.MaxMessageBytes)),
	}, options...)
	conn, err := grpc.NewClient(listener.Addr().String(), options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		g.Stop()
		serving.Wait()
	})
	return conn
}

// serveHTTP serves s for HTTP and returns its address.
func serveHTTP(t *testing.T, s *server.Server) string {
	t.Helper()
	mux := http.NewServeMux()
	server.Mount(mux, s.Connect())
	h := httptest.NewServer(mux)
	t.Cleanup(h.Close)
	return h.URL
}

// failing is a store whose heads fail with an error.
func failing(t *testing.T, err error) *spi.Store {
	t.Helper()
	store, openErr := spi.Open(spi.Backend{Events: failingEvents{err: err}})
	if openErr != nil {
		t.Fatal(openErr)
	}
	return store
}

type failingEvents struct {
	spi.EventBackend
	err error
}

func (f failingEvents) Head(context.Context, spi.HeadRequest) (spi.HeadResponse, error) {
	return spi.HeadResponse{}, f.err
}

func (f failingEvents) AppendBatch(_ context.Context, req spi.AppendBatchRequest) (spi.AppendBatchResponse, error) {
	results := make([]spi.AppendResult, len(req.Appends))
	results[0] = spi.AppendResult{Err: f.err}
	return spi.AppendBatchResponse{Results: results}, nil
}

func TestATypedErrorComesBackAsItself(t *testing.T) {
	client := pb.NewEventServiceClient(dial(t, server.New(tenant(t, newMemory(t)), slog.New(slog.DiscardHandler))))
	req := &pb.AppendRequest{Execution: "e", ExpectedHead: 3, Events: []*pb.Event{{Id: spi.NewEventID().String(), Kind: "k"}}}
	_, err := client.Append(t.Context(), req)
	got, answer := api.FromStatus(status.Convert(err))
	if want := error(&spi.OpError{Op: "Append", Err: &spi.ConflictError{Execution: "e"}}); !answer || !reflect.DeepEqual(got, want) {
		t.Errorf("%#v", got)
	}
	req.Events[0].Id = "x"
	_, err = client.Append(t.Context(), req)
	got, _ = api.FromStatus(status.Convert(err))
	if want := error(&spi.OpError{Op: "Append", Err: &spi.InvalidArgumentError{Field: "events[0].id", Rule: "is no UUID"}}); !reflect.DeepEqual(got, want) {
		t.Errorf("%#v", got)
	}
}

func TestWhatIsHeldBackIsInTheLog(t *testing.T) {
	inside := &spi.ShardError{Shard: "shard-7", Err: &spi.InternalError{Cause: errors.New("secret disk")}}
	for _, operator := range []bool{false, true} {
		var log strings.Builder
		s := server.New(as(server.Caller{Store: failing(t, inside), Operator: operator}), slog.New(slog.NewTextHandler(&log, nil)))
		client := pb.NewEventServiceClient(dial(t, s))
		_, err := client.Head(t.Context(), &pb.HeadRequest{Execution: "e"})
		told, _ := api.FromStatus(status.Convert(err))
		incident := incidentOf(t, told)
		if text := status.Convert(err).String(); strings.Contains(text, "secret") || strings.Contains(text, "shard-7") != operator {
			t.Errorf("an operator (%t) is told %s", operator, text)
		}
		if line := log.String(); !strings.Contains(line, incident) || !strings.Contains(line, "shard-7") || !strings.Contains(line, "secret disk") {
			t.Errorf("incident %s is not in the log: %s", incident, line)
		}
	}
}

func incidentOf(t *testing.T, err error) string {
	t.Helper()
	internal, ok := errors.AsType[*spi.InternalError](err)
	if !ok {
		t.Fatalf("%v has no incident", err)
	}
	incident, ok := errors.AsType[*api.IncidentError](internal.Cause)
	if !ok || incident.ID == "" {
		t.Fatalf("%v has the cause %v", err, internal.Cause)
	}
	return incident.ID
}

func TestTheErrorsInABatchAreMasked(t *testing.T) {
	s := server.New(as(server.Caller{Store: failing(t, &spi.ShardError{Shard: "secret", Err: errors.New("secret")})}), slog.New(slog.DiscardHandler))
	client := pb.NewEventServiceClient(dial(t, s))
	res, err := client.AppendBatch(t.Context(), &pb.AppendBatchRequest{Appends: []*pb.AppendRequest{
		{Execution: "e", Events: []*pb.Event{{Id: spi.NewEventID().String(), Kind: "k"}}},
		{Execution: "f", Events: []*pb.Event{{Id: spi.NewEventID().String(), Kind: "k"}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if told := res.GetResults()[0].GetError(); told.GetUnavailable() == nil || strings.Contains(told.String(), "secret") {
		t.Errorf("the first append is told %v", told)
	}
	if res.GetResults()[1].GetAppended() == nil {
		t.Errorf("the second append is told %v", res.GetResults()[1])
	}
}

func TestACallerWhoIsRefusedIsToldSo(t *testing.T) {
	var log strings.Builder
	denied := status.Error(codes.Unauthenticated, "no such API key")
	for _, c := range []struct {
		err  error
		code codes.Code
		held bool
	}{
		{denied, codes.Unauthenticated, false},
		{&spi.UnavailableError{Cause: context.DeadlineExceeded}, codes.Unavailable, false},
		{errors.New("secret"), codes.Internal, true},
	} {
		log.Reset()
		s := server.New(func(context.Context) (server.Caller, error) { return server.Caller{}, c.err }, slog.New(slog.NewTextHandler(&log, nil)))
		conn := dial(t, s)
		_, batch := pb.NewEventServiceClient(conn).AppendBatch(t.Context(), &pb.AppendBatchRequest{})
		_, head := pb.NewEventServiceClient(conn).Head(t.Context(), &pb.HeadRequest{})
		_, stack := pb.NewStackServiceClient(conn).GetStack(t.Context(), &pb.GetStackRequest{})
		for _, err := range []error{batch, head, stack} {
			if status.Code(err) != c.code || strings.Contains(err.Error(), "secret") || strings.Contains(log.String(), "secret") != c.held {
				t.Errorf("%v is told as %v, and logged as %q", c.err, err, log.String())
			}
		}
	}
}

func TestAHeaderIsReadWhicheverWayACallComesIn(t *testing.T) {
	var seen [][]string
	s := server.New(func(ctx context.Context) (server.Caller, error) {
		seen = append(seen, server.Header(ctx, "authorization"))
		return server.Caller{}, status.Error(codes.Unauthenticated, "no")
	}, slog.New(slog.DiscardHandler))
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer grpc")
	_, err := pb.NewEventServiceClient(dial(t, s)).Head(ctx, &pb.HeadRequest{})
	if status.Code(err) != codes.Unauthenticated {
		t.Error(err)
	}
	res := post(t, serveHTTP(t, s)+"/loomgate.v1.EventService/Head", `{}`, "authorization", "Bearer http")
	if res.code != http.StatusUnauthorized {
		t.Errorf("%+v", res)
	}
	if want := [][]string{{"Bearer grpc"}, {"Bearer http"}}; !reflect.DeepEqual(seen, want) {
		t.Errorf("it is %q", seen)
	}
}

func TestTheStackTellsWhatTheStoreOffersOnTheWire(t *testing.T) {
	store := spi.Only(newMemory(t), spi.CapEvents|spi.CapAcquireFence|spi.CapDataKeys|spi.CapRewrapDataKey)
	client := pb.NewStackServiceClient(dial(t, server.New(as(server.Caller{Store: store}), slog.New(slog.DiscardHandler))))
	m, err := client.GetStack(t.Context(), &pb.GetStackRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"Events", "AcquireFence"}; !reflect.DeepEqual(m.GetOffered(), want) {
		t.Errorf("it offers %v", m.GetOffered())
	}
	offered, versions := api.DecodeStack(m)
	if offered != spi.CapEvents|spi.CapAcquireFence {
		t.Errorf("a client reads %v", offered)
	}
	if err := spi.CheckCompatibility(versions); err != nil {
		t.Error(err)
	}
	for group, version := range spi.Versions() {
		if group != spi.DataKeys && versions[group] != version {
			t.Errorf("%s has version %v", group, versions[group])
		}
	}
	if _, told := versions[spi.DataKeys]; told {
		t.Error("data keys are on the wire")
	}
}

func TestAMethodThatIsNotOfferedSaysSo(t *testing.T) {
	client := pb.NewEventServiceClient(dial(t, server.New(as(server.Caller{Store: spi.Only(newMemory(t), spi.CapEvents)}), slog.New(slog.DiscardHandler))))
	_, err := client.AcquireFence(t.Context(), &pb.AcquireFenceRequest{Execution: "e"})
	got, _ := api.FromStatus(status.Convert(err))
	if !errors.Is(got, errors.ErrUnsupported) || status.Code(err) != codes.Unimplemented {
		t.Error(err)
	}
}

func TestAMessageAboveTheLimitIsRefused(t *testing.T) {
	client := pb.NewEventServiceClient(dial(t, server.New(tenant(t, newMemory(t)), slog.New(slog.DiscardHandler))))
	event := &pb.Event{Id: spi.NewEventID().String(), Kind: "k", Content: &pb.Event_Payload{Payload: make([]byte, api.MaxMessageBytes)}}
	_, err := client.Append(t.Context(), &pb.AppendRequest{Execution: "e", Events: []*pb.Event{event}})
	if status.Code(err) != codes.ResourceExhausted {
		t.Error(err)
	}
}

func TestAReadOfTheLargestSizeArrives(t *testing.T) {
	client := pb.NewEventServiceClient(dial(t, server.New(tenant(t, newMemory(t)), slog.New(slog.DiscardHandler))))
	const n = spi.MaxReadBytes / spi.MaxPayload
	req := &pb.AppendRequest{Execution: "e"}
	for range n {
		req.Events = append(req.Events, &pb.Event{Id: spi.NewEventID().String(), Kind: "k", Content: &pb.Event_Payload{Payload: make([]byte, spi.MaxPayload-1)}})
	}
	if _, err := client.Append(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	res, err := client.Read(t.Context(), &pb.ReadRequest{Execution: "e", Limit: spi.MaxLimit})
	if err != nil || len(res.GetEvents()) != n || res.GetMore() {
		t.Errorf("%d events, %v", len(res.GetEvents()), err)
	}
}

func TestHealthAndReflectionAreServed(t *testing.T) {
	conn := dial(t, server.New(tenant(t, newMemory(t)), slog.New(slog.DiscardHandler)))
	res, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{})
	if err != nil || res.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Error(res, err)
	}
	stream, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}}); err != nil {
		t.Fatal(err)
	}
	listed, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, s := range listed.GetListServicesResponse().GetService() {
		names[s.GetName()] = true
	}
	for _, name := range []string{"EventService", "TimerService", "RefService", "LeaseService", "OwnershipService", "StackService", "AppendStreamService"} {
		if !names["loomgate.v1."+name] {
			t.Errorf("%s is not listed", name)
		}
	}
}
