package postgres

// eventColumnsSQL are the columns that an append writes.
const eventColumnsSQL = `execution_id, sequence, event_id, kind, kernel, answering, fence, recorded_at, size, metadata, payload`

// plantSQL makes the directory rows of first appends. It asks for ownership itself:
// a refused append leaves no row.
const plantSQL = `INSERT INTO loomgate.executions (execution_id, slot, live)
SELECT i.id, i.slot, true
FROM (
	SELECT id, coalesce(slot, 0) AS slot, coalesce(epoch, 0) AS epoch
	FROM unnest($1::text[], $2::integer[], $3::bigint[]) AS i(id, slot, epoch)
) i ` + slotProbeSQL + `
WHERE ` + ownedSQL + `
ORDER BY i.id COLLATE "C"
ON CONFLICT DO NOTHING`

// itemsSQL are the appends of a transaction, as [appendArgs] lays them out, and
// whether their slots are owned. Their events are not carried from step to step: who
// writes them fetches each by its place.
const itemsSQL = `i AS MATERIALIZED (
	SELECT i.*, ` + ownedSQL + ` AS owned, coalesce(s.state, 0) AS state, coalesce(s.epoch, 0) AS slot_epoch
	FROM (
		SELECT ord, id, coalesce(slot, 0) AS slot, coalesce(epoch, 0) AS epoch, coalesce(expected, 0) AS expected, coalesce(fence, 0) AS fence,
			coalesce(incarnation, 0) AS incarnation, coalesce(since, 0) AS since, key_id, coalesce(answering, false) AS answering,
			coalesce(unchanged, false) AS unchanged, coalesce(lock, 0) AS lock, 1 + coalesce(more, 0) AS n
		FROM unnest($1::text[], $2::integer[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::uuid[], $9::boolean[], $10::boolean[], $11::smallint[], $12::integer[])
			WITH ORDINALITY AS i(id, slot, epoch, expected, fence, incarnation, since, key_id, answering, unchanged, lock, more, ord)
	) i ` + slotProbeSQL + `
)`

// lockedSQL locks the rows of the appends that meet a condition, each as strongly
// as its append asks for.
func lockedSQL(columns, condition string, alone bool) string {
	wait := " SKIP LOCKED"
	if alone {
		wait = ""
	}
	locked := func(lock, strength string) string {
		return `SELECT * FROM (SELECT ` + columns + ` FROM i JOIN loomgate.executions d ON d.execution_id = i.id WHERE i.lock = ` + lock + ` AND ` + condition + ` FOR ` + strength + ` OF d` + wait + `) ` + "l" + lock
	}
	all := locked("0", "KEY SHARE") + `
	UNION ALL ` + locked("1", "NO KEY UPDATE")
	if alone {
		all += `
	UNION ALL ` + locked("2", "UPDATE")
	}
	return all
}

// claimedSQL asks whether an append among v has won its claim. The CASE keeps it from
// becoming a join, which may compare each append with all the others.
const claimedSQL = `CASE WHEN v.id IN (SELECT execution_id FROM claim) THEN true ELSE false END`

// writtenSQL writes the appends that come from v. A claim of the first
// sequence decides between appends that saw the same head. Only claimed appends
// write the rest of their events, which is left out where every append has one.
func writtenSQL(from string, several bool) string {
	rest := ""
	if several {
		rest = `, rest AS (
	INSERT INTO loomgate.events (` + eventColumnsSQL + `)
	SELECT v.id, v.head + 1 + r.idx, r.event_id, r.kind, coalesce(r.kernel, false), coalesce(r.answering, false), CASE WHEN v.unchanged THEN 0 ELSE v.fence END,
		coalesce(r.recorded_at, clock_timestamp()), r.size, r.metadata, r.payload
	FROM v JOIN unnest($21::integer[], $22::integer[], $23::uuid[], $24::text[], $25::boolean[], $26::boolean[], $27::timestamptz[], $28::integer[], $29::jsonb[], $30::bytea[])
		AS r(ord, idx, event_id, kind, kernel, answering, recorded_at, size, metadata, payload) ON r.ord = v.ord
	WHERE ` + claimedSQL + `
)`
	}
	return `claim AS (
	INSERT INTO loomgate.events (` + eventColumnsSQL + `)
	SELECT v.id, v.head + 1, ($13::uuid[])[v.ord], ($14::text[])[v.ord], coalesce(($15::boolean[])[v.ord], false), coalesce(($16::boolean[])[v.ord], false),
		CASE WHEN v.unchanged THEN 0 ELSE v.fence END, coalesce(($17::timestamptz[])[v.ord], clock_timestamp()), ($18::integer[])[v.ord], ($19::jsonb[])[v.ord], ($20::bytea[])[v.ord]
	` + from + `
	ORDER BY v.id COLLATE "C"
	ON CONFLICT DO NOTHING
	RETURNING execution_id
)` + rest + `, revive AS (
	UPDATE loomgate.executions d SET live = true, deleted_at = NULL
	FROM v
	WHERE NOT v.live AND d.execution_id = v.id AND ` + claimedSQL + `
)`
}

