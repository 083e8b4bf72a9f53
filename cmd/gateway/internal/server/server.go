// Package server is the gateway's process: what listens, who is let in, and how it
// starts and stops.
package server

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect/v2"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"golang.org/x/net/netutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"

	"github.com/loomgate/loomgate/api/loomgate/v1/loomgatev1connect"
	"github.com/loomgate/loomgate/cmd/gateway/internal/admin"
	"github.com/loomgate/loomgate/cmd/gateway/internal/auth"
	"github.com/loomgate/loomgate/cmd/gateway/internal/config"
	"github.com/loomgate/loomgate/cmd/gateway/internal/control"
	"github.com/loomgate/loomgate/cmd/gateway/internal/limits"
	"github.com/loomgate/loomgate/cmd/gateway/internal/stack"
	"github.com/loomgate/loomgate/cmd/gateway/internal/telemetry"
	"github.com/loomgate/loomgate/cmd/gateway/internal/untaken"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
	apiserver "github.com/loomgate/loomgate/api/server"
)

// Options say what runs.
type Options struct {
	Config *config.Config
	Log    *slog.Logger

	// Spans, if there is one, takes the spans of all calls, instead of the configured
	// endpoint.
	Spans sdktrace.SpanExporter

	// Serving, if there is one, is called once the listeners are open.
	Serving func(Addresses)

	// Load reads the configuration again; nil: it cannot be. It is asked to when Hangup
	// yields, or by an operator.
	Load   func() (*config.Config, error)
	Hangup <-chan os.Signal

	// Level is the log's, which a reload may change; nil: it does not.
	Level *slog.LevelVar
}

// Addresses are where a server listens. Admin is nil where there is no admin port.
type Addresses struct{ GRPC, HTTP, Admin net.Addr }

// Run serves until ctx ends, and then lets the calls under way come to an end.
func Run(ctx context.Context, o Options) (err error) {
	o.Log = telemetry.WithTraceIDs(o.Log)
	s := &server{Options: o}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.open(ctx); err != nil {
		return err
	}
	return s.serve(ctx)
}

type server struct {
	Options
	stack    *stack.Stack
	records  *control.Records
	limits   *limits.Tenants
	callers  *callers
	identity identity
	first    struct { // what identity begins with
		chain  *auth.Chain
		tokens *auth.Tokens
	}
	certificate *certificate // nil: there is no TLS

	telemetry *telemetry.Telemetry
	calls     *telemetry.Calls
	sql       map[string]*telemetry.SQL // by shard
	draining  atomic.Bool
	up        sync.Map // by shard: whether it answered when it was last asked
	asks      sync.Map // by shard: the lowest version that may write to it, when it was last asked

	answers *untaken.Answers

	grpc   *grpc.Server
	health *health.Server
	http   *http.Server
	admin  *http.Server // nil: there is no admin port

	reloads reloads

	background context.CancelFunc
	running    sync.WaitGroup
}

// open makes everything but the listeners.
func (s *server) open(ctx context.Context) (err error) {
	if s.Config.Embedded() {
		if err := initEmbedded(ctx, s.Config); err != nil {
			return fmt.Errorf("make the embedded shards: %w", err)
		}
	}
	if s.telemetry, err = telemetry.New(ctx, telemetry.Options{Config: s.Config.Telemetry, Metrics: s.Config.Admin.Listen != "", Spans: s.Spans}); err != nil {
		return err
	}
	if s.calls, err = s.telemetry.NewCalls(s.Config, s.Log); err != nil {
		return err
	}
	s.traceSQL()
	if s.stack, err = stack.Open(ctx, stack.Options{
		Config: s.Config, TracerProvider: s.telemetry.Traces, MeterProvider: s.telemetry.Meters, SQLTracer: s.sqlTracer, Batches: s.watchBatches,
	}); err != nil {
		return fmt.Errorf("open the shards: %w", err)
	}
	own, err := s.stack.Tenant(control.Tenant)
	if err != nil {
		return err
	}
	s.records = control.New(own, control.Options{Poll: s.Config.Control.Poll, MaxStaleness: s.Config.Control.MaxStaleness, Log: s.Log})
	if s.Config.Embedded() {
		if err := s.records.Refresh(ctx); err != nil {
			return fmt.Errorf("read the control records: %w", err)
		}
		if err := bootEmbedded(ctx, s.Config, s.records); err != nil {
			return fmt.Errorf("make the first tenant and key: %w", err)
		}
	}
	if s.first.chain, s.first.tokens, err = s.newChain(s.Config.Identity); err != nil {
		return err
	}
	s.limits = limits.New(limits.Options{
		Tenant: s.records.Tenant, View: s.stack.Tenant, Defaults: s.Config.Limits.Tenant, Every: s.Config.Limits.CountExecutions, Log: s.Log,
	})
	s.callers = &callers{auth: &s.identity, tenant: s.limits.Store, log: s.Log}
	if err := s.build(); err != nil {
		return err
	}
	return s.observe()
}

