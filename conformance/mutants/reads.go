package mutants

import (
	"context"
	"slices"

	"github.com/loomgate/loomgate/spi"
)

var reads = []Mutant{
	{
		"byte limit returns nothing",
		"An event that is larger than the byte limit is never returned.",
		"reads/a read ends at its byte limit, but holds at least one event",
		store(func(s sound) methods { return byteLimitOfNothing{s} }),
	},
	{
		"byte limit ignored",
		"A read returns as many events as the other limit allows.",
		"reads/a read ends at its byte limit, but holds at least one event",
		store(func(s sound) methods { return byteLimitIgnored{s} }),
	},
	{
		"one event too many",
		"The event that tells whether there are more is returned as well.",
		"reads/a part of a log is read forward and backward",
		store(func(s sound) methods { return oneTooMany{s} }),
	},
	{
		"more at the end",
		"A read that is full says that there is more.",
		"reads/a part of a log is read forward and backward",
		store(func(s sound) methods { return moreAtTheEnd{s} }),
	},
	{
		"backward in forward order",
		"A backward read returns the right events in the wrong order.",
		"reads/a part of a log is read forward and backward",
		store(func(s sound) methods { return backwardInForwardOrder{s} }),
	},
}

type byteLimitOfNothing struct{ sound }

func (m byteLimitOfNothing) Read(ctx context.Context, req spi.ReadRequest) (spi.ReadResponse, error) {
	res, err := m.sound.Read(ctx, req)
	if len(res.Events) > 0 && req.MaxBytes > 0 && res.Events[0].Size() > req.MaxBytes {
		res.Events, res.More = nil, true
	}
	return res, err
}

type byteLimitIgnored struct{ sound }

func (m byteLimitIgnored) Read(ctx context.Context, req spi.ReadRequest) (spi.ReadResponse, error) {
	req.MaxBytes = 0
	return m.sound.Read(ctx, req)
}

type oneTooMany struct{ sound }

func (m oneTooMany) Read(ctx context.Context, req spi.ReadRequest) (spi.ReadResponse, error) {
	req.Limit = min(req.Limit+1, spi.MaxLimit)
	return m.sound.Read(ctx, req)
}

type moreAtTheEnd struct{ sound }

func (m moreAtTheEnd) Read(ctx context.Context, req spi.ReadRequest) (spi.ReadResponse, error) {
	res, err := m.sound.Read(ctx, req)
	res.More = res.More || len(res.Events) == req.Limit
	return res, err
}

type backwardInForwardOrder struct{ sound }

func (m backwardInForwardOrder) Read(ctx context.Context, req spi.ReadRequest) (spi.ReadResponse, error) {
	res, err := m.sound.Read(ctx, req)
	if req.Backward {
		slices.Reverse(res.Events)
	}
	return res, err
}
