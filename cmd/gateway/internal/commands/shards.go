package commands

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

func newShards() *cobra.Command {
	cmd := &cobra.Command{Use: "shards", Short: "How the shards are"}
	addClient(cmd)
	show := func(columns []string, row func(*pb.ShardStatus) []any, all bool) func(*cobra.Command, []string) error {
		return func(cmd *cobra.Command, _ []string) error {
			return withAdmin(cmd, func(ctx context.Context, admin pb.AdminServiceClient) error {
				res, err := admin.ListShards(ctx, &pb.ListShardsRequest{})
				if err != nil {
					return err
				}
				out, err := newOutput(cmd, columns...)
				if err != nil {
					return err
				}
				bad := false
				for _, s := range res.GetShards() {
					bad = bad || s.GetProblem() != ""
					if err := out.row(row(s)...); err != nil {
						return err
					}
				}
				if err := out.end(); err != nil || !bad || !all {
					return err
				}
				return errProblems
			})
		}
	}
	list := &cobra.Command{
		Use: "list", Short: "List the shards and what they own", Args: arguments(cobra.NoArgs),
		Example: "  gateway shards list",
		RunE: show([]string{"name", "cluster", "slots"}, func(s *pb.ShardStatus) []any {
			return []any{s.GetName(), s.GetCluster(), s.GetSlots()}
		}, false),
	}
	status := &cobra.Command{
		Use: "status", Short: "Ask each shard how it is; fails if one has a problem", Args: arguments(cobra.NoArgs),
		Example: "  gateway shards status -o json",
		RunE: show([]string{"name", "available", "latency", "slots", "moving", "ownership", "min writer", "problem"}, func(s *pb.ShardStatus) []any {
			latency := s.GetLatency().AsDuration().Round(10 * time.Microsecond).String()
			return []any{s.GetName(), s.GetAvailable(), latency, s.GetSlots(), s.GetMoving(), s.GetOwnershipVersion(), writerOf(s.GetMinWriter()), s.GetProblem()}
		}, true),
	}
	addOutput(list)
	addOutput(status)
	cmd.AddCommand(list, status, newRecovered(), newRequireWriter())
	return cmd
}

func newWhere() *cobra.Command {
	cmd := &cobra.Command{
		Use: "where TENANT ID", Short: "Which shard an execution is on", Args: arguments(cobra.ExactArgs(2)),
		Example: "  gateway where acme order-17",
		RunE: func(cmd *cobra.Command, args []string) error {
			return withAdmin(cmd, func(ctx context.Context, admin pb.AdminServiceClient) error {
				at, err := admin.Locate(ctx, &pb.LocateRequest{Tenant: args[0], Execution: args[1]})
				if err != nil {
					return err
				}
				out, err := newOutput(cmd, "shard", "slot", "epoch")
				if err != nil {
					return err
				}
				if err := out.row(at.GetShard(), at.GetSlot(), at.GetEpoch()); err != nil {
					return err
				}
				return out.end()
			})
		},
	}
	addClient(cmd)
	addOutput(cmd)
	return cmd
}

func newAudit() *cobra.Command {
	cmd := &cobra.Command{
		Use: "audit", Short: "What operators have done, oldest first", Args: arguments(cobra.NoArgs),
		Example: "  gateway audit -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withAdmin(cmd, func(ctx context.Context, admin pb.AdminServiceClient) error { return listActions(ctx, cmd, admin) })
		},
	}
	addClient(cmd)
	addOutput(cmd)
	return cmd
}

func listActions(ctx context.Context, cmd *cobra.Command, admin pb.AdminServiceClient) error {
	out, err := newOutput(cmd, "sequence", "at", "action", "by", "from", "tenant", "api key", "execution", "shard")
	if err != nil {
		return err
	}
	for after := int64(0); ; {
		res, err := admin.ListActions(ctx, &pb.ListActionsRequest{After: after, Limit: pageSize})
		if err != nil {
			return err
		}
		for _, a := range res.GetActions() {
			if err := out.row(a.GetSequence(), moment(a.GetAt()), a.GetKind(), a.GetBy(), a.GetFrom(), a.GetTenant(), a.GetApiKey(), a.GetExecution(), a.GetShard()); err != nil {
				return err
			}
			after = a.GetSequence()
		}
		if !res.GetMore() {
			return out.end()
		}
	}
}
