package postgres

import (
	"context"

	"github.com/loomgate/loomgate/spi"
)

// A verdict is what became of an append, and what its checks saw.
type verdict struct {
	outcome
	judgement
	first, head, fence, incarnation, floor int64
}

// outcome is what the SQL says of an append.
type outcome int

const (
	landed outcome = iota
	duplicate
	conflict
	reused
	stale
	otherIncarnation
	truncated
	shredded
	otherKey
	notOurs
	again // another transaction got in the way: nothing that this one saw counts
)

// answer puts a verdict into the words of the interface.
func (s *store) answer(ctx context.Context, it item, v verdict) (spi.AppendResponse, error) {
	res := spi.AppendResponse{FirstSeq: v.first, Head: v.head, Incarnation: v.incarnation, Floor: v.floor}
	switch v.outcome {
	case landed:
		res.FirstSeq, res.Head = v.head+1, v.head+int64(len(it.Events))
		return res, nil
	case duplicate:
		res.Duplicate = true
		return res, nil
	case conflict, reused:
		return spi.AppendResponse{}, &spi.ConflictError{Execution: it.Execution, Head: v.head, Reused: v.outcome == reused}
	case stale:
		return spi.AppendResponse{}, &spi.StaleFenceError{Execution: it.Execution, Current: v.fence}
	case otherIncarnation:
		return spi.AppendResponse{}, &spi.IncarnationError{Execution: it.Execution, Current: v.incarnation}
	case truncated:
		return spi.AppendResponse{}, &spi.TruncatedError{Execution: it.Execution, Floor: v.floor}
	case shredded:
		return spi.AppendResponse{}, &spi.ShreddedError{Owner: spi.KeyOwner(it.Execution)}
	case otherKey:
		return spi.AppendResponse{}, &spi.KeyMismatchError{Execution: it.Execution}
	}
	return spi.AppendResponse{}, s.refuse(ctx, it.Route, v.judgement, false)
}
