package mutants

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/loomgate/loomgate/conformance"
	"github.com/loomgate/loomgate/spi"
)

var appends = []Mutant{
	{
		"sequence gap",
		"A refused append uses a sequence up, as a database's own sequence does.",
		"appends/an append at another head is a conflict that tells the head and stores nothing",
		store(func(s sound) methods { return sequenceGap{s} }),
	},
	{
		"torn append",
		"Of an append that comes too late, the events whose places are free are stored.",
		"appends/an append at another head is a conflict that tells the head and stores nothing",
		store(func(s sound) methods { return tornAppend{s} }),
	},
	{
		"event by event",
		"An append of several events lets others in between them.",
		"appends/the events of an append stand together, all or none (invariant 2)",
		store(func(s sound) methods { return eventByEvent{s} }),
	},
	{
		"head looked at first",
		"The expected head is compared before the write, not in it.",
		"appends/an append at a head succeeds only at that head (invariant 3)",
		store(func(s sound) methods { return headLookedAtFirst{s} }),
	},
	{
		"conflict tells the expected head",
		"A conflict tells the head that the caller expected, not the one that is there.",
		"appends/an append at another head is a conflict that tells the head and stores nothing",
		store(func(s sound) methods { return conflictTellsExpected{s} }),
	},
	{
		"phantom id",
		"A refused first append leaves the execution's row behind, and the row is listed.",
		"appends/a refused first append leaves nothing to list",
		store(func(s sound) methods { return phantomAppend{&phantoms{sound: s}} }),
	},
	{
		"head judged before the fence",
		"An append that is stale and late is told that it is late, and tries again.",
		"appends/a refused append says what it found in the order of the rules",
		store(func(s sound) methods { return headBeforeFence{s} }),
	},
	{
		"token through a float",
		"A token takes a detour over floating point, as it does through JSON.",
		"appends/an expected head or a token at the edge of 64 bits stays what it is",
		store(func(s sound) methods { return tokenThroughFloat{s} }),
	},
	{
		"time in milliseconds",
		"The writer's time is cut to milliseconds.",
		"appends/times keep their microseconds from the year 1 to the year 9999",
		store(func(s sound) methods { return milliseconds{s} }),
	},
	{
		"local time",
		"Times come back in the zone of the node.",
		"appends/an event comes back as it went in, whichever way it was appended",
		store(func(s sound) methods { return localTime{s} }),
	},
	{
		"stamp lost",
		"The kernel stamp is not stored.",
		"appends/an event comes back as it went in, whichever way it was appended",
		store(func(s sound) methods { return stampLost{s} }),
	},
	{
		"forgetful",
		"What was acknowledged is gone when the process starts again.",
		"appends/an acknowledged event is there when the store is opened again",
		func(t *testing.T) { conformance.Store(t, opener(nothing)) },
	},
}

type sequenceGap struct{ sound }

func (m sequenceGap) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	res, err := m.sound.Append(ctx, req)
	if conflict, ok := errors.AsType[*spi.ConflictError](err); ok && conflict.Head > 0 {
		burnt := spi.Event{ID: spi.NewEventID(), Kind: "burnt"}
		_, _ = m.sound.Append(ctx, spi.AppendRequest{Execution: req.Execution, ExpectedHead: spi.AnyHead, Events: []spi.Event{burnt}})
	}
	return res, err
}

func (m sequenceGap) Read(ctx context.Context, req spi.ReadRequest) (spi.ReadResponse, error) {
	res, err := m.sound.Read(ctx, req)
	res.Events = slices.DeleteFunc(res.Events, func(e spi.Event) bool { return e.Kind == "burnt" })
	return res, err
}

type tornAppend struct{ sound }

func (m tornAppend) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	res, err := m.sound.Append(ctx, req)
	if conflict, ok := errors.AsType[*spi.ConflictError](err); ok && !conflict.Reused {
		lost := conflict.Head - req.ExpectedHead
		if lost > 0 && lost < int64(len(req.Events)) {
			req.ExpectedHead, req.Events = conflict.Head, req.Events[lost:]
			_, _ = m.sound.Append(ctx, req)
		}
	}
	return res, err
}

type eventByEvent struct{ sound }

func (m eventByEvent) Append(ctx context.Context, req spi.AppendRequest) (res spi.AppendResponse, err error) {
	all := req.Events
	if req.ExpectedHead != spi.AnyHead {
		return m.sound.Append(ctx, req)
	}
	for i := range all {
		req.Events = all[i : i+1]
		one, err := m.sound.Append(ctx, req)
		if err != nil {
			return res, err
		}
		if i == 0 {
			res = one
		}
		res.Head = one.Head
		pause()
	}
	return res, nil
}

type headLookedAtFirst struct{ sound }

func (m headLookedAtFirst) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	if now := headOf(ctx, m.Inner, req.Route, req.Execution).Head; now == req.ExpectedHead {
		pause()
		req.ExpectedHead = spi.AnyHead
	}
	return m.sound.Append(ctx, req)
}

type conflictTellsExpected struct{ sound }

func (m conflictTellsExpected) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	res, err := m.sound.Append(ctx, req)
	if conflict, ok := errors.AsType[*spi.ConflictError](err); ok {
		conflict.Head = req.ExpectedHead
	}
	return res, err
}

type phantomAppend struct{ *phantoms }

func (m phantomAppend) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	res, err := m.sound.Append(ctx, req)
	if err != nil {
		m.plant(req.Execution)
	}
	return res, err
}

type headBeforeFence struct{ sound }

func (m headBeforeFence) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	now := headOf(ctx, m.Inner, req.Route, req.Execution)
	if req.Incarnation == now.Incarnation && req.ExpectedHead > now.Head {
		return spi.AppendResponse{}, &spi.ConflictError{Execution: req.Execution, Head: now.Head}
	}
	return m.sound.Append(ctx, req)
}

type tokenThroughFloat struct{ sound }

func (m tokenThroughFloat) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	req.Fence = int64(float64(req.Fence))
	return m.sound.Append(ctx, req)
}

type milliseconds struct{ sound }

func (m milliseconds) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	req.Events = slices.Clone(req.Events)
	for i := range req.Events {
		req.Events[i].RecordedAt = req.Events[i].RecordedAt.Truncate(time.Millisecond)
	}
	return m.sound.Append(ctx, req)
}

type localTime struct{ sound }

func (m localTime) Read(ctx context.Context, req spi.ReadRequest) (spi.ReadResponse, error) {
	res, err := m.sound.Read(ctx, req)
	for i := range res.Events {
		res.Events[i].RecordedAt = res.Events[i].RecordedAt.In(time.FixedZone("the node's", 3600))
	}
	return res, err
}

type stampLost struct{ sound }

func (m stampLost) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	req.Events = withoutStamps(req.Events)
	return m.sound.Append(ctx, req)
}

// withoutStamps returns events as an insert stores them that leaves a column out.
func withoutStamps(events []spi.Event) []spi.Event {
	events = slices.Clone(events)
	for i := range events {
		events[i].Kernel = false
	}
	return events
}
