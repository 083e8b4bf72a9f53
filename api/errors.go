package api

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

// An IncidentError stands for an error that was held back: the cause of an
// [spi.InternalError] that has crossed the wire.
type IncidentError struct {
	ID string // what to look for in the operator's log
}

func (e *IncidentError) Error() string { return "incident " + e.ID }

// maxDepth is how many errors may stand around one another on the wire.
const maxDepth = 16

// EncodeError returns err as it stands by itself in a message. What is not of
// package spi, and the cause of an [spi.InternalError], does not cross; see
// [Audience.Mask] for what else must not.
func EncodeError(err error) *pb.Error {
	m, _ := encodeError(err, 0)
	m.Message = DecodeError(m).Error()
	return m
}

// encodeError also returns the code that a status with that error has. Wrappers
// that are not of package spi are dropped.
func encodeError(err error, depth int) (*pb.Error, codes.Code) {
	for e := err; e != nil && depth < maxDepth; e = errors.Unwrap(e) {
		if m, code := encodeOwn(e, depth+1); m != nil {
			return m, code
		}
	}
	return &pb.Error{Kind: &pb.Error_Internal{Internal: &pb.InternalError{}}}, codes.Internal
}

// encodeOwn returns nil unless err itself is of package spi, or a context's.
func encodeOwn(err error, depth int) (*pb.Error, codes.Code) {
	switch e := err.(type) { //nolint:errorlint // its caller unwraps
	case *spi.OpError:
		inner, code := encodeError(e.Err, depth)
		return &pb.Error{Kind: &pb.Error_Op{Op: &pb.OpError{Op: e.Op, Error: inner}}}, code
	case *spi.ShardError:
		inner, code := encodeError(e.Err, depth)
		return &pb.Error{Kind: &pb.Error_Shard{Shard: &pb.ShardError{Shard: e.Shard, Error: inner}}}, code
	case *spi.AmbiguousError:
		cause, _ := encodeError(e.Cause, depth)
		return &pb.Error{Kind: &pb.Error_Ambiguous{Ambiguous: &pb.AmbiguousError{Execution: string(e.Execution), Cause: cause}}}, codes.Unknown
	case *spi.UnavailableError:
		cause, _ := encodeError(e.Cause, depth)
		return &pb.Error{Kind: &pb.Error_Unavailable{Unavailable: &pb.UnavailableError{Cause: cause}}}, codes.Unavailable
	case *spi.ThrottledError:
		return &pb.Error{Kind: &pb.Error_Throttled{Throttled: &pb.ThrottledError{Limit: e.Limit, RetryAfter: durationpb.New(e.RetryAfter)}}}, codes.ResourceExhausted
	case *spi.InternalError:
		m := &pb.InternalError{}
		if incident, ok := e.Cause.(*IncidentError); ok { //nolint:errorlint // nothing may stand around it
			m.Incident = incident.ID
		}
		return &pb.Error{Kind: &pb.Error_Internal{Internal: m}}, codes.Internal

	case *spi.InvalidArgumentError:
		return &pb.Error{Kind: &pb.Error_InvalidArgument{InvalidArgument: &pb.InvalidArgumentError{Field: e.Field, Rule: e.Rule}}}, codes.InvalidArgument
	case *spi.UnsupportedError:
		return &pb.Error{Kind: &pb.Error_Unsupported{Unsupported: &pb.UnsupportedError{Offered: e.Cap.Names()}}}, codes.Unimplemented
	case *spi.NotFoundError:
		return &pb.Error{Kind: &pb.Error_NotFound{NotFound: &pb.NotFoundError{What: e.What, Name: e.Name}}}, codes.NotFound

	// Somebody else was faster: look, and decide again.
	case *spi.ConflictError:
		return &pb.Error{Kind: &pb.Error_Conflict{Conflict: &pb.ConflictError{Execution: string(e.Execution), Head: e.Head, Reused: e.Reused}}}, codes.Aborted
	case *spi.RefVersionError:
		return &pb.Error{Kind: &pb.Error_RefVersion{RefVersion: &pb.RefVersionError{Name: string(e.Name), Current: e.Current}}}, codes.Aborted
	case *spi.LeaseHeldError:
		return &pb.Error{Kind: &pb.Error_LeaseHeld{LeaseHeld: &pb.LeaseHeldError{Name: string(e.Name), Holder: e.Holder, ExpiresAt: encodeTime(e.ExpiresAt)}}}, codes.Aborted
	case *spi.KeyMismatchError:
		return &pb.Error{Kind: &pb.Error_KeyMismatch{KeyMismatch: &pb.KeyMismatchError{Execution: string(e.Execution)}}}, codes.Aborted

	// The call as it is will never do again.
	case *spi.StaleFenceError:
		return &pb.Error{Kind: &pb.Error_StaleFence{StaleFence: &pb.StaleFenceError{Execution: string(e.Execution), Current: e.Current}}}, codes.FailedPrecondition
	case *spi.IncarnationError:
		return &pb.Error{Kind: &pb.Error_Incarnation{Incarnation: &pb.IncarnationError{Execution: string(e.Execution), Current: e.Current}}}, codes.FailedPrecondition
	case *spi.LeaseLostError:
		return &pb.Error{Kind: &pb.Error_LeaseLost{LeaseLost: &pb.LeaseLostError{Name: string(e.Name)}}}, codes.FailedPrecondition
	case *spi.ShreddedError:
		return &pb.Error{Kind: &pb.Error_Shredded{Shredded: &pb.ShreddedError{Owner: string(e.Owner)}}}, codes.FailedPrecondition
	case *spi.TooLargeError:
		return &pb.Error{Kind: &pb.Error_TooLarge{TooLarge: &pb.TooLargeError{Execution: string(e.Execution)}}}, codes.FailedPrecondition
	case *spi.OwnershipError:
		return &pb.Error{Kind: &pb.Error_Ownership{Ownership: &pb.OwnershipError{Shard: e.Shard, Version: e.Version, Reason: e.Reason}}}, codes.FailedPrecondition
	case *spi.CompatibilityError:
		return &pb.Error{Kind: &pb.Error_Compatibility{Compatibility: &pb.CompatibilityError{Group: string(e.Group), Have: encodeVersion(e.Have), Want: encodeVersion(e.Want)}}}, codes.FailedPrecondition
	case *spi.LayerOrderError:
		return &pb.Error{Kind: &pb.Error_LayerOrder{LayerOrder: &pb.LayerOrderError{Outer: e.Outer, Inner: e.Inner, Reason: e.Reason}}}, codes.FailedPrecondition
	case *spi.EmbeddingError:
		return &pb.Error{Kind: &pb.Error_Embedding{Embedding: &pb.EmbeddingError{Decorator: e.Decorator, Embedded: e.Embedded, Method: e.Method}}}, codes.FailedPrecondition

	// What the call needs is not in the log.
	case *spi.TruncatedError:
		return &pb.Error{Kind: &pb.Error_Truncated{Truncated: &pb.TruncatedError{Execution: string(e.Execution), Floor: e.Floor}}}, codes.OutOfRange
	case *spi.RangeError:
		return &pb.Error{Kind: &pb.Error_Range{Range: &pb.RangeError{Execution: string(e.Execution), Head: e.Head}}}, codes.OutOfRange

	// Slots are on the move.
	case *spi.MisroutedError:
		return &pb.Error{Kind: &pb.Error_Misrouted{Misrouted: &pb.MisroutedError{Shard: e.Shard, Slot: uint32(e.Route.Slot), StatedEpoch: e.Route.Epoch, Epoch: e.Epoch}}}, codes.Unavailable
	case *spi.SlotMovingError:
		return &pb.Error{Kind: &pb.Error_SlotMoving{SlotMoving: &pb.SlotMovingError{Shard: e.Shard, Slot: uint32(e.Slot), State: pb.SlotState(e.State)}}}, codes.Unavailable
	case *spi.CoverageError:
		return &pb.Error{Kind: &pb.Error_Coverage{Coverage: &pb.CoverageError{Missing: each(e.Missing, encodeRange), Twice: each(e.Twice, encodeRange)}}}, codes.Unavailable
	}
	switch err { //nolint:errorlint // its caller unwraps
	case context.Canceled:
		return &pb.Error{Kind: &pb.Error_Canceled{Canceled: &pb.CanceledError{}}}, codes.Canceled
	case context.DeadlineExceeded:
		return &pb.Error{Kind: &pb.Error_DeadlineExceeded{DeadlineExceeded: &pb.DeadlineExceededError{}}}, codes.DeadlineExceeded
	}
	return nil, codes.OK
}

