package commands

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/loomgate/loomgate/cmd/gateway/internal/transfer"
	"github.com/loomgate/loomgate/spi"
)

func newExecutions() *cobra.Command {
	cmd := &cobra.Command{Use: "executions", Short: "List executions and show their events"}
	addClient(cmd)
	addTenant(cmd)

	list := &cobra.Command{
		Use: "list", Short: "List a tenant's executions in code point order", Args: arguments(cobra.NoArgs),
		Example: `  gateway executions list --prefix order-
  gateway executions list --after order-17 --limit 100
  gateway executions list --partial    # of the shards that answer`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withStore(cmd, func(ctx context.Context, store *spi.Store) error { return listExecutions(ctx, cmd, store) })
		},
	}
	list.Flags().String("prefix", "", "only those whose id starts with it")
	list.Flags().String("after", "", "only those that come after it")
	list.Flags().Int("limit", 0, "how many at the most (default: all)")
	list.Flags().Bool("partial", false, "leave out shards that do not answer, and fail with 5 afterwards")
	addOutput(list)

	show := &cobra.Command{
		Use: "show ID", Short: "Show an execution's events, one JSON object a line", Args: arguments(cobra.ExactArgs(1)),
		Example: "  gateway executions show order-17 | jq .kind",
		RunE: func(cmd *cobra.Command, args []string) error {
			return withStore(cmd, func(ctx context.Context, store *spi.Store) error {
				n, _, err := showEvents(ctx, cmd, store, spi.ExecutionID(args[0]), 0)
				if err == nil && n == 0 {
					err = &spi.NotFoundError{What: "execution", Name: args[0]}
				}
				return err
			})
		},
	}

	tail := &cobra.Command{
		Use: "tail ID", Short: "Show an execution's new events as they come", Args: arguments(cobra.ExactArgs(1)),
		Example: "  gateway executions tail order-17",
		RunE: func(cmd *cobra.Command, args []string) error {
			return withStore(cmd, func(ctx context.Context, store *spi.Store) error {
				return tailEvents(ctx, cmd, store, spi.ExecutionID(args[0]))
			})
		},
	}
	tail.Flags().Bool("from-start", false, "show the events that are there first")
	tail.Flags().Duration("poll", time.Second, "how often to look")
	cmd.AddCommand(list, show, tail, newShredExecution())
	return cmd
}

func listExecutions(ctx context.Context, cmd *cobra.Command, store *spi.Store) error {
	prefix, _ := cmd.Flags().GetString("prefix")
	after, _ := cmd.Flags().GetString("after")
	limit, _ := cmd.Flags().GetInt("limit")
	out, err := newOutput(cmd, "id")
	if err != nil {
		return err
	}
	n, missing := 0, 0
	ids := transfer.Executions(ctx, store, prefix, after)
	if partial, _ := cmd.Flags().GetBool("partial"); partial {
		ids = transfer.PartialExecutions(ctx, store, prefix, after, &missing)
	}
	for id, err := range ids {
		if err != nil {
			return errors.Join(err, out.end())
		}
		if err := out.row(string(id)); err != nil {
			return err
		}
		if n++; n == limit {
			break
		}
	}
	if err := out.end(); err != nil || missing == 0 {
		return err
	}
	return &spi.UnavailableError{Cause: fmt.Errorf("%d shards did not answer, and what they have is not in the list", missing)}
}

// showEvents prints the events past a sequence, and returns how many there were and the
// last one's.
func showEvents(ctx context.Context, cmd *cobra.Command, store *spi.Store, id spi.ExecutionID, after int64) (n int, last int64, err error) {
	w := bufio.NewWriter(cmd.OutOrStdout())
	last = after
	var line []byte
	for e, err := range transfer.Events(ctx, store, id, after) {
		if err != nil {
			return n, last, errors.Join(err, w.Flush())
		}
		line = transfer.AppendLine(line[:0], transfer.Full, id, &e, 0)
		if _, err := w.Write(line); err != nil {
			return n, last, err
		}
		n, last = n+1, e.Sequence
	}
	return n, last, w.Flush()
}

func tailEvents(ctx context.Context, cmd *cobra.Command, store *spi.Store, id spi.ExecutionID) error {
	poll, _ := cmd.Flags().GetDuration("poll")
	if poll < 10*time.Millisecond {
		return &usageError{fmt.Errorf("--poll is %v, less than 10ms", poll)}
	}
	after := int64(0)
	if all, _ := cmd.Flags().GetBool("from-start"); !all {
		at, err := spi.Head(ctx, store, spi.HeadRequest{Execution: id})
		if err != nil {
			return err
		}
		after = at.Head
	}
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		_, last, err := showEvents(ctx, cmd, store, id, after)
		if err != nil && ctx.Err() == nil && !is[*spi.UnavailableError](err) {
			return err
		}
		after = last
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil // whoever tails ends it
		}
	}
}
