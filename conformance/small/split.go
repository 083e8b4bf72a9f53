package small

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/loomgate/loomgate/merge"
	"github.com/loomgate/loomgate/spi"
)

// split spreads a store over several.
type split struct {
	shards []*spi.Store
	names  []string
	want   spi.SlotSet // what pages have to cover; empty where the shards have no identity
	place  map[spi.Slot]place
}

// A place is the shard that owns a slot, and the route to it.
type place struct {
	shard int
	route spi.Route
}

// Split returns one store over several. Shards that have an identity have to own
// each slot once; shards that have none share the slots out.
func Split(ctx context.Context, shards ...*spi.Store) (*spi.Store, error) {
	s := &split{shards: shards, place: map[spi.Slot]place{}}
	var owned []spi.SlotSet
	for i, shard := range shards {
		slots, err := s.read(ctx, i, shard)
		if err != nil {
			return nil, err
		}
		owned = append(owned, slots)
	}
	if len(s.place) > 0 {
		s.want = spi.HashSlotSet()
		if err := spi.CheckCoverage(s.want, owned...); err != nil {
			return nil, err
		}
	}
	return spi.Wrap(s, shards...)
}

// read takes a shard's own word for what it owns.
func (s *split) read(ctx context.Context, i int, shard *spi.Store) (spi.SlotSet, error) {
	s.names = append(s.names, fmt.Sprintf("shard-%d", i))
	if !shard.Offered().Has(spi.CapOwnership) {
		return nil, nil
	}
	res, err := spi.GetOwnership(ctx, shard, spi.GetOwnershipRequest{})
	if err != nil {
		return nil, err
	}
	var slots []spi.Slot
	for _, o := range res.Shards {
		s.names[i] = o.Identity.Shard
		for _, r := range o.Slots {
			if r.State == spi.SlotOwned {
				s.place[r.Slot] = place{i, spi.Route{Slot: r.Slot, Epoch: r.Epoch}}
				slots = append(slots, r.Slot)
			}
		}
	}
	return spi.NewSlotSet(slots...), nil
}

// Caps leaves out what only an operator may do. Copies it makes by itself, where
// it can.
func (s *split) Caps(inner spi.Caps) spi.Caps {
	inner &^= spi.CapChangeOwnership | spi.CapCopyPrefix
	if inner.Has(spi.CapAppendIfUnchanged) {
		inner |= spi.CapCopyPrefix
	}
	return inner
}

func (s *split) Layer() spi.Layer { return spi.Layer{Name: "split"} }

// at returns where a name belongs, and sets the route to it.
func at[N ~string](s *split, name N, route *spi.Route) *spi.Store {
	shard, r := s.locate(string(name))
	*route = r
	return s.shards[shard]
}

func (s *split) locate(name string) (shard int, route spi.Route) {
	hash := fnv.New32a()
	hash.Write([]byte(name))
	slot := spi.Slot(hash.Sum32() % spi.HashSlots)
	if len(s.place) == 0 {
		return int(slot) % len(s.shards), spi.Route{}
	}
	p := s.place[slot]
	return p.shard, p.route
}

// failed names the shard in an error.
func (s *split) failed(shard int, err error) error {
	return &spi.ShardError{Shard: s.names[shard], Err: err}
}

// merged returns a merge of one listing of all shards.
func merged[T any](s *split, key func(T) string, list func(ctx context.Context, shard *spi.Store, after string, limit int) (merge.Chunk[T], error)) merge.Merge[T] {
	m := merge.Merge[T]{Key: key, Want: s.want}
	for i, shard := range s.shards {
		m.Sources = append(m.Sources, merge.Paged(s.names[i], key, func(ctx context.Context, after string, limit int) (merge.Chunk[T], error) {
			return list(ctx, shard, after, limit)
		}))
	}
	return m
}

func (s *split) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	page, err := merged(s, func(id spi.ExecutionID) string { return string(id) },
		func(ctx context.Context, shard *spi.Store, after string, limit int) (merge.Chunk[spi.ExecutionID], error) {
			res, err := spi.ListExecutions(ctx, shard, spi.ListExecutionsRequest{Prefix: req.Prefix, After: after, Limit: limit})
			return merge.Chunk[spi.ExecutionID]{Items: res.Executions, Done: res.Next == "", Receipt: res.Receipt}, err
		}).Page(ctx, req.After, req.Limit)
	return spi.ListExecutionsResponse{Executions: page.Items, Next: page.Next, Receipt: page.Receipt}, err
}

