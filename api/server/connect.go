package server

import (
	"context"
	"errors"
	"math"
	"strconv"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"connectrpc.com/connect/v2/connectproto"
	"connectrpc.com/grpcreflect/v2"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/loomgate/loomgate/api"
	"github.com/loomgate/loomgate/api/loomgate/v1/loomgatev1connect"
)

// Connect returns the unary services for HTTP, with reflection. Errors of
// interceptors and of further services, which may be registered before it is
// mounted, can be gRPC statuses.
func (s *Server) Connect(interceptors ...connect.ServerInterceptor) *connect.Server {
	server := connect.NewServer(append([]connect.ServerInterceptor{answerStatus}, interceptors...)...)
	loomgatev1connect.RegisterEventServiceHandler(server, service{s})
	loomgatev1connect.RegisterTimerServiceHandler(server, service{s})
	loomgatev1connect.RegisterRefServiceHandler(server, service{s})
	loomgatev1connect.RegisterLeaseServiceHandler(server, service{s})
	loomgatev1connect.RegisterOwnershipServiceHandler(server, service{s})
	loomgatev1connect.RegisterStackServiceHandler(server, service{s})
	grpcreflect.Register(server)
	return server
}

// Mount serves server by mux. Bodies of up to [api.MaxMessageBytes] are taken. JSON
// with a field that the message has not is refused, and answers in JSON show every
// field that has a value by default.
func Mount(mux connecthttp.ServeMux, server *connect.Server) {
	json := connectproto.NewJSONCodec()
	json.UnmarshalOptions.DiscardUnknown = false
	json.MarshalOptions.EmitDefaultValues = true
	connecthttp.Mount(mux, server,
		connecthttp.WithReadMaxBytes(api.MaxMessageBytes),
		connecthttp.WithCodecs(connectproto.NewBinaryCodec(), json),
	)
}

// answerStatus lets an error that is a gRPC status be the answer, with its details.
func answerStatus(next connect.ServerFunc) connect.ServerFunc {
	return func(ctx context.Context, spec connect.Spec, stream connect.ServerStream) error {
		err := next(ctx, spec, stream)
		if _, already := errors.AsType[*connect.Error](err); err == nil || already {
			return err
		}
		st, ok := status.FromError(err)
		if !ok {
			return err
		}
		answer := connect.NewError(connect.Code(st.Code()), st.Message())
		sayRetryAfter(ctx, st)
		for _, detail := range st.Proto().GetDetails() {
			if d, err := connectproto.NewErrorDetail(detail); err == nil {
				answer = answer.WithDetail(d)
			}
		}
		return answer
	}
}

// sayRetryAfter makes a header of what a status says about when to retry, in whole
// seconds: nobody is asked to come too early.
func sayRetryAfter(ctx context.Context, st *status.Status) {
	info, ok := connect.CallInfoForServerContext(ctx)
	if !ok {
		return
	}
	for _, detail := range st.Details() {
		if retry, ok := detail.(*errdetails.RetryInfo); ok {
			seconds := math.Ceil(retry.GetRetryDelay().AsDuration().Seconds())
			info.ResponseHeader().Set("Retry-After", strconv.FormatFloat(seconds, 'f', 0, 64))
		}
	}
}

// Header returns the values of a header of a call, such as authorization, whichever
// way the call came in.
func Header(ctx context.Context, name string) []string {
	if info, ok := connect.CallInfoForServerContext(ctx); ok {
		return info.RequestHeader().Values(name)
	}
	return metadata.ValueFromIncomingContext(ctx, name)
}
