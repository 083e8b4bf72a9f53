package commands

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

// addKeyFlags adds what commands about keys have in common.
func addKeyFlags(cmd *cobra.Command) {
	cmd.Flags().Bool("dry-run", false, "change nothing, tell what there is")
	cmd.Flags().Duration("timeout", time.Hour, "how long it may take")
}

// withKeys calls do with a deadline that is long enough for keys to leave all memories.
func withKeys(cmd *cobra.Command, do func(ctx context.Context, admin pb.AdminServiceClient, dryRun bool) error) error {
	dryRun, _ := cmd.Flags().GetBool("dry-run")
	timeout, _ := cmd.Flags().GetDuration("timeout")
	return withAdmin(cmd, func(ctx context.Context, admin pb.AdminServiceClient) error {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		return do(ctx, admin, dryRun)
	})
}

func newRotateKey() *cobra.Command {
	cmd := &cobra.Command{
		Use: "rotate-key NAME", Short: "Give a tenant a new key, and wrap all others by it", Args: arguments(cobra.ExactArgs(1)),
		Long: `Rotate-key makes the next version of the tenant's key, wraps the keys of its executions by
it, and destroys the versions that nothing needs any more. No event is written anew. It
can be stopped and run again.`,
		Example: `  gateway tenants rotate-key acme --dry-run
  gateway tenants rotate-key acme`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return withKeys(cmd, func(ctx context.Context, admin pb.AdminServiceClient, dryRun bool) error {
				res, err := admin.RotateTenantKey(ctx, &pb.RotateTenantKeyRequest{Tenant: args[0], DryRun: dryRun})
				if err != nil {
					return err
				}
				out, err := newOutput(cmd, "version", "rewrapped", "lost", "retired", "encrypted", "shredded", "unencrypted")
				if err != nil {
					return err
				}
				f := res.GetFindings()
				if err := out.row(res.GetVersion(), res.GetRewrapped(), res.GetLost(), fmt.Sprint(res.GetRetired()), f.GetEncrypted(), f.GetShredded(), f.GetUnencrypted()); err != nil {
					return err
				}
				return out.end()
			})
		},
	}
	addKeyFlags(cmd)
	addOutput(cmd)
	return cmd
}

func newShredTenant() *cobra.Command {
	cmd := &cobra.Command{
		Use: "shred NAME", Short: "Destroy all keys of a tenant, and print a certificate", Args: arguments(cobra.ExactArgs(1)),
		Long: `Shred destroys the tenant's keys and those of its executions: nothing that it has written
can be read again, on no gateway, and it can write nothing any more. What is printed says
what was proven, where, and what it does not reach. It can be stopped and run again.`,
		Example: `  gateway tenants shred acme --dry-run
  gateway tenants shred acme --yes > certificate.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := confirmed(cmd, fmt.Sprintf("everything that tenant %q has written would be unreadable for good", args[0])); err != nil {
				return err
			}
			return withKeys(cmd, func(ctx context.Context, admin pb.AdminServiceClient, dryRun bool) error {
				res, err := admin.ShredTenant(ctx, &pb.ShredTenantRequest{Tenant: args[0], DryRun: dryRun})
				return printCertificate(cmd, res.GetCertificate(), err)
			})
		},
	}
	addKeyFlags(cmd)
	cmd.Flags().Bool("yes", false, "make everything of the tenant unreadable for good")
	return cmd
}

func newShredExecution() *cobra.Command {
	cmd := &cobra.Command{
		Use: "shred ID --tenant NAME", Short: "Destroy the key of an execution, and print a certificate", Args: arguments(cobra.ExactArgs(1)),
		Long: `Shred destroys the execution's key: nothing that it has written can be read again, on no
gateway. It takes an operator's key. It can be stopped and run again.`,
		Example: `  gateway executions shred order-17 --tenant acme --dry-run
  gateway executions shred order-17 --tenant acme --yes`,
		RunE: func(cmd *cobra.Command, args []string) error {
			tenant := cmd.Flag("tenant").Value.String()
			if tenant == "" {
				return &usageError{errors.New("whose execution it is: give --tenant")}
			}
			if err := confirmed(cmd, fmt.Sprintf("what execution %q has written would be unreadable for good", args[0])); err != nil {
				return err
			}
			return withKeys(cmd, func(ctx context.Context, admin pb.AdminServiceClient, dryRun bool) error {
				res, err := admin.ShredExecution(ctx, &pb.ShredExecutionRequest{Tenant: tenant, Execution: args[0], DryRun: dryRun})
				return printCertificate(cmd, res.GetCertificate(), err)
			})
		},
	}
	addKeyFlags(cmd)
	cmd.Flags().Bool("yes", false, "make what the execution has written unreadable for good")
	return cmd
}

// confirmed returns an error unless the command line says that it is meant, or that
// nothing is to be changed.
func confirmed(cmd *cobra.Command, what string) error {
	yes, _ := cmd.Flags().GetBool("yes")
	if dryRun, _ := cmd.Flags().GetBool("dry-run"); !yes && !dryRun {
		return &usageError{fmt.Errorf("%s: say --yes, or --dry-run", what)}
	}
	return nil
}

// printCertificate prints it as JSON. One that proves nothing is a problem.
func printCertificate(cmd *cobra.Command, c *pb.ShredCertificate, err error) error {
	if err != nil {
		return err
	}
	fmt.Fprintln(cmd.OutOrStdout(), protojson.MarshalOptions{Multiline: true, EmitDefaultValues: true}.Format(c))
	if !c.GetDryRun() && !c.GetUndecryptable() {
		return fmt.Errorf("something can still be read: %w", errProblems)
	}
	return nil
}