// build makes the two servers.
func (s *server) build() error {
	secure, certificate, err := serverTLS(s.Config.TLS, s.Log)
	if err != nil {
		return err
	}
	s.certificate = certificate
	api := apiserver.New(s.callers.resolve, s.Log)
	api.WatchAppends(s.calls.Append)
	service := &admin.Service{
		Records: s.records, Stack: s.stack, Admit: s.callers.admit, Limits: s.limits, Reload: s.reload,
		Status: func(ctx context.Context, err error) error { return api.Status(ctx, err, true) },
	}
	size := int(s.Config.Limits.MaxMessage)
	s.answers = untaken.New(int64(s.Config.Limits.UntakenAnswers), s.Log)
	options := append(s.answers.ServerOptions(),
		grpc.InTapHandle(s.receiving), grpc.ChainUnaryInterceptor(receivedUnary, s.calls.Unary, s.deadline),
		grpc.ChainStreamInterceptor(receivedStream, s.calls.Stream, limitStream),
		grpc.MaxConcurrentStreams(maxStreams), grpc.MaxRecvMsgSize(size), grpc.MaxSendMsgSize(size),
		grpc.StaticStreamWindowSize(streamWindow), grpc.StaticConnWindowSize(connectionWindow),
		grpc.NumStreamWorkers(streamWorkers), grpc.ConnectionTimeout(headerTimeout),
	)
	if secure != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(secure)))
	}
	s.grpc, s.health = api.GRPC(options...)
	pb.RegisterAdminServiceServer(s.grpc, service)

	unary := api.Connect(s.calls.Connect, s.connectDeadline)
	loomgatev1connect.RegisterAdminServiceHandler(unary, service)
	mux := http.NewServeMux()
	apiserver.Mount(mux, unary)
	s.healthOn(mux)
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(secure == nil)
	s.http = &http.Server{
		Handler: s.answers.Handler(http.MaxBytesHandler(allowOrigins(s.Config.HTTP.CORSOrigins, withCertificate(mux)), int64(size))), TLSConfig: secure, Protocols: protocols,
		ReadHeaderTimeout: headerTimeout, ReadTimeout: s.Config.Deadlines.Request, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ConnContext: untaken.ConnContext,
		ErrorLog:    slog.NewLogLogger(s.Log.Handler(), slog.LevelWarn),
	}
	return nil
}

// headerTimeout is how long a client may take to say what it wants.
const headerTimeout = 10 * time.Second

// maxStreams is how many calls one connection may have under way.
const maxStreams = 1024

// How much of a call, and of a connection, may be on its way to here and not read yet. What
// is sent on a stream that nobody reads, since its client takes no results, is memory: left
// to itself, gRPC would let it grow to 16 MiB a stream. What a connection may send is credited
// as it comes, and only has to suffice for a fast one over a long way.
const (
	streamWindow     = 1 << 20
	connectionWindow = 16 << 20
)

// streamWorkers is how many goroutines are kept for calls, with the stacks that these
// have grown. More calls at once have goroutines of their own.
const streamWorkers = 256

// deadline bounds calls whose clients state none.
func (s *server) deadline(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	ctx, cancel := s.bound(ctx)
	defer cancel()
	return handler(ctx, req)
}

func (s *server) connectDeadline(next connect.ServerFunc) connect.ServerFunc {
	return func(ctx context.Context, spec connect.Spec, stream connect.ServerStream) error {
		ctx, cancel := s.bound(ctx)
		defer cancel()
		return next(ctx, spec, stream)
	}
}

