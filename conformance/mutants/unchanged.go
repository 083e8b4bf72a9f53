package mutants

import (
	"context"

	"github.com/loomgate/loomgate/spi"
)

var unchangedAppends = []Mutant{
	{
		"append if unchanged, check then act",
		"Token and head are compared, and then the events are appended.",
		"races/two appends if unchanged never both succeed (invariant 9)",
		store(func(s sound) methods { return unchangedCheckThenAct{s} }),
	},
	{
		"append if unchanged presents its token",
		"The events carry the token that was only to be compared.",
		"appends if unchanged/it neither presents a token nor raises one",
		store(func(s sound) methods { return unchangedPresents{s} }),
	},
	{
		"append if unchanged that ignores SinceSeq",
		"A retry at a newer head is stored a second time.",
		"duplicates/a retry at a newer head is recognised by its first SinceSeq, whichever way it comes",
		store(func(s sound) methods { return unchangedIgnoresSince{s} }),
	},
	{
		"append if unchanged that loses stamps",
		"The conditional path has an insert of its own, which leaves the kernel stamp out.",
		"appends/an event comes back as it went in, whichever way it was appended",
		store(func(s sound) methods { return unchangedLosesStamps{s} }),
	},
	{
		"append if unchanged without an incarnation",
		"The answer does not tell the incarnation that the events are in.",
		"appends/whichever way it was appended, the answer says where the events are and in which incarnation",
		store(func(s sound) methods { return unchangedWithoutIncarnation{s} }),
	},
}

type unchangedCheckThenAct struct{ sound }

func (m unchangedCheckThenAct) AppendIfUnchanged(ctx context.Context, req spi.AppendIfUnchangedRequest) (spi.AppendIfUnchangedResponse, error) {
	if now := headOf(ctx, m.Inner, req.Route, req.Execution); now.Head == req.Head && now.Fence == req.Fence {
		pause()
		now = headOf(ctx, m.Inner, req.Route, req.Execution) // whatever they are by now
		req.Head, req.Fence = now.Head, now.Fence
	}
	return m.sound.AppendIfUnchanged(ctx, req)
}

type unchangedPresents struct{ sound }

func (m unchangedPresents) AppendIfUnchanged(ctx context.Context, req spi.AppendIfUnchangedRequest) (spi.AppendIfUnchangedResponse, error) {
	res, err := spi.Append(ctx, m.Inner, spi.AppendRequest{
		Route: req.Route, Execution: req.Execution, ExpectedHead: req.Head, Fence: req.Fence,
		Incarnation: req.Incarnation, SinceSeq: req.SinceSeq, KeyID: req.KeyID, Events: req.Events,
	})
	return spi.AppendIfUnchangedResponse{AppendResponse: res}, err
}

type unchangedIgnoresSince struct{ sound }

func (m unchangedIgnoresSince) AppendIfUnchanged(ctx context.Context, req spi.AppendIfUnchangedRequest) (spi.AppendIfUnchangedResponse, error) {
	req.SinceSeq = 0
	return m.sound.AppendIfUnchanged(ctx, req)
}

type unchangedLosesStamps struct{ sound }

func (m unchangedLosesStamps) AppendIfUnchanged(ctx context.Context, req spi.AppendIfUnchangedRequest) (spi.AppendIfUnchangedResponse, error) {
	req.Events = withoutStamps(req.Events)
	return m.sound.AppendIfUnchanged(ctx, req)
}

type unchangedWithoutIncarnation struct{ sound }

func (m unchangedWithoutIncarnation) AppendIfUnchanged(ctx context.Context, req spi.AppendIfUnchangedRequest) (spi.AppendIfUnchangedResponse, error) {
	res, err := m.sound.AppendIfUnchanged(ctx, req)
	res.Incarnation = 0
	return res, err
}
