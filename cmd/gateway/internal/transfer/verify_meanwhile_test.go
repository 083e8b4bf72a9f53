package transfer_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/loomgate/loomgate/cmd/gateway/internal/transfer"
	"github.com/loomgate/loomgate/spi"
)

// changes are what others do to execution b, one after the other.
var changes = map[string][]func(*spi.Store){
	"append":                          {appendTo},
	"delete":                          {deleteOnce},
	"delete and write at once":        {deleteAndWrite},
	"delete, then write":              {deleteOnce, writeAnew},
	"delete, then write, then delete": {deleteOnce, writeAnew, deleteTwice},
	"append, then delete":             {appendTo, deleteOnce},
	"append, then delete and write":   {appendTo, deleteAndWrite},
	"truncate":                        {truncate},
	"truncate further":                {truncateFurther},
	"append, then truncate":           {appendTo, truncate},
}

func appendTo(s *spi.Store) {
	must(spi.Append(ctx, s, spi.AppendRequest{Execution: "b", ExpectedHead: spi.AnyHead, Events: []spi.Event{{ID: spi.NewEventID(), Kind: "K"}}}))
}

func deleteOnce(s *spi.Store) {
	must(spi.DeleteExecution(ctx, s, spi.DeleteExecutionRequest{Execution: "b", Incarnation: 1}))
}

func deleteTwice(s *spi.Store) {
	must(spi.DeleteExecution(ctx, s, spi.DeleteExecutionRequest{Execution: "b", Incarnation: 2}))
}

func writeAnew(s *spi.Store) {
	must(spi.Append(ctx, s, spi.AppendRequest{Execution: "b", Incarnation: 2, Events: []spi.Event{{ID: spi.NewEventID(), Kind: "K"}}}))
}

func deleteAndWrite(s *spi.Store) { deleteOnce(s); writeAnew(s) }

func truncate(s *spi.Store) {
	must(spi.TruncatePrefixKeeping(ctx, s, spi.TruncatePrefixKeepingRequest{Execution: "b", Incarnation: 1, Before: 1_800, Keep: []int64{2, 500}}))
}

func truncateFurther(s *spi.Store) {
	must(spi.TruncatePrefixKeeping(ctx, s, spi.TruncatePrefixKeepingRequest{Execution: "b", Incarnation: 1, Before: 2_400}))
}

// whileOthers calls test with a store that has an execution b of some size, for each
// change and many moments at which its parts can come. What is sealed cannot be read.
func whileOthers(events, calls int, sealing func() *faulty, test func(what string, store *spi.Store)) {
	for name, steps := range changes {
		for _, at := range moments(calls, len(steps)) {
			inner, now, f := inMemory(), 0, sealing()
			long(inner, "b", events)
			f.plan = func(call) fault {
				for i, step := range steps {
					if at[i] == now {
						step(inner)
					}
				}
				now++
				return fault{}
			}
			test(fmt.Sprintf("%s before call %v, to a log of %d", name, at, events), f.open(inner))
		}
	}
}

// moments returns ascending numbers, the first of them below a limit and each of the
// others up to two later.
func moments(limit, n int) (all [][]int) {
	for first := range limit {
		if n == 1 {
			all = append(all, []int{first})
			continue
		}
		for gap := range 3 {
			for _, rest := range moments(1, n-1) {
				some := []int{first}
				for _, later := range rest {
					some = append(some, first+gap+later)
				}
				all = append(all, some)
			}
		}
	}
	return all
}

func TestWhatOthersDoMeanwhileIsNoProblem(t *testing.T) {
	for _, events := range []int{6, 2_500} {
		whileOthers(events, 8, func() *faulty { return &faulty{} }, func(what string, store *spi.Store) {
			if report, found := verify(t, store, transfer.VerifyOptions{}); len(found) > 0 {
				t.Errorf("%s: %+v: %q", what, report, found)
			}
		})
	}
}

func TestAProblemGoesWithItsLog(t *testing.T) {
	want := []string{`execution "b", sequence 2300: cannot be read: Read: it does not open`}
	whileOthers(2_500, 24, func() *faulty { return sealed(2_300) }, func(what string, store *spi.Store) {
		report, found := verify(t, store, transfer.VerifyOptions{})
		if len(found) > 0 && (report.Events <= 1 || !slices.Equal(found, want)) {
			t.Errorf("%s: %+v: %q", what, report, found)
		}
	})
}

func TestAStoreThatGoesAwayWhileAnEventIsSearchedForEndsTheWalk(t *testing.T) {
	inner := inMemory()
	long(inner, "b", 100)
	walk := func(refuseFrom int) (reads int, report transfer.VerifyReport, err error) {
		f := sealed(60)
		f.plan = func(c call) fault {
			if c.method == "Read" {
				if reads++; reads >= refuseFrom {
					return fault{refuse: errAway}
				}
			}
			return fault{}
		}
		report, err = transfer.Verify(ctx, f.open(inner), transfer.VerifyOptions{})
		return reads, report, err
	}
	all, report, err := walk(1_000)
	if err != nil || report.Problems != 1 || all < 8 {
		t.Fatalf("%+v (%v) after %d reads", report, err, all)
	}
	for n := 1; n <= all; n++ {
		if _, report, err := walk(n); !errors.Is(err, errAway) || report.Problems != 0 {
			t.Errorf("away from read %d on: %+v (%v)", n, report, err)
		}
	}
}
