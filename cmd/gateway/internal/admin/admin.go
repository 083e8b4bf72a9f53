// Package admin answers AdminService: tenants, API keys, the audit trail and the shards.
package admin

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loomgate/loomgate/cmd/gateway/internal/config"
	"github.com/loomgate/loomgate/cmd/gateway/internal/control"
	"github.com/loomgate/loomgate/cmd/gateway/internal/limits"
	"github.com/loomgate/loomgate/cmd/gateway/internal/stack"
	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

// A Service is what operators call.
type Service struct {
	Records *control.Records
	Stack   *stack.Stack

	// Admit returns who calls, if a key of the scope admin does. Its error is the
	// caller's answer.
	Admit func(context.Context) (control.Actor, error)

	// Limits are what tenants may use, and use.
	Limits *limits.Tenants

	// Reload reads the configuration again.
	Reload func(context.Context) (config.Changes, error)

	// Status makes the answer of a store's error.
	Status func(context.Context, error) error
}

// maxPage is the largest page of any listing.
const maxPage = spi.MaxLimit

// answer does what an operator calls for.
func answer[Q, R any](ctx context.Context, s *Service, in Q, do func(context.Context, control.Actor, Q) (R, error)) (none R, _ error) {
	by, err := s.Admit(ctx)
	if err != nil {
		return none, err
	}
	out, err := do(ctx, by, in)
	if err != nil {
		return none, s.status(ctx, err)
	}
	return out, nil
}

// status tells the errors of the records from those of a store.
func (s *Service) status(ctx context.Context, err error) error {
	var code codes.Code
	switch {
	case is[*control.TakenError](err):
		code = codes.AlreadyExists
	case is[*control.NotFoundError](err):
		code = codes.NotFound
	case is[*control.TenantStateError](err), is[*control.OutdatedError](err):
		code = codes.FailedPrecondition
	case is[*control.RecordError](err):
		code = codes.DataLoss
	case status.Code(err) == codes.FailedPrecondition: // said here
		return err
	default:
		return s.Status(ctx, err)
	}
	return status.Error(code, err.Error())
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func pageLimit(limit int32) error {
	if limit < 1 || limit > maxPage {
		return &spi.InvalidArgumentError{Field: "limit", Rule: "is not 1 to 10000"}
	}
	return nil
}

// timestamp leaves out a time that never is.
func timestamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// ListActions implements AdminService.
func (s *Service) ListActions(ctx context.Context, in *pb.ListActionsRequest) (*pb.ListActionsResponse, error) {
	return answer(ctx, s, in, s.listActions)
}

func (s *Service) listActions(ctx context.Context, _ control.Actor, in *pb.ListActionsRequest) (*pb.ListActionsResponse, error) {
	if err := pageLimit(in.GetLimit()); err != nil {
		return nil, err
	}
	out := &pb.ListActionsResponse{}
	for a, err := range s.Records.Audit(ctx, in.GetAfter()) {
		if err != nil {
			return nil, err
		}
		if len(out.GetActions()) == int(in.GetLimit()) {
			out.More = true
			break
		}
		out.Actions = append(out.Actions, &pb.Action{
			Sequence: a.Sequence, At: timestamp(a.At), Kind: a.Kind, By: a.By.APIKey, From: a.By.Address, Tenant: string(a.Tenant), ApiKey: a.APIKey, Execution: string(a.Execution), Shard: a.Shard,
		})
	}
	return out, nil
}

// ReloadConfig implements AdminService. What is wrong with a configuration, its errors
// tell without repeating a value.
func (s *Service) ReloadConfig(ctx context.Context, in *pb.ReloadConfigRequest) (*pb.ReloadConfigResponse, error) {
	return answer(ctx, s, in, func(ctx context.Context, by control.Actor, _ *pb.ReloadConfigRequest) (*pb.ReloadConfigResponse, error) {
		if err := s.Records.Note(ctx, by, control.ConfigReloaded, "", ""); err != nil {
			return nil, err
		}
		changes, err := s.Reload(ctx)
		if err != nil {
			return nil, status.Error(codes.FailedPrecondition, "the configuration is refused, nothing has changed: "+err.Error())
		}
		return &pb.ReloadConfigResponse{Changed: changes.Live, NeedRestart: changes.Restart}, nil
	})
}