func (s *split) ListRefs(ctx context.Context, req spi.ListRefsRequest) (spi.ListRefsResponse, error) {
	page, err := merged(s, func(r spi.Ref) string { return string(r.Name) },
		func(ctx context.Context, shard *spi.Store, after string, limit int) (merge.Chunk[spi.Ref], error) {
			res, err := spi.ListRefs(ctx, shard, spi.ListRefsRequest{Prefix: req.Prefix, After: after, Limit: limit})
			return merge.Chunk[spi.Ref]{Items: res.Refs, Done: res.Next == "", Receipt: res.Receipt}, err
		}).Page(ctx, req.After, req.Limit)
	return spi.ListRefsResponse{Refs: page.Items, Next: page.Next, Receipt: page.Receipt}, err
}

// ListDataKeys merges owners, each with all its keys.
func (s *split) ListDataKeys(ctx context.Context, req spi.ListDataKeysRequest) (spi.ListDataKeysResponse, error) {
	page, err := merged(s, func(keys []spi.DataKey) string { return string(keys[0].Owner) },
		func(ctx context.Context, shard *spi.Store, after string, limit int) (merge.Chunk[[]spi.DataKey], error) {
			res, err := spi.ListDataKeys(ctx, shard, spi.ListDataKeysRequest{Prefix: req.Prefix, After: after, Limit: limit})
			if !slices.IsSortedFunc(res.Keys, beforeOrRepeated) {
				return merge.Chunk[[]spi.DataKey]{}, errKeysOutOfOrder // which the merge of owners would not see
			}
			owners := slices.Collect(chunkBy(res.Keys, func(a, b spi.DataKey) bool { return a.Owner == b.Owner }))
			return merge.Chunk[[]spi.DataKey]{Items: owners, Done: res.Next == "", Receipt: res.Receipt}, err
		}).Page(ctx, req.After, req.Limit)
	return spi.ListDataKeysResponse{Keys: slices.Concat(page.Items...), Next: page.Next, Receipt: page.Receipt}, err
}

var errKeysOutOfOrder = errors.New("an owner's keys do not ascend")

// beforeOrRepeated orders the keys of a page; a key that is there twice is never in
// order.
func beforeOrRepeated(a, b spi.DataKey) int {
	return cmp.Or(spi.CompareIDs(a.Owner, b.Owner), cmp.Compare(a.Version, b.Version), -1)
}

// chunkBy yields the runs of neighbours that belong together.
func chunkBy[T any](all []T, together func(a, b T) bool) func(yield func([]T) bool) {
	return func(yield func([]T) bool) {
		for start := 0; start < len(all); {
			end := start + 1
			for end < len(all) && together(all[start], all[end]) {
				end++
			}
			if !yield(all[start:end]) {
				return
			}
			start = end
		}
	}
}

// DueTimers names the shards that do not answer.
func (s *split) DueTimers(ctx context.Context, req spi.DueTimersRequest) (spi.DueTimersResponse, error) {
	var all spi.DueTimersResponse
	for i, shard := range s.shards {
		res, err := spi.DueTimers(ctx, shard, req)
		if ctx.Err() != nil {
			return spi.DueTimersResponse{}, ctx.Err()
		}
		if err != nil {
			all.Missing = append(all.Missing, s.names[i])
			continue
		}
		if all.Now.IsZero() || res.Now.Before(all.Now) {
			all.Now = res.Now
		}
		all.Timers, all.Missing = append(all.Timers, res.Timers...), append(all.Missing, res.Missing...)
	}
	slices.SortFunc(all.Timers, func(a, b spi.Timer) int {
		return cmp.Or(a.WakeAt.Compare(b.WakeAt), spi.CompareIDs(a.Execution, b.Execution))
	})
	all.Timers = all.Timers[:min(len(all.Timers), req.Limit)]
	return all, nil
}

