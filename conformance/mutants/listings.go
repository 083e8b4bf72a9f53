package mutants

import (
	"cmp"
	"context"
	"encoding/base64"
	"slices"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/loomgate/loomgate/spi"
)

const (
	listedInOrder = "listings/executions are listed in code point order, each once, whatever the size of a page"
	listedAfter   = "listings/a page begins strictly after its cursor, also one that no store returned"
	listedPrefix  = "listings/a prefix lists the ids that start with it, and nothing after them"
)

var listings = []Mutant{
	{
		"UTF-16 order",
		"Ids are in the order of UTF-16 code units, which puts U+FFFF after astral characters.",
		listedInOrder,
		store(func(s sound) methods { return utf16Order{s} }),
	},
	{
		"locale order",
		"Ids are in the order of a locale, which puts a before B.",
		listedInOrder,
		store(func(s sound) methods { return localeOrder{s} }),
	},
	{
		"opaque cursor",
		"The cursor is a token of the store's own, and no other is understood.",
		listedInOrder,
		store(func(s sound) methods { return opaqueCursor{s} }),
	},
	{
		"inclusive cursor",
		"A page begins with the id that its cursor is.",
		listedInOrder,
		store(func(s sound) methods { return inclusiveCursor{s} }),
	},
	{
		"cursor that has to exist",
		"A page begins after the row of its cursor, and there is none if no row is.",
		listedAfter,
		store(func(s sound) methods { return cursorHasToExist{s} }),
	},
	{
		"offset cursor",
		"A cursor stands for a number of rows: an insert before it makes a page repeat, a deletion makes it skip.",
		"listings/an execution created while its neighbours are listed disturbs none of them (invariant 10)",
		store(func(s sound) methods { return &offsetCursor{sound: s} }),
	},
	{
		"listing of the past",
		"The pages that follow the first come from what the first one saw.",
		"listings/an execution deleted while its neighbours are listed disturbs none of them (invariant 10)",
		store(func(s sound) methods { return &listingOfThePast{sound: s} }),
	},
	{
		"page that skips under deletes",
		"A page is cut off at its limit before what was deleted meanwhile is left out, and a short page ends the listing.",
		"listings/an execution deleted while its neighbours are listed disturbs none of them (invariant 10)",
		store(func(s sound) methods { return &shortPageEnds{sound: s} }),
	},
	{
		"U+0000 left out of a cursor",
		"What follows U+0000 in a cursor counts.",
		listedAfter,
		store(func(s sound) methods { return nulLeftOut{s} }),
	},
	{
		"prefix by LIKE",
		"In a prefix _ is any character, and % any number of them.",
		listedPrefix,
		store(func(s sound) methods { return prefixByLike{s} }),
	},
	{
		"prefix range too long",
		"The character after the prefix's last one is sought among the surrogates, and found behind them.",
		listedPrefix,
		store(func(s sound) methods { return prefixRangeTooLong{s} }),
	},
	{
		"prefix range too short",
		"The range of a prefix ends at U+FFFF.",
		"listings/random ids are listed like the sorted list of them",
		store(func(s sound) methods { return prefixRangeTooShort{s} }),
	},
}

// inOrder lists executions in an order of the mutant's own, by names after.
func inOrder(ctx context.Context, s *spi.Store, req spi.ListExecutionsRequest, compare func(a, b string) int) (spi.ListExecutionsResponse, error) {
	whole := req
	whole.After, whole.Limit = "", spi.MaxLimit
	res, err := spi.ListExecutions(ctx, s, whole)
	res.Executions, res.Next = page(res.Executions, func(id spi.ExecutionID) string { return string(id) }, req.After, req.Limit, compare)
	return res, err
}

// page returns a page of rows in an order, and the cursor to go on with.
func page[T any](all []T, name func(T) string, after string, limit int, compare func(a, b string) int) (part []T, next string) {
	slices.SortFunc(all, func(a, b T) int { return compare(name(a), name(b)) })
	all = slices.DeleteFunc(all, func(row T) bool { return after != "" && compare(name(row), after) <= 0 })
	if len(all) <= limit {
		return all, ""
	}
	return all[:limit], name(all[limit-1])
}

// phantoms lists ids that no event belongs to.
type phantoms struct {
	sound
	planted sync.Map
}

func (m *phantoms) plant(id spi.ExecutionID) { m.planted.Store(id, true) }

func (m *phantoms) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	res, err := m.sound.ListExecutions(ctx, req)
	for id := range m.planted.Range {
		if id := id.(spi.ExecutionID); spi.Seek(req.Prefix, req.After).Contains(string(id)) && len(res.Executions) < req.Limit {
			res.Executions = append(res.Executions, id)
		}
	}
	slices.Sort(res.Executions)
	res.Executions = slices.Compact(res.Executions)
	return res, err
}

type utf16Order struct{ sound }

func (m utf16Order) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	return inOrder(ctx, m.Inner, req, func(a, b string) int {
		return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
	})
}

type localeOrder struct{ sound }

func (m localeOrder) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	return inOrder(ctx, m.Inner, req, func(a, b string) int {
		return cmp.Or(strings.Compare(strings.ToLower(a), strings.ToLower(b)), strings.Compare(a, b))
	})
}

type opaqueCursor struct{ sound }

func (m opaqueCursor) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	after, err := base64.StdEncoding.DecodeString(req.After)
	if err != nil {
		return spi.ListExecutionsResponse{}, &spi.InvalidArgumentError{Field: "cursor", Rule: "is not this store's"}
	}
	req.After = string(after)
	res, err := m.sound.ListExecutions(ctx, req)
	res.Next = base64.StdEncoding.EncodeToString([]byte(res.Next))
	return res, err
}

