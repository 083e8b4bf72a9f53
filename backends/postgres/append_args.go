package postgres

import (
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/loomgate/loomgate/spi"
)

// appendArgs lays items out in columns, with the first event of each, and the other
// events, if there are any, in columns of their own.
func appendArgs(items []item, alone bool) (args []any, several bool) {
	n := len(items)
	args = append(args,
		arrayOf(n, func(i int) string { return string(items[i].Execution) }),
		arrayOf(n, func(i int) int32 { return int32(items[i].Route.Slot) }),
		arrayOf(n, func(i int) int64 { return items[i].Route.Epoch }),
		arrayOf(n, func(i int) int64 { return items[i].ExpectedHead }),
		arrayOf(n, func(i int) int64 { return items[i].Fence }),
		arrayOf(n, func(i int) int64 { return items[i].Incarnation }),
		arrayOf(n, func(i int) int64 { return items[i].SinceSeq }),
		arrayOf(n, func(i int) pgtype.UUID { return keyUUID(items[i].KeyID) }),
		arrayOf(n, func(i int) bool { return items[i].answering }),
		arrayOf(n, func(i int) bool { return items[i].unchanged }),
		arrayOf(n, func(i int) int16 { return items[i].lock(alone) }),
		arrayOf(n, func(i int) int32 { return int32(len(items[i].Events) - 1) }),
	)
	args = append(args, eventArgs(n, func(i int) *spi.Event { return &items[i].Events[0] })...)
	var rest []*spi.Event
	var ords, places []int32
	for i := range items {
		for k := 1; k < len(items[i].Events); k++ {
			rest, ords, places = append(rest, &items[i].Events[k]), append(ords, int32(i+1)), append(places, int32(k))
		}
	}
	if len(rest) == 0 {
		return args, false
	}
	args = append(args, ords, places)
	return append(args, eventArgs(len(rest), func(i int) *spi.Event { return rest[i] })...), true
}

// eventArgs lays n events out in columns.
func eventArgs(n int, event func(i int) *spi.Event) []any {
	payloads := make(pgtype.FlatArray[[]byte], n) // not comparable values
	for i := range payloads {
		payloads[i] = payloadOrNull(event(i).Payload)
	}
	return []any{
		arrayOf(n, func(i int) pgtype.UUID { return pgtype.UUID{Bytes: event(i).ID, Valid: true} }),
		arrayOf(n, func(i int) string { return event(i).Kind }),
		arrayOf(n, func(i int) bool { return event(i).Kernel }),
		arrayOf(n, func(i int) bool { return event(i).Answering() }),
		arrayOf(n, func(i int) pgtype.Timestamptz {
			at := event(i).RecordedAt
			return pgtype.Timestamptz{Time: at, Valid: !at.IsZero()}
		}),
		arrayOf(n, func(i int) int32 { return int32(event(i).Size()) }),
		arrayOf(n, func(i int) *string { return metadataJSON(event(i).Metadata) }),
		payloads,
	}
}

// arrayOf is one field of n rows, as an array. One that is zero in every row is left
// out: it costs nothing, and the SQL reads it as zero or NULL.
func arrayOf[T comparable](n int, field func(i int) T) (all pgtype.FlatArray[T]) {
	var zero T
	for i := range n {
		if value := field(i); value != zero {
			if all == nil {
				all = make(pgtype.FlatArray[T], n)
			}
			all[i] = value
		}
	}
	return all
}

// plantStatement makes the directory rows that first appends need.
func plantStatement(items []item) (statement, bool) {
	var firsts []*item
	for i := range items {
		if items[i].plants() {
			firsts = append(firsts, &items[i])
		}
	}
	n := len(firsts)
	return statement{sql: plantSQL, args: []any{
		arrayOf(n, func(i int) string { return string(firsts[i].Execution) }),
		arrayOf(n, func(i int) int32 { return int32(firsts[i].Route.Slot) }),
		arrayOf(n, func(i int) int64 { return firsts[i].Route.Epoch }),
	}}, n > 0
}
