package conformance

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/loomgate/loomgate/spi"
)

// event returns an event of a kind with an id of its own. A kernel kind has its
// stamp.
func event(kind string) spi.Event {
	return spi.Event{ID: spi.NewEventID(), Kind: kind, Kernel: kernelStamp(kind)}
}

func kernelStamp(kind string) bool {
	return slices.ContainsFunc(spi.KernelKinds(), func(k spi.KernelKind) bool { return k.Kind == kind })
}

// events returns n events of an application kind.
func events(n int) []spi.Event {
	all := make([]spi.Event, n)
	for i := range all {
		all[i] = event("Noted")
	}
	return all
}

// append appends events of these kinds at a head.
func (f *fixture) append(id spi.ExecutionID, head int64, kinds ...string) spi.AppendResponse {
	f.Helper()
	req := spi.AppendRequest{Execution: id, ExpectedHead: head}
	for _, k := range kinds {
		req.Events = append(req.Events, event(k))
	}
	return f.mustAppend(req)
}

// appendN appends n application events at a head.
func (f *fixture) appendN(id spi.ExecutionID, head int64, n int) spi.AppendResponse {
	f.Helper()
	return f.mustAppend(spi.AppendRequest{Execution: id, ExpectedHead: head, Events: events(n)})
}

func (f *fixture) mustAppend(req spi.AppendRequest) spi.AppendResponse {
	f.Helper()
	res, err := spi.Append(f.ctx, f.store, req)
	if err != nil {
		f.Fatal(err)
	}
	return res
}

// park appends a park at a head, under a token, and returns its sequence.
func (f *fixture) park(id spi.ExecutionID, head, token int64) int64 {
	f.Helper()
	return f.mustAppend(spi.AppendRequest{
		Execution: id, ExpectedHead: head, Fence: token,
		Events: []spi.Event{event(spi.KindExecutionSuspended)},
	}).FirstSeq
}

func (f *fixture) head(id spi.ExecutionID) spi.HeadResponse {
	f.Helper()
	res, err := spi.Head(f.ctx, f.store, spi.HeadRequest{Execution: id})
	if err != nil {
		f.Fatal(err)
	}
	return res
}

// read returns all events of a log.
func (f *fixture) read(id spi.ExecutionID) []spi.Event {
	f.Helper()
	var all []spi.Event
	for after := int64(0); ; {
		res, err := spi.Read(f.ctx, f.store, spi.ReadRequest{Execution: id, After: after, Limit: spi.MaxLimit})
		if err != nil {
			f.Fatal(err)
		}
		all = append(all, res.Events...)
		if !res.More {
			return all
		}
		after = f.goesOn(after, res.Events)
	}
}

// goesOn returns the last sequence of a part of a log that has more after it. A
// part that does not move on ends the test, which it would keep from ending.
func (f *fixture) goesOn(after int64, part []spi.Event) int64 {
	f.Helper()
	if len(part) == 0 || part[len(part)-1].Sequence <= after {
		f.Fatalf("a part of a log after %d, with more to come, holds %+v", after, part)
	}
	return part[len(part)-1].Sequence
}

// first returns the first event of a log, which has to have one.
func (f *fixture) first(id spi.ExecutionID) spi.Event {
	f.Helper()
	log := f.read(id)
	if len(log) == 0 {
		f.Fatalf("the log of %q is empty", id)
	}
	return log[0]
}

// wantLog checks that a log holds these sequences.
func (f *fixture) wantLog(id spi.ExecutionID, sequences ...int64) {
	f.Helper()
	var got []int64
	for _, e := range f.read(id) {
		got = append(got, e.Sequence)
	}
	if !slices.Equal(got, sequences) {
		f.Errorf("the log of %q holds the sequences %v, not %v", id, got, sequences)
	}
}

// upTo returns 1, 2, … n.
func upTo(n int64) []int64 {
	all := make([]int64, n)
	for i := range all {
		all[i] = int64(i) + 1
	}
	return all
}

// list returns all executions with a prefix, in pages of a size.
func (f *fixture) list(prefix string, size int) []string {
	f.Helper()
	var all []string
	f.pages(prefix, "", size, func(page []string) { all = append(all, page...) })
	return all
}

// pages calls do with each page of executions, and checks the cursors.
func (f *fixture) pages(prefix, after string, size int, do func(page []string)) {
	f.Helper()
	for {
		page, next := f.page(prefix, after, size)
		do(page)
		if next == "" {
			return
		}
		after = next
	}
}

