package commands

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

// pageSize is how many items a command asks a server for at once.
const pageSize = 1000

func newTenants() *cobra.Command {
	cmd := &cobra.Command{Use: "tenants", Short: "Make, list and delete tenants"}
	addClient(cmd)

	list := &cobra.Command{
		Use: "list", Short: "List tenants, also those that were deleted", Args: arguments(cobra.NoArgs),
		Example: "  gateway tenants list -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withAdmin(cmd, func(ctx context.Context, admin pb.AdminServiceClient) error { return listTenants(ctx, cmd, admin) })
		},
	}
	addOutput(list)

	create := &cobra.Command{
		Use: "create NAME", Short: "Make a tenant", Args: arguments(cobra.ExactArgs(1)),
		Example: "  gateway tenants create acme",
		RunE: func(cmd *cobra.Command, args []string) error {
			return withAdmin(cmd, func(ctx context.Context, admin pb.AdminServiceClient) error {
				_, err := admin.CreateTenant(ctx, &pb.CreateTenantRequest{Name: args[0]})
				return err
			})
		},
	}

	remove := &cobra.Command{
		Use: "delete NAME", Short: "Refuse a tenant's calls, then remove all its data", Args: arguments(cobra.ExactArgs(1)),
		Long: `Delete refuses the tenant's calls from now on, and then removes everything that it has
stored. It can be stopped and run again. The name is never used again.`,
		Example: "  gateway tenants delete acme --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			if yes, _ := cmd.Flags().GetBool("yes"); !yes {
				return &usageError{fmt.Errorf("everything of tenant %q would be removed for good: say --yes", args[0])}
			}
			return withAdmin(cmd, func(ctx context.Context, admin pb.AdminServiceClient) error {
				return deleteTenant(ctx, cmd, admin, args[0])
			})
		},
	}
	remove.Flags().Bool("yes", false, "remove everything of the tenant for good")
	cmd.AddCommand(create, list, remove, newTenantLimits(), newRotateKey(), newShredTenant())
	return cmd
}

func listTenants(ctx context.Context, cmd *cobra.Command, admin pb.AdminServiceClient) error {
	out, err := newOutput(cmd, "name", "state", "created")
	if err != nil {
		return err
	}
	for after := ""; ; {
		res, err := admin.ListTenants(ctx, &pb.ListTenantsRequest{After: after, Limit: pageSize})
		if err != nil {
			return err
		}
		for _, t := range res.GetTenants() {
			if err := out.row(t.GetName(), word(t.GetState().String(), "TENANT_STATE_"), moment(t.GetCreatedAt())); err != nil {
				return err
			}
		}
		if after = res.GetNext(); after == "" {
			return out.end()
		}
	}
}

func deleteTenant(ctx context.Context, cmd *cobra.Command, admin pb.AdminServiceClient, name string) error {
	if _, err := admin.DisableTenant(ctx, &pb.DisableTenantRequest{Name: name}); err != nil {
		return err
	}
	progress := newProgress(cmd, "executions removed")
	defer progress.end()
	for {
		res, err := admin.PurgeTenant(ctx, &pb.PurgeTenantRequest{Name: name, Limit: pageSize})
		if err != nil {
			return err
		}
		progress.add(int64(res.GetExecutions()))
		if res.GetDone() {
			return nil
		}
	}
}

// word is an enum's name as people write it.
func word(name, prefix string) string { return strings.ToLower(strings.TrimPrefix(name, prefix)) }

// moment is a time, or "" for one that never is.
func moment(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return t.AsTime().Format(time.RFC3339)
}
