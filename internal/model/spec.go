package model

import (
	"errors"
	"hash/maphash"
	"slices"

	"github.com/loomgate/loomgate/spi"
)

// A log is an execution as the specification sees it. It is never changed: a step
// makes another.
type log struct {
	entries     []entry
	floor       int64
	fence       int64
	incarnation int64
}

// An entry is an event, by what the checks depend on.
type entry struct {
	id       spi.EventID
	sequence int64
	fence    int64
	park     bool
	answers  bool
}

func newEntry(e spi.Event) entry {
	return entry{e.ID, e.Sequence, e.Fence, e.Kind == spi.KindExecutionSuspended, e.Answering()}
}

func (l log) head() int64 {
	if len(l.entries) == 0 {
		return 0
	}
	return l.entries[len(l.entries)-1].sequence
}

func (l log) deleted() bool { return l.incarnation > 1 && len(l.entries) == 0 }

func (l log) equal(other log) bool {
	return l.floor == other.floor && l.fence == other.fence && l.incarnation == other.incarnation && slices.Equal(l.entries, other.entries)
}

var hashSeed = maphash.MakeSeed()

func (l log) hash() uint64 {
	h := maphash.Comparable(hashSeed, [4]int64{l.floor, l.fence, l.incarnation, l.head()})
	for i := range l.entries {
		h = h*31 + maphash.Comparable(hashSeed, l.entries[i])
	}
	return h
}

// append returns the log with events at its end.
func (l log) append(events []spi.Event, fence int64) log {
	next := slices.Clip(l.entries)
	for i, e := range events {
		e.Sequence, e.Fence = l.head()+int64(i)+1, fence
		next = append(next, newEntry(e))
	}
	l.entries = next
	return l
}

// find returns the sequence at which the events stand in one piece from since on, or
// 0, and whether any of them is there.
func (l log) find(events []spi.Event, since int64) (first int64, some bool) {
	for i, entry := range l.entries {
		if entry.sequence < since {
			continue
		}
		if slices.ContainsFunc(events, func(e spi.Event) bool { return e.ID == entry.id }) {
			some = true
		}
		if first == 0 && entry.id == events[0].ID && len(l.entries)-i >= len(events) {
			first = entry.sequence
			for k := range events {
				if at := l.entries[i+k]; at.id != events[k].ID || at.sequence != first+int64(k) {
					first = 0
				}
			}
		}
	}
	return first, some
}

// An input is a call to one execution; an output is its answer.
type (
	input  any // a request of spi, or a copied
	output struct {
		response any
		err      error
		retried  bool // by a layer that takes what it finds for its own lost try's
	}
)

// A copied is a copy to the execution, with what a copy of that source would be.
type copied struct {
	spi.CopyPrefixRequest
	source []spi.Event // the first N events of the source; fewer if it never had N
}

// outcome says what is known about the effect of a call.
type outcome int

const (
	answered    outcome = iota // the answer says it
	unknown                    // the effect may come at any time, or never
	ineffective                // nothing happened
)

// outcomeOf tells an answer about the log from an accident on the way.
func outcomeOf(err error) outcome {
	if _, ok := errors.AsType[*spi.AmbiguousError](err); ok {
		return unknown
	}
	if _, ok := errors.AsType[*spi.UnavailableError](err); ok {
		return ineffective
	}
	if err == nil || isTyped(err) {
		return answered
	}
	return unknown
}

// isTyped reports whether an error is an answer that the specification can give.
func isTyped(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		switch err.(type) { //nolint:errorlint // each layer is looked at
		case *spi.ConflictError, *spi.StaleFenceError, *spi.IncarnationError, *spi.TruncatedError, *spi.NotFoundError, *spi.RangeError:
			return true
		}
	}
	return false
}

// step returns the log after a call, and whether its answer can be what the call got
// at that moment.
func (l log) step(in input, out output) (bool, log) {
	switch outcomeOf(out.err) {
	case ineffective:
		return true, l
	case unknown:
		next, _, _ := l.apply(in)
		return true, next
	}
	next, want, err := l.apply(in)
	if err != nil || out.err != nil {
		_, isCopy := in.(copied)
		return sameError(err, out.err, isCopy), l
	}
	return fits(want, out), next
}