// page returns one page of executions, and checks its cursor.
func (f *fixture) page(prefix, after string, size int) (page []string, next string) {
	f.Helper()
	res, err := spi.ListExecutions(f.ctx, f.store, spi.ListExecutionsRequest{Prefix: prefix, After: after, Limit: size})
	if err != nil {
		f.Fatal(err)
	}
	for _, id := range res.Executions {
		page = append(page, string(id))
	}
	f.checkPage(page, after, res.Next, size)
	return page, res.Next
}

// checkPage checks what holds for every page of names. A page that does not move on
// ends the test, which it would keep from ending.
func (f *fixture) checkPage(page []string, after, next string, size int) {
	f.Helper()
	switch {
	case len(page) > size:
		f.Fatalf("a page of at most %d holds %d", size, len(page))
	case next != "" && (len(page) == 0 || next != page[len(page)-1]):
		f.Fatalf("the next cursor %q is not the last name of the page %q", next, page)
	case next != "" && next <= after:
		f.Fatalf("the next cursor %q is not after the cursor %.40q", next, after)
	}
}

// acquire takes the fence of an execution.
func (f *fixture) acquire(id spi.ExecutionID) int64 {
	f.Helper()
	res, err := spi.AcquireFence(f.ctx, f.store, spi.AcquireFenceRequest{Execution: id})
	if err != nil {
		f.Fatal(err)
	}
	return res.Token
}

// acquireIf tries to take the fence of a parked execution.
func (f *fixture) acquireIf(id spi.ExecutionID, fence, parkSeq int64) spi.AcquireFenceIfResponse {
	f.Helper()
	res, err := spi.AcquireFenceIf(f.ctx, f.store, spi.AcquireFenceIfRequest{Execution: id, Fence: fence, ParkSeq: parkSeq})
	if err != nil {
		f.Fatal(err)
	}
	return res
}

// wantAcquired checks that a conditional acquire won with a token.
func (f *fixture) wantAcquired(res spi.AcquireFenceIfResponse, token int64) {
	f.Helper()
	if !res.Acquired || res.Token != token {
		f.Errorf("the acquire answers %+v, not acquired with token %d", res, token)
	}
}

// wantStale checks that a conditional acquire lost and tells the current token.
func (f *fixture) wantStale(res spi.AcquireFenceIfResponse, current int64) {
	f.Helper()
	if res.Acquired || res.Token != current {
		f.Errorf("the acquire answers %+v, not stale with token %d", res, current)
	}
}

// delete removes an execution in its incarnation.
func (f *fixture) delete(id spi.ExecutionID) spi.DeleteExecutionResponse {
	f.Helper()
	res, err := spi.DeleteExecution(f.ctx, f.store, spi.DeleteExecutionRequest{Execution: id, Incarnation: f.head(id).Incarnation})
	if err != nil {
		f.Fatal(err)
	}
	return res
}

// wantError checks that err is an E and returns it.
func wantError[E error](f *fixture, err error) E {
	f.Helper()
	e, ok := errors.AsType[E](err)
	if !ok {
		f.Fatalf("the error is %T (%v), not a %T", errors.Unwrap(err), err, e)
	}
	return e
}

// equal checks that two values are the same.
func equal[V comparable](f *fixture, what string, got, want V) {
	f.Helper()
	if got != want {
		f.Errorf("%s is %v, not %v", what, got, want)
	}
}

// together calls do n times at once, and returns when all are done.
func together(n int, do func(i int)) {
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	ready.Add(n)
	for i := range n {
		done.Go(func() {
			ready.Done()
			<-start
			do(i)
		})
	}
	ready.Wait()
	close(start)
	done.Wait()
}

// kindsOf returns the kernel kinds of a class.
func kindsOf(class spi.Class) []string {
	var kinds []string
	for _, k := range spi.KernelKinds() {
		if k.Class == class {
			kinds = append(kinds, k.Kind)
		}
	}
	return kinds
}

// edges are numbers that get lost where a store takes a detour over 32 bits or
// floating point.
var edges = []int64{1 << 31, 1<<53 + 1, math.MaxInt64 - 1, math.MaxInt64}

// id returns a numbered execution id.
func id(format string, n int) spi.ExecutionID { return spi.ExecutionID(fmt.Sprintf(format, n)) }
