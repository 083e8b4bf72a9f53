package spi

import (
	"context"
	"errors"
)

// A Prefix is the beginning of a log, to be copied.
type Prefix struct {
	Events []Event // without sequence and fence
	Keyed  bool    // the payloads are encrypted under the data key of the execution
}

// copyTries bounds how often a copy begins again because others were at work on its
// source or its target.
const copyTries = 100

var errCopyDisturbed = errors.New("others kept changing the source or the target")

// ReadPrefix reads the first n events of an execution as of one incarnation, ready
// for [WritePrefix]. Layers that copy by themselves use the two, because source and
// target are not in one store or not under one key. One that does not encrypt must
// refuse a prefix with a key. The errors are those of [PrefixCopier].
func ReadPrefix(ctx context.Context, s *Store, route Route, id ExecutionID, n int64) (Prefix, error) {
	for range copyTries {
		prefix, again, err := readPrefixOnce(ctx, s, route, id, n)
		if err != nil || !again {
			return prefix, err
		}
	}
	return Prefix{}, &UnavailableError{errCopyDisturbed}
}

// readPrefixOnce reports again if the log was deleted or truncated meanwhile.
func readPrefixOnce(ctx context.Context, s *Store, route Route, id ExecutionID, n int64) (prefix Prefix, again bool, err error) {
	before, err := Head(ctx, s, HeadRequest{Route: route, Execution: id})
	switch {
	case err != nil:
		return Prefix{}, false, err
	case before.Head < n:
		return Prefix{}, false, &RangeError{id, before.Head}
	case before.Floor > 1:
		return Prefix{}, false, &TruncatedError{id, before.Floor}
	case n > MaxEvents:
		return Prefix{}, false, &TooLargeError{id}
	}
	size := 0
	for int64(len(prefix.Events)) < n {
		page, err := Read(ctx, s, ReadRequest{Route: route, Execution: id, After: int64(len(prefix.Events)), Until: n, Limit: MaxLimit})
		if err != nil {
			return Prefix{}, false, err
		}
		if page.Shredded {
			return Prefix{}, false, &ShreddedError{KeyOwner(id)}
		}
		prefix.Keyed = page.Keyed
		if page.Incarnation != before.Incarnation || page.Floor != before.Floor || len(page.Events) == 0 {
			return Prefix{}, true, nil
		}
		for _, e := range page.Events {
			size += e.Size()
			e.Sequence, e.Fence = 0, 0
			prefix.Events = append(prefix.Events, e)
		}
		if size > MaxAppendBytes {
			return Prefix{}, false, &TooLargeError{id}
		}
	}
	return prefix, false, nil
}

// WritePrefix makes the events of an append the beginning of an execution, which
// must have none, whatever its fence is: it sets Head and Fence itself. A store
// that offers AppendIfUnchanged can do it. The content comes from a store and is not
// validated again. The errors are those of [PrefixCopier].
func WritePrefix(ctx context.Context, s *Store, to AppendIfUnchangedRequest) (CopyPrefixResponse, error) {
	to.contentValid = true
	for range copyTries {
		now, err := Head(ctx, s, HeadRequest{Route: to.Route, Execution: to.Execution})
		if err != nil {
			return CopyPrefixResponse{}, err
		}
		to.Head, to.Fence = 0, now.Fence
		res, err := AppendIfUnchanged(ctx, s, to)
		if _, moved := errors.AsType[*StaleFenceError](err); moved {
			continue // somebody acquired it meanwhile, which a copy does not mind
		}
		if err == nil && res.FirstSeq != 1 {
			err = &ConflictError{Execution: to.Execution, Head: res.Head, Reused: true}
		}
		if err != nil {
			return CopyPrefixResponse{}, err
		}
		return CopyPrefixResponse{Head: res.Head, Incarnation: res.Incarnation, Duplicate: res.Duplicate}, nil
	}
	return CopyPrefixResponse{}, &UnavailableError{errCopyDisturbed}
}
