package api

import (
	"context"
	"path"

	"github.com/loomgate/loomgate/spi"
)

// A Method is one method of spi on the wire, with request Q as message MQ and
// response R as MR.
//
// Encoding takes what is valid, as spi has checked it or a store has returned it.
// Decoding takes any message: the error for a request is an
// [spi.InvalidArgumentError]; that for a response says what is malformed. It does
// not do the checks of Validate.
type Method[Q, R, MQ, MR any] struct {
	Path string // such as "/loomgate.v1.EventService/Append"
	Call func(context.Context, *spi.Store, Q) (R, error)

	EncodeRequest  func(Q) *MQ
	DecodeRequest  func(*MQ) (Q, error)
	EncodeResponse func(R) *MR
	DecodeResponse func(*MR) (R, error)
}

// Name returns the method's name in spi, such as "Append".
func (m *Method[Q, R, MQ, MR]) Name() string { return path.Base(m.Path) }
