package transfer_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loomgate/loomgate/cmd/gateway/internal/transfer"
	"github.com/loomgate/loomgate/spi"
)

// verify returns what a walk found, each problem as text.
func verify(t fatal, store *spi.Store, opts transfer.VerifyOptions) (transfer.VerifyReport, []string) {
	t.Helper()
	var found []string
	opts.Found = func(p transfer.Problem) { found = append(found, p.String()) }
	report := must(transfer.Verify(ctx, store, opts))
	if report.Problems != int64(len(found)) {
		t.Errorf("%d problems are told, and %d counted", len(found), report.Problems)
	}
	return report, found
}

// some is a store with executions a, b and c, of which b has six events.
func some(t fatal) *spi.Store {
	t.Helper()
	store := inMemory()
	log := []string{line("a", `"payload":1`), line("c", `"payload":1`)}
	for n := range 6 {
		log = append(log, line("b", fmt.Sprintf(`"payload":%d`, n+1)))
	}
	importAll(t, store, file(log...))
	return store
}

func TestASoundStoreHasNoProblem(t *testing.T) {
	onEach(t, func(t *testing.T, store *spi.Store) {
		log := sample(12, 50, 900)
		importAll(t, store, bytes.NewReader(log))
		long(store, "long", 12_000)
		importAll(t, store, file(line("x", `"payload":1`), line("x", `"payload":2`), line("x", `"payload":3`), line("x", `"payload":4`)))
		must(spi.TruncatePrefixKeeping(ctx, store, spi.TruncatePrefixKeepingRequest{Execution: "x", Incarnation: 1, Before: 4, Keep: []int64{2}}))
		report, found := verify(t, store, transfer.VerifyOptions{})
		if len(found) > 0 || report.Executions != 52 || report.Events != 12_902 || report.Truncated != 1 || report.Last != "x" {
			t.Errorf("%+v: %q", report, found)
		}
		part, _ := verify(t, store, transfer.VerifyOptions{Prefix: "x", After: "long"})
		if part.Executions != 1 || part.Events != 2 {
			t.Errorf("%+v", part)
		}
	})
}

// of returns a hook that changes what is read of execution b.
func of(change func(spi.ReadRequest, *spi.ReadResponse) error) *faulty {
	return &faulty{read: func(req spi.ReadRequest, res *spi.ReadResponse) error {
		if req.Execution != "b" {
			return nil
		}
		return change(req, res)
	}}
}

// without hides events of execution b.
func without(sequences ...int64) *faulty {
	return of(func(_ spi.ReadRequest, res *spi.ReadResponse) error {
		res.Events = slices.DeleteFunc(res.Events, func(e spi.Event) bool { return slices.Contains(sequences, e.Sequence) })
		return nil
	})
}

// sealed makes events of execution b unreadable, and every page that holds one.
func sealed(sequences ...int64) *faulty {
	return of(func(_ spi.ReadRequest, res *spi.ReadResponse) error {
		if slices.ContainsFunc(res.Events, func(e spi.Event) bool { return slices.Contains(sequences, e.Sequence) }) {
			return errors.New("it does not open")
		}
		return nil
	})
}

func TestEveryProblemIsFoundAndTheWalkGoesOn(t *testing.T) {
	const b = `execution "b"`
	for name, c := range map[string]struct {
		store *faulty
		found []string
	}{
		"the first event is missing": {without(1), []string{b + ", sequence 1: is missing"}},
		"events are missing":         {without(2, 4, 5), []string{b + ", sequence 2: is missing", b + ", sequence 4: is missing, and so is all up to sequence 5"}},
		"the last event is missing":  {without(6), []string{b + ", sequence 6: is missing"}},
		"every event is missing":     {without(1, 2, 3, 4, 5, 6), []string{b + ", sequence 1: is missing, and so is all up to sequence 6"}},
		"events are out of order": {of(func(_ spi.ReadRequest, res *spi.ReadResponse) error {
			res.Events[3], res.Events[4] = res.Events[4], res.Events[3]
			return nil
		}), []string{b + ", sequence 4: is missing", b + ", sequence 4: comes after sequence 5"}},
		"an event is there twice": {of(func(req spi.ReadRequest, res *spi.ReadResponse) error {
			if req.After == 0 {
				res.Events = slices.Insert(res.Events, 2, res.Events[1])
			}
			return nil
		}), []string{b + ", sequence 2: comes after sequence 2"}},
		"a page does not go on": {of(func(req spi.ReadRequest, res *spi.ReadResponse) error {
			if req.After == 2 {
				res.Events, res.More = nil, true
			} else if req.After < 2 {
				res.Events, res.More = res.Events[:2-req.After], true
			}
			return nil
		}), []string{b + ", sequence 3: cannot be reached: the page that begins with it does not"}},
		"an event does not open": {sealed(3), []string{b + ", sequence 3: cannot be read: Read: it does not open"}},
		"the ends do not open":   {sealed(1, 6), []string{b + ", sequence 1: cannot be read: Read: it does not open", b + ", sequence 6: cannot be read: Read: it does not open"}},
		"neighbours do not open": {sealed(4, 5), []string{b + ", sequence 4: cannot be read: Read: it does not open", b + ", sequence 5: cannot be read: Read: it does not open"}},
		"one is missing before one that does not open": {of(func(req spi.ReadRequest, res *spi.ReadResponse) error {
			return errors.Join(without(4).read(req, res), sealed(5).read(req, res))
		}), []string{b + ", sequence 4: is missing", b + ", sequence 5: cannot be read: Read: it does not open"}},
		"what is past the end cannot be read": {of(func(req spi.ReadRequest, res *spi.ReadResponse) error {
			if res.More = true; req.After == 6 {
				return errors.New("it does not open")
			}
			return nil
		}), []string{b + " cannot be read: Read: it does not open"}},
		"the head is too low":        {headOf(5), []string{b + ", sequence 6: is past the head, which is 5"}},
		"the head is too high":       {headOf(8), []string{b + ", sequence 7: is missing, and so is all up to sequence 8"}},
		"an execution has no events": {phantom(), []string{b + " is listed, but has no events"}},
		"an id repeats": {&faulty{list: func(p *spi.ListExecutionsResponse) { p.Executions = slices.Insert(p.Executions, 1, "a") }}, []string{
			`execution "a" is listed after "a"`,
		}},
		"the ids go back": {&faulty{list: func(p *spi.ListExecutionsResponse) { slices.Reverse(p.Executions) }}, []string{
			b + ` is listed after "c"`, `execution "a" is listed after "c"`,
		}},
	} {
		report, found := verify(t, c.store.open(some(t)), transfer.VerifyOptions{})
		if !slices.Equal(found, c.found) {
			t.Errorf("%s: found is %q, not %q", name, found, c.found)
		}
		if report.Last != "c" || report.Executions < 3 {
			t.Errorf("%s: %+v", name, report)
		}
	}
}

