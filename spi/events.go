package spi

import (
	"context"
	"fmt"
	"time"
)

// EventBackend is what every store can do with logs.
//
// An execution comes into being with its first event and needs no creation. Its
// life in one incarnation goes from sequence 1 to its head, without gaps as
// written; a deletion ends the incarnation, and the next first append begins
// another.
type EventBackend interface {
	// Append adds events to the end of a log, all or none.
	//
	// The checks come in this order, and the first that fails answers:
	//
	//  1. the route ([MisroutedError], [SlotMovingError]);
	//  2. the incarnation ([IncarnationError]);
	//  3. duplicates: if the events, by their ids, are in the log in one piece at
	//     or after SinceSeq, the append has happened and is a success marked
	//     Duplicate, whatever the fence or the data key is by now;
	//  4. SinceSeq below the floor ([TruncatedError]): a duplicate there, or the
	//     beginning of one, can no longer be recognised; otherwise, if some of the
	//     events are in the log but not in one piece, [ConflictError];
	//  5. the data key ([ShreddedError], [KeyMismatchError]);
	//  6. the fence ([StaleFenceError]): a token below the current one; and for
	//     events that answer a park ([IsAnswering]) also no token where there is a
	//     current one;
	//  7. the head ([ConflictError]).
	//
	// Any writer calls it; one that holds a fence presents its token. Whoever
	// acquires a fence reads the head again before appending: until its first
	// append, a plain event under an older head may still land.
	//
	// A lost answer is [AmbiguousError]. The same request again, with the same
	// SinceSeq, finds out. An append to [AnyHead] is safe to repeat only with
	// SinceSeq, or within the last [DuplicateWindow] events.
	Append(context.Context, AppendRequest) (AppendResponse, error)

	// Read returns a part of a log in one direction, of one snapshot. An execution
	// that is not there has no events, which is no error. Anyone may call it.
	//
	// It returns at least one event if there is one, whatever MaxBytes says. Below
	// the floor, events may be missing.
	Read(context.Context, ReadRequest) (ReadResponse, error)

	// Head returns where a log ends, its current token, incarnation and floor. Of
	// an execution that is not there the head is 0, and the incarnation is what a
	// first append would have to state. Anyone may call it.
	Head(context.Context, HeadRequest) (HeadResponse, error)

	// ListExecutions returns a page of the executions that have events, in code
	// point order ([CompareIDs]), strictly after the cursor. An id that has events
	// throughout a listing of several pages is on exactly one of them.
	//
	// The next cursor is the page's last id, or "" where the listing has ended.
	// Anyone may call it. Over several shards, [CoverageError] says that no
	// moment was found in which they covered all slots.
	ListExecutions(context.Context, ListExecutionsRequest) (ListExecutionsResponse, error)
}

// BatchAppender is optional.
type BatchAppender interface {
	// AppendBatch does many appends, each to an execution of its own, in one
	// transaction, with one result each in the order of the request. A result's
	// error is what Append would have returned, without an [OpError].
	//
	// An append that is malformed, or an execution that is there twice, refuses
	// the whole call with an [InvalidArgumentError]. A lost commit makes every
	// result an [AmbiguousError]. A layer that gathers appends of several callers
	// calls it.
	AppendBatch(context.Context, AppendBatchRequest) (AppendBatchResponse, error)
}

// FenceAcquirer is optional.
type FenceAcquirer interface {
	// AcquireFence raises an execution's token by one and returns it. From then on
	// no answering append under a lower token lands, on any path.
	//
	// The execution need not have events; acquiring does not make it listed. A
	// lost answer cannot be resolved, since its late twin may supersede a retry:
	// acquire again. Whoever is about to own the execution calls it, after every
	// other check that could refuse, because an acquire is never undone.
	AcquireFence(context.Context, AcquireFenceRequest) (AcquireFenceResponse, error)
}

// ConditionalFenceAcquirer is optional.
type ConditionalFenceAcquirer interface {
	// AcquireFenceIf does what AcquireFence does if, at one point in time, the
	// token equals Fence, there is a park ([KindExecutionSuspended]) at ParkSeq
	// that is not below the floor, and no answering event follows it. Otherwise
	// it changes nothing and returns the current token.
	//
	// It lets many nodes try to resume one park: at most one wins, and a body that
	// runs already is never fenced out by a resumer that came too late.
	AcquireFenceIf(context.Context, AcquireFenceIfRequest) (AcquireFenceIfResponse, error)
}

