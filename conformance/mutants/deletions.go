package mutants

import (
	"context"
	"sync"

	"github.com/loomgate/loomgate/spi"
)

var deletions = []Mutant{
	{
		"deletion that keeps the old holder valid",
		"A deletion does not raise the fence.",
		"deletions/the holder of a fence does not outlive the deletion (invariant 6)",
		store(func(s sound) methods { return &holderStaysValid{sound: s} }),
	},
	{
		"deletion that keeps the timers",
		"The timers of a deleted execution stay.",
		"deletions/a deletion takes the timers",
		store(func(s sound) methods { return deletionKeepsTimers{s} }),
	},
	{
		"deletion of whatever is there",
		"A deletion that comes late hits the log that was begun since.",
		"deletions/a deletion again is no error, and its late twin leaves the new log alone (invariant 5)",
		store(func(s sound) methods { return deletesAnyIncarnation{s} }),
	},
	{
		"deletion without a tombstone",
		"A deleted execution is as if it had never been.",
		"deletions/a deletion takes all events and begins another incarnation",
		store(func(s sound) methods { return withoutTombstone{s} }),
	},
	{
		"first append that resurrects",
		"A first append need not know of the deletion before it.",
		"deletions/the first append after a deletion states the incarnation, or does not land (invariant 11)",
		store(func(s sound) methods { return resurrects{s} }),
	},
	{
		"append to any incarnation",
		"A writer of the old incarnation writes the new one.",
		"deletions/a writer of the old incarnation does not write the new one",
		store(func(s sound) methods { return anyIncarnation{s} }),
	},
	{
		"sweep of everything",
		"Tombstones are swept whatever their age.",
		"deletions/an old tombstone is swept, and only that",
		store(func(s sound) methods { return sweepsYoung{s} }),
	},
}

type holderStaysValid struct {
	sound
	old sync.Map // the tokens before the deletion
}

func (m *holderStaysValid) DeleteExecution(ctx context.Context, req spi.DeleteExecutionRequest) (spi.DeleteExecutionResponse, error) {
	m.old.Store(req.Execution, headOf(ctx, m.Inner, req.Route, req.Execution).Fence)
	return m.sound.DeleteExecution(ctx, req)
}

func (m *holderStaysValid) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	if old, deleted := m.old.Load(req.Execution); deleted && req.Fence > 0 && req.Fence == old {
		req.Fence++
	}
	return m.sound.Append(ctx, req)
}

type deletionKeepsTimers struct{ sound }

func (m deletionKeepsTimers) DeleteExecution(ctx context.Context, req spi.DeleteExecutionRequest) (spi.DeleteExecutionResponse, error) {
	due, _ := m.DueTimers(ctx, spi.DueTimersRequest{Prefix: string(req.Execution), Limit: spi.MaxLimit})
	res, err := m.sound.DeleteExecution(ctx, req)
	for _, t := range due.Timers {
		if t.Execution == req.Execution {
			t.Version = 0
			_, _ = m.ScheduleTimer(ctx, spi.ScheduleTimerRequest{Route: req.Route, Timer: t})
		}
	}
	return res, err
}

type deletesAnyIncarnation struct{ sound }

func (m deletesAnyIncarnation) DeleteExecution(ctx context.Context, req spi.DeleteExecutionRequest) (spi.DeleteExecutionResponse, error) {
	if now := headOf(ctx, m.Inner, req.Route, req.Execution); now.Head > 0 {
		req.Incarnation = now.Incarnation
	}
	return m.sound.DeleteExecution(ctx, req)
}

type withoutTombstone struct{ sound }

func (m withoutTombstone) DeleteExecution(ctx context.Context, req spi.DeleteExecutionRequest) (spi.DeleteExecutionResponse, error) {
	res, err := m.sound.DeleteExecution(ctx, req)
	_, _ = m.SweepTombstones(ctx, spi.SweepTombstonesRequest{Prefix: string(req.Execution), Limit: 1})
	return res, err
}

type resurrects struct{ sound }

func (m resurrects) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	if req.Incarnation == 0 {
		req.Incarnation = headOf(ctx, m.Inner, req.Route, req.Execution).Incarnation
	}
	return m.sound.Append(ctx, req)
}

type anyIncarnation struct{ sound }

func (m anyIncarnation) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	if now := headOf(ctx, m.Inner, req.Route, req.Execution); now.Head > 0 {
		req.Incarnation = 0
	}
	return m.sound.Append(ctx, req)
}

type sweepsYoung struct{ sound }

func (m sweepsYoung) SweepTombstones(ctx context.Context, req spi.SweepTombstonesRequest) (spi.SweepTombstonesResponse, error) {
	req.OlderThan = 0
	return m.sound.SweepTombstones(ctx, req)
}
