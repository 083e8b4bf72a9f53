package mutants

import (
	"context"
	"slices"

	"github.com/loomgate/loomgate/spi"
)

const conditional = "conditional fences/"

var fences = []Mutant{
	{
		"acquire that compares the head",
		"Any event past the park makes a conditional acquire stale.",
		conditional + "an event that answers nothing leaves the park open, though the head has moved",
		store(func(s sound) methods { return comparesHead{s} }),
	},
	{
		"acquire without the park check",
		"A conditional acquire looks at the token only.",
		conditional + "each answering event past the park makes it stale though the token matches",
		store(func(s sound) methods { return withoutPark{s} }),
	},
	{
		"unconditional acquire",
		"A conditional acquire always wins.",
		"interleavings/in every interleaving of two resumers with crashes one resumes at most, and is never fenced out",
		store(func(s sound) methods { return unconditional{s} }),
	},
	{
		"acquire that ignores the floor",
		"A park that was kept is open if its answer was truncated away.",
		conditional + "a park below the floor is stale: its answer may be gone",
		store(func(s sound) methods { return ignoresFloor{s} }),
	},
	{
		"acquire that takes any event for a park",
		"Whatever stands at the place counts as a park.",
		conditional + "a place that is no park is stale",
		store(func(s sound) methods { return anyEventIsAPark{s} }),
	},
	{
		"acquire that counts the application's kinds",
		"An unknown kind answers a park, stamped or not.",
		conditional + "an unknown kind is answering if it is stamped kernel, and the application's if not",
		store(func(s sound) methods { return countsUnstamped{s} }),
	},
	{
		"acquire that ignores stamped kinds",
		"An unknown kind never answers a park.",
		conditional + "an unknown kind is answering if it is stamped kernel, and the application's if not",
		store(func(s sound) methods { return ignoresStamped{s} }),
	},
	{
		"stamp taken from the metadata",
		"An application can stamp its events by what it writes into their metadata.",
		conditional + "an event that answers nothing leaves the park open, though the head has moved",
		store(func(s sound) methods { return stampFromMetadata{s} }),
	},
	{
		"acquire that remembers no park but the last event",
		"Only the event after the park is looked at.",
		conditional + "each answering event past the park makes it stale though the token matches",
		store(func(s sound) methods { return onlyNextEvent{s} }),
	},
	{
		"acquire check then act",
		"The park is looked at, and then the fence is raised.",
		"races/an answering append and a conditional acquire never both succeed",
		store(func(s sound) methods { return acquireCheckThenAct{s} }),
	},
	{
		"stale acquire without the token",
		"A conditional acquire that loses does not tell the current token.",
		conditional + "a token that has moved is stale and stays what it is",
		store(func(s sound) methods { return staleWithoutToken{s} }),
	},
	{
		"acquire that lists",
		"The row that an acquire makes is listed.",
		"fences/an execution without events is fenced, and not listed",
		store(func(s sound) methods { return acquireThatLists{&phantoms{sound: s}} }),
	},
	{
		"guard that forgets the batch path",
		"The appends of a batch are not held to the fence.",
		"batches/a fence guards a batch as it guards an append",
		store(func(s sound) methods { return batchUnguarded{s} }),
	},
	{
		"guard that lets none pass",
		"An answering event without a token lands.",
		"fences/no answering event lands without a token once there is one",
		store(func(s sound) methods { return letsNonePass{s} }),
	},
	{
		"guard that forgets plain events",
		"An event that answers nothing lands under a token that is too low.",
		"fences/no event at all lands under a lower token",
		store(func(s sound) methods { return forgetsPlainEvents{s} }),
	},
	{
		"guard that wants a token of everybody",
		"Where there is a fence, even an audit event needs the token.",
		"fences/an event that answers nothing lands without a token",
		store(func(s sound) methods { return wantsTokenOfAll{s} }),
	},
	{
		"guard before the write",
		"The fence is looked at before the write, not in it.",
		"races/an answering append and a conditional acquire never both succeed",
		store(func(s sound) methods { return guardBeforeWrite{s} }),
	},
	{
		"token not recorded",
		"Events do not carry the token that they were written under.",
		"fences/an event carries the token that it was written under",
		store(func(s sound) methods { return tokenNotRecorded{s} }),
	},
}

