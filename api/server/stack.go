package server

import (
	"context"

	"github.com/loomgate/loomgate/api"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

// GetStack tells what the caller's store offers and can be called over the wire.
func (s service) GetStack(ctx context.Context, _ *pb.GetStackRequest) (*pb.GetStackResponse, error) {
	caller, err := s.caller(ctx)
	if err != nil {
		return nil, err
	}
	return api.EncodeStack(caller.Store.Offered()), nil
}