// landSQL appends what nothing speaks against, and returns that. Of the rest it
// says nothing, and so takes two thirds of the time that judging takes.
//
// What it sees of the log counts only if the version of the row that it locked is the
// one that the statement's snapshot sees. The expected event stands for the head: no
// sequence is missing from the floor on, so if the next one can be claimed, nothing is
// behind it.
func landSQL(several bool) string {
	return `WITH ` + itemsSQL + `, v AS MATERIALIZED (
	` + lockedSQL(`i.*, i.expected AS head, d.live, d.incarnation AS row_incarnation, d.floor AS row_floor, d.ctid AS version`, `i.owned AND d.slot = i.slot
		AND (i.incarnation = d.incarnation OR i.incarnation = 0 AND (d.live OR d.incarnation = 1))
		AND i.expected + 1 >= d.floor AND NOT d.shredded AND i.key_id IS NOT DISTINCT FROM d.key_id
		AND NOT (i.fence < d.fence AND (i.fence > 0 OR i.answering))`, false) + `
), ` + writtenSQL(`FROM v
	JOIN LATERAL (SELECT FROM loomgate.executions d WHERE d.ctid = v.version OFFSET 0) d ON true
	LEFT JOIN LATERAL (SELECT e.sequence FROM loomgate.events e WHERE e.execution_id = v.id AND e.sequence = v.expected OFFSET 0) e ON true
	WHERE v.expected = coalesce(e.sequence, 0)`, several) + `
SELECT v.ord, v.row_incarnation, v.row_floor FROM v
WHERE ` + claimedSQL
}

// judgeSQL appends, or says what speaks against it. What it compares comes from the
// locked version of the row (l), and what the statement's snapshot (d) says of the log
// counts only if the two agree on what a deletion or a truncation would have changed.
// Whoever loses a claim has seen nothing that counts (again).
func judgeSQL(alone, several bool) string {
	among, inOrder := `e.event_id = ($13::uuid[])[bounded.ord]`, `true`
	if several {
		// One hash of all ids serves every append: the CASE keeps it from becoming a
		// join, for which ten thousand events would each be compared with all others.
		others := `unnest($21::integer[], $22::integer[], $23::uuid[]) AS r(ord, idx, event_id)`
		among = `CASE WHEN (bounded.ord, e.event_id) IN (SELECT ord, event_id FROM unnest($13::uuid[]) WITH ORDINALITY AS i(event_id, ord) UNION ALL SELECT r.ord, r.event_id FROM ` + others + `) THEN true ELSE false END`
		inOrder = `array_agg(e.event_id ORDER BY e.sequence) = ($13::uuid[])[bounded.ord] || ARRAY(SELECT r.event_id FROM ` + others + ` WHERE r.ord = bounded.ord ORDER BY r.idx)`
	}
	return `WITH ` + itemsSQL + `, l AS MATERIALIZED (
	` + lockedSQL(`i.ord, d.*`, `true`, alone) + `
), seen AS MATERIALIZED (
	SELECT i.*,
		l.ord IS NULL AND d.execution_id IS NULL AS absent,
		l.ord IS NULL OR d.execution_id IS NULL OR (l.incarnation, l.floor, l.live) IS DISTINCT FROM (d.incarnation, d.floor, d.live) AS moved,
		l.slot AS row_slot, l.live, l.key_id AS row_key, coalesce(l.shredded, false) AS shredded,
		coalesce(l.fence, 0) AS row_fence, coalesce(l.incarnation, 1) AS row_incarnation, coalesce(l.floor, 1) AS row_floor,
		coalesce(h.sequence, 0) AS head
	FROM i
	LEFT JOIN l ON l.ord = i.ord
	LEFT JOIN LATERAL (SELECT d.execution_id, d.incarnation, d.floor, d.live FROM loomgate.executions d WHERE d.execution_id = i.id OFFSET 0) d ON true
	LEFT JOIN LATERAL (SELECT e.sequence FROM loomgate.events e WHERE e.execution_id = i.id AND l.live ORDER BY e.sequence DESC LIMIT 1) h ON true
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
), ` + writtenSQL(`FROM v WHERE v.outcome = 0`, several) + `
SELECT v.ord, CASE WHEN v.outcome = 0 AND NOT ` + claimedSQL + ` THEN 10 ELSE v.outcome END,
	v.owned, v.state, v.slot_epoch, coalesce(v.dup[2], 0), v.head, v.row_fence, v.row_incarnation, v.row_floor
FROM v`
}
