package postgres

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loomgate/loomgate/spi"
)

// An item is one append of a transaction, as the SQL has it.
type item struct {
	place int // in the caller's batch
	spi.AppendRequest
	unchanged bool // AppendIfUnchanged: Fence is compared, not presented
	answering bool
}

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

// appendOne does one append by itself: it waits for whoever holds the execution.
func (s *store) appendOne(ctx context.Context, it item) (spi.AppendResponse, error) {
	for range maxTries {
		verdicts, err := s.judge(ctx, []item{it}, true)
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

// AppendBatch takes every row lock that is free and waits for none: an execution
// that somebody holds does not stall the rest. What it could not lock, or lost to
// somebody, is done again alone.
//
// Most batches land whole. They are not judged first: what has not landed is judged
// afterwards.
func (s *store) AppendBatch(ctx context.Context, req spi.AppendBatchRequest) (spi.AppendBatchResponse, error) {
	open := make([]item, len(req.Appends))
	ordinary := true
	for i, a := range req.Appends {
		open[i] = item{place: i, AppendRequest: a, answering: spi.AnyAnswering(a.Events)}
		ordinary = ordinary && open[i].ordinary()
	}
	// One order of claims for all: two batches never wait for one another.
	slices.SortFunc(open, func(a, b item) int { return spi.CompareIDs(a.Execution, b.Execution) })
	results := make([]spi.AppendResult, len(open))
	var err error
	if ordinary {
		open, err = s.landInto(ctx, results, open)
	}
	if err == nil && len(open) > 0 {
		open, err = s.judgeInto(ctx, results, open)
	}
	if err != nil && !isAmbiguous(err) && len(open) == len(results) {
		return spi.AppendBatchResponse{}, err // nothing of it landed
	}
	for _, it := range open {
		r := &results[it.place]
		if err != nil {
			r.Err = ambiguousFor(it.Execution, err)
		} else {
			r.AppendResponse, r.Err = s.appendOne(ctx, it)
		}
	}
	return spi.AppendBatchResponse{Results: results}, nil
}

// landInto appends those items that nothing speaks against, and returns the others.
func (s *store) landInto(ctx context.Context, results []spi.AppendResult, items []item) (open []item, err error) {
	landed, err := s.land(ctx, items)
	if err != nil {
		return items, err
	}
	for i, it := range items {
		if landed[i].Head == 0 {
			open = append(open, it)
		}
		results[it.place].AppendResponse = landed[i]
	}
	return open, nil
}

// judgeInto appends or refuses items, and returns those that have to be done again.
func (s *store) judgeInto(ctx context.Context, results []spi.AppendResult, items []item) (open []item, err error) {
	verdicts, err := s.judge(ctx, items, false)
	if err != nil {
		return items, err
	}
	for i, it := range items {
		if verdicts[i].outcome == again {
			open = append(open, it)
			continue
		}
		r := &results[it.place]
		r.AppendResponse, r.Err = s.answer(ctx, it, verdicts[i])
	}
	return open, nil
}

// land appends those items that nothing speaks against, in one transaction. The
// others' responses are zero.
func (s *store) land(ctx context.Context, items []item) ([]spi.AppendResponse, error) {
	landed := make([]spi.AppendResponse, len(items))
	args, several := appendArgs(items, false)
	err := s.writeAppends(ctx, items, statement{landStatements[index(several)], args, func(rows pgx.Rows) error {
		var ord int
		var res spi.AppendResponse
		into := []any{&ord, &res.Incarnation, &res.Floor}
		for rows.Next() {
			if err := rows.Scan(into...); err != nil {
				return err
			}
			it := &items[ord-1]
			res.FirstSeq, res.Head = it.ExpectedHead+1, it.ExpectedHead+int64(len(it.Events))
			landed[ord-1] = res
		}
		return rows.Err()
	}})
	return landed, err
}

// judge appends items or says why not, in one transaction; alone, it waits for
// locks.
func (s *store) judge(ctx context.Context, items []item, alone bool) ([]verdict, error) {
	verdicts := make([]verdict, len(items))
	args, several := appendArgs(items, alone)
	err := s.writeAppends(ctx, items, statement{judgeStatements[index(alone)][index(several)], args, func(rows pgx.Rows) error {
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
	}})
	return verdicts, err
}

// The statements that append, for one event an append and for several. A judgement
// of many appends waits for no lock, that of one alone does.
var (
	landStatements  = [2]string{landSQL(false), landSQL(true)}
	judgeStatements = [2][2]string{
		{judgeSQL(false, false), judgeSQL(false, true)},
		{judgeSQL(true, false), judgeSQL(true, true)},
	}
)

// writeAppends does work on items, sorted by execution, once the rows are there that
// first appends need.
func (s *store) writeAppends(ctx context.Context, items []item, work statement) error {
	if plant, ok := plantStatement(items); ok {
		return s.write(ctx, items[0].Execution, plant, work)
	}
	return s.write(ctx, items[0].Execution, work)
}

// ordinary reports whether an append can be landed: it goes after a head that it
// states, and no earlier try can have stored it anywhere else.
func (it *item) ordinary() bool {
	return it.ExpectedHead >= 0 && (it.SinceSeq == 0 || it.SinceSeq == it.ExpectedHead+1)
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

func index(b bool) int {
	if b {
		return 1
	}
	return 0
}
