package mutants

import (
	"context"
	"errors"
	"slices"

	"github.com/loomgate/loomgate/spi"
)

var truncations = []Mutant{
	{
		"truncation that renumbers",
		"An event's sequence is its place among those that are left.",
		"truncations/the events before a sequence go, except those to keep, and no sequence changes",
		store(func(s sound) methods { return renumbers{s} }),
	},
	{
		"truncation of everything",
		"The last event goes as well, and with it the head.",
		"truncations/the last event always stays, and the head never decreases (invariant 6)",
		store(func(s sound) methods { return truncatesAll{s} }),
	},
	{
		"truncation that forgets an answer",
		"The floor is not raised, so nobody can tell that something is missing.",
		"truncations/the events before a sequence go, except those to keep, and no sequence changes",
		store(func(s sound) methods { return floorNotRaised{s} }),
	},
	{
		"truncation that ignores Keep",
		"The events to keep go as well.",
		"truncations/the events before a sequence go, except those to keep, and no sequence changes",
		store(func(s sound) methods { return ignoresKeep{s} }),
	},
	{
		"truncation of whatever is there",
		"A truncation that comes late hits the log that was begun since.",
		"truncations/another incarnation is refused, and an execution without events is not found",
		store(func(s sound) methods { return truncatesAnyIncarnation{s} }),
	},
	{
		"append past the floor",
		"An append whose duplicate might have been truncated is taken for a new one.",
		"truncations/an append whose duplicate might be below the floor is refused (invariant 4)",
		store(func(s sound) methods { return appendPastFloor{s} }),
	},
	{
		"conflict with what a truncation left",
		"The retry of an append that was cut in two is a conflict, so its writer appends it anew.",
		"truncations/an append whose duplicate might be below the floor is refused (invariant 4)",
		store(func(s sound) methods { return conflictsWithRest{s} }),
	},
}

type conflictsWithRest struct{ sound }

func (m conflictsWithRest) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	res, err := m.sound.Append(ctx, req)
	if _, truncated := errors.AsType[*spi.TruncatedError](err); !truncated {
		return res, err
	}
	now := headOf(ctx, m.Inner, req.Route, req.Execution)
	last := req.Events[len(req.Events)-1].ID
	rest, readErr := spi.Read(ctx, m.Inner, spi.ReadRequest{Route: req.Route, Execution: req.Execution, Limit: spi.MaxLimit})
	if readErr == nil && slices.ContainsFunc(rest.Events, func(e spi.Event) bool { return e.ID == last }) {
		return res, &spi.ConflictError{Execution: req.Execution, Head: now.Head, Reused: true}
	}
	return res, err
}

type renumbers struct{ sound }

func (m renumbers) Read(ctx context.Context, req spi.ReadRequest) (spi.ReadResponse, error) {
	res, err := m.sound.Read(ctx, req)
	for i := range res.Events {
		res.Events[i].Sequence = req.After + int64(i) + 1
	}
	return res, err
}

type truncatesAll struct{ sound }

func (m truncatesAll) TruncatePrefixKeeping(ctx context.Context, req spi.TruncatePrefixKeepingRequest) (spi.TruncatePrefixKeepingResponse, error) {
	now := headOf(ctx, m.Inner, req.Route, req.Execution)
	if now.Head == 0 || req.Before <= now.Head {
		return m.sound.TruncatePrefixKeeping(ctx, req)
	}
	_, err := m.DeleteExecution(ctx, spi.DeleteExecutionRequest{Route: req.Route, Execution: req.Execution, Incarnation: req.Incarnation})
	return spi.TruncatePrefixKeepingResponse{Floor: now.Head, Dropped: now.Head}, err
}

type floorNotRaised struct{ sound }

func (m floorNotRaised) TruncatePrefixKeeping(ctx context.Context, req spi.TruncatePrefixKeepingRequest) (spi.TruncatePrefixKeepingResponse, error) {
	res, err := m.sound.TruncatePrefixKeeping(ctx, req)
	res.Floor = 1
	return res, err
}

func (m floorNotRaised) Head(ctx context.Context, req spi.HeadRequest) (spi.HeadResponse, error) {
	res, err := m.sound.Head(ctx, req)
	res.Floor = 1
	return res, err
}

func (m floorNotRaised) AcquireFenceIf(ctx context.Context, req spi.AcquireFenceIfRequest) (spi.AcquireFenceIfResponse, error) {
	return ignoresFloor(m).AcquireFenceIf(ctx, req)
}

type ignoresKeep struct{ sound }

func (m ignoresKeep) TruncatePrefixKeeping(ctx context.Context, req spi.TruncatePrefixKeepingRequest) (spi.TruncatePrefixKeepingResponse, error) {
	req.Keep = nil
	return m.sound.TruncatePrefixKeeping(ctx, req)
}

type truncatesAnyIncarnation struct{ sound }

func (m truncatesAnyIncarnation) TruncatePrefixKeeping(ctx context.Context, req spi.TruncatePrefixKeepingRequest) (spi.TruncatePrefixKeepingResponse, error) {
	if now := headOf(ctx, m.Inner, req.Route, req.Execution).Incarnation; now > 0 {
		req.Incarnation = now
	}
	return m.sound.TruncatePrefixKeeping(ctx, req)
}

type appendPastFloor struct{ sound }

func (m appendPastFloor) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	now := headOf(ctx, m.Inner, req.Route, req.Execution)
	if req.SinceSeq > 0 && req.SinceSeq < now.Floor {
		req.SinceSeq = now.Floor
	}
	return m.sound.Append(ctx, req)
}