// apply is the specification: what a call does to a log, and what it answers.
func (l log) apply(in input) (next log, response any, err error) {
	switch req := in.(type) {
	case spi.AppendRequest:
		return l.applyAppend(req, func() bool {
			return req.Fence < l.fence && (req.Fence > 0 || spi.AnyAnswering(req.Events))
		})
	case spi.AppendIfUnchangedRequest:
		plain := spi.AppendRequest{
			Execution: req.Execution, ExpectedHead: req.Head, Incarnation: req.Incarnation, SinceSeq: req.SinceSeq, Events: req.Events,
		}
		return l.applyAppend(plain, func() bool { return req.Fence != l.fence })
	case copied:
		return l.applyCopy(req)
	case spi.AcquireFenceRequest:
		if err := l.means(req.Incarnation); err != nil {
			return l, nil, err
		}
		l.fence++
		return l, spi.AcquireFenceResponse{Token: l.fence}, nil
	case spi.AcquireFenceIfRequest:
		if err := l.means(req.Incarnation); err != nil {
			return l, nil, err
		}
		if req.Fence != l.fence || !l.parkedAt(req.ParkSeq) {
			return l, spi.AcquireFenceIfResponse{Token: l.fence}, nil
		}
		l.fence++
		return l, spi.AcquireFenceIfResponse{Acquired: true, Token: l.fence}, nil
	case spi.HeadRequest:
		return l, spi.HeadResponse{Head: l.head(), Fence: l.fence, Incarnation: l.incarnation, Floor: l.floor}, nil
	case spi.ReadRequest:
		return l, l, nil
	case spi.DeleteExecutionRequest:
		return l.applyDelete(req)
	case spi.TruncatePrefixKeepingRequest:
		return l.applyTruncate(req)
	}
	panic("the specification does not know that call")
}

func (l log) means(incarnation int64) error {
	if incarnation != 0 && incarnation != l.incarnation {
		return &spi.IncarnationError{Current: l.incarnation}
	}
	return nil
}

// applyAppend checks in the order of [spi.EventBackend].
func (l log) applyAppend(req spi.AppendRequest, stale func() bool) (log, any, error) {
	if req.Incarnation == 0 && l.deleted() {
		return l, nil, &spi.IncarnationError{Current: l.incarnation}
	}
	if err := l.means(req.Incarnation); err != nil {
		return l, nil, err
	}
	since := req.SinceSeq
	switch {
	case since > 0:
	case req.ExpectedHead == spi.AnyHead:
		since = l.floor
	default:
		since = min(req.ExpectedHead, l.head()) + 1
	}
	first, some := l.find(req.Events, since)
	expected := req.ExpectedHead == l.head() || req.ExpectedHead == spi.AnyHead && since-1 <= l.head()
	switch {
	case first > 0:
		return l, spi.AppendResponse{FirstSeq: first, Head: l.head(), Incarnation: l.incarnation, Floor: l.floor, Duplicate: true}, nil
	case since < l.floor:
		return l, nil, &spi.TruncatedError{Floor: l.floor}
	case some:
		return l, nil, &spi.ConflictError{Head: l.head(), Reused: true}
	case stale():
		return l, nil, &spi.StaleFenceError{Current: l.fence}
	case !expected:
		return l, nil, &spi.ConflictError{Head: l.head()}
	}
	next := l.append(req.Events, req.Fence)
	return next, spi.AppendResponse{FirstSeq: l.head() + 1, Head: next.head(), Incarnation: l.incarnation, Floor: l.floor}, nil
}

// applyCopy knows what the source holds (12): the target has that, or nothing.
func (l log) applyCopy(req copied) (log, any, error) {
	if int64(len(req.source)) < req.N {
		return l, nil, &spi.RangeError{Head: int64(len(req.source))}
	}
	res := spi.CopyPrefixResponse{Head: req.N, Incarnation: l.incarnation}
	if l.head() == 0 {
		return l.append(req.source, 0), res, nil
	}
	if first, _ := l.find(req.source, 1); first == 1 {
		res.Duplicate = true
		return l, res, nil
	}
	return l, nil, &spi.ConflictError{Head: l.head()}
}

// parkedAt reports whether there is an unanswered park (8).
func (l log) parkedAt(seq int64) bool {
	parked := false
	for _, e := range l.entries {
		if e.sequence == seq && e.park {
			parked = true
		}
		if e.sequence > seq && e.answers {
			return false
		}
	}
	return parked && seq >= l.floor
}

