package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/loomgate/loomgate/backends/postgres"
	"github.com/loomgate/loomgate/cmd/gateway/internal/config"
	"github.com/loomgate/loomgate/cmd/gateway/internal/control"
)

func newRecovered() *cobra.Command {
	cmd := &cobra.Command{
		Use: "recovered NAME", Short: "Make a shard safe that was restored, or failed over with losses", Args: arguments(cobra.ExactArgs(1)),
		Long: `Recovered is for a shard that was restored from a backup, or failed over to an asynchronous
standby: it may have forgotten fence tokens that it gave out, and would give them out
again. The command raises every token and the epoch of its slots in the database itself.
Run it before any gateway reaches the shard again. It does not bring back what is lost;
gateway verify tells what is there.

It leaves a record of that first. If the shard that holds the records does not answer,
nothing is changed unless --unrecorded is given.`,
		Example: "  gateway shards recovered shard-b -c gateway.yaml --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			return withConfig(func(ctx context.Context, cmd *cobra.Command, cfg *config.Config) error {
				return recoverShard(ctx, cmd, cfg, args[0])
			})(cmd, args)
		},
	}
	addConfig(cmd)
	cmd.Flags().Bool("yes", false, "raise every token of the shard: all who own executions there have to acquire again")
	cmd.Flags().Bool("unrecorded", false, "leave no record of it in the databases")
	cmd.Flags().Bool("unfenced", false, "also of executions that were never fenced, as far as the shard knows: they refuse unfenced resumes from then on")
	return cmd
}

func recoverShard(ctx context.Context, cmd *cobra.Command, cfg *config.Config, name string) error {
	i := slices.IndexFunc(cfg.Shards, func(s config.Shard) bool { return s.Name == name })
	switch yes, _ := cmd.Flags().GetBool("yes"); {
	case i < 0:
		return &usageError{fmt.Errorf("there is no shard %q", name)}
	case cfg.Shards[i].SQLite != "":
		return &usageError{errors.New("a SQLite shard has no standby; one that is restored from a copy is not supported")}
	case !yes:
		return &usageError{fmt.Errorf("all who own executions on shard %q would have to acquire again: say --yes", name)}
	}
	if unrecorded, _ := cmd.Flags().GetBool("unrecorded"); !unrecorded {
		err := note(ctx, cfg, func(r *control.Records, by control.Actor) error {
			return r.NoteShard(ctx, by, control.ShardRecovered, name)
		})
		if err != nil {
			return fmt.Errorf("nothing is changed: there can be no record of it (--unrecorded goes on without): %w", err)
		}
	}
	unfenced, _ := cmd.Flags().GetBool("unfenced")
	r, err := postgres.Recovered(ctx, cfg.Shards[i].DSN.Reveal(), unfenced)
	if err != nil {
		return fmt.Errorf("shard %q: %w", name, err)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%d fences and the epochs of %d slots are raised\n", r.Executions, r.Slots)
	return nil
}
