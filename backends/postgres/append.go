package postgres

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/loomgate/loomgate/spi"
)

// An item is one append of a transaction, as the SQL below has it.
type item struct {
	place int // in the caller's batch
	spi.AppendRequest
	unchanged bool // AppendIfUnchanged: Fence is compared, not presented
	answering bool
}

// outcome is what the SQL says of an item.
type outcome int

const (
	landed outcome = iota
	duplicate
	conflict
	reused
	stale
	otherIncarnation
	truncated
	shredded
	otherKey
	notOurs
	again // another transaction got in the way: nothing that this one saw counts
)

func (s *store) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	return s.appendOne(ctx, item{AppendRequest: req, answering: spi.AnyAnswering(req.Events)})
}

func (s *store) AppendIfUnchanged(ctx context.Context, req spi.AppendIfUnchangedRequest) (spi.AppendIfUnchangedResponse, error) {
	res, err := s.appendOne(ctx, item{unchanged: true, answering: spi.AnyAnswering(req.Events), AppendRequest: spi.AppendRequest{
		Route: req.Route, Execution: req.Execution, ExpectedHead: req.Head, Fence: req.Fence,
		Incarnation: req.Incarnation, SinceSeq: req.SinceSeq, KeyID: req.KeyID, Events: req.Events,
	}})
	return spi.AppendIfUnchangedResponse{AppendResponse: res}, err
}

// AppendBatch takes every row lock that is free and waits for none: an execution
// that somebody holds does not stall the rest. What it could not lock, or lost to
// somebody, is done again alone.
func (s *store) AppendBatch(ctx context.Context, req spi.AppendBatchRequest) (spi.AppendBatchResponse, error) {
	items := make([]item, len(req.Appends))
	for i := range items {
		a := req.Appends[i]
		items[i] = item{place: i, AppendRequest: a, answering: spi.AnyAnswering(a.Events)}
	}
	// One order of claims for all: two batches never wait for one another.
	slices.SortFunc(items, func(a, b item) int { return spi.CompareIDs(a.Execution, b.Execution) })
	results := make([]spi.AppendResult, len(items))
	verdicts, err := s.transactAppends(ctx, items, false)
	for i, it := range items {
		r := &results[it.place]
		switch {
		case err != nil:
			r.Err = ambiguousFor(it.Execution, err)
		case verdicts[i].outcome == again:
			r.AppendResponse, r.Err = s.appendOne(ctx, it)
		default:
			r.AppendResponse, r.Err = s.answer(ctx, it, verdicts[i])
		}
	}
	if err != nil && !isAmbiguous(err) {
		return spi.AppendBatchResponse{}, err // nothing of it landed
	}
	return spi.AppendBatchResponse{Results: results}, nil
}

// appendOne does one append by itself: it waits for whoever holds the execution.
func (s *store) appendOne(ctx context.Context, it item) (spi.AppendResponse, error) {
	for range maxTries {
		verdicts, err := s.transactAppends(ctx, []item{it}, true)
		if err != nil {
			return spi.AppendResponse{}, ambiguousFor(it.Execution, err)
		}
		if verdicts[0].outcome != again {
			return s.answer(ctx, it, verdicts[0])
		}
		if err := ctx.Err(); err != nil {
			return spi.AppendResponse{}, err
		}
	}
	return spi.AppendResponse{}, &spi.UnavailableError{Cause: errBusy}
}

// A verdict is what became of an item, and what its checks saw.
type verdict struct {
	outcome
	judgement
	first, head, fence, incarnation, floor int64
}

// answer puts a verdict into the words of the interface.
func (s *store) answer(ctx context.Context, it item, v verdict) (spi.AppendResponse, error) {
	res := spi.AppendResponse{FirstSeq: v.first, Head: v.head, Incarnation: v.incarnation, Floor: v.floor}
	switch v.outcome {
	case landed:
		res.FirstSeq, res.Head = v.head+1, v.head+int64(len(it.Events))
		return res, nil
	case duplicate:
		res.Duplicate = true
		return res, nil
	case conflict, reused:
		return spi.AppendResponse{}, &spi.ConflictError{Execution: it.Execution, Head: v.head, Reused: v.outcome == reused}
	case stale:
		return spi.AppendResponse{}, &spi.StaleFenceError{Execution: it.Execution, Current: v.fence}
	case otherIncarnation:
		return spi.AppendResponse{}, &spi.IncarnationError{Execution: it.Execution, Current: v.incarnation}
	case truncated:
		return spi.AppendResponse{}, &spi.TruncatedError{Execution: it.Execution, Floor: v.floor}
	case shredded:
		return spi.AppendResponse{}, &spi.ShreddedError{Owner: spi.KeyOwner(it.Execution)}
	case otherKey:
		return spi.AppendResponse{}, &spi.KeyMismatchError{Execution: it.Execution}
	}
	return spi.AppendResponse{}, s.refuse(ctx, it.Route, v.judgement, false)
}