// UnchangedAppender is optional.
type UnchangedAppender interface {
	// AppendIfUnchanged appends if token and head both still are, at one point in
	// time, what the caller saw. Whoever writes about an execution that it does not
	// own calls it. It compares the token but never presents or
	// raises one: the events carry fence 0. A moved token is [StaleFenceError], a
	// moved head [ConflictError]; duplicates, incarnation, floor and data key are
	// judged as by Append.
	AppendIfUnchanged(context.Context, AppendIfUnchangedRequest) (AppendIfUnchangedResponse, error)
}

// PrefixCopier is optional.
type PrefixCopier interface {
	// CopyPrefix makes the first N events of one execution the beginning of
	// another, all or none. Whoever forks an execution calls it. The target must have no events ([ConflictError]), or
	// already hold exactly these (marked Duplicate); its fence does not matter and
	// stays. The copies keep id, sequence, kind, stamp, time, metadata and payload;
	// their fence is 0.
	//
	// A source shorter than N is [RangeError], a truncated one [TruncatedError],
	// and more than [MaxEvents] or [MaxAppendBytes] is [TooLargeError]. An
	// execution with a data key is copied only by the layer that encrypts, under a
	// key of the target's own: without one, source or target with a key is
	// [KeyMismatchError], and with a destroyed one [ShreddedError].
	CopyPrefix(context.Context, CopyPrefixRequest) (CopyPrefixResponse, error)
}

// PrefixTruncater is optional.
type PrefixTruncater interface {
	// TruncatePrefixKeeping drops the events before a sequence except those to
	// keep, and raises the floor to it. The log's last event always stays, so the
	// head does not move, and no sequence ever changes. Retention calls it.
	//
	// An execution in another incarnation is [IncarnationError], one without
	// events [NotFoundError].
	TruncatePrefixKeeping(context.Context, TruncatePrefixKeepingRequest) (TruncatePrefixKeepingResponse, error)
}

// ExecutionDeleter is optional.
type ExecutionDeleter interface {
	// DeleteExecution removes a log, its timers and its data key, also the memory of
	// one that was destroyed, in one transaction and leaves a tombstone: the
	// incarnation rises, and so does the token if there ever was one, so that
	// nobody who wrote the old log can write the next. Of an execution without
	// events it removes what there is beside them. To delete what is deleted
	// already is no error. An execution in another incarnation is
	// [IncarnationError]. Retention and operators call it.
	DeleteExecution(context.Context, DeleteExecutionRequest) (DeleteExecutionResponse, error)
}

// TombstoneSweeper is optional.
type TombstoneSweeper interface {
	// SweepTombstones forgets executions that were deleted at least OlderThan ago,
	// by the store's clock, and not written since. With the tombstone goes the
	// memory of the incarnation and the token: sweep only what no writer can still
	// be at work on. Retention calls it, until it returns less than Limit. Over
	// several shards an error may come after some of them have swept.
	SweepTombstones(context.Context, SweepTombstonesRequest) (SweepTombstonesResponse, error)
}

// EventMethods is the whole group.
type EventMethods interface {
	EventBackend
	BatchAppender
	FenceAcquirer
	ConditionalFenceAcquirer
	UnchangedAppender
	PrefixCopier
	PrefixTruncater
	ExecutionDeleter
	TombstoneSweeper
}

