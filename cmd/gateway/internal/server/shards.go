package server

import (
	"context"
	"sync"
	"time"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/loomgate/loomgate/cmd/gateway/internal/stack"
	"github.com/loomgate/loomgate/spi"
)

// watchEvery is how often each shard is asked how it is.
const watchEvery = 2 * time.Second

// healthName is what the health service calls a shard.
func healthName(shard string) string { return "shard/" + shard }

// watchShards keeps each shard's health, which the health service tells by its name.
func (s *server) watchShards(ctx context.Context) {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	was := make([]bool, len(s.stack.Shards))
	for first := true; ; first = false {
		now := make([]bool, len(was))
		var asking sync.WaitGroup
		for i, shard := range s.stack.Shards {
			asking.Go(func() { now[i] = s.watch(ctx, shard, first || was[i]) })
		}
		asking.Wait()
		was = now
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// watch asks a shard how it is. It logs when that changes: good is how it was.
func (s *server) watch(ctx context.Context, shard *stack.Shard, good bool) bool {
	ctx, cancel := context.WithTimeout(ctx, watchEvery)
	defer cancel()
	_, err := spi.GetOwnership(ctx, shard.Backend, spi.GetOwnershipRequest{})
	state := healthpb.HealthCheckResponse_SERVING
	if err != nil {
		state = healthpb.HealthCheckResponse_NOT_SERVING
	}
	s.health.SetServingStatus(healthName(shard.Name), state)
	s.up.Store(shard.Name, err == nil)
	switch {
	case err != nil && good:
		s.Log.Error("a shard does not answer", "shard", shard.Name, "error", err)
	case err == nil && !good:
		s.Log.Info("a shard answers again", "shard", shard.Name)
	}
	return err == nil
}
