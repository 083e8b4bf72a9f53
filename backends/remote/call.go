package remote

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/loomgate/loomgate/api"
	"github.com/loomgate/loomgate/spi"
)

// tries is how often a call is sent at most; firstPause is about the pause after the
// first try, which doubles with each. All pauses together take some two thirds of a
// second.
const (
	tries      = 8
	firstPause = 5 * time.Millisecond
)

// An outcome is what is known of a call that was tried.
type outcome int

const (
	answered outcome = iota // the gateway has answered
	unsent                  // the call never left
	lost                    // the call may have been done
)

// try sends a call once. An error with the outcome answered is as package spi has it,
// or a status.
func try[Q, R, MQ, MR any](ctx context.Context, c *Client, m *api.Method[Q, R, MQ, MR], in *MQ) (res R, _ outcome, err error) {
	var out MR
	var to peer.Peer
	if err := c.connection().Invoke(ctx, m.Path, in, &out, grpc.Peer(&to)); err != nil {
		outcome, err := failure(ctx, err, to.Addr != nil)
		return res, outcome, err
	}
	if res, err = m.DecodeResponse(&out); err != nil {
		return res, lost, err
	}
	return res, answered, nil
}

// failure says what is known of a call that failed. A call without a stream to the
// gateway was not sent.
func failure(ctx context.Context, err error, sent bool) (outcome, error) {
	st := status.Convert(err)
	err, answer := api.FromStatus(st)
	switch {
	case answer && ctx.Err() == nil && isContext(err):
		return answered, &spi.UnavailableError{Cause: err} // the gateway's context, not the caller's
	case answer:
		return answered, err
	}
	switch st.Code() {
	case codes.Unauthenticated, codes.PermissionDenied, codes.InvalidArgument, codes.Unimplemented:
		return answered, err // refused before any method was called
	}
	if !sent {
		return unsent, err
	}
	return lost, err
}

func isContext(err error) bool {
	err = spi.WithoutOp(err)
	return err == context.Canceled || err == context.DeadlineExceeded //nolint:errorlint // what is around one tells more
}

// read calls a method that changes nothing, whatever becomes of an answer.
func read[Q, R, MQ, MR any](ctx context.Context, c *Client, m *api.Method[Q, R, MQ, MR], req Q) (R, error) {
	in := m.EncodeRequest(req)
	for n := 1; ; n++ {
		res, outcome, err := try(ctx, c, m, in)
		if err == nil || outcome == answered {
			return res, err
		}
		if !again(ctx, n) {
			return res, unavailable(ctx, err)
		}
	}
}

// A resolver reports whether an error, as the answer to a request that was sent
// again, says that no earlier try has been done or ever will be.
type resolver func(error) bool

// write calls a method that changes something. Once it is open whether it has, the
// request is sent again until it succeeds or an error resolves it; with no resolver it
// is not.
func write[Q, R, MQ, MR any](ctx context.Context, c *Client, m *api.Method[Q, R, MQ, MR], req Q, id spi.ExecutionID, resolves resolver) (R, error) {
	res, open, err := deliver(ctx, c, m, req, resolves, nil)
	if err != nil && open != nil {
		err = &spi.AmbiguousError{Execution: id, Cause: open}
	}
	return res, err
}

// deliver takes and returns why it is open whether an earlier try has changed
// something: nil if it is not.
func deliver[Q, R, MQ, MR any](ctx context.Context, c *Client, m *api.Method[Q, R, MQ, MR], req Q, resolves resolver, open error) (R, error, error) {
	in := m.EncodeRequest(req)
	for n := 1; ; n++ {
		res, outcome, err := try(ctx, c, m, in)
		ambiguous, isOpen := errors.AsType[*spi.AmbiguousError](err)
		switch {
		case err == nil:
			return res, open, nil
		case outcome == lost:
			open = err
		case isOpen:
			open = ambiguous.Cause
		case outcome == answered && (open == nil || resolves(err)):
			return res, nil, err
		}
		if open != nil && resolves == nil || !again(ctx, n) {
			return res, open, unavailable(ctx, err)
		}
	}
}

// again pauses after the n-th try, and reports whether there may be another.
func again(ctx context.Context, n int) bool {
	if n == tries {
		return false
	}
	pause := firstPause << (n - 1)
	timer := time.NewTimer(pause/2 + rand.N(pause))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// unavailable is the error of a call that has changed nothing.
func unavailable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if _, already := errors.AsType[*spi.UnavailableError](err); already {
		return err
	}
	return &spi.UnavailableError{Cause: err}
}