// Requests and responses of the group. A Route is set by a layer that routes, an
// Incarnation of 0 states none.
type (
	// A ReadRequest names a part of a log. Forward it is the events after After,
	// up to Until; backward those before After, down to Until. After 0 backward
	// is past the end; Until 0 sets no bound.
	ReadRequest struct {
		Route     Route
		Execution ExecutionID
		After     int64
		Until     int64
		Backward  bool
		Limit     int // 1 to MaxLimit events
		MaxBytes  int // up to MaxReadBytes by Event.Size; 0 means MaxReadBytes
	}

	// A ReadResponse is a part of a log, in the direction of the request.
	ReadResponse struct {
		Events      []Event
		More        bool // Limit or MaxBytes ended it
		Incarnation int64
		Floor       int64 // from here on no event is missing; 1 if never truncated
		Keyed       bool  // the execution has a data key
		Shredded    bool  // it had one, which was destroyed
	}

	// A HeadRequest names an execution.
	HeadRequest struct {
		Route     Route
		Execution ExecutionID
	}

	// A HeadResponse says where a log is. With more than four fields it would no
	// longer travel in registers, and a layer would cost twice as much.
	HeadResponse struct {
		Head        int64 // 0: no events
		Fence       int64 // 0: never acquired
		Incarnation int64
		Floor       int64
	}

	// A ListExecutionsRequest asks for a page of ids.
	ListExecutionsRequest struct {
		Prefix string // only ids that start with it
		After  string // the cursor: any well-formed string
		Limit  int    // 1 to MaxLimit ids

		// KnownOwnership is the ownership version of a single shard whose slots the
		// caller has; the receipt then leaves them out. A layer over several shards
		// does not pass it on.
		KnownOwnership int64

		// AllowPartial lets a layer over several shards leave out those that do not
		// answer, which it names in Missing; it does not pass it on. Whoever goes on
		// from the cursor of a page that is missing something misses for good what
		// the shard has before it: list again from the start when it answers.
		AllowPartial bool
	}

	// A ListExecutionsResponse is a page of ids.
	ListExecutionsResponse struct {
		Executions []ExecutionID
		Next       string // the cursor to go on with; "" at the end
		Receipt    Receipt
		Missing    []string // shards that are left out, of a caller who allows it
	}

	// An AcquireFenceRequest names an execution.
	AcquireFenceRequest struct {
		Route       Route
		Execution   ExecutionID
		Incarnation int64
	}

	// An AcquireFenceResponse holds the caller's token, from 1.
	AcquireFenceResponse struct{ Token int64 }

	// An AcquireFenceIfRequest states what must still hold.
	AcquireFenceIfRequest struct {
		Route       Route
		Execution   ExecutionID
		Incarnation int64
		Fence       int64 // the current token; that of the park's event at first
		ParkSeq     int64 // the park's sequence
	}

	// An AcquireFenceIfResponse says whether the caller holds the fence.
	AcquireFenceIfResponse struct {
		Acquired bool
		Token    int64 // the caller's if Acquired, else the current one
	}

	// A CopyPrefixRequest says what to copy where.
	CopyPrefixRequest struct {
		FromRoute   Route
		From        ExecutionID
		Route       Route // of To
		To          ExecutionID
		Incarnation int64 // of To, as of a first append
		N           int64 // how many events, from 1
	}

	// A CopyPrefixResponse describes the target.
	CopyPrefixResponse struct {
		Head        int64
		Incarnation int64
		Duplicate   bool // an earlier try copied them
	}

	// A TruncatePrefixKeepingRequest says what to drop.
	TruncatePrefixKeepingRequest struct {
		Route       Route
		Execution   ExecutionID
		Incarnation int64   // required
		Before      int64   // events below it go
		Keep        []int64 // except these, at most MaxKeep
	}

	// A TruncatePrefixKeepingResponse says what has become of the log.
	TruncatePrefixKeepingResponse struct {
		Floor   int64
		Dropped int64 // how many events this call removed
	}

	// A DeleteExecutionRequest says what to delete.
	DeleteExecutionRequest struct {
		Route       Route
		Execution   ExecutionID
		Incarnation int64 // required
	}

	// A DeleteExecutionResponse says what the deletion found.
	DeleteExecutionResponse struct {
		Existed     bool  // there were events
		Incarnation int64 // what the next first append has to state
	}

	// A SweepTombstonesRequest says which tombstones may go.
	SweepTombstonesRequest struct {
		Prefix    string
		OlderThan time.Duration // since the deletion
		Limit     int           // 1 to MaxLimit
	}

	// A SweepTombstonesResponse says how many went.
	SweepTombstonesResponse struct{ Swept int }
)

// Validate implements the rules of [ReadRequest].
func (r ReadRequest) Validate() error {
	if r.MaxBytes < 0 || r.MaxBytes > MaxReadBytes {
		return &InvalidArgumentError{"max bytes", fmt.Sprintf("is %d, not 0 to %d", r.MaxBytes, MaxReadBytes)}
	}
	return first(r.Route.validate(), r.Execution.Validate(), notNegative("after", r.After), notNegative("until", r.Until), validLimit(r.Limit))
}

// Validate implements the rules of [HeadRequest].
func (r HeadRequest) Validate() error { return first(r.Route.validate(), r.Execution.Validate()) }

// Validate implements the rules of [ListExecutionsRequest].
func (r ListExecutionsRequest) Validate() error {
	return first(validPage(r.Prefix, r.After, r.Limit), notNegative("known ownership", r.KnownOwnership))
}

// Validate implements the rules of [AcquireFenceRequest].
func (r AcquireFenceRequest) Validate() error {
	return first(r.Route.validate(), r.Execution.Validate(), notNegative("incarnation", r.Incarnation))
}

// Validate implements the rules of [AcquireFenceIfRequest].
func (r AcquireFenceIfRequest) Validate() error {
	return first(r.Route.validate(), r.Execution.Validate(), notNegative("incarnation", r.Incarnation), notNegative("fence", r.Fence), notNegative("park sequence", r.ParkSeq))
}

