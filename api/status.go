package api

import (
	"context"
	"errors"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

// ErrorStatus returns err as the status of a failed call, told to an audience: a
// code that is right for clients that know nothing else, and the error itself as a
// detail. A throttled call's status says when to retry also as gRPC's clients know it,
// in a google.rpc.RetryInfo.
func ErrorStatus(err error, to Audience) *status.Status {
	m, code := encodeError(to.Mask(err), 0)
	st := status.New(code, DecodeError(m).Error())
	details := []protoadapt.MessageV1{m}
	if throttled, ok := errors.AsType[*spi.ThrottledError](err); ok && code == codes.ResourceExhausted {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(throttled.RetryAfter)})
	}
	if detailed, err := st.WithDetails(details...); err == nil {
		return detailed
	}
	return st
}

// FromStatus returns the error of a failed call, and whether it is the gateway's
// answer. If not, something on the way gave up and the call may have been done: the
// error is then an [spi.UnavailableError], the context's, or the status itself.
func FromStatus(st *status.Status) (err error, answer bool) {
	for _, detail := range st.Details() {
		if m, ok := detail.(*pb.Error); ok {
			if err := decodeError(m, 1); err != nil {
				return err, true
			}
		}
	}
	switch st.Code() {
	case codes.Canceled:
		return context.Canceled, false
	case codes.DeadlineExceeded:
		return context.DeadlineExceeded, false
	case codes.Unavailable:
		return &spi.UnavailableError{Cause: st.Err()}, false
	}
	return st.Err(), false
}