func headOf(n int64) *faulty {
	return &faulty{head: func(id spi.ExecutionID, h *spi.HeadResponse) {
		if id == "b" {
			h.Head = n
		}
	}}
}

// phantom is a store that lists execution b, but has nothing of it.
func phantom() *faulty {
	f := without(1, 2, 3, 4, 5, 6)
	f.head = headOf(0).head
	return f
}

func TestAnEventThatDoesNotOpenIsFoundAmongMany(t *testing.T) {
	store, reads := inMemory(), 0
	long(store, "b", 9_000)
	f := sealed(1, 2_777, 8_999)
	f.plan = func(c call) fault {
		if c.method == "Read" {
			reads++
		}
		return fault{}
	}
	report, found := verify(t, f.open(store), transfer.VerifyOptions{})
	if len(found) != 3 || !strings.Contains(found[1], "sequence 2777:") || report.Events != 8_997 || reads > 100 {
		t.Errorf("%+v: %q, after %d reads", report, found, reads)
	}
}

func TestAKeptEventThatDoesNotOpenIsFound(t *testing.T) {
	store := some(t)
	must(spi.TruncatePrefixKeeping(ctx, store, spi.TruncatePrefixKeepingRequest{Execution: "b", Incarnation: 1, Before: 5, Keep: []int64{3}}))
	report, found := verify(t, sealed(3).open(store), transfer.VerifyOptions{})
	if want := []string{`execution "b", sequence 3: cannot be read: Read: it does not open`}; !slices.Equal(found, want) || report.Events != 4 || report.Truncated != 1 {
		t.Errorf("%+v: %q", report, found)
	}
}

func TestALogFullOfProblemsIsLeftAtSomePoint(t *testing.T) {
	store := inMemory()
	long(store, "b", 9_000)
	importAll(t, store, file(line("c", `"payload":1`)))
	report, found := verify(t, of(func(spi.ReadRequest, *spi.ReadResponse) error { return errors.New("the key is gone") }).open(store), transfer.VerifyOptions{})
	if len(found) < 10 || len(found) > 30 || report.Last != "c" || report.Executions != 2 {
		t.Errorf("%+v, %d problems", report, len(found))
	}
}

func TestAListingThatDoesNotMoveEndsTheWalk(t *testing.T) {
	store := (&faulty{list: func(p *spi.ListExecutionsResponse) { p.Next = "c" }}).open(some(t))
	report, err := transfer.Verify(ctx, store, transfer.VerifyOptions{})
	if want[*transfer.OrderError](t, err); report.Executions < 3 {
		t.Errorf("%+v", report)
	}
}

func TestAShreddedLogIsCountedAndNoProblem(t *testing.T) {
	for name, f := range map[string]*faulty{
		"its payloads are closed": of(func(_ spi.ReadRequest, res *spi.ReadResponse) error {
			res.Shredded = true
			return nil
		}),
		"it is not read": of(func(req spi.ReadRequest, _ *spi.ReadResponse) error {
			return &spi.ShreddedError{Owner: spi.KeyOwner(req.Execution)}
		}),
	} {
		report, found := verify(t, f.open(some(t)), transfer.VerifyOptions{})
		if len(found) > 0 || report.Shredded != 1 || report.Executions != 3 {
			t.Errorf("%s: %+v: %q", name, report, found)
		}
	}
}

func TestAStoreThatCannotAnswerEndsTheWalk(t *testing.T) {
	for method, last := range map[string]string{"Read": "b", "Head": "b", "ListExecutions": ""} {
		synctest.Test(t, func(t *testing.T) {
			store := withPlan(some(t), func(c call) fault {
				if c.method == method && (c.id == "c" || c.id == "") {
					return fault{refuse: errAway}
				}
				return fault{}
			})
			begin := time.Now()
			report, err := transfer.Verify(ctx, store, transfer.VerifyOptions{Retry: transfer.Retry{For: time.Minute}})
			if !errors.Is(err, errAway) || report.Last != last || report.Problems > 0 || time.Since(begin) != time.Minute {
				t.Errorf("%s: %v, after %+v and %v", method, err, report, time.Since(begin))
			}
		})
	}
}
