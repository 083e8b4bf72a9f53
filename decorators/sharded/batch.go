package sharded

import (
	"context"
	"sync"

	"github.com/loomgate/loomgate/spi"
)

// AppendBatch makes one batch a shard, and puts the results back into the caller's
// order. A shard that fails fails its own appends only. Appends that the map was
// wrong about are made again, as single ones are.
func (s *sharded) AppendBatch(ctx context.Context, req spi.AppendBatchRequest) (spi.AppendBatchResponse, error) {
	if err := ctx.Err(); err != nil {
		return spi.AppendBatchResponse{}, err
	}
	results := make([]spi.AppendResult, len(req.Appends))
	open := make([]int, len(req.Appends)) // the appends to make
	for i := range open {
		open[i] = i
	}
	var tries tries
	for {
		places := s.appendAll(ctx, req, open, results)
		var stale []int
		for k, i := range open {
			if results[i].Err == nil && places[k].shard != nobody {
				continue
			}
			again, err := s.judge(ctx, string(req.Appends[i].Execution), places[k], results[i].Err)
			if results[i].Err = err; again {
				stale = append(stale, i)
			}
		}
		if len(stale) == 0 {
			break
		}
		again, err := tries.pause(ctx, s.timeout, nil)
		for _, i := range stale {
			if err != nil {
				results[i].Err = err
			}
		}
		if !again {
			break
		}
		open = stale
	}
	return spi.AppendBatchResponse{Results: results}, nil
}

// A part is a shard's part of a batch.
type part struct {
	spi.AppendBatchRequest
	of []int // the places of its appends in the whole
}

// appendAll makes some appends of a batch, once, and returns where it made each. The
// result of one whose slot is nobody's is left empty.
func (s *sharded) appendAll(ctx context.Context, req spi.AppendBatchRequest, open []int, results []spi.AppendResult) []place {
	t := s.table.Load()
	places := make([]place, len(open))
	parts := map[int]*part{}
	for k, i := range open {
		results[i] = spi.AppendResult{}
		item := req.Item(i)
		at := t.find(string(item.Execution))
		if places[k] = at; at.shard == nobody {
			continue
		}
		if results[i].Err = t.refused(at.shard); results[i].Err != nil {
			continue
		}
		p := parts[at.shard]
		if p == nil {
			p = &part{}
			parts[at.shard] = p
		}
		item.Route = at.route
		p.Appends, p.of = append(p.Appends, item), append(p.of, i)
	}
	if len(parts) == 1 {
		for shard, p := range parts { // nothing else waits for it
			res, err := spi.AppendBatch(ctx, s.shards[shard].store, p.AppendBatchRequest)
			p.deal(res, spi.WithoutOp(err), results)
		}
		return places
	}
	var calls sync.WaitGroup
	for shard, p := range parts {
		calls.Go(func() {
			res, err := within(ctx, s.timeout, func(ctx context.Context) (spi.AppendBatchResponse, error) {
				return spi.AppendBatch(ctx, s.shards[shard].store, p.AppendBatchRequest)
			})
			p.deal(res, err, results)
		})
	}
	calls.Wait()
	return places
}

// deal puts what a shard has answered where it belongs.
func (p *part) deal(res spi.AppendBatchResponse, err error, results []spi.AppendResult) {
	for k, i := range p.of {
		if err != nil {
			results[i].Err = err
		} else {
			results[i] = res.Results[k]
		}
	}
}
