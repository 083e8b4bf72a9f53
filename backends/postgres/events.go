package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/loomgate/loomgate/spi"
)

// readSQL returns a part of a log up to a number of bytes, and at least one event
// of it. The sizes are summed beside the payloads, which stay where they are until
// a row is returned. One row more than the limit tells whether there is more.
func readSQL(order string) string {
	return `SELECT sequence, event_id, kind, kernel, fence, recorded_at, metadata::text, payload, total
FROM (
	SELECT e.*, sum(e.size) OVER w AS bytes, row_number() OVER w AS n, count(*) OVER () AS total
	FROM (
		SELECT * FROM loomgate.events
		WHERE execution_id = $1 AND sequence >= $2 AND sequence <= $3
		ORDER BY execution_id ` + order + `, sequence ` + order + `
		LIMIT $4::bigint + 1
	) e
	WINDOW w AS (ORDER BY e.sequence ` + order + `)
) part
WHERE n <= $4 AND (bytes <= $5 OR n = 1)
ORDER BY n`
}

var readForward, readBackward = readSQL("ASC"), readSQL("DESC")

func (s *store) Read(ctx context.Context, req spi.ReadRequest) (res spi.ReadResponse, err error) {
	var row directoryRow
	total := 0
	first, last := readBounds(req)
	sql := readForward
	if req.Backward {
		sql = readBackward
	}
	err = s.read(ctx, rowStatement(req.Route, req.Execution, one(row.into()...)), statement{
		sql,
		[]any{string(req.Execution), first, last, req.Limit, cmp.Or(req.MaxBytes, spi.MaxReadBytes)},
		func(rows pgx.Rows) error {
			for rows.Next() {
				e, err := scanEvent(rows, &total)
				if err != nil {
					return err
				}
				res.Events = append(res.Events, e)
			}
			return rows.Err()
		},
	})
	if err == nil {
		err = s.refuseRow(ctx, req.Route, req.Execution, 0, row)
	}
	if err != nil {
		return spi.ReadResponse{}, err
	}
	res.More, res.Incarnation, res.Floor, res.Keyed, res.Shredded = len(res.Events) < total, row.incarnation, row.floor, row.keyed, row.shredded
	return res, nil
}

// readBounds returns the first and the last sequence that a read asks for.
func readBounds(req spi.ReadRequest) (first, last int64) {
	switch {
	case req.Backward && req.After == 0:
		return req.Until, math.MaxInt64
	case req.Backward:
		return req.Until, req.After - 1
	case req.After == math.MaxInt64:
		return 1, 0
	}
	return req.After + 1, cmp.Or(req.Until, math.MaxInt64)
}

func scanEvent(rows pgx.Rows, total *int) (e spi.Event, err error) {
	var id pgtype.UUID
	var at time.Time
	var metadata *string
	if err := rows.Scan(&e.Sequence, &id, &e.Kind, &e.Kernel, &e.Fence, &at, &metadata, &e.Payload, total); err != nil {
		return e, err
	}
	e.ID, e.RecordedAt = id.Bytes, at.UTC()
	e.Metadata, err = metadataMap(metadata)
	return e, err
}

// rowStatement reads an execution's row in the snapshot of what is read beside it.
func rowStatement(route spi.Route, id spi.ExecutionID, rows func(pgx.Rows) error) statement {
	return statement{
		`WITH ` + callSQL + ` SELECT ` + rowSQL + ` FROM c LEFT JOIN loomgate.executions d ON d.execution_id = $3`,
		[]any{route.Slot, route.Epoch, string(id)},
		rows,
	}
}

func (s *store) Head(ctx context.Context, req spi.HeadRequest) (res spi.HeadResponse, err error) {
	var row directoryRow
	err = s.read(ctx, statement{
		`WITH ` + callSQL + ` SELECT ` + rowSQL + `, coalesce((SELECT e.sequence FROM loomgate.events e WHERE e.execution_id = $3 ORDER BY e.execution_id DESC, e.sequence DESC LIMIT 1), 0)
FROM c LEFT JOIN loomgate.executions d ON d.execution_id = $3`,
		[]any{req.Route.Slot, req.Route.Epoch, string(req.Execution)},
		one(append(row.into(), &res.Head)...),
	})
	if err == nil {
		err = s.refuseRow(ctx, req.Route, req.Execution, 0, row)
	}
	res.Fence, res.Incarnation, res.Floor = row.fence, row.incarnation, row.floor
	return res, err
}

// listExecutionsSQL is an index-only scan of the live rows, from the cursor on and no
// further than the page. The first row is the receipt, or NULL, so that one statement
// is the whole page.
const listExecutionsSQL = `SELECT (SELECT json_build_object('Shard', n.shard, 'Version', n.version, 'Slots', CASE WHEN n.version <> $4 THEN ARRAY(SELECT s.slot FROM loomgate.slots s WHERE s.state <= 2) END) FROM loomgate.identity n)::text
UNION ALL (
	SELECT execution_id FROM loomgate.executions
	WHERE live AND execution_id >= $1 COLLATE "C" AND execution_id < $2 COLLATE "C" AND ` + listedSQL + `
	ORDER BY execution_id COLLATE "C" LIMIT $3::bigint + 1
)`

func (s *store) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (res spi.ListExecutionsResponse, err error) {
	from, before := bounds(spi.Seek(req.Prefix, req.After))
	err = s.read(ctx, statement{
		listExecutionsSQL,
		[]any{from, before, req.Limit, req.KnownOwnership},
		func(rows pgx.Rows) error {
			var receipt *string
			if err := one(&receipt)(rows); err != nil {
				return err
			}
			if receipt != nil {
				if res.Receipt, err = receiptOf(*receipt); err != nil {
					return err
				}
			}
			res.Executions = make([]spi.ExecutionID, 0, min(req.Limit+1, 1024))
			for rows.Next() {
				res.Executions = append(res.Executions, spi.ExecutionID(rows.RawValues()[0]))
			}
			return rows.Err()
		},
	})
	if len(res.Executions) > req.Limit {
		res.Executions = res.Executions[:req.Limit]
		res.Next = string(res.Executions[req.Limit-1])
	}
	return res, err
}

// receiptOf returns a receipt whose slots are all there, or left out.
func receiptOf(text string) (spi.Receipt, error) {
	var row struct {
		Shard   string
		Version int64
		Slots   []spi.Slot
	}
	if err := json.Unmarshal([]byte(text), &row); err != nil {
		return nil, err
	}
	r := spi.ShardReceipt{Shard: row.Shard, Version: row.Version}
	if row.Slots != nil {
		r.Slots = append(spi.SlotSet{}, spi.NewSlotSet(row.Slots...)...)
	}
	return spi.Receipt{r}, nil
}
