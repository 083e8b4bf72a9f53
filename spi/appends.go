package spi

import (
	"context"
	"errors"
	"fmt"
)

// AnyHead as an append's ExpectedHead appends wherever the log ends.
const AnyHead int64 = -1

// DuplicateWindow is how many events an append to [AnyHead] without SinceSeq looks
// back to find out that it has happened already.
const DuplicateWindow = 10_000

// Requests and responses of the three methods that append. A Route is set by a layer
// that routes, an Incarnation of 0 states none.
type (
	// An AppendRequest says what to append, and on what conditions.
	AppendRequest struct {
		Route     Route
		Execution ExecutionID

		// ExpectedHead is the sequence after which the events go: 0 for a first
		// append, or AnyHead.
		ExpectedHead int64

		// Fence is the token that the writer holds; 0 if none.
		Fence int64

		// Incarnation is the one that the writer means; 0 for any that has events.
		// The first append after a deletion has to state it.
		Incarnation int64

		// SinceSeq is the lowest sequence at which the events can be, if an
		// earlier try has stored them: one past the head that the first try
		// expected. A writer that goes on at a newer head keeps it. It is at most
		// one past the head; 0 means one past ExpectedHead, or the last
		// DuplicateWindow events for AnyHead.
		SinceSeq int64

		// KeyID is the data key that the payloads are encrypted under; zero if
		// none. It must be the execution's own, if it has one.
		KeyID KeyID

		// Events are 1 to MaxEvents events, at most MaxAppendBytes in all.
		Events []Event

		contentValid bool
	}

	// An AppendResponse says where the events are.
	AppendResponse struct {
		FirstSeq    int64 // the sequence of the request's first event
		Head        int64 // the log's head, at least that of the request's last event
		Incarnation int64
		Floor       int64
		Duplicate   bool // an earlier try stored them
	}

	// An AppendBatchRequest holds 1 to MaxBatch appends, to one execution each.
	AppendBatchRequest struct {
		Appends []AppendRequest

		contentValid bool
	}

	// An AppendBatchResponse holds one result an append, in the request's order.
	AppendBatchResponse struct{ Results []AppendResult }

	// An AppendResult is what one append of a batch came to.
	AppendResult struct {
		AppendResponse
		Err error
	}

	// An AppendIfUnchangedRequest says what to append and what must still hold.
	AppendIfUnchangedRequest struct {
		Route       Route
		Execution   ExecutionID
		Fence       int64
		Head        int64
		Incarnation int64
		SinceSeq    int64 // as of an AppendRequest
		KeyID       KeyID
		Events      []Event

		contentValid bool
	}

	// An AppendIfUnchangedResponse is that of an append.
	AppendIfUnchangedResponse struct{ AppendResponse }
)

// Validate implements the rules of [AppendRequest].
func (r AppendRequest) Validate() error {
	_, err := r.validate()
	return err
}

// validate is on the path of every append, through every layer.
func (r *AppendRequest) validate() (size int, err error) {
	if r.ExpectedHead < AnyHead {
		return 0, &InvalidArgumentError{"expected head", fmt.Sprintf("is %d, below any", r.ExpectedHead)}
	}
	if err := validTarget(r.Route, r.Execution, r.Fence, r.Incarnation, r.SinceSeq, r.ExpectedHead); err != nil {
		return 0, err
	}
	return validEvents(r.Events, r.contentValid)
}

// validTarget checks what an append brings beside its events.
func validTarget(route Route, id ExecutionID, fence, incarnation, sinceSeq, head int64) error {
	if err := route.validate(); err != nil {
		return err
	}
	if err := id.Validate(); err != nil {
		return err
	}
	if fence < 0 || incarnation < 0 {
		return first(notNegative("fence", fence), notNegative("incarnation", incarnation))
	}
	return validSince(sinceSeq, head)
}

func validSince(sinceSeq, head int64) error {
	if sinceSeq < 0 || head != AnyHead && sinceSeq-1 > head {
		return &InvalidArgumentError{"since sequence", fmt.Sprintf("is %d, not 0 to one past the expected head %d", sinceSeq, head)}
	}
	return nil
}

// Validate implements the rules of [AppendBatchRequest].
func (r AppendBatchRequest) Validate() error {
	if len(r.Appends) == 0 || len(r.Appends) > MaxBatch {
		return &InvalidArgumentError{"appends", fmt.Sprintf("has %d, not 1 to %d", len(r.Appends), MaxBatch)}
	}
	size, seen := 0, make(map[ExecutionID]int, len(r.Appends))
	for i := range r.Appends {
		item := r.Item(i)
		n, err := item.validate()
		if err != nil {
			if invalid, ok := errors.AsType[*InvalidArgumentError](err); ok {
				err = &InvalidArgumentError{fmt.Sprintf("appends[%d].%s", i, invalid.Field), invalid.Rule}
			}
			return err
		}
		if j, ok := seen[item.Execution]; ok {
			return &InvalidArgumentError{fmt.Sprintf("appends[%d].execution id", i), fmt.Sprintf("repeats appends[%d].execution id", j)}
		}
		seen[item.Execution] = i
		size += n
	}
	if size > MaxAppendBytes {
		return &InvalidArgumentError{"appends", fmt.Sprintf("has %d bytes, more than %d", size, MaxAppendBytes)}
	}
	return nil
}

// Item returns the i-th append as a request of its own. A layer that takes a batch
// apart uses it: what has been validated is not validated again.
func (r AppendBatchRequest) Item(i int) AppendRequest {
	item := r.Appends[i]
	item.contentValid = item.contentValid || r.contentValid
	return item
}

// Validate implements the rules of [AppendIfUnchangedRequest].
func (r AppendIfUnchangedRequest) Validate() error {
	if err := notNegative("head", r.Head); err != nil {
		return err
	}
	if err := validTarget(r.Route, r.Execution, r.Fence, r.Incarnation, r.SinceSeq, r.Head); err != nil {
		return err
	}
	_, err := validEvents(r.Events, r.contentValid)
	return err
}

// What holds events is validated with their content once, at the outermost call: a
// layer below may have made payloads larger and unreadable, which is its right.
// These three hand a request on as valid.

func validAppend(m methods, ctx context.Context, req AppendRequest) (AppendResponse, error) {
	req.contentValid = true
	return m.Append(ctx, req)
}

func validAppendBatch(m methods, ctx context.Context, req AppendBatchRequest) (AppendBatchResponse, error) {
	req.contentValid = true
	return m.AppendBatch(ctx, req)
}

func validAppendIfUnchanged(m methods, ctx context.Context, req AppendIfUnchangedRequest) (AppendIfUnchangedResponse, error) {
	req.contentValid = true
	return m.AppendIfUnchanged(ctx, req)
}

// Append adds events to the end of a log; see [EventBackend.Append].
func Append(ctx context.Context, s *Store, req AppendRequest) (AppendResponse, error) {
	return call(ctx, s, CapEvents, "Append", req, validAppend)
}

// AppendBatch does many appends in one transaction; see [BatchAppender.AppendBatch].
func AppendBatch(ctx context.Context, s *Store, req AppendBatchRequest) (AppendBatchResponse, error) {
	return call(ctx, s, CapAppendBatch, "AppendBatch", req, validAppendBatch)
}

// AppendIfUnchanged appends if token and head have not moved; see
// [UnchangedAppender.AppendIfUnchanged].
func AppendIfUnchanged(ctx context.Context, s *Store, req AppendIfUnchangedRequest) (AppendIfUnchangedResponse, error) {
	return call(ctx, s, CapAppendIfUnchanged, "AppendIfUnchanged", req, validAppendIfUnchanged)
}
