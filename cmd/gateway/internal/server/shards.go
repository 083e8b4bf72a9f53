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
	own, err := spi.GetOwnership(ctx, shard.Backend, spi.GetOwnershipRequest{})
	s.watchWriter(ctx, shard.Name, own)
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

// watchWriter lets the map follow what a shard asks of its writers, also where no call
// has met that yet.
func (s *server) watchWriter(ctx context.Context, shard string, said spi.GetOwnershipResponse) {
	for _, own := range said.Shards {
		if was, known := s.asks.Swap(shard, own.Identity.MinWriter); known && was == own.Identity.MinWriter {
			continue
		}
		if err := s.stack.Cluster.Refresh(ctx); err != nil {
			s.Log.Warn("the map cannot be read", "error", err)
			s.asks.Delete(shard) // and is tried again
		}
		for _, refused := range s.stack.Cluster.Refused() {
			if refused.Shard == shard {
				s.Log.Error("a shard takes no writes from this gateway, which is too old", "shard", shard, "needs", refused.Needs, "have", refused.Have)
			}
		}
	}
}

// unready returns why this gateway should get no calls, "" if it should. A shard that is
// down is no reason, since the others serve, and no gateway can reach it; one that takes
// no writes from here is: newer gateways can write to it.
func (s *server) unready() string {
	if s.records.Ready() != nil {
		return "the control records cannot be read"
	}
	if err := s.stack.Refused(); err != nil {
		return err.Error()
	}
	return ""
}
