package remote_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loomgate/loomgate/api"
	"github.com/loomgate/loomgate/api/server"
	"github.com/loomgate/loomgate/backends/remote"
	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

var malformedTime = &timestamppb.Timestamp{Nanos: -1}

func TestItOffersExactlyWhatTheGatewayOffers(t *testing.T) {
	const never = spi.CapDataKeys | spi.CapRewrapDataKey
	for _, caps := range []spi.Caps{
		spi.AllCaps,
		spi.CapEvents,
		spi.CapEvents | spi.CapAcquireFenceIf | spi.CapTimers | spi.CapRefs | spi.CapRefLineage,
		spi.CapOwnership | spi.CapChangeOwnership, // an operator's
	} {
		store := open(t, serve(t, spi.Only(newMemory(t), caps)))
		if got := store.Offered(); got != caps&^never {
			t.Errorf("of %v it offers %v", caps, got)
		}
	}
}

func TestAGatewayOfAnotherMajorVersionIsRefused(t *testing.T) {
	addr := serve(t, newMemory(t), hooked(func(c hookedCall) (any, error) {
		res, err := c.do()
		if err != nil {
			return nil, err
		}
		res.(*pb.GetStackResponse).Versions["refs"] = &pb.Version{Major: 1}
		return res, nil
	}))
	_, err := remote.Open(t.Context(), addr, remote.Options{Plaintext: true})
	refused, ok := errors.AsType[*spi.CompatibilityError](err)
	if !ok || refused.Group != spi.Refs || refused.Have != (spi.Version{Major: 1}) {
		t.Error(err)
	}
}

func TestBadOptionsAreRefused(t *testing.T) {
	for _, options := range []remote.Options{{Connections: -1}, {Plaintext: true, TLS: &tls.Config{}}} {
		_, err := remote.Open(t.Context(), "127.0.0.1:1", options)
		if _, ok := errors.AsType[*spi.InvalidArgumentError](err); !ok {
			t.Errorf("%+v: %v", options, err)
		}
	}
	_, err := remote.Open(t.Context(), "unix\x00:", remote.Options{Plaintext: true})
	if _, ok := errors.AsType[*spi.InvalidArgumentError](err); !ok {
		t.Error(err)
	}
}

func TestWhereNobodyListensItIsUnavailable(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	stop := serveOn(t, listener, newMemory(t))
	store := open(t, addr)
	stop()
	_, err = remote.Open(t.Context(), addr, remote.Options{Plaintext: true})
	if _, ok := errors.AsType[*spi.UnavailableError](err); !ok {
		t.Errorf("to open it answers %v", err)
	}
	// Nothing was sent, and so nothing is ambiguous.
	_, err = spi.AcquireFence(t.Context(), store, spi.AcquireFenceRequest{Execution: "e"})
	_, unavailable := errors.AsType[*spi.UnavailableError](err)
	if _, ambiguous := errors.AsType[*spi.AmbiguousError](err); ambiguous || !unavailable {
		t.Errorf("a write answers %v", err)
	}
	_, err = spi.Head(t.Context(), store, spi.HeadRequest{Execution: "e"})
	if _, ok := errors.AsType[*spi.UnavailableError](err); !ok {
		t.Errorf("a read answers %v", err)
	}
}