// plants reports whether nothing but its route can refuse the append if the
// execution is not there, so that its directory row may be made before the checks.
func (it *item) plants() bool {
	return it.ExpectedHead <= 0 && it.Incarnation <= 1 && it.SinceSeq <= 1 && it.KeyID == spi.KeyID{} &&
		(!it.unchanged || it.Fence == 0)
}

// lock returns how the append locks its execution's row.
func (it *item) lock(alone bool) int16 {
	switch {
	case it.ExpectedHead == spi.AnyHead && alone:
		return lockUpdate // alone: plain appends would win the end of the log again and again
	case it.answering || it.unchanged || it.ExpectedHead <= 0:
		return lockNoKeyUpdate // one at a time, and none beside an acquire
	}
	return lockKeyShare // beside others, but not beside a deletion, truncation or shred
}

// plantSQL makes the directory rows of first appends. It asks for ownership itself:
// a refused append leaves no row.
const plantSQL = `INSERT INTO loomgate.executions (execution_id, slot, live)
SELECT i.id, i.slot, true
FROM unnest($1::text[], $2::integer[], $3::bigint[]) AS i(id, slot, epoch) ` + slotProbeSQL + `
WHERE ` + ownedSQL + `
ORDER BY i.id COLLATE "C"
ON CONFLICT DO NOTHING`

