package transfer_test

import (
	"slices"
	"testing"

	"github.com/loomgate/loomgate/cmd/gateway/internal/transfer"
	"github.com/loomgate/loomgate/spi"
)

// changes are what others do to execution b, one or two things.
var changes = map[string][]func(*spi.Store){
	"append":                        {appendTo},
	"delete":                        {deleteB},
	"delete and write at once":      {func(s *spi.Store) { deleteB(s); writeAnew(s) }},
	"delete, then write":            {deleteB, writeAnew},
	"append, then delete":           {appendTo, deleteB},
	"append, then delete and write": {appendTo, func(s *spi.Store) { deleteB(s); writeAnew(s) }},
	"truncate":                      {truncate},
	"truncate further":              {truncateMore},
	"append, then truncate":         {appendTo, truncate},
}

func appendTo(s *spi.Store) {
	must(spi.Append(ctx, s, spi.AppendRequest{Execution: "b", ExpectedHead: spi.AnyHead, Events: []spi.Event{{ID: spi.NewEventID(), Kind: "K"}}}))
}

func deleteB(s *spi.Store) {
	must(spi.DeleteExecution(ctx, s, spi.DeleteExecutionRequest{Execution: "b", Incarnation: 1}))
}

func writeAnew(s *spi.Store) {
	must(spi.Append(ctx, s, spi.AppendRequest{Execution: "b", Incarnation: 2, Events: []spi.Event{{ID: spi.NewEventID(), Kind: "K"}}}))
}

func truncate(s *spi.Store) {
	must(spi.TruncatePrefixKeeping(ctx, s, spi.TruncatePrefixKeepingRequest{Execution: "b", Incarnation: 1, Before: 3_500, Keep: []int64{2, 1_500}}))
}

func truncateMore(s *spi.Store) {
	must(spi.TruncatePrefixKeeping(ctx, s, spi.TruncatePrefixKeepingRequest{Execution: "b", Incarnation: 1, Before: 4_500}))
}

// whileOthers calls test with a store that has an execution b of some size, for each
// change and each moment at which it can come. What is sealed cannot be read.
func whileOthers(events int, sealing func() *faulty, test func(name string, store *spi.Store, at []int)) {
	for name, steps := range changes {
		for first := range 16 {
			for second := first; second < first+3; second++ {
				inner, calls, f := inMemory(), 0, sealing()
				long(inner, "b", events)
				f.plan = func(c call) fault {
					for i, at := range []int{first, second}[:len(steps)] {
						if calls == at {
							steps[i](inner)
						}
					}
					calls++
					return fault{}
				}
				test(name, f.open(inner), []int{first, second})
				if len(steps) == 1 {
					break
				}
			}
		}
	}
}

func TestWhatOthersDoMeanwhileIsNoProblem(t *testing.T) {
	for _, events := range []int{6, 5_000} {
		whileOthers(events, func() *faulty { return &faulty{} }, func(name string, store *spi.Store, at []int) {
			if report, found := verify(t, store, transfer.VerifyOptions{}); len(found) > 0 {
				t.Errorf("%s at %v to a log of %d: %+v: %q", name, at, events, report, found)
			}
		})
	}
}

func TestAProblemGoesWithItsLog(t *testing.T) {
	want := []string{`execution "b", sequence 4000: cannot be read: Read: it does not open`}
	whileOthers(5_000, func() *faulty { return sealed(4_000) }, func(name string, store *spi.Store, at []int) {
		report, found := verify(t, store, transfer.VerifyOptions{})
		if len(found) > 0 && (report.Events <= 1 || !slices.Equal(found, want)) {
			t.Errorf("%s at %v: %+v: %q", name, at, report, found)
		}
	})
}
