package commands

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

func newReload() *cobra.Command {
	cmd := &cobra.Command{
		Use: "reload", Short: "Let a running gateway read its configuration again", Args: arguments(cobra.NoArgs),
		Long: `Reload asks a gateway to read its configuration again, as SIGHUP does. It takes over the
log's level, identity providers and certificates, TLS files, and addresses and pools of
shards; the answer says which settings it took over, and which need a restart. A
configuration that is wrong changes nothing. It is the file that the gateway was started
with, on its machine.`,
		Example: "  gateway config reload --addr 10.0.0.7:7070 --key-file admin.key",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withAdmin(cmd, func(ctx context.Context, admin pb.AdminServiceClient) error {
				res, err := admin.ReloadConfig(ctx, &pb.ReloadConfigRequest{})
				if err != nil {
					return err
				}
				for _, path := range res.GetChanged() {
					fmt.Fprintf(cmd.OutOrStdout(), "%s has changed\n", path)
				}
				for _, path := range res.GetNeedRestart() {
					fmt.Fprintf(cmd.OutOrStdout(), "%s needs a restart\n", path)
				}
				return nil
			})
		},
	}
	addClient(cmd)
	return cmd
}
