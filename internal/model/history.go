package model

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/loomgate/loomgate/spi"
)

// A History is what the clients of a run called and were answered.
type History struct {
	clock atomic.Int64 // orders the beginnings and ends of all calls

	mu    sync.Mutex
	calls []call
	pages []page
}

// A call is one call to one execution: an append of a batch is a call of its own.
type call struct {
	client     int
	execution  spi.ExecutionID
	begin, end int64
	in         input
	out        output
}

// A page is one page of a listing.
type page struct {
	begin, end int64
	after      string
	response   spi.ListExecutionsResponse
	last       bool
}

// checkTimeout bounds the search for an order, which has no bound of its own.
const checkTimeout = 2 * time.Minute

func (h *History) now() int64 { return h.clock.Add(1) }

func (h *History) add(calls ...call) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, calls...)
}

func (h *History) addPage(p page) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pages = append(h.pages, p)
}

// Count returns how many calls were answered, and how many of those not for sure.
func (h *History) Count() (all, unclear int) {
	for _, c := range h.calls {
		if outcomeOf(c.out.err) != answered {
			unclear++
		}
	}
	return len(h.calls), unclear
}

// Check returns what no sequential store could have answered.
func (h *History) Check() error {
	var errs []error
	calls := h.resolved()
	for _, id := range executions(calls) {
		if err := checkExecution(id, calls); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, h.checkPages(calls)...)...)
}

func executions(calls []call) []spi.ExecutionID {
	var ids []spi.ExecutionID
	for _, c := range calls {
		ids = append(ids, c.execution)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// resolved returns the calls, each ambiguous append joined with the try that told what
// became of it (5): from then on it takes no effect any more.
func (h *History) resolved() []call {
	calls := slices.Clone(h.calls)
	slices.SortStableFunc(calls, func(a, b call) int { return int(a.begin - b.begin) })
	resolvers := map[spi.EventID]int64{} // the begin of an earlier try, by first event
	var rest []call
	for i := len(calls) - 1; i >= 0; i-- {
		c := calls[i]
		req, isAppend := c.in.(spi.AppendRequest)
		if isAppend {
			if outcomeOf(c.out.err) == unknown && resolvers[req.Events[0].ID] > 0 {
				earlier := resolvers[req.Events[0].ID] - 1
				rest[earlier].begin = min(rest[earlier].begin, c.begin)
				continue
			}
			if outcomeOf(c.out.err) == answered && resolves(c.out.err) && resolvers[req.Events[0].ID] == 0 {
				resolvers[req.Events[0].ID] = int64(len(rest)) + 1
			}
		}
		rest = append(rest, c)
	}
	return rest
}

// resolves reports whether an answer tells what became of an earlier try.
func resolves(err error) bool {
	if _, ok := errors.AsType[*spi.IncarnationError](err); ok {
		return false
	}
	_, truncated := errors.AsType[*spi.TruncatedError](err)
	return !truncated
}

// specification is the log's, for porcupine.
var specification = porcupine.Model{
	Init: func() any { return log{floor: 1, incarnation: 1} },
	Step: func(state, in, out any) (bool, any) {
		ok, next := state.(log).step(in, out.(output))
		return ok, next
	},
	Equal: func(a, b any) bool { return a.(log).equal(b.(log)) },
	Hash:  func(state any) uint64 { return state.(log).hash() },
}

func checkExecution(id spi.ExecutionID, calls []call) error {
	var operations []porcupine.Operation
	for _, c := range calls {
		if c.execution != id {
			continue
		}
		end := c.end
		if outcomeOf(c.out.err) == unknown {
			end = math.MaxInt64
		}
		operations = append(operations, porcupine.Operation{ClientId: c.client, Input: c.in, Call: c.begin, Output: c.out, Return: end})
	}
	result, info := porcupine.CheckOperationsVerbose(specification, operations, checkTimeout)
	switch result {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return fmt.Errorf("execution %q: no order of its %d calls was found in %v", id, len(operations), checkTimeout)
	}
	return fmt.Errorf("execution %q: no order explains its %d calls; %s", id, len(operations), stuck(operations, info))
}

// stuck describes the first call after the longest order that was found.
func stuck(operations []porcupine.Operation, info porcupine.LinearizationInfo) string {
	var longest []porcupine.Operation
	for _, partial := range slices.Concat(info.PartialLinearizationsOperations()...) {
		if len(partial) > len(longest) {
			longest = partial
		}
	}
	state := specification.Init()
	explained := map[int64]bool{}
	for _, op := range longest {
		_, state = specification.Step(state, op.Input, op.Output)
		explained[op.Call] = true
	}
	var left []porcupine.Operation
	for _, op := range operations {
		if !explained[op.Call] {
			left = append(left, op)
		}
	}
	if len(left) == 0 {
		return "nothing is left"
	}
	next := slices.MinFunc(left, func(a, b porcupine.Operation) int { return int(a.Return - b.Return) })
	l := state.(log)
	return fmt.Sprintf("after %d of them, at head %d, fence %d, incarnation %d, floor %d, %T %+v cannot have got %v",
		len(longest), l.head(), l.fence, l.incarnation, l.floor, next.Input, brief(next.Input), brief(next.Output))
}

// brief leaves events out, of which the ids say nothing.
func brief(v any) any {
	switch v := v.(type) {
	case spi.AppendRequest:
		return fmt.Sprintf("head %d, fence %d, incarnation %d, since %d, %d events", v.ExpectedHead, v.Fence, v.Incarnation, v.SinceSeq, len(v.Events))
	case copied:
		return fmt.Sprintf("the first %d of %q", v.N, v.From)
	case output:
		if v.err != nil {
			return v.err
		}
		if read, ok := v.response.(spi.ReadResponse); ok {
			return fmt.Sprintf("%d events, incarnation %d, floor %d", len(read.Events), read.Incarnation, read.Floor)
		}
		return fmt.Sprintf("%+v", v.response)
	}
	return v
}
