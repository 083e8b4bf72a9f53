package conformance

import (
	"errors"

	"github.com/loomgate/loomgate/spi"
)

// longestSchedule is how many steps two resumers take between them: enough for
// each order of one that runs its body and one that comes too late.
const longestSchedule = 7

var interleavings = topic{"interleavings", []testCase{
	{
		"in every interleaving of two resumers with crashes one resumes at most, and is never fenced out",
		spi.CapAcquireFenceIf,
		func(f *fixture) {
			ran := 0
			for schedule := range schedules(longestSchedule) {
				resumed, fencedOut := f.run(schedule, f.acquireParked)
				if resumed > 1 || fencedOut {
					f.Errorf("schedule %q: resumed %d times, a running body fenced out: %v", schedule, resumed, fencedOut)
				}
				ran++
			}
			equal(f, "the number of schedules", ran, 255)
		},
	},
	{
		"in some interleaving an unconditional acquire fences a running body out (negative control)",
		spi.CapAcquireFence,
		func(f *fixture) {
			for schedule := range schedules(longestSchedule) {
				if _, fencedOut := f.run(schedule, f.acquireAnyway); fencedOut {
					return
				}
			}
			f.Error("in none of the schedules: they prove nothing")
		},
	},
}}

// schedules yields every word over A and B of up to n letters. A letter is a step
// of that resumer; one that has no further letter has crashed.
func schedules(n int) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		words := []string{""}
		for len(words) > 0 {
			word := words[0]
			words = words[1:]
			if !yield(word) {
				return
			}
			if len(word) < n {
				words = append(words, word+"A", word+"B")
			}
		}
	}
}

// A resumer reads a park, acquires its fence, appends the resume and runs its
// body, one step at a time.
type resumer struct {
	step  func() // nil when it has ended
	token int64
}

// run lets two resumers go for one park in a schedule's order, and tells how many
// resumes the log holds and whether a body that had been resumed was fenced out.
func (f *fixture) run(schedule string, acquire func(spi.ExecutionID, *resumer) (won bool)) (resumed int, fencedOut bool) {
	f.Helper()
	e := spi.ExecutionID("schedule-" + schedule)
	f.park(e, 0, 0)
	var a, b resumer
	for _, r := range []*resumer{&a, &b} {
		body := func() {
			_, err := spi.Append(f.ctx, f.store, spi.AppendRequest{Execution: e, ExpectedHead: spi.AnyHead, Fence: r.token, Events: []spi.Event{event(spi.KindStepCompleted)}})
			fencedOut = fencedOut || f.isStale(err)
			r.step = nil
		}
		resume := func() {
			_, err := spi.Append(f.ctx, f.store, spi.AppendRequest{Execution: e, ExpectedHead: spi.AnyHead, Fence: r.token, Events: []spi.Event{event(spi.KindExecutionResumed)}})
			if f.isStale(err) {
				r.step = nil // a clean refusal: no body has run
				return
			}
			r.step = body
		}
		var look func()
		take := func() {
			if acquire(e, r) {
				r.step = resume
			} else {
				r.step = look
			}
		}
		look = func() {
			log := f.read(e)
			if spi.AnyAnswering(log[1:]) {
				r.step = nil // answered: nothing is left to resume
				return
			}
			r.step = take
		}
		r.step = look
	}
	for _, letter := range schedule {
		r := &a
		if letter == 'B' {
			r = &b
		}
		if r.step != nil {
			r.step()
		}
	}
	for _, e := range f.read(e) {
		if e.Kind == spi.KindExecutionResumed {
			resumed++
		}
	}
	return resumed, fencedOut
}

// acquireParked takes the fence only of a park that is still open, and keeps the
// token that it is told otherwise.
func (f *fixture) acquireParked(e spi.ExecutionID, r *resumer) bool {
	res := f.acquireIf(e, r.token, 1)
	r.token = res.Token
	return res.Acquired
}

// acquireAnyway takes the fence whatever has become of the park.
func (f *fixture) acquireAnyway(e spi.ExecutionID, r *resumer) bool {
	r.token = f.acquire(e)
	return true
}

// isStale reports whether an append was refused for its token. No other error is
// expected here.
func (f *fixture) isStale(err error) bool {
	f.Helper()
	if err == nil {
		return false
	}
	if _, stale := errors.AsType[*spi.StaleFenceError](err); !stale {
		f.Fatal(err)
	}
	return true
}
