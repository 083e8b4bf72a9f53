package commands

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/loomgate/loomgate/runtime/resume"
	"github.com/loomgate/loomgate/runtime/retention"
	"github.com/loomgate/loomgate/runtime/supervise"
	"github.com/loomgate/loomgate/spi"
)

func newRetention() *cobra.Command {
	cmd := &cobra.Command{
		Use: "retention --tenant NAME", Short: "Delete executions that ended long ago, or are too many", Args: arguments(cobra.NoArgs),
		Long: `Retention deletes a tenant's executions that have ended: those that ended longer ago than
--max-age, and those that ended before the newest --max-count. A child stays while its
parent waits for it, or may. With --prune-refs, branch refs that point at nothing go too.
Each decision is printed before it is carried out. It can be stopped and run again.`,
		Example: `  gateway retention --tenant acme --max-age 2160h --dry-run
  gateway retention --tenant acme --max-age 2160h --prune-refs --yes`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := confirmed(cmd, "what is due would be deleted for good"); err != nil {
				return err
			}
			return withStore(cmd, func(ctx context.Context, store *spi.Store) error { return runRetention(ctx, cmd, store) })
		},
	}
	addClient(cmd)
	addTenant(cmd)
	addOutput(cmd)
	cmd.Flags().String("prefix", "", "only executions and refs whose names start with it")
	cmd.Flags().Duration("max-age", 0, "delete what ended so long ago; 0 is no rule")
	cmd.Flags().Int("max-count", 0, "keep so many of those that ended last; 0 is no rule")
	cmd.Flags().Bool("prune-refs", false, "remove branch refs whose place is not there")
	cmd.Flags().Bool("dry-run", false, "change nothing, print what would be done")
	cmd.Flags().Bool("yes", false, "delete what is due for good")
	return cmd
}

func runRetention(ctx context.Context, cmd *cobra.Command, store *spi.Store) error {
	out, err := newOutput(cmd, "action", "execution", "ref")
	if err != nil {
		return err
	}
	resumer := resume.New(store)
	var printing error
	policy := retention.Policy{
		Pins:    []retention.Pin{supervise.PinParkedChildren(resumer)},
		Decided: func(d retention.Decision) { printing = errors.Join(printing, out.row(d.Action, d.Execution, d.Ref)) },
	}
	policy.Prefix, _ = cmd.Flags().GetString("prefix")
	policy.MaxAge, _ = cmd.Flags().GetDuration("max-age")
	policy.MaxCount, _ = cmd.Flags().GetInt("max-count")
	policy.PruneRefs, _ = cmd.Flags().GetBool("prune-refs")
	policy.DryRun, _ = cmd.Flags().GetBool("dry-run")
	if policy.MaxAge == 0 && policy.MaxCount == 0 && !policy.PruneRefs {
		return &usageError{errors.New("there is no rule: give --max-age, --max-count or --prune-refs")}
	}
	if err := policy.Validate(store); err != nil {
		return &usageError{err}
	}
	report, err := retention.Apply(ctx, resumer, policy)
	if err := errors.Join(printing, out.end()); err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%d executions: %d deleted, %d kept for their parents; %d refs: %d pruned\n",
		report.Executions, report.Deleted, report.Pinned, report.Refs, report.Pruned)
	return err
}
