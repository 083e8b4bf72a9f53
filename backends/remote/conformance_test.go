package remote_test

import (
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/loomgate/loomgate/conformance"
	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

// kit runs the kit through a gateway of its own for each test.
func kit(t *testing.T, newStore func(*testing.T) *spi.Store, options func() []grpc.ServerOption) {
	gateway := conformance.PerTest(func(t *testing.T) string { return serve(t, tenant(t, newStore(t)), options()...) })
	conformance.Store(t, func(t *testing.T) *spi.Store { return open(t, gateway(t)) })
}

func none() []grpc.ServerOption { return nil }

func TestConformanceOverMemory(t *testing.T) {
	kit(t, func(t *testing.T) *spi.Store { return newMemory(t) }, none)
}

// resolvable reports whether the client can find out whether a call was done.
func resolvable(c hookedCall) bool {
	switch req := c.req.(type) {
	case *pb.AppendRequest:
		return req.GetExpectedHead() != spi.AnyHead || req.GetSinceSeq() > 0
	case *pb.AppendIfUnchangedRequest, *pb.CopyPrefixRequest, *pb.ScheduleTimerRequest, *pb.RenewLeaseRequest,
		*pb.ReadRequest, *pb.HeadRequest, *pb.ListExecutionsRequest, *pb.DueTimersRequest,
		*pb.GetRefRequest, *pb.ListRefsRequest, *pb.RefLineageRequest, *pb.GetOwnershipRequest:
		return true
	}
	return false
}

// TestConformanceWhereAnswersGetLost loses every fifth answer of each method that can
// be resolved, after the call was done. What is sent again is a duplicate, of which the
// kit knows nothing: it is told what the lost answer would have told it.
func TestConformanceWhereAnswersGetLost(t *testing.T) {
	kit(t, func(t *testing.T) *spi.Store { return newMemory(t) }, func() []grpc.ServerOption {
		var mu sync.Mutex
		lost := map[string][]bool{} // by request, the marks of lost answers
		return []grpc.ServerOption{hooked(func(c hookedCall) (any, error) {
			res, err := c.do()
			if err != nil || !resolvable(c) {
				return res, err
			}
			wire, err := proto.MarshalOptions{Deterministic: true}.Marshal(c.req.(proto.Message))
			if err != nil {
				return nil, err
			}
			mu.Lock()
			defer mu.Unlock()
			mark, again := duplicate(res), string(wire)
			switch {
			case len(lost[again]) > 0:
				*mark = lost[again][0]
				lost[again] = lost[again][1:]
			case c.n%5 == 0:
				lost[again] = append(lost[again], *mark)
				return nil, errLost
			}
			return res, nil
		})}
	})
}

// duplicate is the mark of an answer; of one that has none, it is of no account.
func duplicate(res any) *bool {
	switch res := res.(type) {
	case *pb.AppendResponse:
		return &res.Duplicate
	case *pb.AppendIfUnchangedResponse:
		return &res.Duplicate
	case *pb.CopyPrefixResponse:
		return &res.Duplicate
	}
	return new(bool)
}