func TestCallsAreSpreadOverTheConnections(t *testing.T) {
	var mu sync.Mutex
	calls := map[string]int{}
	addr := serve(t, newMemory(t), grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		p, _ := peer.FromContext(ctx)
		mu.Lock()
		calls[p.Addr.String()]++
		mu.Unlock()
		return handler(ctx, req)
	}))
	client, err := remote.Open(t.Context(), addr, remote.Options{Plaintext: true, Connections: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for range 3*5 - 1 { // the first call was the question what is offered
		if _, err := spi.Head(t.Context(), client.Store(), spi.HeadRequest{Execution: "e"}); err != nil {
			t.Fatal(err)
		}
	}
	if len(calls) != 3 {
		t.Errorf("%v", calls)
	}
	for _, n := range calls {
		if n != 5 {
			t.Errorf("%v", calls)
		}
	}
}

// TestTheCredentialAndTheTenantGoOverTLS reaches a gateway whose certificate the options trust.
func TestTheCredentialAndTheTenantGoOverTLS(t *testing.T) {
	certified := httptest.NewTLSServer(nil) // for its certificate
	defer certified.Close()
	resolve := func(ctx context.Context) (server.Caller, error) {
		if tenant := server.Header(ctx, "loomgate-tenant"); !slices.Equal(tenant, []string{"caf%C3%A9"}) {
			return server.Caller{}, status.Errorf(codes.PermissionDenied, "the tenant is %q", tenant)
		}
		if !slices.Equal(server.Header(ctx, "authorization"), []string{"Bearer secret"}) {
			return server.Caller{}, status.Error(codes.Unauthenticated, "no such API key")
		}
		return server.Caller{Store: newMemory(t)}, nil
	}
	g, _ := server.New(resolve, slog.New(slog.DiscardHandler)).GRPC(grpc.Creds(credentials.NewServerTLSFromCert(&certified.TLS.Certificates[0])))
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
	defer serving.Wait()
	defer g.Stop()

	trusted := x509.NewCertPool()
	trusted.AddCert(certified.Certificate())
	addr := listener.Addr().String()
	client, err := remote.Open(t.Context(), addr, remote.Options{APIKey: "secret", Tenant: "café", TLS: &tls.Config{RootCAs: trusted}})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	_, err = remote.Open(t.Context(), addr, remote.Options{APIKey: "other", Tenant: "café", TLS: &tls.Config{RootCAs: trusted}})
	if refused, ok := errors.AsType[*spi.OpError](err); !ok || status.Code(refused.Err) != codes.Unauthenticated || strings.Contains(err.Error(), "other") {
		t.Errorf("another key: %v", err)
	}
	_, err = remote.Open(t.Context(), addr, remote.Options{APIKey: "secret"})
	if _, ok := errors.AsType[*spi.UnavailableError](err); !ok || strings.Contains(err.Error(), "secret") {
		t.Errorf("an unknown certificate: %v", err)
	}
}

func TestTheLargestAppendAndReadPass(t *testing.T) {
	store := open(t, serve(t, newMemory(t)))
	const n = spi.MaxReadBytes / spi.MaxPayload
	req := spi.AppendRequest{Execution: "e"}
	for range n {
		req.Events = append(req.Events, spi.Event{ID: spi.NewEventID(), Kind: "k", Payload: make([]byte, spi.MaxPayload-1)})
	}
	if _, err := spi.Append(t.Context(), store, req); err != nil {
		t.Fatal(err)
	}
	res, err := spi.Read(t.Context(), store, spi.ReadRequest{Execution: "e", Limit: spi.MaxLimit})
	if err != nil || len(res.Events) != n || res.More {
		t.Errorf("%d events, %v", len(res.Events), err)
	}
}

func TestAnIncidentCanBeReadFromAnError(t *testing.T) {
	store := open(t, serve(t, newMemory(t), hooked(func(c hookedCall) (any, error) {
		if c.method != "Head" {
			return c.do()
		}
		held := api.Audience{Incident: func(error) string { return "i1" }}
		return nil, api.ErrorStatus(&spi.OpError{Op: "Head", Err: errors.New("secret")}, held).Err()
	})))
	_, err := spi.Head(t.Context(), store, spi.HeadRequest{Execution: "e"})
	internal, ok := errors.AsType[*spi.InternalError](err)
	if !ok {
		t.Fatal(err)
	}
	if incident, ok := errors.AsType[*api.IncidentError](internal.Cause); !ok || incident.ID != "i1" {
		t.Error(internal.Cause)
	}
}