// acquireIf does a conditional acquire that open decides about: the events are
// those from the place of the park on. It is no single step.
func acquireIf(ctx context.Context, s *spi.Store, req spi.AcquireFenceIfRequest, open func([]spi.Event) bool) (spi.AcquireFenceIfResponse, error) {
	now := headOf(ctx, s, req.Route, req.Execution)
	log, err := spi.Read(ctx, s, spi.ReadRequest{Route: req.Route, Execution: req.Execution, After: max(req.ParkSeq, 1) - 1, Limit: spi.MaxLimit})
	switch {
	case err != nil:
		return spi.AcquireFenceIfResponse{}, err
	case req.Incarnation > 0 && req.Incarnation != now.Incarnation:
		return spi.AcquireFenceIfResponse{}, &spi.IncarnationError{Execution: req.Execution, Current: now.Incarnation}
	case now.Fence != req.Fence, len(log.Events) == 0, log.Events[0].Sequence != req.ParkSeq, !open(log.Events):
		return spi.AcquireFenceIfResponse{Token: now.Fence}, nil
	}
	return acquireAlways(ctx, s, req)
}

func acquireAlways(ctx context.Context, s *spi.Store, req spi.AcquireFenceIfRequest) (spi.AcquireFenceIfResponse, error) {
	res, err := spi.AcquireFence(ctx, s, spi.AcquireFenceRequest{Route: req.Route, Execution: req.Execution, Incarnation: req.Incarnation})
	return spi.AcquireFenceIfResponse{Acquired: true, Token: res.Token}, err
}

func isPark(e spi.Event) bool { return e.Kind == spi.KindExecutionSuspended }

func isKernelKind(e spi.Event) bool {
	return slices.ContainsFunc(spi.KernelKinds(), func(k spi.KernelKind) bool { return k.Kind == e.Kind })
}

type comparesHead struct{ sound }

func (m comparesHead) AcquireFenceIf(ctx context.Context, req spi.AcquireFenceIfRequest) (spi.AcquireFenceIfResponse, error) {
	if now := headOf(ctx, m.Inner, req.Route, req.Execution); now.Head != req.ParkSeq {
		return spi.AcquireFenceIfResponse{Token: now.Fence}, ctx.Err()
	}
	return m.sound.AcquireFenceIf(ctx, req)
}

type withoutPark struct{ sound }

func (m withoutPark) AcquireFenceIf(ctx context.Context, req spi.AcquireFenceIfRequest) (spi.AcquireFenceIfResponse, error) {
	if now := headOf(ctx, m.Inner, req.Route, req.Execution).Fence; now != req.Fence {
		return spi.AcquireFenceIfResponse{Token: now}, ctx.Err()
	}
	return acquireAlways(ctx, m.Inner, req)
}

type unconditional struct{ sound }

func (m unconditional) AcquireFenceIf(ctx context.Context, req spi.AcquireFenceIfRequest) (spi.AcquireFenceIfResponse, error) {
	return acquireAlways(ctx, m.Inner, req)
}

type ignoresFloor struct{ sound }

func (m ignoresFloor) AcquireFenceIf(ctx context.Context, req spi.AcquireFenceIfRequest) (spi.AcquireFenceIfResponse, error) {
	return acquireIf(ctx, m.Inner, req, func(log []spi.Event) bool { return isPark(log[0]) && !spi.AnyAnswering(log[1:]) })
}

type anyEventIsAPark struct{ sound }

func (m anyEventIsAPark) AcquireFenceIf(ctx context.Context, req spi.AcquireFenceIfRequest) (spi.AcquireFenceIfResponse, error) {
	return acquireIf(ctx, m.Inner, req, func(log []spi.Event) bool { return !spi.AnyAnswering(log[1:]) })
}

type countsUnstamped struct{ sound }

func (m countsUnstamped) AcquireFenceIf(ctx context.Context, req spi.AcquireFenceIfRequest) (spi.AcquireFenceIfResponse, error) {
	return acquireIf(ctx, m.Inner, req, func(log []spi.Event) bool {
		return isPark(log[0]) && !slices.ContainsFunc(log[1:], func(e spi.Event) bool { return e.Answering() || !isKernelKind(e) })
	})
}

type ignoresStamped struct{ sound }

