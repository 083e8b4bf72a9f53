package untaken

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/proto"

	"github.com/loomgate/loomgate/decorators/limits"
)

// ServerOptions let a gRPC server count its answers to single calls: until then, those are
// in flight also for a tenant's limit. (A stream waits itself for its client.)
func (a *Answers) ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(a.unary), grpc.ForceServerCodecV2(codec{encoding.GetCodecV2(grpcproto.Name)})}
}

// An encoding answer is on its way to the codec, which is where it is known how large it is.
type encodingAnswer struct {
	proto.Message
	answers *Answers
	conn    *conn
	end     func()
}

func (a *Answers) unary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	ctx, end := limits.Extend(ctx)
	res, err := handler(ctx, req)
	c := connOf(ctx)
	m, ok := res.(proto.Message)
	if err != nil || c == nil || !ok {
		end()
		return res, err
	}
	return &encodingAnswer{m, a, c, end}, nil
}

func connOf(ctx context.Context) *conn {
	if p, ok := peer.FromContext(ctx); ok {
		if known, ok := p.Addr.(*addr); ok {
			return known.conn
		}
	}
	return nil
}

// codec lets the buffer of an answer tell when it is written.
type codec struct{ encoding.CodecV2 }

func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	e, ok := v.(*encodingAnswer)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	size := proto.Size(e.Message)
	if mem.IsBelowBufferPoolingThreshold(size) { // nobody is told of it
		defer e.end()
		return c.CodecV2.Marshal(e.Message)
	}
	buf := mem.DefaultBufferPool().Get(size)
	if _, err := (proto.MarshalOptions{UseCachedSize: true}).MarshalAppend((*buf)[:0], e.Message); err != nil {
		mem.DefaultBufferPool().Put(buf)
		e.end()
		return nil, err
	}
	return mem.BufferSlice{mem.NewBuffer(buf, &told{e.answers.put(e.conn, int64(size), e.end)})}, nil
}

// told is where a buffer goes back to.
type told struct{ answer *answer }

func (*told) Get(length int) *[]byte { return mem.DefaultBufferPool().Get(length) }

func (t *told) Put(buf *[]byte) {
	mem.DefaultBufferPool().Put(buf)
	t.answer.taken()
}
