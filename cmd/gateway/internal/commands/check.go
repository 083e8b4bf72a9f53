package commands

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/loomgate/loomgate/cmd/gateway/internal/config"
	"github.com/loomgate/loomgate/cmd/gateway/internal/inspect"
)

func newCheck() *cobra.Command {
	cmd := &cobra.Command{
		Use: "check", Short: "Look at the databases: connections, versions, durability, clocks, identities, slots", Args: arguments(cobra.NoArgs),
		Long:    "Check fails if something is bad: a gateway would not serve, or not keep its promises.",
		Example: "  gateway check -c gateway.yaml",
		RunE: withConfig(func(ctx context.Context, cmd *cobra.Command, cfg *config.Config) error {
			out, err := newOutput(cmd, "shard", "subject", "state", "finding")
			if err != nil {
				return err
			}
			bad := false
			for _, f := range inspect.Inspect(ctx, cfg) {
				bad = bad || f.Severity == inspect.Bad
				shard := f.Shard
				if shard == "" {
					shard = "(all)"
				}
				if err := out.row(shard, f.Subject, string(f.Severity), f.Text); err != nil {
					return err
				}
			}
			if err := out.end(); err != nil || !bad {
				return err
			}
			return errProblems
		}),
	}
	addConfig(cmd)
	addOutput(cmd)
	return cmd
}
