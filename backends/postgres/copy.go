package postgres

import (
	"context"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/loomgate/loomgate/spi"
)

// CopyPrefix reads the source as of one incarnation and floor, and appends it to
// the target in one transaction. It refuses executions with a data key: a copy
// needs a key of its own, so only a layer that encrypts can make it. An execution
// has its key before its first event or never, so looking before is enough.
func (s *store) CopyPrefix(ctx context.Context, req spi.CopyPrefixRequest) (res spi.CopyPrefixResponse, err error) {
	for _, e := range []struct {
		route spi.Route
		id    spi.ExecutionID
	}{{req.FromRoute, req.From}, {req.Route, req.To}} {
		var row directoryRow
		var key pgtype.UUID
		var shredded bool
		err := s.read(ctx, statement{
			`WITH ` + callSQL + ` SELECT ` + rowSQL + `, d.key_id, coalesce(d.shredded, false) FROM c LEFT JOIN loomgate.executions d ON d.execution_id = $3`,
			[]any{e.route.Slot, e.route.Epoch, string(e.id)},
			one(append(row.into(), &key, &shredded)...),
		})
		if err == nil {
			err = s.refuseRow(ctx, e.route, e.id, 0, row)
		}
		switch {
		case err != nil:
			return res, err
		case shredded:
			return res, &spi.ShreddedError{Owner: spi.KeyOwner(e.id)}
		case key.Valid:
			return res, &spi.KeyMismatchError{Execution: req.To}
		}
	}
	events, err := spi.ReadPrefix(ctx, s.self, req.FromRoute, req.From, req.N)
	if err != nil {
		return res, err
	}
	return spi.WritePrefix(ctx, s.self, spi.AppendIfUnchangedRequest{
		Route: req.Route, Execution: req.To, Incarnation: req.Incarnation, Events: events,
	})
}
