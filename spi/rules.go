package spi

// A LogState is the state of a log beside its events. Its methods are the rules of
// [EventBackend] for backends that decide in Go, while nobody else can change the log:
// what is refused, and in which order.
type LogState struct {
	Execution   ExecutionID
	Head        int64
	Fence       int64
	Incarnation int64 // from 1
	Floor       int64 // from 1
	KeyID       KeyID // the data key; zero if none
	Shredded    bool  // the data key was destroyed
}

// A Found says where the events of an append are in a log already.
type Found struct {
	First int64 // the sequence of the first of them
	Whole bool  // they are there in one piece
	Some  bool  // at least one is there
}

// FindEvents returns where events are, at or after a sequence. sequenceOf returns where
// an event of the log is, and 0 for one that is not in it.
func FindEvents(events []Event, since int64, sequenceOf func(EventID) int64) Found {
	found := Found{First: sequenceOf(events[0].ID), Whole: true}
	for i := range events {
		seq := sequenceOf(events[i].ID)
		there := seq > 0 && seq >= since
		found.Some = found.Some || there
		found.Whole = found.Whole && there && seq == found.First+int64(i)
	}
	return found
}

// CheckIncarnation returns an [IncarnationError] unless the log is in the incarnation
// that a call states; 0 states none.
func (l LogState) CheckIncarnation(stated int64) error {
	if stated != 0 && stated != l.Incarnation {
		return &IncarnationError{l.Execution, l.Incarnation}
	}
	return nil
}

// CheckWriter is CheckIncarnation for a call that brings events: what was deleted is not
// written anew by somebody who may not know of it.
func (l LogState) CheckWriter(stated int64) error {
	if stated == 0 && l.Incarnation > 1 && l.Head == 0 {
		return &IncarnationError{l.Execution, l.Incarnation}
	}
	return l.CheckIncarnation(stated)
}

// Append returns what an append comes to. Unless the response says Duplicate, its events
// go into the log now, from FirstSeq on. find looks for them from a sequence on; it is
// not called where nothing can be found.
func (l LogState) Append(req AppendRequest, find func(since int64) (Found, error)) (AppendResponse, error) {
	return l.append(&req, find, func() bool { return req.Fence < l.Fence && (req.Fence > 0 || AnyAnswering(req.Events)) })
}

// AppendIfUnchanged is Append for that method. The events carry fence 0.
func (l LogState) AppendIfUnchanged(req AppendIfUnchangedRequest, find func(since int64) (Found, error)) (AppendResponse, error) {
	plain := AppendRequest{
		ExpectedHead: req.Head,
		Incarnation:  req.Incarnation,
		SinceSeq:     req.SinceSeq,
		KeyID:        req.KeyID,
		Events:       req.Events,
	}
	return l.append(&plain, find, func() bool { return req.Fence != l.Fence })
}

func (l LogState) append(req *AppendRequest, find func(since int64) (Found, error), stale func() bool) (res AppendResponse, err error) {
	if err := l.CheckWriter(req.Incarnation); err != nil {
		return res, err
	}
	since := l.searchFrom(req)
	var found Found
	if since <= l.Head {
		if found, err = find(since); err != nil {
			return res, err
		}
	}
	if found.Whole {
		return AppendResponse{found.First, l.Head, l.Incarnation, l.Floor, true}, nil
	}
	switch {
	case since < l.Floor:
		return res, &TruncatedError{l.Execution, l.Floor}
	case found.Some:
		return res, &ConflictError{l.Execution, l.Head, true}
	case l.Shredded:
		return res, &ShreddedError{KeyOwner(l.Execution)}
	case req.KeyID != l.KeyID:
		return res, &KeyMismatchError{l.Execution}
	case stale():
		return res, &StaleFenceError{l.Execution, l.Fence}
	case req.ExpectedHead != l.Head && (req.ExpectedHead != AnyHead || since-1 > l.Head):
		return res, &ConflictError{Execution: l.Execution, Head: l.Head}
	}
	return AppendResponse{l.Head + 1, l.Head + int64(len(req.Events)), l.Incarnation, l.Floor, false}, nil
}

// searchFrom returns where a duplicate of the append can begin.
func (l LogState) searchFrom(req *AppendRequest) int64 {
	switch {
	case req.SinceSeq > 0:
		return req.SinceSeq
	case req.ExpectedHead == AnyHead:
		return max(l.Floor, l.Head-DuplicateWindow+1)
	}
	return min(req.ExpectedHead, l.Head) + 1 // past the head there is nothing to find
}

// CheckPrefix returns an error unless the first n events can be copied. Whether they
// exceed [MaxAppendBytes] is left to the backend ([TooLargeError]).
func (l LogState) CheckPrefix(n int64) error {
	switch {
	case n > l.Head:
		return &RangeError{l.Execution, l.Head}
	case l.Floor > 1:
		return &TruncatedError{l.Execution, l.Floor}
	case n > MaxEvents:
		return &TooLargeError{l.Execution}
	}
	return nil
}

// CheckCopy returns an error unless a log that does not hold the events already can take
// those of another.
func (l LogState) CheckCopy(from LogState) error {
	switch {
	case from.Shredded:
		return &ShreddedError{KeyOwner(from.Execution)}
	case l.Shredded:
		return &ShreddedError{KeyOwner(l.Execution)}
	case from.KeyID != KeyID{} || l.KeyID != KeyID{}:
		return &KeyMismatchError{l.Execution}
	case l.Head > 0:
		return &ConflictError{Execution: l.Execution, Head: l.Head}
	}
	return nil
}