func (l log) applyDelete(req spi.DeleteExecutionRequest) (log, any, error) {
	if l.deleted() && req.Incarnation == l.incarnation-1 {
		return l, spi.DeleteExecutionResponse{Incarnation: l.incarnation}, nil
	}
	if err := l.means(req.Incarnation); err != nil {
		return l, nil, err
	}
	if l.head() == 0 {
		return l, spi.DeleteExecutionResponse{Incarnation: l.incarnation}, nil
	}
	next := log{floor: 1, incarnation: l.incarnation + 1, fence: l.fence}
	if l.fence > 0 {
		next.fence++
	}
	return next, spi.DeleteExecutionResponse{Existed: true, Incarnation: next.incarnation}, nil
}

func (l log) applyTruncate(req spi.TruncatePrefixKeepingRequest) (log, any, error) {
	if err := l.means(req.Incarnation); err != nil {
		return l, nil, err
	}
	if l.head() == 0 {
		return l, nil, &spi.NotFoundError{What: "execution"}
	}
	before := min(req.Before, l.head())
	l.entries = slices.DeleteFunc(slices.Clone(l.entries), func(e entry) bool {
		return e.sequence < before && !slices.Contains(req.Keep, e.sequence)
	})
	l.floor = max(l.floor, before)
	return l, spi.TruncatePrefixKeepingResponse{Floor: l.floor}, nil
}

// fits reports whether an answer is the specification's. What a call answers that was
// sent again on its way, because its first answer was lost, tells less: that an append
// is a duplicate of itself, that there was nothing more to delete or to drop.
func fits(want any, out output) bool {
	switch got := out.response.(type) {
	case spi.AppendResponse:
		return fitsAppend(want.(spi.AppendResponse), got, out.retried)
	case spi.AppendIfUnchangedResponse:
		return fitsAppend(want.(spi.AppendResponse), got.AppendResponse, out.retried)
	case spi.CopyPrefixResponse:
		want := want.(spi.CopyPrefixResponse)
		return got.Incarnation == want.Incarnation && got.Head >= want.Head && (got.Duplicate || !want.Duplicate || out.retried)
	case spi.ReadResponse:
		l := want.(log)
		return got.Incarnation == l.incarnation && got.Floor == l.floor && slices.EqualFunc(got.Events, l.entries, func(e spi.Event, at entry) bool {
			return newEntry(e) == at
		})
	case spi.DeleteExecutionResponse:
		want := want.(spi.DeleteExecutionResponse)
		return got.Incarnation == want.Incarnation && (want.Existed || !got.Existed)
	case spi.TruncatePrefixKeepingResponse:
		return got.Floor >= want.(spi.TruncatePrefixKeepingResponse).Floor
	}
	return want == out.response
}

// fitsAppend reports whether an append's answer fits. Only what was not there before may be
// called new (4). An append that was sent again on its way tells the head as it was then.
func fitsAppend(want, got spi.AppendResponse, retried bool) bool {
	return got.FirstSeq == want.FirstSeq && got.Incarnation == want.Incarnation && got.Head >= want.Head && (got.Duplicate || !want.Duplicate || retried)
}

// sameError reports whether two errors say the same of the log, whatever wraps them. What
// copies may say of a target in their way that it holds a part of the source.
func sameError(want, got error, isCopy bool) bool {
	return same(want, got, func(a, b *spi.ConflictError) bool { return a.Head == b.Head && (a.Reused == b.Reused || isCopy) }) ||
		same(want, got, func(a, b *spi.StaleFenceError) bool { return a.Current == b.Current }) ||
		same(want, got, func(a, b *spi.IncarnationError) bool { return a.Current == b.Current }) ||
		same(want, got, func(a, b *spi.TruncatedError) bool { return a.Floor == b.Floor }) ||
		same(want, got, func(*spi.NotFoundError, *spi.NotFoundError) bool { return true }) ||
		same(want, got, func(*spi.RangeError, *spi.RangeError) bool { return true })
}

func same[E error](want, got error, equal func(a, b E) bool) bool {
	a, isA := errors.AsType[E](want)
	b, isB := errors.AsType[E](got)
	return isA && isB && equal(a, b)
}