func (m ignoresStamped) AcquireFenceIf(ctx context.Context, req spi.AcquireFenceIfRequest) (spi.AcquireFenceIfResponse, error) {
	return acquireIf(ctx, m.Inner, req, func(log []spi.Event) bool {
		return isPark(log[0]) && !slices.ContainsFunc(log[1:], func(e spi.Event) bool { return e.Answering() && isKernelKind(e) })
	})
}

type stampFromMetadata struct{ sound }

func (m stampFromMetadata) AcquireFenceIf(ctx context.Context, req spi.AcquireFenceIfRequest) (spi.AcquireFenceIfResponse, error) {
	return acquireIf(ctx, m.Inner, req, func(log []spi.Event) bool {
		return isPark(log[0]) && !slices.ContainsFunc(log[1:], func(e spi.Event) bool {
			return spi.IsAnswering(e.Kind, e.Kernel || e.Metadata["kernel"] == "true")
		})
	})
}

type onlyNextEvent struct{ sound }

func (m onlyNextEvent) AcquireFenceIf(ctx context.Context, req spi.AcquireFenceIfRequest) (spi.AcquireFenceIfResponse, error) {
	return acquireIf(ctx, m.Inner, req, func(log []spi.Event) bool {
		return isPark(log[0]) && (len(log) == 1 || !log[1].Answering())
	})
}

type acquireCheckThenAct struct{ sound }

func (m acquireCheckThenAct) AcquireFenceIf(ctx context.Context, req spi.AcquireFenceIfRequest) (spi.AcquireFenceIfResponse, error) {
	return acquireIf(ctx, m.Inner, req, func(log []spi.Event) bool {
		open := log[0].Sequence >= headOf(ctx, m.Inner, req.Route, req.Execution).Floor && isPark(log[0]) && !spi.AnyAnswering(log[1:])
		pause()
		return open
	})
}

type staleWithoutToken struct{ sound }

func (m staleWithoutToken) AcquireFenceIf(ctx context.Context, req spi.AcquireFenceIfRequest) (spi.AcquireFenceIfResponse, error) {
	res, err := m.sound.AcquireFenceIf(ctx, req)
	if !res.Acquired {
		res.Token = 0
	}
	return res, err
}

type acquireThatLists struct{ *phantoms }

func (m acquireThatLists) AcquireFence(ctx context.Context, req spi.AcquireFenceRequest) (spi.AcquireFenceResponse, error) {
	m.plant(req.Execution)
	return m.sound.AcquireFence(ctx, req)
}

type batchUnguarded struct{ sound }

func (m batchUnguarded) AppendBatch(ctx context.Context, req spi.AppendBatchRequest) (spi.AppendBatchResponse, error) {
	req.Appends = slices.Clone(req.Appends)
	for i := range req.Appends {
		a := &req.Appends[i]
		a.Fence = max(a.Fence, headOf(ctx, m.Inner, a.Route, a.Execution).Fence)
	}
	return m.sound.AppendBatch(ctx, req)
}

type letsNonePass struct{ sound }

func (m letsNonePass) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	if req.Fence == 0 {
		req.Fence = headOf(ctx, m.Inner, req.Route, req.Execution).Fence
	}
	return m.sound.Append(ctx, req)
}

type forgetsPlainEvents struct{ sound }

func (m forgetsPlainEvents) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	if !spi.AnyAnswering(req.Events) {
		req.Fence = 0
	}
	return m.sound.Append(ctx, req)
}

type wantsTokenOfAll struct{ sound }

func (m wantsTokenOfAll) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	if now := headOf(ctx, m.Inner, req.Route, req.Execution).Fence; req.Fence < now {
		return spi.AppendResponse{}, &spi.StaleFenceError{Execution: req.Execution, Current: now}
	}
	return m.sound.Append(ctx, req)
}

type guardBeforeWrite struct{ sound }

func (m guardBeforeWrite) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	if now := headOf(ctx, m.Inner, req.Route, req.Execution).Fence; req.Fence == now {
		pause()
		req.Fence = headOf(ctx, m.Inner, req.Route, req.Execution).Fence // whatever it is by now
	}
	return m.sound.Append(ctx, req)
}

type tokenNotRecorded struct{ sound }

func (m tokenNotRecorded) Read(ctx context.Context, req spi.ReadRequest) (spi.ReadResponse, error) {
	res, err := m.sound.Read(ctx, req)
	for i := range res.Events {
		res.Events[i].Fence = 0
	}
	return res, err
}