// appendSQL locks, checks and writes in one statement. That is sound because what
// it compares comes from the locked version of the row (l), and because what the
// statement's snapshot (d) says of the log counts only if the two agree on what a
// deletion or a truncation would have changed. A claim of the first sequence
// decides between appends that saw the same head; whoever loses it has seen
// nothing that counts (again). Only claimed appends write the rest of their events.
//
// Payloads are not carried from step to step: the claim fetches each by its place
// in the parameter. Where every append has one event, the rest is left out.
func appendSQL(wait string, several bool) string {
	locked := func(strength, rows string) string {
		return `SELECT i.ord, d.* FROM i JOIN loomgate.executions d ON d.execution_id = i.id WHERE i.lock = ` + rows + ` FOR ` + strength + ` OF d` + wait
	}
	among, inOrder, rest := `e.event_id = bounded.event_id`, `true`, ""
	if several {
		// One hash of all ids serves every append: the CASE keeps it from becoming a
		// join, for which ten thousand events would each be compared with all others.
		others := `unnest($21::integer[], $22::integer[], $23::uuid[]) AS r(ord, idx, event_id)`
		among = `CASE WHEN (bounded.ord, e.event_id) IN (SELECT i.ord, i.event_id FROM i UNION ALL SELECT r.ord, r.event_id FROM ` + others + `) THEN true ELSE false END`
		inOrder = `array_agg(e.event_id ORDER BY e.sequence) = bounded.event_id || ARRAY(SELECT r.event_id FROM ` + others + ` WHERE r.ord = bounded.ord ORDER BY r.idx)`
		rest = `, rest AS (
	INSERT INTO loomgate.events (execution_id, sequence, event_id, kind, kernel, answering, fence, recorded_at, size, metadata, payload)
	SELECT v.id, v.head + 1 + r.idx, r.event_id, r.kind, r.kernel, r.answering, CASE WHEN v.unchanged THEN 0 ELSE v.fence END,
		coalesce(r.recorded_at, clock_timestamp()), r.size, r.metadata, r.payload
	FROM v JOIN unnest($21, $22, $23, $24::text[], $25::boolean[], $26::boolean[], $27::timestamptz[], $28::integer[], $29::jsonb[], $30::bytea[])
		AS r(ord, idx, event_id, kind, kernel, answering, recorded_at, size, metadata, payload) ON r.ord = v.ord
	WHERE v.outcome = 0 AND v.id IN (SELECT execution_id FROM claim)
)`
	}
	return `WITH i AS MATERIALIZED (
	SELECT * FROM unnest($1::text[], $2::integer[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::uuid[], $9::boolean[], $10::boolean[], $11::smallint[], $12::integer[],
		$13::uuid[], $14::text[], $15::boolean[], $16::boolean[], $17::timestamptz[], $18::integer[])
		WITH ORDINALITY AS i(id, slot, epoch, expected, fence, incarnation, since, key_id, answering, unchanged, lock, n, event_id, kind, kernel, event_answering, recorded_at, size, ord)
), l AS MATERIALIZED (
	SELECT * FROM (` + locked("KEY SHARE", "0") + `) k
	UNION ALL SELECT * FROM (` + locked("NO KEY UPDATE", "1") + `) n
	UNION ALL SELECT * FROM (` + locked("UPDATE", "2") + `) u
), seen AS MATERIALIZED (
	SELECT i.*, ` + ownedSQL + ` AS owned, coalesce(s.state, 0) AS state, coalesce(s.epoch, 0) AS slot_epoch,
		l.ord IS NULL AND d.execution_id IS NULL AS absent,
		l.ord IS NULL OR d.execution_id IS NULL OR (l.incarnation, l.floor, l.live) IS DISTINCT FROM (d.incarnation, d.floor, d.live) AS moved,
		l.slot AS row_slot, l.live, l.key_id AS row_key, coalesce(l.shredded, false) AS shredded,
		coalesce(l.fence, 0) AS row_fence, coalesce(l.incarnation, 1) AS row_incarnation, coalesce(l.floor, 1) AS row_floor,
		coalesce(h.sequence, 0) AS head
	FROM i
	LEFT JOIN l ON l.ord = i.ord
	LEFT JOIN LATERAL (SELECT d.execution_id, d.incarnation, d.floor, d.live FROM loomgate.executions d WHERE d.execution_id = i.id OFFSET 0) d ON true
	LEFT JOIN LATERAL (SELECT e.sequence FROM loomgate.events e WHERE e.execution_id = i.id AND l.live ORDER BY e.sequence DESC LIMIT 1) h ON true
	` + slotProbeSQL + `
), bounded AS (
	SELECT seen.*, CASE
		WHEN since > 0 THEN since
		WHEN expected >= 0 THEN least(expected, head) + 1
		ELSE greatest(row_floor, head - 9999) END AS first_since
	FROM seen
), found AS MATERIALIZED (
	SELECT bounded.*, CASE WHEN NOT moved AND head >= first_since THEN (
		SELECT ARRAY[count(*), min(e.sequence),
			(CASE WHEN count(*) = bounded.n AND max(e.sequence) - min(e.sequence) = bounded.n - 1 THEN ` + inOrder + ` ELSE false END)::integer]
		FROM loomgate.events e
		WHERE e.execution_id = bounded.id AND e.sequence >= bounded.first_since AND ` + among + `
	) END AS dup
	FROM bounded
), v AS MATERIALIZED (
	SELECT found.*, CASE
		WHEN NOT owned OR row_slot IS NOT NULL AND row_slot <> slot THEN 9
		WHEN moved AND NOT absent THEN 10
		WHEN incarnation > 0 AND incarnation <> row_incarnation THEN 5
		WHEN incarnation = 0 AND row_incarnation > 1 AND NOT live THEN 5
		WHEN dup[3] = 1 THEN 1
		WHEN first_since < row_floor THEN 6
		WHEN dup[1] > 0 THEN 3
		WHEN shredded THEN 7
		WHEN key_id IS DISTINCT FROM row_key THEN 8
		WHEN unchanged AND fence <> row_fence THEN 4
		WHEN NOT unchanged AND fence < row_fence AND (fence > 0 OR answering) THEN 4
		WHEN expected >= 0 AND expected <> head THEN 2
		WHEN expected < 0 AND first_since - 1 > head THEN 2
		WHEN absent THEN 10
		ELSE 0 END AS outcome
	FROM found
), claim AS (
	INSERT INTO loomgate.events (execution_id, sequence, event_id, kind, kernel, answering, fence, recorded_at, size, metadata, payload)
	SELECT v.id, v.head + 1, v.event_id, v.kind, v.kernel, v.event_answering, CASE WHEN v.unchanged THEN 0 ELSE v.fence END,
		coalesce(v.recorded_at, clock_timestamp()), v.size, ($19::jsonb[])[v.ord], ($20::bytea[])[v.ord]
	FROM v
	WHERE v.outcome = 0
	ORDER BY v.id COLLATE "C"
	ON CONFLICT DO NOTHING
	RETURNING execution_id
)` + rest + `, revive AS (
	UPDATE loomgate.executions d SET live = true, deleted_at = NULL
	FROM v
	WHERE v.outcome = 0 AND NOT v.live AND d.execution_id = v.id AND v.id IN (SELECT execution_id FROM claim)
)
SELECT v.ord, CASE WHEN v.outcome = 0 AND v.id NOT IN (SELECT execution_id FROM claim) THEN 10 ELSE v.outcome END,
	v.owned, v.state, v.slot_epoch, coalesce(v.dup[2], 0), v.head, v.row_fence, v.row_incarnation, v.row_floor
FROM v`
}

// appends holds the statement for one append alone, which waits for locks, and for
// a batch, which does not; each for one event an append and for several.
var appends = [2][2]string{
	{appendSQL(" SKIP LOCKED", false), appendSQL(" SKIP LOCKED", true)},
	{appendSQL("", false), appendSQL("", true)},
}

