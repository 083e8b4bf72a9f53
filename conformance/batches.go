package conformance

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/loomgate/loomgate/spi"
)

var batches = topic{"batches", []testCase{
	{
		"a batch has one result for each append, in the caller's order",
		spi.CapAppendBatch,
		func(f *fixture) {
			f.appendN("b", 0, 4)
			results := f.batch(
				spi.AppendRequest{Execution: "c", Events: events(2)},
				spi.AppendRequest{Execution: "a", Events: events(1)},
				spi.AppendRequest{Execution: "b", ExpectedHead: spi.AnyHead, Events: events(3)},
			)
			for i, want := range []spi.AppendResponse{{FirstSeq: 1, Head: 2}, {FirstSeq: 1, Head: 1}, {FirstSeq: 5, Head: 7}} {
				want.Incarnation, want.Floor = 1, 1
				if results[i].Err != nil || results[i].AppendResponse != want {
					f.Errorf("result %d is %+v, not %+v", i, results[i], want)
				}
			}
			f.wantLog("c", 1, 2)
			f.wantLog("a", 1)
			f.wantLog("b", upTo(7)...)
		},
	},
	{
		"a refused append fails alone",
		spi.CapAppendBatch | spi.CapAcquireFence,
		func(f *fixture) {
			f.appendN("conflict", 0, 2)
			f.acquire("stale")
			again := spi.AppendRequest{Execution: "again", Events: events(1)}
			f.mustAppend(again)
			results := f.batch(
				spi.AppendRequest{Execution: "first", Events: events(1)},
				spi.AppendRequest{Execution: "conflict", ExpectedHead: 1, Events: events(1)},
				spi.AppendRequest{Execution: "stale", Events: []spi.Event{event(spi.KindExecutionCompleted)}},
				again,
				spi.AppendRequest{Execution: "incarnation", Incarnation: 3, Events: events(1)},
				spi.AppendRequest{Execution: "last", Events: events(1)},
			)
			for _, i := range []int{0, 3, 5} {
				if results[i].Err != nil {
					f.Errorf("result %d is %v", i, results[i].Err)
				}
			}
			equal(f, "whether the duplicate is marked", results[3].Duplicate, true)
			equal(f, "the conflict", *wantError[*spi.ConflictError](f, results[1].Err), spi.ConflictError{Execution: "conflict", Head: 2})
			equal(f, "the stale fence", *wantError[*spi.StaleFenceError](f, results[2].Err), spi.StaleFenceError{Execution: "stale", Current: 1})
			equal(f, "the incarnation", wantError[*spi.IncarnationError](f, results[4].Err).Current, 1)
			f.wantNames("the executions", f.list("", 10), []string{"again", "conflict", "first", "last"})
			f.wantLog("again", 1)
			f.wantLog("conflict", 1, 2)
		},
	},
	{
		"a fence guards a batch as it guards an append",
		spi.CapAppendBatch | spi.CapAcquireFence,
		func(f *fixture) {
			old := f.acquire("e")
			f.acquire("e")
			for _, c := range []struct {
				kind  string
				token int64
			}{{spi.KindExecutionCompleted, old}, {spi.KindExecutionCompleted, 0}, {"Noted", old}} {
				results := f.batch(
					spi.AppendRequest{Execution: "other", ExpectedHead: spi.AnyHead, Events: events(1)},
					spi.AppendRequest{Execution: "e", Fence: c.token, Events: []spi.Event{event(c.kind)}},
				)
				equal(f, "the current token", wantError[*spi.StaleFenceError](f, results[1].Err).Current, 2)
				if results[0].Err != nil {
					f.Error(results[0].Err)
				}
			}
			f.wantNothing("e")
			results := f.batch(spi.AppendRequest{Execution: "e", Fence: 2, Events: []spi.Event{event(spi.KindExecutionCompleted)}})
			if results[0].Err != nil {
				f.Error(results[0].Err)
			}
		},
	},
	{
		"a batch again is a batch of duplicates",
		spi.CapAppendBatch,
		func(f *fixture) {
			appends := []spi.AppendRequest{
				{Execution: "a", Events: events(2)},
				{Execution: "b", ExpectedHead: spi.AnyHead, Events: events(1)},
			}
			f.batch(appends...)
			for i, res := range f.batch(appends...) {
				if res.Err != nil || !res.Duplicate || res.FirstSeq != 1 {
					f.Errorf("result %d is %+v", i, res)
				}
			}
			f.wantLog("a", 1, 2)
			f.wantLog("b", 1)
		},
	},
	{
		"an execution that is there twice refuses the whole batch",
		spi.CapAppendBatch,
		func(f *fixture) {
			f.refuseBatch("appends[2].execution id",
				spi.AppendRequest{Execution: "a", Events: events(1)},
				spi.AppendRequest{Execution: "b", Events: events(1)},
				spi.AppendRequest{Execution: "a", ExpectedHead: 1, Events: events(1)},
			)
		},
	},
	{
		"a malformed append refuses the whole batch",
		spi.CapAppendBatch,
		func(f *fixture) {
			f.refuseBatch("appends[1].events[0].kind",
				spi.AppendRequest{Execution: "a", Events: events(1)},
				spi.AppendRequest{Execution: "b", Events: []spi.Event{event("")}},
			)
			f.refuseBatch("appends")
		},
	},
	{
		"a full batch lands",
		spi.CapAppendBatch,
		func(f *fixture) {
			var appends []spi.AppendRequest
			for i := range spi.MaxBatch {
				appends = append(appends, spi.AppendRequest{Execution: id("e%04d", spi.MaxBatch-i), Events: events(1)})
			}
			for i, res := range f.batch(appends...) {
				if res.Err != nil {
					f.Fatalf("result %d is %v", i, res.Err)
				}
			}
			equal(f, "the number of executions", len(f.list("", spi.MaxLimit)), spi.MaxBatch)
		},
	},
	{
		"batches over the same executions in other orders never wait for one another for good",
		spi.CapAppendBatch,
		func(f *fixture) {
			ctx, cancel := context.WithTimeout(f.ctx, time.Minute) // a deadlock's end, not a measure
			defer cancel()
			const writers, rounds, executions = 4, 10, 12
			together(writers, func(w int) {
				for range rounds {
					var appends []spi.AppendRequest
					for i := range executions {
						kind := []string{"Noted", spi.KindExecutionResumed}[i%2]
						appends = append(appends, spi.AppendRequest{Execution: id("e%02d", (i*(w+1)+w)%(executions+1)), ExpectedHead: spi.AnyHead, Events: []spi.Event{event(kind)}})
					}
					if w%2 == 1 {
						slices.Reverse(appends)
					}
					res, err := spi.AppendBatch(ctx, f.store, spi.AppendBatchRequest{Appends: appends})
					if err != nil {
						f.Error(err)
						return
					}
					for _, r := range res.Results {
						if r.Err != nil {
							f.Error(r.Err)
						}
					}
				}
			})
			total := int64(0)
			for i := range executions + 1 {
				total += f.head(id("e%02d", i)).Head
			}
			equal(f, "the number of events", total, writers*rounds*executions)
		},
	},
}}

// only returns what became of the one append of a batch.
func only(res spi.AppendBatchResponse) error {
	if len(res.Results) != 1 {
		return fmt.Errorf("one append has %d results", len(res.Results))
	}
	return res.Results[0].Err
}

func (f *fixture) batch(appends ...spi.AppendRequest) []spi.AppendResult {
	f.Helper()
	res, err := spi.AppendBatch(f.ctx, f.store, spi.AppendBatchRequest{Appends: appends})
	if err != nil {
		f.Fatal(err)
	}
	if len(res.Results) != len(appends) {
		f.Fatalf("%d appends have %d results", len(appends), len(res.Results))
	}
	return res.Results
}

// refuseBatch checks that a batch is refused for a field and stores nothing.
func (f *fixture) refuseBatch(field string, appends ...spi.AppendRequest) {
	f.Helper()
	_, err := spi.AppendBatch(f.ctx, f.store, spi.AppendBatchRequest{Appends: appends})
	equal(f, "the field", wantError[*spi.InvalidArgumentError](f, err).Field, field)
	f.wantNames("the executions", f.list("", 10), nil)
}
