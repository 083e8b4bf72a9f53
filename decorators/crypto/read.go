package crypto

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/loomgate/loomgate/spi"
)

// errMoved says that a log was deleted or truncated while it was being read.
var errMoved = errors.New("the log has changed")

// A missingKeyError says that the store does not have the key that events of an
// incarnation need. If that has not ended meanwhile, err is what to answer.
type missingKeyError struct {
	incarnation int64
	err         error
}

func (e *missingKeyError) Error() string {
	return fmt.Sprintf("in incarnation %d: %v", e.incarnation, e.err)
}

// Read returns events as they were appended.
func (l *layer) Read(ctx context.Context, req spi.ReadRequest) (spi.ReadResponse, error) {
	req.MaxBytes = cmp.Or(req.MaxBytes, spi.MaxReadBytes)
	var suspect int64 // the incarnation whose key was missing
	for range maxTries {
		res, err := l.read(ctx, req)
		missing, isMissing := errors.AsType[*missingKeyError](err)
		switch {
		case isMissing && missing.incarnation == suspect:
			return res, missing.err
		case isMissing:
			suspect = missing.incarnation
		case !errors.Is(err, errMoved):
			return res, err
		}
	}
	return spi.ReadResponse{}, &spi.UnavailableError{Cause: errDisturbed}
}

// read reads once. What is encrypted takes more bytes, so it asks for some more than the
// caller does, and goes on where that was not enough: a log that keeps its incarnation
// and its floor has only become longer.
func (l *layer) read(ctx context.Context, req spi.ReadRequest) (res spi.ReadResponse, err error) {
	size := 0
	for part := req; ; {
		left := req.MaxBytes - size
		part.MaxBytes = min(left+left/4+4096, spi.MaxReadBytes)
		page, err := spi.Read(ctx, l.inner, part)
		switch {
		case err != nil:
			return spi.ReadResponse{}, err
		case page.Shredded:
			return spi.ReadResponse{}, &spi.ShreddedError{Owner: spi.KeyOwner(req.Execution)}
		case len(res.Events) == 0:
			res = spi.ReadResponse{Events: page.Events[:0], Incarnation: page.Incarnation, Floor: page.Floor}
		case page.Incarnation != res.Incarnation || page.Floor != res.Floor:
			return spi.ReadResponse{}, errMoved
		}
		key, err := l.keyOf(ctx, req.Execution, page)
		if err != nil {
			return spi.ReadResponse{}, err
		}
		for _, e := range page.Events {
			if key != nil {
				if e, err = key.open(req.Execution, e); err != nil {
					return spi.ReadResponse{}, err
				}
			}
			if size += e.Size(); size > req.MaxBytes && len(res.Events) > 0 {
				res.More = true
				return res, nil
			}
			res.Events = append(res.Events, e)
			part.After = e.Sequence
		}
		part.Limit = req.Limit - len(res.Events)
		if res.More = page.More; !page.More || part.Limit == 0 || size >= req.MaxBytes {
			return res, nil
		}
	}
}

// keyOf returns the key of a part of a log; nil if it is not encrypted.
func (l *layer) keyOf(ctx context.Context, id spi.ExecutionID, page spi.ReadResponse) (*dataKey, error) {
	switch {
	case len(page.Events) == 0 || !page.Keyed && l.keys.adopt:
		return nil, nil
	case !page.Keyed:
		return nil, &UnencryptedError{id}
	}
	first := page.Events[0]
	env, err := parseEnvelope(first.Payload)
	if err != nil {
		return nil, &TamperedError{id, first.Sequence, "envelope"}
	}
	key, there := l.keys.data.peek(id)
	if there && key.id == env.keyID {
		return key, nil
	}
	if there {
		l.keys.data.drop(id, key)
	}
	key, err = l.keys.find(ctx, id, false)
	switch {
	case errors.Is(err, errNoKey):
		return nil, &missingKeyError{page.Incarnation, lostInStore(id)}
	case err != nil:
		return nil, err
	case key.id != env.keyID:
		return nil, &missingKeyError{page.Incarnation, &TamperedError{id, first.Sequence, "key id"}}
	}
	return key, nil
}
