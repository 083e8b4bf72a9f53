package spi

import (
	"context"
	"errors"
)

// ReadPrefix reads the first n events of an execution, ready for [WritePrefix]: as
// of one incarnation, without sequence and fence. Layers that copy by themselves
// use the two, because source and target are not in one store or not under one
// key. The errors are those of [PrefixCopier].
func ReadPrefix(ctx context.Context, s *Store, route Route, id ExecutionID, n int64) ([]Event, error) {
	for {
		events, again, err := readPrefixOnce(ctx, s, route, id, n)
		if err != nil || !again {
			return events, err
		}
	}
}

// readPrefixOnce reports again if the log was deleted or truncated meanwhile.
func readPrefixOnce(ctx context.Context, s *Store, route Route, id ExecutionID, n int64) (events []Event, again bool, err error) {
	before, err := Head(ctx, s, HeadRequest{Route: route, Execution: id})
	switch {
	case err != nil:
		return nil, false, err
	case before.Head < n:
		return nil, false, &RangeError{id, before.Head}
	case before.Floor > 1:
		return nil, false, &TruncatedError{id, before.Floor}
	case n > MaxEvents:
		return nil, false, &TooLargeError{id}
	}
	size := 0
	for int64(len(events)) < n {
		page, err := Read(ctx, s, ReadRequest{Route: route, Execution: id, After: int64(len(events)), Until: n, Limit: MaxLimit})
		if err != nil {
			return nil, false, err
		}
		if page.Incarnation != before.Incarnation || page.Floor != before.Floor || len(page.Events) == 0 {
			return nil, true, nil
		}
		for _, e := range page.Events {
			size += e.Size()
			e.Sequence, e.Fence = 0, 0
			events = append(events, e)
		}
		if size > MaxAppendBytes {
			return nil, false, &TooLargeError{id}
		}
	}
	return events, false, nil
}

// WritePrefix makes the events of an append the beginning of an execution, which
// must have none, whatever its fence is. A store that offers AppendIfUnchanged can
// do it. The errors are those of [PrefixCopier].
func WritePrefix(ctx context.Context, s *Store, to AppendIfUnchangedRequest) (CopyPrefixResponse, error) {
	for {
		now, err := Head(ctx, s, HeadRequest{Route: to.Route, Execution: to.Execution})
		if err != nil {
			return CopyPrefixResponse{}, err
		}
		to.Head, to.Fence = 0, now.Fence
		res, err := AppendIfUnchanged(ctx, s, to)
		if _, moved := errors.AsType[*StaleFenceError](err); moved {
			continue // somebody acquired it meanwhile, which a copy does not mind
		}
		return CopyPrefixResponse{Head: res.Head, Incarnation: res.Incarnation, Duplicate: res.Duplicate}, err
	}
}
