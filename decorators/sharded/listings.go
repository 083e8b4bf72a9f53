package sharded

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/loomgate/loomgate/merge"
	"github.com/loomgate/loomgate/spi"
)

// Executions goes through the executions whose id starts with prefix, strictly after
// a cursor, in code point order. It reads chunks of 1,000 ids, and from each shard a
// chunk ahead. What cannot be missing anything is given out; then comes the error,
// once, with no id. Without one it was complete. Each range over it begins anew.
func (c *Cluster) Executions(ctx context.Context, prefix, after string) iter.Seq2[spi.ExecutionID, error] {
	return all(ctx, c.sharded, executions(prefix), after)
}

// Refs goes through refs by name, as Executions does.
func (c *Cluster) Refs(ctx context.Context, prefix, after string) iter.Seq2[spi.Ref, error] {
	return all(ctx, c.sharded, refs(prefix), after)
}

// DataKeys goes through owners, as Executions does, each with all the versions of
// its key that are there.
func (c *Cluster) DataKeys(ctx context.Context, prefix, after string) iter.Seq2[[]spi.DataKey, error] {
	return all(ctx, c.sharded, dataKeys(prefix), after)
}

func executions(prefix string) listing[spi.ExecutionID] {
	return listing[spi.ExecutionID]{
		prefix,
		func(id spi.ExecutionID) string { return string(id) },
		func(ctx context.Context, shard *spi.Store, after string, limit int, known int64) (merge.Chunk[spi.ExecutionID], error) {
			res, err := spi.ListExecutions(ctx, shard, spi.ListExecutionsRequest{Prefix: prefix, After: after, Limit: limit, KnownOwnership: known})
			return merge.Chunk[spi.ExecutionID]{Items: res.Executions, Done: res.Next == "", Receipt: res.Receipt}, err
		},
	}
}

func refs(prefix string) listing[spi.Ref] {
	return listing[spi.Ref]{
		prefix,
		func(r spi.Ref) string { return string(r.Name) },
		func(ctx context.Context, shard *spi.Store, after string, limit int, known int64) (merge.Chunk[spi.Ref], error) {
			res, err := spi.ListRefs(ctx, shard, spi.ListRefsRequest{Prefix: prefix, After: after, Limit: limit, KnownOwnership: known})
			return merge.Chunk[spi.Ref]{Items: res.Refs, Done: res.Next == "", Receipt: res.Receipt}, err
		},
	}
}

// dataKeys lists owners, each with all its keys.
func dataKeys(prefix string) listing[[]spi.DataKey] {
	return listing[[]spi.DataKey]{
		prefix,
		func(keys []spi.DataKey) string { return string(keys[0].Owner) },
		func(ctx context.Context, shard *spi.Store, after string, limit int, known int64) (merge.Chunk[[]spi.DataKey], error) {
			res, err := spi.ListDataKeys(ctx, shard, spi.ListDataKeysRequest{Prefix: prefix, After: after, Limit: limit, KnownOwnership: known})
			if err == nil && !ascending(res.Keys) {
				err = errKeysDescend
			}
			return merge.Chunk[[]spi.DataKey]{Items: byOwner(res.Keys), Done: res.Next == "", Receipt: res.Receipt}, err
		},
	}
}

var errKeysDescend = errors.New("the keys of an owner do not ascend")

// ascending reports whether each owner's keys ascend, which a merge of owners does
// not see.
func ascending(keys []spi.DataKey) bool {
	return slices.IsSortedFunc(keys, func(a, b spi.DataKey) int {
		if a.Owner != b.Owner {
			return 0
		}
		return cmp.Or(cmp.Compare(a.Version, b.Version), -1)
	})
}

func byOwner(keys []spi.DataKey) (owners [][]spi.DataKey) {
	for len(keys) > 0 {
		n := slices.IndexFunc(keys, func(k spi.DataKey) bool { return k.Owner != keys[0].Owner })
		if n < 0 {
			n = len(keys)
		}
		owners, keys = append(owners, keys[:n:n]), keys[n:]
	}
	return owners
}

func (s *sharded) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	p, missing, err := pageOf(ctx, s, executions(req.Prefix), req.After, req.Limit, req.AllowPartial)
	return spi.ListExecutionsResponse{Executions: p.Items, Next: p.Next, Receipt: p.Receipt, Missing: missing}, err
}

func (s *sharded) ListRefs(ctx context.Context, req spi.ListRefsRequest) (spi.ListRefsResponse, error) {
	p, missing, err := pageOf(ctx, s, refs(req.Prefix), req.After, req.Limit, req.AllowPartial)
	return spi.ListRefsResponse{Refs: p.Items, Next: p.Next, Receipt: p.Receipt, Missing: missing}, err
}

func (s *sharded) ListDataKeys(ctx context.Context, req spi.ListDataKeysRequest) (spi.ListDataKeysResponse, error) {
	p, err := page(ctx, s, dataKeys(req.Prefix), req.After, req.Limit, nil)
	return spi.ListDataKeysResponse{Keys: slices.Concat(p.Items...), Next: p.Next, Receipt: p.Receipt}, err
}
