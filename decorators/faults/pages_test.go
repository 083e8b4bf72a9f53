package faults_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/loomgate/loomgate/decorators/faults"
	"github.com/loomgate/loomgate/spi"
)

// A listing is a method that answers in pages: it returns the names of a page, and
// the cursor to go on with.
type listing struct {
	method string
	page   func(ctx context.Context, s *spi.Store, after string) (names []string, next string, err error)
}

var listings = []listing{
	{"ListExecutions", func(ctx context.Context, s *spi.Store, after string) (names []string, next string, err error) {
		res, err := spi.ListExecutions(ctx, s, spi.ListExecutionsRequest{After: after, Limit: 100})
		for _, id := range res.Executions {
			names = append(names, string(id))
		}
		return names, res.Next, err
	}},
	{"ListRefs", func(ctx context.Context, s *spi.Store, after string) (names []string, next string, err error) {
		res, err := spi.ListRefs(ctx, s, spi.ListRefsRequest{After: after, Limit: 100})
		for _, r := range res.Refs {
			names = append(names, string(r.Name))
		}
		return names, res.Next, err
	}},
	{"ListDataKeys", func(ctx context.Context, s *spi.Store, after string) (names []string, next string, err error) {
		res, err := spi.ListDataKeys(ctx, s, spi.ListDataKeysRequest{After: after, Limit: 100})
		for _, k := range res.Keys {
			names = append(names, fmt.Sprint(k.Owner, k.Version))
		}
		return names, res.Next, err
	}},
	{"Read", func(ctx context.Context, s *spi.Store, after string) (names []string, next string, err error) {
		seq, _ := strconv.ParseInt(after, 10, 64)
		res, err := spi.Read(ctx, s, spi.ReadRequest{Execution: "e00", After: seq, Limit: 100})
		for _, e := range res.Events {
			names = append(names, fmt.Sprintf("%02d", e.Sequence))
		}
		if res.More {
			next = names[len(names)-1]
		}
		return names, next, err
	}},
	{"RefLineage", func(ctx context.Context, s *spi.Store, after string) (names []string, next string, err error) {
		version, _ := strconv.ParseInt(after, 10, 64)
		res, err := spi.RefLineage(ctx, s, spi.RefLineageRequest{Name: "r00", Before: version, Limit: 100})
		for _, r := range res.Refs {
			names = append(names, fmt.Sprint(r.Version))
		}
		if res.More {
			next = names[len(names)-1]
		}
		return names, next, err
	}},
}

// fill makes some of everything that is listed.
func fill(t *testing.T) {
	ctx, s := t.Context(), open(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range 9 {
		id := spi.ExecutionID(fmt.Sprintf("e%02d", i))
		req := first(id)
		for range 8 {
			req.Events = append(req.Events, first(id).Events...)
		}
		_, err := spi.Append(ctx, s, req)
		must(err)
		_, err = spi.PutRef(ctx, s, spi.PutRefRequest{Name: spi.RefName(fmt.Sprintf("r%02d", i)), Execution: id})
		must(err)
		_, err = spi.PutRef(ctx, s, spi.PutRefRequest{Name: "r00", Execution: id, ExpectedVersion: spi.AnyVersion})
		must(err)
		_, err = spi.ScheduleTimer(ctx, s, spi.ScheduleTimerRequest{Timer: spi.Timer{Execution: id, WakeAt: time.Unix(1, 0)}})
		must(err)
		for version := range 1 + i%3 {
			_, err = spi.CreateDataKey(ctx, s, spi.CreateDataKeyRequest{Key: spi.DataKey{
				Owner: spi.KeyOwner(fmt.Sprintf("2:t%d/", i)), Version: int64(version + 1), ID: spi.KeyID(spi.NewEventID()), WrappedBy: "kms", Wrapped: []byte{1},
			}})
			must(err)
		}
	}
}

func TestShortPagesHoldHalfAndLeadToEverything(t *testing.T) {
	fill(t)
	s := over(t, always(faults.Fault{Page: faults.PageShort}))
	for _, l := range listings {
		whole, _, err := l.page(t.Context(), open(t), "")
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		pages := 0
		for after := ""; ; pages++ {
			page, next, err := l.page(t.Context(), s, after)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, page...)
			if after = next; next == "" || len(all) > len(whole) {
				break
			}
		}
		if pages < 3 || !slices.Equal(all, whole) {
			t.Errorf("%s in %d short pages holds %q, not %q", l.method, pages, all, whole)
		}
	}
}

func TestLyingPagesLie(t *testing.T) {
	fill(t)
	for _, l := range listings {
		whole, _, err := l.page(t.Context(), open(t), "")
		if err != nil {
			t.Fatal(err)
		}
		reversed, _, err := l.page(t.Context(), over(t, always(faults.Fault{Page: faults.PageLieReversed})), "")
		slices.Reverse(reversed)
		if err != nil || !slices.Equal(reversed, whole) {
			t.Errorf("%s reversed: %q, %v", l.method, reversed, err)
		}
		half, next, err := l.page(t.Context(), over(t, always(faults.Fault{Page: faults.PageLieEnded})), "")
		if err != nil || next != "" || !slices.Equal(half, whole[:len(whole)/2]) {
			t.Errorf("%s ended: %q goes on with %q, %v", l.method, half, next, err)
		}
	}
}

func TestDueTimersComeShortOrReversed(t *testing.T) {
	fill(t)
	due := func(p faults.Page) (ids []spi.ExecutionID) {
		res, err := spi.DueTimers(t.Context(), over(t, always(faults.Fault{Page: p})), spi.DueTimersRequest{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		for _, timer := range res.Timers {
			ids = append(ids, timer.Execution)
		}
		return ids
	}
	whole, short, reversed := due(faults.PageAsItIs), due(faults.PageShort), due(faults.PageLieReversed)
	slices.Reverse(reversed)
	if len(whole) != 9 || !slices.Equal(short, whole[:4]) || !slices.Equal(reversed, whole) {
		t.Errorf("%q, short %q, reversed %q", whole, short, reversed)
	}
}

func TestAPageWithAFaultLeavesTheStoreAlone(t *testing.T) {
	fill(t)
	before, _, err := listings[0].page(t.Context(), open(t), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []faults.Page{faults.PageShort, faults.PageLieReversed, faults.PageLieEnded} {
		if _, _, err := listings[0].page(t.Context(), over(t, always(faults.Fault{Page: p})), ""); err != nil {
			t.Fatal(err)
		}
	}
	if after, _, err := listings[0].page(t.Context(), open(t), ""); err != nil || !slices.Equal(after, before) {
		t.Errorf("%q, %v", after, err)
	}
}