type inclusiveCursor struct{ sound }

func (m inclusiveCursor) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	return inOrder(ctx, m.Inner, req, func(a, b string) int { return cmp.Or(strings.Compare(a, b), 1) })
}

type cursorHasToExist struct{ sound }

func (m cursorHasToExist) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	if req.After != "" && headOf(ctx, m.Inner, spi.Route{}, spi.ExecutionID(req.After)).Head == 0 {
		return spi.ListExecutionsResponse{}, ctx.Err()
	}
	return m.sound.ListExecutions(ctx, req)
}

type offsetCursor struct {
	sound
	offsets sync.Map // by cursor
}

func (m *offsetCursor) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	known, ok := m.offsets.Load(req.Prefix + "\x00" + req.After)
	if !ok {
		known = 0
	} else {
		req.After = ""
	}
	skip, limit := known.(int), req.Limit
	req.Limit = min(skip+limit, spi.MaxLimit)
	res, err := m.sound.ListExecutions(ctx, req)
	res.Executions = res.Executions[min(skip, len(res.Executions)):]
	m.offsets.Store(req.Prefix+"\x00"+res.Next, skip+limit)
	return res, err
}

type listingOfThePast struct {
	sound
	mu    sync.Mutex
	first map[string][]spi.ExecutionID // by prefix
}

func (m *listingOfThePast) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	whole := req
	whole.After, whole.Limit = "", spi.MaxLimit
	res, err := m.sound.ListExecutions(ctx, whole)
	m.mu.Lock()
	defer m.mu.Unlock()
	if req.After == "" {
		m.first = map[string][]spi.ExecutionID{req.Prefix: res.Executions}
	}
	seen := slices.Clone(m.first[req.Prefix])
	res.Executions, res.Next = page(seen, func(id spi.ExecutionID) string { return string(id) }, req.After, req.Limit, strings.Compare)
	return res, err
}

// shortPageEnds keeps deleted rows in its index, as tombstones.
type shortPageEnds struct {
	sound
	deleted sync.Map
}

func (m *shortPageEnds) DeleteExecution(ctx context.Context, req spi.DeleteExecutionRequest) (spi.DeleteExecutionResponse, error) {
	res, err := m.sound.DeleteExecution(ctx, req)
	if res.Existed {
		m.deleted.Store(req.Execution, true)
	}
	return res, err
}

func (m *shortPageEnds) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	index := map[spi.ExecutionID]bool{}
	limit := req.Limit
	req.Limit = spi.MaxLimit
	res, err := m.sound.ListExecutions(ctx, req)
	rows := res.Executions
	for _, id := range rows {
		index[id] = true
	}
	for id := range m.deleted.Range {
		if id := id.(spi.ExecutionID); !index[id] && spi.Seek(req.Prefix, req.After).Contains(string(id)) {
			rows = append(rows, id)
		}
	}
	slices.Sort(rows)
	rows = rows[:min(limit, len(rows))]
	res.Executions = slices.DeleteFunc(rows, func(id spi.ExecutionID) bool { return !index[id] })
	if len(res.Executions) == limit && limit < len(index) {
		res.Next = string(res.Executions[limit-1])
	}
	return res, err
}

type nulLeftOut struct{ sound }

func (m nulLeftOut) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	req.After = strings.ReplaceAll(req.After, "\x00", "")
	return m.sound.ListExecutions(ctx, req)
}

type prefixByLike struct{ sound }

func (m prefixByLike) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	pattern, limit := req.Prefix+"%", req.Limit
	req.Prefix, req.Limit = "", spi.MaxLimit
	res, err := m.sound.ListExecutions(ctx, req)
	all := slices.DeleteFunc(res.Executions, func(id spi.ExecutionID) bool { return !like(string(id), pattern) })
	res.Executions, res.Next = page(all, func(id spi.ExecutionID) string { return string(id) }, req.After, limit, strings.Compare)
	return res, err
}

// like is SQL's operator.
func like(s, pattern string) bool {
	if pattern == "" {
		return s == ""
	}
	want, n := utf8.DecodeRuneInString(pattern)
	got, size := utf8.DecodeRuneInString(s)
	switch {
	case want == '%':
		return like(s, pattern[n:]) || s != "" && like(s[size:], pattern)
	case s == "":
		return false
	}
	return (want == '_' || want == got) && like(s[size:], pattern[n:])
}

type prefixRangeTooLong struct{ sound }

func (m prefixRangeTooLong) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	last, size := utf8.DecodeLastRuneInString(req.Prefix)
	if req.Prefix == "" || last == utf8.MaxRune {
		return m.sound.ListExecutions(ctx, req)
	}
	return inRange(ctx, m.Inner, req, req.Prefix[:len(req.Prefix)-size]+string(last+1))
}

type prefixRangeTooShort struct{ sound }

func (m prefixRangeTooShort) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	if req.Prefix == "" {
		return m.sound.ListExecutions(ctx, req)
	}
	return inRange(ctx, m.Inner, req, req.Prefix+"\uffff")
}

// inRange lists what is between a prefix and an end.
func inRange(ctx context.Context, s *spi.Store, req spi.ListExecutionsRequest, end string) (spi.ListExecutionsResponse, error) {
	whole := req
	whole.Prefix, whole.Limit = "", spi.MaxLimit
	res, err := spi.ListExecutions(ctx, s, whole)
	all := slices.DeleteFunc(res.Executions, func(id spi.ExecutionID) bool { return string(id) < req.Prefix || string(id) >= end })
	res.Executions, res.Next = page(all, func(id spi.ExecutionID) string { return string(id) }, req.After, req.Limit, strings.Compare)
	return res, err
}
