package crypto

import (
	"context"

	"github.com/loomgate/loomgate/spi"
)

// A write is what the methods that append have in common.
type write struct {
	execution   spi.ExecutionID
	incarnation int64 // stated; 0 for none
	first       bool  // the execution is expected to be new
	keyID       spi.KeyID
	events      []spi.Event

	refused spi.KeyID // under which the store has refused it
}

// A sealed write is one as the store is to hold it.
type sealed struct {
	keyID       spi.KeyID
	incarnation int64
	events      []spi.Event

	key *dataKey // nil if there is none to be had

	// refusal is why not. The write then states a key that no execution has, so that
	// it cannot land: the store is asked only for what it judges before the key, above
	// all whether the write has happened already.
	refusal error
}

// keyFor returns the key that a write needs.
func (l *layer) keyFor(ctx context.Context, w write) (*dataKey, error) {
	if w.keyID != (spi.KeyID{}) { // a key that this layer did not make
		return nil, &spi.KeyMismatchError{Execution: w.execution}
	}
	return l.keys.forAppend(ctx, w.execution, w.incarnation, w.first)
}

// seal prepares a write, given its key or why there is none.
func (w write) seal(key *dataKey, err error) (s sealed, _ error) {
	switch {
	case err != nil && final(err):
		return sealed{newKeyID(), w.incarnation, stripped(w.events), nil, err}, nil
	case err != nil:
		return s, err
	case key.aead == nil:
		// Only in the incarnation that was found unencrypted: the next is not.
		return sealed{spi.KeyID{}, key.incarnation, w.events, key, nil}, nil
	}
	events, err := key.sealAll(w.events)
	return sealed{key.id, w.incarnation, events, key, nil}, err
}

// settle returns what a write that the store refused comes to, and whether it is to be
// tried again under the key that the execution has by now.
func (l *layer) settle(w *write, s sealed, err error) (again bool, _ error) {
	mismatch := is[*spi.KeyMismatchError](err)
	switch {
	case mismatch && s.refusal != nil:
		return false, s.refusal
	case mismatch && s.keyID != w.refused:
		w.refused = s.keyID
	case s.incarnation != w.incarnation && is[*spi.IncarnationError](err): // this layer stated it
	default:
		return false, err
	}
	l.keys.data.drop(w.execution, s.key)
	w.first = false
	return true, err
}

// written seals a write and calls do with it, again if the key has changed.
func written[R any](ctx context.Context, l *layer, w write, do func(sealed) (R, error)) (none R, _ error) {
	for range maxTries {
		s, err := w.seal(l.keyFor(ctx, w))
		if err != nil {
			return none, err
		}
		res, err := do(s)
		if err == nil {
			return res, nil
		}
		if again, err := l.settle(&w, s, err); !again {
			return none, err
		}
	}
	return none, &spi.UnavailableError{Cause: errDisturbed}
}

func (l *layer) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	return written(ctx, l, writeOf(req), func(s sealed) (spi.AppendResponse, error) {
		return spi.Append(ctx, l.inner, s.as(req))
	})
}

func writeOf(req spi.AppendRequest) write {
	return write{execution: req.Execution, incarnation: req.Incarnation, first: req.ExpectedHead == 0, keyID: req.KeyID, events: req.Events}
}

// as returns an append with what is sealed in place of what was not.
func (s sealed) as(req spi.AppendRequest) spi.AppendRequest {
	req.KeyID, req.Incarnation, req.Events = s.keyID, s.incarnation, s.events
	return req
}

func (l *layer) AppendIfUnchanged(ctx context.Context, req spi.AppendIfUnchangedRequest) (spi.AppendIfUnchangedResponse, error) {
	w := write{execution: req.Execution, incarnation: req.Incarnation, first: req.Head == 0, keyID: req.KeyID, events: req.Events}
	return written(ctx, l, w, func(s sealed) (spi.AppendIfUnchangedResponse, error) {
		req := req
		req.KeyID, req.Incarnation, req.Events = s.keyID, s.incarnation, s.events
		return spi.AppendIfUnchanged(ctx, l.inner, req)
	})
}

// CopyPrefix reads through this layer and writes under the target's own key.
func (l *layer) CopyPrefix(ctx context.Context, req spi.CopyPrefixRequest) (spi.CopyPrefixResponse, error) {
	if err := l.keys.checkWriter(ctx, req.To, req.Incarnation); err != nil {
		return spi.CopyPrefixResponse{}, err
	}
	prefix, err := spi.ReadPrefix(ctx, l.self, req.FromRoute, req.From, req.N)
	if err != nil {
		return spi.CopyPrefixResponse{}, err
	}
	w := write{execution: req.To, incarnation: req.Incarnation, first: true, events: prefix.Events}
	return written(ctx, l, w, func(s sealed) (spi.CopyPrefixResponse, error) {
		return spi.WritePrefix(ctx, l.inner, spi.AppendIfUnchangedRequest{
			Route: req.Route, Execution: req.To, Incarnation: s.incarnation, KeyID: s.keyID, Events: s.events,
		})
	})
}
