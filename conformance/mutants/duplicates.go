package mutants

import (
	"context"
	"errors"
	"sync"

	"github.com/loomgate/loomgate/spi"
)

var duplicates = []Mutant{
	{
		"duplicate not recognised",
		"The retry of an append that has landed is a conflict.",
		"duplicates/the same append again is a success that stores nothing (invariant 4)",
		store(func(s sound) methods { return notRecognised{s} }),
	},
	{
		"duplicate judged after the fence",
		"The retry of an append that has landed is stale once the fence has moved.",
		"duplicates/an append is a duplicate even if the fence has moved since",
		store(func(s sound) methods { return fenceBeforeDuplicate{s} }),
	},
	{
		"duplicate looked for only where it was expected",
		"An append to any head is never looked for: it expects no place.",
		"duplicates/the same append again is a success that stores nothing (invariant 4)",
		store(func(s sound) methods { return onlyWhereExpected{s} }),
	},
	{
		"SinceSeq ignored",
		"A duplicate is looked for past the expected head, wherever the first try was.",
		"duplicates/a retry at a newer head is recognised by its first SinceSeq, whichever way it comes",
		store(func(s sound) methods { return sinceIgnored{s} }),
	},
	{
		"short memory",
		"An append to any head is looked for among the last thousand events.",
		"duplicates/an append at any head is recognised among the last ten thousand events",
		store(func(s sound) methods { return shortMemory{s} }),
	},
	{
		"partial duplicate accepted",
		"An append of which some events are there counts as one that has landed.",
		"duplicates/an append of which only a part is there is a conflict that stores nothing",
		store(func(s sound) methods { return partialDuplicate{s} }),
	},
	{
		"any event will do",
		"Whatever stands at the place of an append counts as its duplicate.",
		"duplicates/another event at the same place is a conflict",
		store(func(s sound) methods { return anyEventWillDo{s} }),
	},
	{
		"duplicate across executions",
		"Event ids are looked up without the execution.",
		"duplicates/the event of another execution is no duplicate",
		store(func(s sound) methods { return &acrossExecutions{sound: s} }),
	},
}

type notRecognised struct{ sound }

func (m notRecognised) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	res, err := m.sound.Append(ctx, req)
	if res.Duplicate {
		return res, &spi.ConflictError{Execution: req.Execution, Head: res.Head}
	}
	return res, err
}

type fenceBeforeDuplicate struct{ sound }

func (m fenceBeforeDuplicate) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	now := headOf(ctx, m.Inner, req.Route, req.Execution).Fence
	if req.Fence < now && (req.Fence > 0 || spi.AnyAnswering(req.Events)) {
		return spi.AppendResponse{}, &spi.StaleFenceError{Execution: req.Execution, Current: now}
	}
	return m.sound.Append(ctx, req)
}

type onlyWhereExpected struct{ sound }

func (m onlyWhereExpected) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	if req.ExpectedHead != spi.AnyHead {
		return m.sound.Append(ctx, req)
	}
	for {
		req.ExpectedHead = headOf(ctx, m.Inner, req.Route, req.Execution).Head
		res, err := m.sound.Append(ctx, req)
		if conflict, ok := errors.AsType[*spi.ConflictError](err); !ok || conflict.Reused {
			return res, err
		}
	}
}

type sinceIgnored struct{ sound }

func (m sinceIgnored) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	req.SinceSeq = 0
	return m.sound.Append(ctx, req)
}

type shortMemory struct{ sound }

func (m shortMemory) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	if req.ExpectedHead == spi.AnyHead && req.SinceSeq == 0 {
		now := headOf(ctx, m.Inner, req.Route, req.Execution)
		req.SinceSeq = max(now.Floor, now.Head-1000+1)
	}
	return m.sound.Append(ctx, req)
}

type partialDuplicate struct{ sound }

func (m partialDuplicate) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	res, err := m.sound.Append(ctx, req)
	if conflict, ok := errors.AsType[*spi.ConflictError](err); ok && conflict.Reused {
		return spi.AppendResponse{FirstSeq: 1, Head: conflict.Head, Incarnation: 1, Floor: 1, Duplicate: true}, nil
	}
	return res, err
}

type anyEventWillDo struct{ sound }

func (m anyEventWillDo) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	res, err := m.sound.Append(ctx, req)
	if conflict, ok := errors.AsType[*spi.ConflictError](err); ok && conflict.Head > req.ExpectedHead {
		return spi.AppendResponse{FirstSeq: req.ExpectedHead + 1, Head: conflict.Head, Incarnation: 1, Floor: 1, Duplicate: true}, nil
	}
	return res, err
}

type acrossExecutions struct {
	sound
	landed sync.Map // by the first event's id
}

func (m *acrossExecutions) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	if before, found := m.landed.Load(req.Events[0].ID); found {
		res := before.(spi.AppendResponse)
		res.Duplicate = true
		return res, nil
	}
	res, err := m.sound.Append(ctx, req)
	if err == nil {
		m.landed.Store(req.Events[0].ID, res)
	}
	return res, err
}