// DecodeError returns the error that a message tells of. One of a kind that this
// build does not know is an [spi.InternalError].
func DecodeError(m *pb.Error) error {
	return decodeCause(m, 0)
}

var errUnknownKind = errors.New("an error of a kind that this build does not know")

func decodeCause(m *pb.Error, depth int) error {
	if depth < maxDepth {
		if err := decodeError(m, depth+1); err != nil {
			return err
		}
	}
	return &spi.InternalError{Cause: errUnknownKind}
}

// decodeError returns nil for an error of an unknown kind.
func decodeError(m *pb.Error, depth int) error {
	switch k := m.GetKind().(type) {
	case *pb.Error_Op:
		return &spi.OpError{Op: k.Op.GetOp(), Err: decodeCause(k.Op.GetError(), depth)}
	case *pb.Error_Shard:
		return &spi.ShardError{Shard: k.Shard.GetShard(), Err: decodeCause(k.Shard.GetError(), depth)}
	case *pb.Error_Ambiguous:
		return &spi.AmbiguousError{Execution: spi.ExecutionID(k.Ambiguous.GetExecution()), Cause: decodeCause(k.Ambiguous.GetCause(), depth)}
	case *pb.Error_Unavailable:
		return &spi.UnavailableError{Cause: decodeCause(k.Unavailable.GetCause(), depth)}
	case *pb.Error_Throttled:
		after, _ := decodeDuration("", k.Throttled.GetRetryAfter())
		return &spi.ThrottledError{Limit: k.Throttled.GetLimit(), RetryAfter: after}
	case *pb.Error_Internal:
		return &spi.InternalError{Cause: &IncidentError{k.Internal.GetIncident()}}
	case *pb.Error_InvalidArgument:
		return &spi.InvalidArgumentError{Field: k.InvalidArgument.GetField(), Rule: k.InvalidArgument.GetRule()}
	case *pb.Error_Unsupported:
		return &spi.UnsupportedError{Cap: spi.ParseCaps(k.Unsupported.GetOffered())}
	case *pb.Error_NotFound:
		return &spi.NotFoundError{What: k.NotFound.GetWhat(), Name: k.NotFound.GetName()}
	case *pb.Error_Conflict:
		return &spi.ConflictError{Execution: spi.ExecutionID(k.Conflict.GetExecution()), Head: k.Conflict.GetHead(), Reused: k.Conflict.GetReused()}
	case *pb.Error_RefVersion:
		return &spi.RefVersionError{Name: spi.RefName(k.RefVersion.GetName()), Current: k.RefVersion.GetCurrent()}
	case *pb.Error_LeaseHeld:
		end, _ := decodeTime(k.LeaseHeld.GetExpiresAt())
		return &spi.LeaseHeldError{Name: spi.LeaseName(k.LeaseHeld.GetName()), Holder: k.LeaseHeld.GetHolder(), ExpiresAt: end}
	case *pb.Error_KeyMismatch:
		return &spi.KeyMismatchError{Execution: spi.ExecutionID(k.KeyMismatch.GetExecution())}
	case *pb.Error_StaleFence:
		return &spi.StaleFenceError{Execution: spi.ExecutionID(k.StaleFence.GetExecution()), Current: k.StaleFence.GetCurrent()}
	case *pb.Error_Incarnation:
		return &spi.IncarnationError{Execution: spi.ExecutionID(k.Incarnation.GetExecution()), Current: k.Incarnation.GetCurrent()}
	case *pb.Error_LeaseLost:
		return &spi.LeaseLostError{Name: spi.LeaseName(k.LeaseLost.GetName())}
	case *pb.Error_Shredded:
		return &spi.ShreddedError{Owner: spi.KeyOwner(k.Shredded.GetOwner())}
	case *pb.Error_TooLarge:
		return &spi.TooLargeError{Execution: spi.ExecutionID(k.TooLarge.GetExecution())}
	case *pb.Error_Ownership:
		return &spi.OwnershipError{Shard: k.Ownership.GetShard(), Version: k.Ownership.GetVersion(), Reason: k.Ownership.GetReason()}
	case *pb.Error_Compatibility:
		return &spi.CompatibilityError{Group: spi.Group(k.Compatibility.GetGroup()), Have: decodeVersion(k.Compatibility.GetHave()), Want: decodeVersion(k.Compatibility.GetWant())}
	case *pb.Error_LayerOrder:
		return &spi.LayerOrderError{Outer: k.LayerOrder.GetOuter(), Inner: k.LayerOrder.GetInner(), Reason: k.LayerOrder.GetReason()}
	case *pb.Error_Embedding:
		return &spi.EmbeddingError{Decorator: k.Embedding.GetDecorator(), Embedded: k.Embedding.GetEmbedded(), Method: k.Embedding.GetMethod()}
	case *pb.Error_Truncated:
		return &spi.TruncatedError{Execution: spi.ExecutionID(k.Truncated.GetExecution()), Floor: k.Truncated.GetFloor()}
	case *pb.Error_Range:
		return &spi.RangeError{Execution: spi.ExecutionID(k.Range.GetExecution()), Head: k.Range.GetHead()}
	case *pb.Error_Misrouted:
		route := spi.Route{Slot: spi.Slot(k.Misrouted.GetSlot()), Epoch: k.Misrouted.GetStatedEpoch()}
		return &spi.MisroutedError{Shard: k.Misrouted.GetShard(), Route: route, Epoch: k.Misrouted.GetEpoch()}
	case *pb.Error_SlotMoving:
		return &spi.SlotMovingError{Shard: k.SlotMoving.GetShard(), Slot: spi.Slot(k.SlotMoving.GetSlot()), State: decodeState(k.SlotMoving.GetState())}
	case *pb.Error_Coverage:
		return &spi.CoverageError{Missing: each(k.Coverage.GetMissing(), decodeRange), Twice: each(k.Coverage.GetTwice(), decodeRange)}
	case *pb.Error_Canceled:
		return context.Canceled
	case *pb.Error_DeadlineExceeded:
		return context.DeadlineExceeded
	}
	return nil
}

func encodeRange(r spi.SlotRange) *pb.SlotRange {
	return &pb.SlotRange{First: uint32(r.First), Last: uint32(r.Last)}
}

func decodeRange(m *pb.SlotRange) spi.SlotRange {
	return spi.SlotRange{First: spi.Slot(m.GetFirst()), Last: spi.Slot(m.GetLast())}
}