// Validate implements the rules of [CopyPrefixRequest].
func (r CopyPrefixRequest) Validate() error {
	if err := first(r.FromRoute.validate(), r.From.Validate(), r.Route.validate(), r.To.Validate(), notNegative("incarnation", r.Incarnation), positive("n", r.N)); err != nil {
		return err
	}
	if r.From == r.To {
		return &InvalidArgumentError{"to", "is the execution to copy from"}
	}
	return nil
}

// Validate implements the rules of [TruncatePrefixKeepingRequest].
func (r TruncatePrefixKeepingRequest) Validate() error {
	if err := first(r.Route.validate(), r.Execution.Validate(), positive("incarnation", r.Incarnation), positive("before", r.Before)); err != nil {
		return err
	}
	if len(r.Keep) > MaxKeep {
		return &InvalidArgumentError{"keep", fmt.Sprintf("has %d sequences, more than %d", len(r.Keep), MaxKeep)}
	}
	for i, seq := range r.Keep {
		if err := positive(fmt.Sprintf("keep[%d]", i), seq); err != nil {
			return err
		}
	}
	return nil
}

// Validate implements the rules of [DeleteExecutionRequest].
func (r DeleteExecutionRequest) Validate() error {
	return first(r.Route.validate(), r.Execution.Validate(), positive("incarnation", r.Incarnation))
}

// Validate implements the rules of [SweepTombstonesRequest].
func (r SweepTombstonesRequest) Validate() error {
	return first(validName("prefix", r.Prefix, 0, MaxID), notNegative("older than", int64(r.OlderThan)), validLimit(r.Limit))
}

// Read returns a part of a log; see [EventBackend.Read].
func Read(ctx context.Context, s *Store, req ReadRequest) (ReadResponse, error) {
	return call(ctx, s, CapEvents, "Read", req, methods.Read)
}

// Head returns where a log ends; see [EventBackend.Head].
func Head(ctx context.Context, s *Store, req HeadRequest) (HeadResponse, error) {
	return call(ctx, s, CapEvents, "Head", req, methods.Head)
}

// ListExecutions returns a page of ids; see [EventBackend.ListExecutions].
func ListExecutions(ctx context.Context, s *Store, req ListExecutionsRequest) (ListExecutionsResponse, error) {
	return call(ctx, s, CapEvents, "ListExecutions", req, methods.ListExecutions)
}

// AcquireFence makes every lower token stale; see [FenceAcquirer.AcquireFence].
func AcquireFence(ctx context.Context, s *Store, req AcquireFenceRequest) (AcquireFenceResponse, error) {
	return call(ctx, s, CapAcquireFence, "AcquireFence", req, methods.AcquireFence)
}

// AcquireFenceIf acquires if a park is still unanswered; see
// [ConditionalFenceAcquirer.AcquireFenceIf].
func AcquireFenceIf(ctx context.Context, s *Store, req AcquireFenceIfRequest) (AcquireFenceIfResponse, error) {
	return call(ctx, s, CapAcquireFenceIf, "AcquireFenceIf", req, methods.AcquireFenceIf)
}

// CopyPrefix makes the beginning of one execution a new one; see [PrefixCopier.CopyPrefix].
func CopyPrefix(ctx context.Context, s *Store, req CopyPrefixRequest) (CopyPrefixResponse, error) {
	return call(ctx, s, CapCopyPrefix, "CopyPrefix", req, methods.CopyPrefix)
}

// TruncatePrefixKeeping drops the beginning of a log; see [PrefixTruncater.TruncatePrefixKeeping].
func TruncatePrefixKeeping(ctx context.Context, s *Store, req TruncatePrefixKeepingRequest) (TruncatePrefixKeepingResponse, error) {
	return call(ctx, s, CapTruncatePrefixKeeping, "TruncatePrefixKeeping", req, methods.TruncatePrefixKeeping)
}

// DeleteExecution removes a log and leaves a tombstone; see [ExecutionDeleter.DeleteExecution].
func DeleteExecution(ctx context.Context, s *Store, req DeleteExecutionRequest) (DeleteExecutionResponse, error) {
	return call(ctx, s, CapDeleteExecution, "DeleteExecution", req, methods.DeleteExecution)
}

// SweepTombstones forgets old deletions; see [TombstoneSweeper.SweepTombstones].
func SweepTombstones(ctx context.Context, s *Store, req SweepTombstonesRequest) (SweepTombstonesResponse, error) {
	return call(ctx, s, CapSweepTombstones, "SweepTombstones", req, methods.SweepTombstones)
}