// transactAppends does items, sorted by execution, in one transaction.
func (s *store) transactAppends(ctx context.Context, items []item, alone bool) ([]verdict, error) {
	verdicts := make([]verdict, len(items))
	var statements []statement
	if plant, ok := plantStatement(items); ok {
		statements = append(statements, plant)
	}
	args, several := appendArgs(items, alone)
	work := statement{args: args, rows: func(rows pgx.Rows) error {
		seen := 0
		for ; rows.Next(); seen++ {
			var ord int
			var v verdict
			if err := rows.Scan(append(append([]any{&ord, &v.outcome}, v.into()...), &v.first, &v.head, &v.fence, &v.incarnation, &v.floor)...); err != nil {
				return err
			}
			verdicts[ord-1] = v
		}
		if seen != len(items) {
			return cmp.Or(rows.Err(), errNoRow)
		}
		return rows.Err()
	}}
	work.sql = appends[index(alone)][index(several)]
	err := s.write(ctx, items[0].Execution, append(statements, work)...)
	return verdicts, err
}

func plantStatement(items []item) (statement, bool) {
	var ids []string
	var slots []int32
	var epochs []int64
	for i := range items {
		if it := &items[i]; it.plants() {
			ids, slots, epochs = append(ids, string(it.Execution)), append(slots, int32(it.Route.Slot)), append(epochs, it.Route.Epoch)
		}
	}
	return statement{sql: plantSQL, args: []any{ids, slots, epochs}}, len(ids) > 0
}

func index(b bool) int {
	if b {
		return 1
	}
	return 0
}

// appendArgs lays items out in columns, with the first event of each, and the other
// events, if there are several, in columns of their own.
func appendArgs(items []item, alone bool) (args []any, several bool) {
	n, more := len(items), 0
	for i := range items {
		more += len(items[i].Events) - 1
	}
	ids, slots, epochs := make([]string, n), make([]int32, n), make([]int64, n)
	expected, fences, incarnations, since := make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)
	keys, answering, unchanged := make([]pgtype.UUID, n), make([]bool, n), make([]bool, n)
	locks, counts := make([]int16, n), make([]int32, n)
	first, rest := newEventColumns(n), newEventColumns(more)
	ords, idxs := make([]int32, 0, more), make([]int32, 0, more)
	for i := range items {
		it := &items[i]
		ids[i], slots[i], epochs[i] = string(it.Execution), int32(it.Route.Slot), it.Route.Epoch
		expected[i], fences[i], incarnations[i], since[i] = it.ExpectedHead, it.Fence, it.Incarnation, it.SinceSeq
		keys[i] = keyUUID(it.KeyID)
		answering[i], unchanged[i], locks[i], counts[i] = it.answering, it.unchanged, it.lock(alone), int32(len(it.Events))
		first.add(&it.Events[0])
		for k := 1; k < len(it.Events); k++ {
			ords, idxs = append(ords, int32(i+1)), append(idxs, int32(k))
			rest.add(&it.Events[k])
		}
	}
	args = append([]any{ids, slots, epochs, expected, fences, incarnations, since, keys, answering, unchanged, locks, counts}, first.args()...)
	if more > 0 {
		args = append(append(args, ords, idxs), rest.args()...)
	}
	return args, more > 0
}

// eventColumns are events, a column a field.
type eventColumns struct {
	ids               []pgtype.UUID
	kinds             []string
	kernel, answering []bool
	times             []pgtype.Timestamptz
	sizes             []int32
	metadata          []*string
	payloads          [][]byte
}

func newEventColumns(n int) eventColumns {
	return eventColumns{
		make([]pgtype.UUID, 0, n), make([]string, 0, n), make([]bool, 0, n), make([]bool, 0, n),
		make([]pgtype.Timestamptz, 0, n), make([]int32, 0, n), make([]*string, 0, n), make([][]byte, 0, n),
	}
}

func (c *eventColumns) add(e *spi.Event) {
	c.ids = append(c.ids, pgtype.UUID{Bytes: e.ID, Valid: true})
	c.kinds, c.kernel, c.answering = append(c.kinds, e.Kind), append(c.kernel, e.Kernel), append(c.answering, e.Answering())
	c.times = append(c.times, pgtype.Timestamptz{Time: e.RecordedAt, Valid: !e.RecordedAt.IsZero()})
	c.sizes = append(c.sizes, int32(e.Size()))
	c.metadata, c.payloads = append(c.metadata, metadataJSON(e.Metadata)), append(c.payloads, payloadOrNull(e.Payload))
}

func (c *eventColumns) args() []any {
	return []any{c.ids, c.kinds, c.kernel, c.answering, c.times, c.sizes, c.metadata, c.payloads}
}
