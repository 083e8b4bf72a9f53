package commands

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

func newRequireWriter() *cobra.Command {
	cmd := &cobra.Command{
		Use: "require-writer VERSION", Short: "Let the shards take writes only from a version on", Args: arguments(cobra.ExactArgs(1)),
		Long: `Require-writer ends a rolling upgrade: from its return on no gateway that writes as an
earlier version writes to any shard. Older gateways go on reading, and are not ready.
gateway --version says what a binary writes as. A minimum is never lowered: upgrade every
gateway first, and be sure not to go back.`,
		Example: "  gateway shards require-writer 2.1 --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			version, err := parseVersion(args[0])
			if err != nil {
				return &usageError{err}
			}
			if yes, _ := cmd.Flags().GetBool("yes"); !yes {
				return &usageError{fmt.Errorf("gateways before version %s could not write any more, for good: say --yes", args[0])}
			}
			return withAdmin(cmd, func(ctx context.Context, admin pb.AdminServiceClient) error {
				res, err := admin.RequireWriter(ctx, &pb.RequireWriterRequest{Version: version})
				if err != nil {
					return err
				}
				for _, shard := range res.GetRaised() {
					fmt.Fprintf(cmd.OutOrStdout(), "shard %s: takes writes from version %s on\n", shard, args[0])
				}
				if len(res.GetRaised()) == 0 {
					fmt.Fprintf(cmd.OutOrStdout(), "all shards take writes from version %s on already\n", args[0])
				}
				return nil
			})
		},
	}
	cmd.Flags().Bool("yes", false, "refuse the writes of older gateways for good")
	return cmd
}

func parseVersion(text string) (*pb.Version, error) {
	major, minor, _ := strings.Cut(text, ".")
	var parts [2]int32
	for i, part := range []string{major, minor} {
		n, err := strconv.ParseUint(part, 10, 31)
		if err != nil {
			return nil, errors.New("the version is not MAJOR.MINOR, such as 2.1")
		}
		parts[i] = int32(n)
	}
	return &pb.Version{Major: parts[0], Minor: parts[1]}, nil
}

// writerOf is a version as people write it; "" for none.
func writerOf(v *pb.Version) string {
	if v == nil {
		return ""
	}
	return fmt.Sprintf("%d.%d", v.GetMajor(), v.GetMinor())
}
