package postgres

import (
	"context"

	"github.com/loomgate/loomgate/spi"
)

// CopyPrefix reads the source as of one incarnation and floor, and appends it to
// the target in one transaction.
func (s *store) CopyPrefix(ctx context.Context, req spi.CopyPrefixRequest) (res spi.CopyPrefixResponse, err error) {
	prefix, err := spi.ReadPrefix(ctx, s.self, req.FromRoute, req.From, req.N)
	if err != nil {
		return res, err
	}
	if prefix.Keyed {
		return res, &spi.KeyMismatchError{Execution: req.To}
	}
	return spi.WritePrefix(ctx, s.self, spi.AppendIfUnchangedRequest{
		Route: req.Route, Execution: req.To, Incarnation: req.Incarnation, Events: prefix.Events,
	})
}
