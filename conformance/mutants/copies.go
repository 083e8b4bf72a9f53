package mutants

import (
	"context"

	"github.com/loomgate/loomgate/spi"
)

var copies = []Mutant{
	{
		"copy with its tokens",
		"A copy carries the tokens of its source, which mean nothing in the target.",
		"copies/the first events of one execution become another, which goes on by itself (invariant 12)",
		store(func(s sound) methods { return copyWithTokens{s} }),
	},
	{
		"copy behind what is there",
		"A copy goes to the end of a target that has events.",
		"copies/a target that has other events is a conflict and stays as it is",
		store(func(s sound) methods { return copyBehind{s} }),
	},
	{
		"copy of what there is",
		"A source that is too short is copied as far as it goes.",
		"copies/a source that is too short leaves no copy",
		store(func(s sound) methods { return copyOfWhatThereIs{s} }),
	},
}

type copyWithTokens struct{ sound }

func (m copyWithTokens) CopyPrefix(ctx context.Context, req spi.CopyPrefixRequest) (spi.CopyPrefixResponse, error) {
	return copyAt(ctx, m.Inner, req, 0)
}

type copyBehind struct{ sound }

func (m copyBehind) CopyPrefix(ctx context.Context, req spi.CopyPrefixRequest) (spi.CopyPrefixResponse, error) {
	return copyAt(ctx, m.Inner, req, spi.AnyHead)
}

// copyAt copies to a head of the target.
func copyAt(ctx context.Context, s *spi.Store, req spi.CopyPrefixRequest, head int64) (spi.CopyPrefixResponse, error) {
	prefix, err := spi.ReadPrefix(ctx, s, req.FromRoute, req.From, req.N)
	if err != nil {
		return spi.CopyPrefixResponse{}, err
	}
	from, err := spi.Read(ctx, s, spi.ReadRequest{Route: req.FromRoute, Execution: req.From, Limit: 1})
	if err != nil {
		return spi.CopyPrefixResponse{}, err
	}
	res, err := spi.Append(ctx, s, spi.AppendRequest{
		Route: req.Route, Execution: req.To, ExpectedHead: head, Incarnation: req.Incarnation, Fence: from.Events[0].Fence, Events: prefix.Events,
	})
	return spi.CopyPrefixResponse{Head: res.Head, Incarnation: res.Incarnation, Duplicate: res.Duplicate}, err
}

type copyOfWhatThereIs struct{ sound }

func (m copyOfWhatThereIs) CopyPrefix(ctx context.Context, req spi.CopyPrefixRequest) (spi.CopyPrefixResponse, error) {
	if from := headOf(ctx, m.Inner, req.FromRoute, req.From).Head; from > 0 {
		req.N = min(req.N, from)
	}
	return m.sound.CopyPrefix(ctx, req)
}