func (s *server) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, s.Config.Deadlines.Call)
}

// serve listens until ctx ends or a listener fails.
func (s *server) serve(ctx context.Context) error {
	grpcListener, err := s.listen(s.Config.GRPC.Listen)
	if err != nil {
		return err
	}
	httpListener, err := s.listen(s.Config.HTTP.Listen)
	if err != nil {
		return errors.Join(err, grpcListener.Close())
	}
	adminAddr, err := s.serveAdmin()
	if err != nil {
		return errors.Join(err, grpcListener.Close(), httpListener.Close())
	}
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.background = cancel
	s.running.Go(func() { s.records.Run(background) })
	s.identity.use(background, s.first.chain, s.first.tokens)
	s.reloads.background = background
	s.running.Go(func() { s.reloadOnHangup(background) })
	s.running.Go(func() { s.watchShards(background) })
	s.running.Go(func() { s.limits.Run(background) })

	failed := make(chan error, 2)
	s.running.Go(func() { failed <- s.grpc.Serve(grpcListener) })
	s.running.Go(func() { failed <- s.serveHTTP(httpListener, s.http.TLSConfig) })
	if s.Serving != nil {
		s.Serving(Addresses{grpcListener.Addr(), httpListener.Addr(), adminAddr})
	}
	select {
	case <-ctx.Done():
		s.Log.Info("stopping", "drain", s.Config.Deadlines.Drain)
		s.drain()
		return nil
	case err := <-failed:
		s.drain()
		return err
	}
}

// listen opens a listener for so many connections at once as there may be.
func (s *server) listen(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	return netutil.LimitListener(s.answers.Listener(l), s.Config.Limits.Connections), nil
}

// limitStream lets a stream take a place in flight.
func limitStream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	ctx, end := limits.WithStream(stream.Context())
	defer end()
	return handler(srv, &streamOf{stream, ctx})
}

// streamOf is a stream with another context.
type streamOf struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *streamOf) Context() context.Context { return s.ctx }

func (s *server) serveHTTP(l net.Listener, secure *tls.Config) (err error) {
	if secure != nil {
		err = s.http.ServeTLS(l, "", "")
	} else {
		err = s.http.Serve(l)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// drain takes no more calls, and waits for those under way as long as it may.
func (s *server) drain() {
	s.draining.Store(true)
	s.health.Shutdown() // whoever balances load looks elsewhere
	ctx, cancel := context.WithTimeout(context.Background(), s.Config.Deadlines.Drain)
	defer cancel()
	var draining sync.WaitGroup
	draining.Go(func() {
		if s.http.Shutdown(ctx) != nil {
			s.Log.Warn("calls over HTTP were cut off")
			s.http.Close()
		}
	})
	stopped := make(chan struct{})
	draining.Go(func() {
		defer close(stopped)
		s.grpc.GracefulStop()
	})
	select {
	case <-stopped:
	case <-ctx.Done():
		s.Log.Warn("calls over gRPC were cut off")
		s.grpc.Stop()
	}
	draining.Wait()
}

// close ends what is left when nothing is served any more.
func (s *server) close() error {
	if s.background != nil {
		s.background()
	}
	if s.admin != nil {
		s.admin.Close()
	}
	s.running.Wait()
	s.identity.close()
	defer s.stopTelemetry() // after the stack, whose last spans it sends
	if s.stack == nil {
		return nil
	}
	return s.stack.Close()
}

// ready tells whether this gateway can answer, and how each shard is.
func (s *server) ready(w http.ResponseWriter, r *http.Request) {
	state := struct {
		Ready   bool            `json:"ready"`
		Problem string          `json:"problem,omitempty"`
		Shards  map[string]bool `json:"shards"`
	}{Ready: true, Shards: map[string]bool{}}
	if state.Problem = s.unready(); state.Problem != "" {
		state.Ready = false
	}
	for _, shard := range s.stack.Shards {
		state.Shards[shard.Name] = s.shardUp(shard.Name)
	}
	w.Header().Set("Content-Type", "application/json")
	if !state.Ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(state)
}
