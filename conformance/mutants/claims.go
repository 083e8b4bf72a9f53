package mutants

import (
	"context"

	"github.com/loomgate/loomgate/spi"
)

var claims = []Mutant{
	{
		"claimed but unsupported",
		"A method that the store offers answers that it is unsupported.",
		"claims/a method that is offered never says that it is unsupported",
		store(func(s sound) methods { return claimedButUnsupported{s} }),
	},
	{
		"errors without a type",
		"What went wrong is only in the text of the error.",
		"claims/an error names the method and the execution as the caller knows it",
		store(func(s sound) methods { return errorsWithoutType{s} }),
	},
	{
		"deaf to cancellation",
		"A call whose context has ended is done all the same.",
		"cancellations/a call whose context has ended answers with the context's error and changes nothing",
		store(func(s sound) methods { return deaf{s} }),
	},
}

type claimedButUnsupported struct{ sound }

func (claimedButUnsupported) SweepTombstones(context.Context, spi.SweepTombstonesRequest) (spi.SweepTombstonesResponse, error) {
	return spi.SweepTombstonesResponse{}, &spi.UnsupportedError{Cap: spi.CapSweepTombstones}
}

type errorsWithoutType struct{ sound }

func (m errorsWithoutType) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	res, err := m.sound.Append(ctx, req)
	return res, asText(err)
}

type deaf struct{ sound }

func (m deaf) AppendBatch(ctx context.Context, req spi.AppendBatchRequest) (spi.AppendBatchResponse, error) {
	return m.sound.AppendBatch(context.WithoutCancel(ctx), req)
}
