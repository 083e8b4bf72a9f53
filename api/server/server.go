// Package server answers the API from stores.
//
// One type answers both ways in: gRPC, by grpc-go, and HTTP/JSON with Connect. What
// a caller may do is what the store of its credential offers.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"

	"google.golang.org/grpc/status"

	"github.com/loomgate/loomgate/api"
	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
	"github.com/loomgate/loomgate/api/loomgate/v1/loomgatev1connect"
)

// A Caller is who makes a call.
type Caller struct {
	Store    *spi.Store // what its credential opens: a tenant's view, or an operator's
	Operator bool       // errors may name shards
}

// A Resolver returns who makes a call, by what [Header] tells. An error that is a gRPC
// status is the caller's answer as it is: Unauthenticated, PermissionDenied or
// InvalidArgument, which clients take for the word that nothing was done. Any other
// is treated as a store's. It is called once for each call and each append of a stream.
type Resolver func(context.Context) (Caller, error)

// A Server answers the services for groups of methods, StackService and
// AppendStreamService.
type Server struct {
	resolve Resolver
	log     *slog.Logger
	watch   AppendWatcher
}

// New returns a server. What it holds back from callers it logs, each with the
// incident id that the caller has.
func New(resolve Resolver, log *slog.Logger) *Server {
	return &Server{resolve, log, func(ctx context.Context) (context.Context, func(error)) { return ctx, func(error) {} }}
}

// An AppendWatcher is told of each append of a stream, which no interceptor sees by
// itself. It is called when the append has been read and there is room for it, and returns
// the context that the append is done in. What else it returns is called with the
// append's error once its result is there, and before that is sent.
type AppendWatcher func(context.Context) (_ context.Context, end func(error))

// WatchAppends lets a watcher see the appends of streams. It is called before the server
// serves.
func (s *Server) WatchAppends(watch AppendWatcher) { s.watch = watch }

// Status returns err as the answer of a call, for further services beside this
// server's own.
func (s *Server) Status(ctx context.Context, err error, operator bool) error {
	return api.ErrorStatus(err, s.audience(ctx, operator)).Err()
}

func (s *Server) audience(ctx context.Context, operator bool) api.Audience {
	return api.Audience{Operator: operator, Incident: func(whole error) string {
		id := fmt.Sprintf("%016x", rand.Uint64())
		cause := whole
		if internal, ok := errors.AsType[*spi.InternalError](whole); ok {
			cause = internal.Cause
		}
		s.log.ErrorContext(ctx, "an error was held back", "incident", id, "error", whole, "cause", cause)
		return id
	}}
}

// caller resolves who makes a call. The error is an answer.
func (s *Server) caller(ctx context.Context) (Caller, error) {
	caller, err := s.resolve(ctx)
	if err == nil {
		return caller, nil
	}
	if _, answer := status.FromError(err); answer {
		return Caller{}, err
	}
	return Caller{}, s.Status(ctx, err, false)
}

// service is the methods of the services. They are apart from [Server], whose users
// see none of them.
type service struct{ *Server }

var (
	_ pb.EventServiceServer        = service{}
	_ pb.TimerServiceServer        = service{}
	_ pb.RefServiceServer          = service{}
	_ pb.LeaseServiceServer        = service{}
	_ pb.OwnershipServiceServer    = service{}
	_ pb.StackServiceServer        = service{}
	_ pb.AppendStreamServiceServer = service{}

	_ loomgatev1connect.EventServiceHandler     = service{}
	_ loomgatev1connect.TimerServiceHandler     = service{}
	_ loomgatev1connect.RefServiceHandler       = service{}
	_ loomgatev1connect.LeaseServiceHandler     = service{}
	_ loomgatev1connect.OwnershipServiceHandler = service{}
	_ loomgatev1connect.StackServiceHandler     = service{}
)

// serve answers a call of a method.
func serve[Q, R, MQ, MR any](ctx context.Context, s service, m *api.Method[Q, R, MQ, MR], in *MQ) (*MR, error) {
	caller, err := s.caller(ctx)
	if err != nil {
		return nil, err
	}
	res, err := call(ctx, caller.Store, m, in)
	if err != nil {
		return nil, s.Status(ctx, err, caller.Operator)
	}
	return m.EncodeResponse(res), nil
}

func call[Q, R, MQ, MR any](ctx context.Context, store *spi.Store, m *api.Method[Q, R, MQ, MR], in *MQ) (res R, err error) {
	req, err := m.DecodeRequest(in)
	if err != nil {
		return res, &spi.OpError{Op: m.Name(), Err: err}
	}
	return m.Call(ctx, store, req)
}
