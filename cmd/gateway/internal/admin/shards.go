package admin

import (
	"context"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/loomgate/loomgate/cmd/gateway/internal/build"
	"github.com/loomgate/loomgate/cmd/gateway/internal/control"
	"github.com/loomgate/loomgate/cmd/gateway/internal/stack"
	"github.com/loomgate/loomgate/decorators/sharded"
	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

// shardTimeout is how long a shard may take to say how it is.
const shardTimeout = 3 * time.Second

// ListShards implements AdminService.
func (s *Service) ListShards(ctx context.Context, in *pb.ListShardsRequest) (*pb.ListShardsResponse, error) {
	return answer(ctx, s, in, func(ctx context.Context, _ control.Actor, _ *pb.ListShardsRequest) (*pb.ListShardsResponse, error) {
		out := &pb.ListShardsResponse{Shards: make([]*pb.ShardStatus, len(s.Stack.Shards))}
		var asking sync.WaitGroup
		for i, shard := range s.Stack.Shards {
			asking.Go(func() { out.Shards[i] = shardStatus(ctx, shard) })
		}
		asking.Wait()
		return out, nil
	})
}

// shardStatus asks a shard how it is.
func shardStatus(ctx context.Context, shard *stack.Shard) *pb.ShardStatus {
	ctx, cancel := context.WithTimeout(ctx, shardTimeout)
	defer cancel()
	begin := time.Now()
	res, err := spi.GetOwnership(ctx, shard.Backend, spi.GetOwnershipRequest{})
	out := &pb.ShardStatus{Name: shard.Name, Available: err == nil, Latency: durationpb.New(time.Since(begin))}
	switch {
	case err != nil:
		out.Problem = err.Error()
	case len(res.Shards) == 0:
		out.Problem = "it has no identity: run gateway init"
	default:
		own := res.Shards[0]
		out.Cluster, out.OwnershipVersion = own.Identity.Cluster, own.Version
		out.MinWriter = &pb.Version{Major: int32(own.Identity.MinWriter.Major), Minor: int32(own.Identity.MinWriter.Minor)}
		for _, slot := range own.Slots {
			switch slot.State {
			case spi.SlotOwned:
				out.Slots++
			case spi.SlotFrozen, spi.SlotReceiving:
				out.Moving++
			}
		}
		if own.Identity.Shard != shard.Name {
			out.Problem = "it says that it is shard " + own.Identity.Shard
		} else if refused := sharded.Refuses(own, build.Writer); refused != nil {
			out.Problem = refused.Error()
		}
	}
	return out
}

// RequireWriter implements AdminService.
func (s *Service) RequireWriter(ctx context.Context, in *pb.RequireWriterRequest) (*pb.RequireWriterResponse, error) {
	return answer(ctx, s, in, func(ctx context.Context, by control.Actor, in *pb.RequireWriterRequest) (*pb.RequireWriterResponse, error) {
		if err := s.Records.Note(ctx, by, control.WriterRequired, "", ""); err != nil {
			return nil, err
		}
		v := in.GetVersion()
		raised, err := s.Stack.Cluster.RequireWriter(ctx, spi.Version{Major: int(v.GetMajor()), Minor: int(v.GetMinor())})
		return &pb.RequireWriterResponse{Raised: raised}, err
	})
}

// Locate implements AdminService.
func (s *Service) Locate(ctx context.Context, in *pb.LocateRequest) (*pb.LocateResponse, error) {
	return answer(ctx, s, in, func(_ context.Context, _ control.Actor, in *pb.LocateRequest) (*pb.LocateResponse, error) {
		scope, err := spi.ScopeOf(spi.TenantName(in.GetTenant()))
		if err != nil {
			return nil, err
		}
		name, err := spi.Scoped(scope, "execution id", spi.ExecutionID(in.GetExecution()))
		if err != nil {
			return nil, err
		}
		at, err := s.Stack.Cluster.Where(string(name))
		return &pb.LocateResponse{Shard: at.Shard, Slot: uint32(at.Route.Slot), Epoch: at.Route.Epoch}, err
	})
}