// AppendBatch splits a batch by shard and puts the results back in order. A shard
// that fails fails its own appends only.
func (s *split) AppendBatch(ctx context.Context, req spi.AppendBatchRequest) (spi.AppendBatchResponse, error) {
	if err := ctx.Err(); err != nil {
		return spi.AppendBatchResponse{}, err
	}
	parts := make([]spi.AppendBatchRequest, len(s.shards))
	places := make([][]int, len(s.shards))
	for i := range req.Appends {
		item := req.Item(i)
		shard, route := s.locate(string(item.Execution))
		item.Route = route
		parts[shard].Appends, places[shard] = append(parts[shard].Appends, item), append(places[shard], i)
	}
	results := make([]spi.AppendResult, len(req.Appends))
	for shard, part := range parts {
		if len(part.Appends) == 0 {
			continue
		}
		res, err := spi.AppendBatch(ctx, s.shards[shard], part)
		for k, i := range places[shard] {
			if err != nil {
				results[i].Err = s.failed(shard, spi.WithoutOp(err))
			} else {
				results[i] = res.Results[k]
			}
		}
	}
	return spi.AppendBatchResponse{Results: results}, nil
}

// CopyPrefix copies from one shard to another as it does within one.
func (s *split) CopyPrefix(ctx context.Context, req spi.CopyPrefixRequest) (spi.CopyPrefixResponse, error) {
	var route spi.Route
	source := at(s, req.From, &route)
	prefix, err := spi.ReadPrefix(ctx, source, route, req.From, req.N)
	if err != nil {
		return spi.CopyPrefixResponse{}, err
	}
	if prefix.Keyed {
		return spi.CopyPrefixResponse{}, &spi.KeyMismatchError{Execution: req.To}
	}
	to := spi.AppendIfUnchangedRequest{Execution: req.To, Incarnation: req.Incarnation, Events: prefix.Events}
	target := at(s, req.To, &to.Route)
	return spi.WritePrefix(ctx, target, to)
}

func (s *split) SweepTombstones(ctx context.Context, req spi.SweepTombstonesRequest) (spi.SweepTombstonesResponse, error) {
	var all spi.SweepTombstonesResponse
	limit := req.Limit
	for i, shard := range s.shards {
		if req.Limit = limit - all.Swept; req.Limit == 0 {
			break
		}
		res, err := spi.SweepTombstones(ctx, shard, req)
		if err != nil {
			return spi.SweepTombstonesResponse{}, s.failed(i, err)
		}
		all.Swept += res.Swept
	}
	return all, nil
}

func (s *split) GetOwnership(ctx context.Context, req spi.GetOwnershipRequest) (spi.GetOwnershipResponse, error) {
	var all spi.GetOwnershipResponse
	for i, shard := range s.shards {
		res, err := spi.GetOwnership(ctx, shard, req)
		if err != nil {
			return spi.GetOwnershipResponse{}, s.failed(i, err)
		}
		all.Shards = append(all.Shards, res.Shards...)
	}
	return all, nil
}

// ChangeOwnership is not offered.
func (s *split) ChangeOwnership(context.Context, spi.ChangeOwnershipRequest) (spi.ChangeOwnershipResponse, error) {
	return spi.ChangeOwnershipResponse{}, &spi.UnsupportedError{Cap: spi.CapChangeOwnership}
}

func (s *split) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	shard := at(s, req.Execution, &req.Route)
	return spi.Append(ctx, shard, req)
}

func (s *split) Read(ctx context.Context, req spi.ReadRequest) (spi.ReadResponse, error) {
	shard := at(s, req.Execution, &req.Route)
	return spi.Read(ctx, shard, req)
}

func (s *split) Head(ctx context.Context, req spi.HeadRequest) (spi.HeadResponse, error) {
	shard := at(s, req.Execution, &req.Route)
	return spi.Head(ctx, shard, req)
}

func (s *split) AcquireFence(ctx context.Context, req spi.AcquireFenceRequest) (spi.AcquireFenceResponse, error) {
	shard := at(s, req.Execution, &req.Route)
	return spi.AcquireFence(ctx, shard, req)
}

func (s *split) AcquireFenceIf(ctx context.Context, req spi.AcquireFenceIfRequest) (spi.AcquireFenceIfResponse, error) {
	shard := at(s, req.Execution, &req.Route)
	return spi.AcquireFenceIf(ctx, shard, req)
}

