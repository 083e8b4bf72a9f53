package server

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/loomgate/loomgate/api"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

// MinPing is how far apart a client's pings have to be; one that pings more often
// is disconnected.
const MinPing = 10 * time.Second

// GRPC returns a gRPC server of the services, with reflection and the health that
// is returned with it. Messages of up to [api.MaxMessageBytes] are taken. Stopping
// it waits for the calls under way. Further services may be registered before it
// serves.
func (s *Server) GRPC(options ...grpc.ServerOption) (*grpc.Server, *health.Server) {
	server := grpc.NewServer(append([]grpc.ServerOption{
		grpc.MaxRecvMsgSize(api.MaxMessageBytes),
		grpc.MaxSendMsgSize(api.MaxMessageBytes),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: MinPing, PermitWithoutStream: true}),
		grpc.WaitForHandlers(true),
	}, options...)...)
	pb.RegisterEventServiceServer(server, service{s})
	pb.RegisterTimerServiceServer(server, service{s})
	pb.RegisterRefServiceServer(server, service{s})
	pb.RegisterLeaseServiceServer(server, service{s})
	pb.RegisterOwnershipServiceServer(server, service{s})
	pb.RegisterStackServiceServer(server, service{s})
	pb.RegisterAppendStreamServiceServer(server, service{s})
	reflection.Register(server)
	healthy := health.NewServer()
	healthpb.RegisterHealthServer(server, healthy)
	return server, healthy
}
