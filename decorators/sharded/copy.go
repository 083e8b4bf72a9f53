package sharded

import (
	"context"

	"github.com/loomgate/loomgate/spi"
)

// CopyPrefix lets a shard copy what it has both ends of, if it can. Otherwise it
// reads the prefix, all of it as of one incarnation, and writes it in one append.
func (s *sharded) CopyPrefix(ctx context.Context, req spi.CopyPrefixRequest) (spi.CopyPrefixResponse, error) {
	t := s.table.Load()
	from, to := t.find(string(req.From)), t.find(string(req.To))
	if from.shard == to.shard && from.shard != nobody {
		if err := t.refused(to.shard); err != nil {
			return spi.CopyPrefixResponse{}, s.failed(ctx, to.shard, err)
		}
		if shard := s.shards[to.shard].store; shard.Offered().Has(spi.CapCopyPrefix) {
			req.FromRoute, req.Route = from.route, to.route
			res, err := spi.CopyPrefix(ctx, shard, req)
			if err == nil {
				return res, nil
			}
			if refusal(err) == nil {
				return res, s.failed(ctx, to.shard, err)
			}
			// One of the two has moved, perhaps apart from the other.
		}
	}
	prefix, err := read(ctx, s, req.From, req, func(ctx context.Context, shard *spi.Store, r spi.Route, req spi.CopyPrefixRequest) (spi.Prefix, error) {
		return spi.ReadPrefix(ctx, shard, r, req.From, req.N)
	})
	if err != nil {
		return spi.CopyPrefixResponse{}, err
	}
	if prefix.Keyed {
		return spi.CopyPrefixResponse{}, &spi.KeyMismatchError{Execution: req.To}
	}
	return write(ctx, s, req.To, spi.AppendIfUnchangedRequest{Execution: req.To, Incarnation: req.Incarnation, Events: prefix.Events},
		func(ctx context.Context, shard *spi.Store, r spi.Route, to spi.AppendIfUnchangedRequest) (spi.CopyPrefixResponse, error) {
			to.Route = r
			return spi.WritePrefix(ctx, shard, to)
		})
}
