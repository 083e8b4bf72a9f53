package server

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/tap"
)

type receivingKey struct{}

// receiving bounds how long a call over gRPC may take to send its request: what has come
// of it is memory, before anybody is asked who calls. It is a [tap.ServerInHandle], which
// sees a call before its message is read.
func (s *server) receiving(ctx context.Context, _ *tap.Info) (context.Context, error) {
	calling, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(s.Config.Deadlines.Request, cancel)
	context.AfterFunc(ctx, func() { timer.Stop() }) // a call that nothing answers
	return context.WithValue(calling, receivingKey{}, timer), nil
}

// received is told that a call's request is there.
func received(ctx context.Context) {
	if timer, ok := ctx.Value(receivingKey{}).(*time.Timer); ok {
		timer.Stop()
	}
}

func receivedUnary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	received(ctx)
	return handler(ctx, req)
}

// receivedStream lets a stream last: it waits for messages as long as it likes.
func receivedStream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	received(stream.Context())
	return handler(srv, stream)
}