func (s *split) AppendIfUnchanged(ctx context.Context, req spi.AppendIfUnchangedRequest) (spi.AppendIfUnchangedResponse, error) {
	shard := at(s, req.Execution, &req.Route)
	return spi.AppendIfUnchanged(ctx, shard, req)
}

func (s *split) TruncatePrefixKeeping(ctx context.Context, req spi.TruncatePrefixKeepingRequest) (spi.TruncatePrefixKeepingResponse, error) {
	shard := at(s, req.Execution, &req.Route)
	return spi.TruncatePrefixKeeping(ctx, shard, req)
}

func (s *split) DeleteExecution(ctx context.Context, req spi.DeleteExecutionRequest) (spi.DeleteExecutionResponse, error) {
	shard := at(s, req.Execution, &req.Route)
	return spi.DeleteExecution(ctx, shard, req)
}

func (s *split) ScheduleTimer(ctx context.Context, req spi.ScheduleTimerRequest) (spi.ScheduleTimerResponse, error) {
	shard := at(s, req.Timer.Execution, &req.Route)
	return spi.ScheduleTimer(ctx, shard, req)
}

func (s *split) CompleteTimer(ctx context.Context, req spi.CompleteTimerRequest) (spi.CompleteTimerResponse, error) {
	shard := at(s, req.Execution, &req.Route)
	return spi.CompleteTimer(ctx, shard, req)
}

func (s *split) PutRef(ctx context.Context, req spi.PutRefRequest) (spi.PutRefResponse, error) {
	shard := at(s, req.Name, &req.Route)
	return spi.PutRef(ctx, shard, req)
}

func (s *split) GetRef(ctx context.Context, req spi.GetRefRequest) (spi.GetRefResponse, error) {
	shard := at(s, req.Name, &req.Route)
	return spi.GetRef(ctx, shard, req)
}

func (s *split) DeleteRef(ctx context.Context, req spi.DeleteRefRequest) (spi.DeleteRefResponse, error) {
	shard := at(s, req.Name, &req.Route)
	return spi.DeleteRef(ctx, shard, req)
}

func (s *split) PromoteRef(ctx context.Context, req spi.PromoteRefRequest) (spi.PromoteRefResponse, error) {
	shard := at(s, req.Name, &req.Route)
	return spi.PromoteRef(ctx, shard, req)
}

func (s *split) RefLineage(ctx context.Context, req spi.RefLineageRequest) (spi.RefLineageResponse, error) {
	shard := at(s, req.Name, &req.Route)
	return spi.RefLineage(ctx, shard, req)
}

func (s *split) AcquireLease(ctx context.Context, req spi.AcquireLeaseRequest) (spi.AcquireLeaseResponse, error) {
	shard := at(s, req.Name, &req.Route)
	return spi.AcquireLease(ctx, shard, req)
}

func (s *split) RenewLease(ctx context.Context, req spi.RenewLeaseRequest) (spi.RenewLeaseResponse, error) {
	shard := at(s, req.Name, &req.Route)
	return spi.RenewLease(ctx, shard, req)
}

func (s *split) ReleaseLease(ctx context.Context, req spi.ReleaseLeaseRequest) (spi.ReleaseLeaseResponse, error) {
	shard := at(s, req.Name, &req.Route)
	return spi.ReleaseLease(ctx, shard, req)
}

func (s *split) CreateDataKey(ctx context.Context, req spi.CreateDataKeyRequest) (spi.CreateDataKeyResponse, error) {
	shard := at(s, req.Key.Owner, &req.Route)
	return spi.CreateDataKey(ctx, shard, req)
}

func (s *split) GetDataKey(ctx context.Context, req spi.GetDataKeyRequest) (spi.GetDataKeyResponse, error) {
	shard := at(s, req.Owner, &req.Route)
	return spi.GetDataKey(ctx, shard, req)
}

func (s *split) DestroyDataKey(ctx context.Context, req spi.DestroyDataKeyRequest) (spi.DestroyDataKeyResponse, error) {
	shard := at(s, req.Owner, &req.Route)
	return spi.DestroyDataKey(ctx, shard, req)
}

func (s *split) RewrapDataKey(ctx context.Context, req spi.RewrapDataKeyRequest) (spi.RewrapDataKeyResponse, error) {
	shard := at(s, req.Owner, &req.Route)
	return spi.RewrapDataKey(ctx, shard, req)
}
