package faults

import (
	"slices"

	"github.com/loomgate/loomgate/spi"
)

// An ending is what a page with a fault says about what follows.
type ending int

const (
	asBefore ending = iota
	goesOn
	over
)

// bend returns what becomes of a page's items. A short page is cut only where together
// does not hold two items together.
func bend[T any](p Page, items []T, together func(a, b T) bool) ([]T, ending) {
	half := len(items) / 2
	switch p {
	case PageShort:
		for half = max(half, 1); half < len(items) && together(items[half-1], items[half]); half++ {
		}
		if half < len(items) {
			return items[:half], goesOn
		}
	case PageLieReversed:
		items = slices.Clone(items)
		slices.Reverse(items)
	case PageLieEnded:
		return items[:half], over
	}
	return items, asBefore
}

func apart[T any](_, _ T) bool { return false }

// cursor sets what a listing goes on with.
func (e ending) cursor(next *string, last string) {
	switch e {
	case goesOn:
		*next = last
	case over:
		*next = ""
	}
}

// more sets whether there is more.
func (e ending) more(more *bool) {
	if e != asBefore {
		*more = e == goesOn
	}
}

func lastOf[T any](items []T, name func(T) string) string {
	if len(items) == 0 {
		return ""
	}
	return name(items[len(items)-1])
}

func bendExecutions(res *spi.ListExecutionsResponse, p Page) {
	ids, end := bend(p, res.Executions, apart)
	res.Executions = ids
	end.cursor(&res.Next, lastOf(ids, func(id spi.ExecutionID) string { return string(id) }))
}

func bendRefs(res *spi.ListRefsResponse, p Page) {
	refs, end := bend(p, res.Refs, apart)
	res.Refs = refs
	end.cursor(&res.Next, lastOf(refs, func(r spi.Ref) string { return string(r.Name) }))
}

// bendKeys keeps an owner's keys together.
func bendKeys(res *spi.ListDataKeysResponse, p Page) {
	keys, end := bend(p, res.Keys, func(a, b spi.DataKey) bool { return a.Owner == b.Owner })
	res.Keys = keys
	end.cursor(&res.Next, lastOf(keys, func(k spi.DataKey) string { return string(k.Owner) }))
}

func bendEvents(res *spi.ReadResponse, p Page) {
	events, end := bend(p, res.Events, apart)
	res.Events = events
	end.more(&res.More)
}

func bendLineage(res *spi.RefLineageResponse, p Page) {
	refs, end := bend(p, res.Refs, apart)
	res.Refs = refs
	end.more(&res.More)
}

// bendTimers has no word for the rest: what is due stays due.
func bendTimers(res *spi.DueTimersResponse, p Page) { res.Timers, _ = bend(p, res.Timers, apart) }
