package commands

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/loomgate/loomgate/backends/postgres"
	"github.com/loomgate/loomgate/cmd/gateway/internal/config"
	"github.com/loomgate/loomgate/cmd/gateway/internal/control"
	"github.com/loomgate/loomgate/cmd/gateway/internal/stack"
	"github.com/loomgate/loomgate/cmd/gateway/internal/transfer"
	"github.com/loomgate/loomgate/decorators/crypto"
)

// withStack calls do with the stack that a server would run.
func withStack(ctx context.Context, cfg *config.Config, do func(*stack.Stack) error) error {
	s, err := stack.Open(ctx, stack.Options{Config: cfg})
	if err != nil {
		return err
	}
	return errors.Join(do(s), s.Close())
}

// eachPostgres calls do with the DSN of each shard that is a Postgres.
func eachPostgres(cfg *config.Config, do func(name, dsn string) error) error {
	var errs []error
	for _, shard := range cfg.Shards {
		if shard.SQLite != "" {
			continue // made as it is opened
		}
		if err := do(shard.Name, shard.DSN.Reveal()); err != nil {
			errs = append(errs, fmt.Errorf("shard %q: %w", shard.Name, err))
		}
	}
	return errors.Join(errs...)
}

func newMigrate() *cobra.Command {
	cmd := &cobra.Command{
		Use: "migrate", Short: "Bring the Postgres shards to this version's schema", Args: arguments(cobra.NoArgs),
		Long: `Migrate brings each Postgres shard to the schema of this version. It needs a role that
owns the tables and a DSN past any pooler. What only makes things faster is skipped where
it would have to wait for long, and said. Once the databases are a cluster, what has
changed in which shard is in the audit trail.`,
		Example: `  gateway migrate -c gateway.yaml --plan    # prints what would run
  gateway migrate -c gateway.yaml --check   # fails if something would
  gateway migrate -c gateway.yaml`,
		RunE: withConfig(func(ctx context.Context, cmd *cobra.Command, cfg *config.Config) error {
			plan, _ := cmd.Flags().GetBool("plan")
			check, _ := cmd.Flags().GetBool("check")
			wait, _ := cmd.Flags().GetDuration("lock-timeout")
			m := postgres.Migration{LockTimeout: wait, Log: newLogger(cmd.ErrOrStderr(), cfg.Log)}
			m.DeferBackfill, _ = cmd.Flags().GetBool("defer-backfill")
			pending := false
			var migrated []string
			err := eachPostgres(cfg, func(name, dsn string) error {
				if plan || check {
					steps, err := m.Plan(ctx, dsn)
					for _, step := range steps {
						pending = true
						fmt.Fprintf(cmd.OutOrStdout(), "-- shard %s\n%v\n", name, step)
					}
					return err
				}
				report, err := m.Run(ctx, dsn)
				if len(report.Done) > 0 {
					migrated = append(migrated, name)
				}
				for _, skipped := range report.Skipped {
					fmt.Fprintf(cmd.ErrOrStderr(), "shard %s: skipped for now: %v\n", name, skipped)
				}
				if err == nil {
					fmt.Fprintf(cmd.ErrOrStderr(), "shard %s: up to date\n", name)
				}
				return err
			})
			if err == nil && check && pending {
				return errProblems
			}
			noteMigrated(ctx, cmd, cfg, migrated)
			return err
		}),
	}
	addConfig(cmd)
	cmd.Flags().Bool("plan", false, "print what would run, and change nothing")
	cmd.Flags().Bool("check", false, "fail if something would run, and change nothing")
	cmd.Flags().Bool("defer-backfill", false, "leave the directory of an adopted database to gateway backfill")
	cmd.Flags().Duration("lock-timeout", 0, "how long to wait for a table's lock, while others queue (default 2s)")
	cmd.MarkFlagsMutuallyExclusive("plan", "check")
	return cmd
}

func newBackfill() *cobra.Command {
	cmd := &cobra.Command{
		Use: "backfill", Short: "Complete the directory of adopted Postgres shards, in batches", Args: arguments(cobra.NoArgs),
		Long:    "Backfill can run beside the gateway, be stopped, and go on where it was.",
		Example: "  gateway backfill -c gateway.yaml",
		RunE: withConfig(func(ctx context.Context, cmd *cobra.Command, cfg *config.Config) error {
			m := postgres.Migration{Log: newLogger(cmd.ErrOrStderr(), cfg.Log)}
			return eachPostgres(cfg, func(name, dsn string) error {
				n, err := m.Backfill(ctx, dsn)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(cmd.ErrOrStderr(), "shard %s: complete, %d executions\n", name, n)
				return err
			})
		}),
	}
	addConfig(cmd)
	return cmd
}

func newConfig() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Check and show the configuration"}
	addConfig(cmd)
	check := &cobra.Command{
		Use: "check", Short: "Read the configuration and say everything that is wrong with it", Args: arguments(cobra.NoArgs),
		Example: "  gateway config check -c gateway.yaml",
		RunE: withConfig(func(_ context.Context, cmd *cobra.Command, _ *config.Config) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "the configuration is valid")
			return err
		}),
	}
	show := &cobra.Command{
		Use: "show", Short: "Print the configuration without its secrets, and where each value came from", Args: arguments(cobra.NoArgs),
		Example: "  gateway config show -c gateway.yaml",
		RunE: withConfig(func(_ context.Context, cmd *cobra.Command, cfg *config.Config) error {
			return cfg.Show(cmd.OutOrStdout())
		}),
	}
	cmd.AddCommand(check, show, newReload())
	return cmd
}

func newKeyring() *cobra.Command {
	cmd := &cobra.Command{Use: "keyring", Short: "Make and rotate the keyring that encrypts"}
	addConfig(cmd)
	do := func(do func(ctx context.Context, cfg *config.Config, secret []byte) error) func(*cobra.Command, []string) error {
		return withConfig(func(ctx context.Context, _ *cobra.Command, cfg *config.Config) error {
			if !cfg.Crypto.Enabled() {
				return &usageError{errors.New("the configuration names no keyring (crypto.keyring_file)")}
			}
			return do(ctx, cfg, []byte(cfg.Crypto.Secret.Reveal()))
		})
	}
	create := &cobra.Command{
		Use: "create", Short: "Make the keyring file that the configuration names", Args: arguments(cobra.NoArgs),
		Example: "  gateway keyring create -c gateway.yaml",
		RunE: do(func(_ context.Context, cfg *config.Config, secret []byte) error {
			_, err := crypto.CreateKeyring(cfg.Crypto.KeyringFile, secret)
			return err
		}),
	}
	rotate := &cobra.Command{
		Use: "rotate", Short: "Add a key that wraps from now on", Args: arguments(cobra.NoArgs),
		Long: `Rotate adds a key to the keyring, and leaves a record of that in the databases first.
Bring the file to every gateway at once.`,
		Example: "  gateway keyring rotate -c gateway.yaml",
		RunE: do(func(ctx context.Context, cfg *config.Config, secret []byte) error {
			ring, err := crypto.OpenKeyring(cfg.Crypto.KeyringFile, secret)
			if err != nil {
				return err
			}
			if err := note(ctx, cfg, func(r *control.Records, by control.Actor) error {
				return r.Note(ctx, by, control.KeyringRotated, "", "")
			}); err != nil {
				return err
			}
			return ring.Rotate()
		}),
	}
	cmd.AddCommand(create, rotate)
	return cmd
}

func newVerify() *cobra.Command {
	cmd := &cobra.Command{
		Use: "verify", Short: "Walk every shard: order, gaps, misplaced executions, payloads that do not open", Args: arguments(cobra.NoArgs),
		Long: `Verify reads everything of every tenant, from the databases that the configuration names,
and prints what is wrong. It may run beside the gateway.`,
		Example: "  gateway verify -c gateway.yaml",
		RunE: withConfig(func(ctx context.Context, cmd *cobra.Command, cfg *config.Config) error {
			return withStack(ctx, cfg, func(s *stack.Stack) error { return verify(ctx, cmd, s) })
		}),
	}
	addConfig(cmd)
	addRetry(cmd)
	return cmd
}

func verify(ctx context.Context, cmd *cobra.Command, s *stack.Stack) error {
	progress := newProgress(cmd, "executions")
	defer progress.end()
	found := 0
	tell := func(format string, args ...any) {
		found++
		fmt.Fprintf(cmd.OutOrStdout(), format+"\n", args...)
	}
	report, err := transfer.Verify(ctx, s.Shared(), transfer.VerifyOptions{
		Retry:    retryOf(cmd, progress),
		Found:    func(p transfer.Problem) { tell("%v", p) },
		Progress: func(r transfer.VerifyReport) { progress.set(r.Executions) },
	})
	if err != nil {
		return err
	}
	for _, shard := range s.Shards {
		for id, err := range transfer.Executions(ctx, shard.Backend, "", "") {
			if err != nil {
				return fmt.Errorf("shard %q: %w", shard.Name, err)
			}
			at, err := s.Cluster.Where(string(id))
			if err != nil {
				return err
			}
			if at.Shard != shard.Name {
				tell("execution %q is on shard %q and belongs on %q", id, shard.Name, at.Shard)
			}
		}
	}
	progress.end()
	fmt.Fprintf(cmd.OutOrStdout(), "%d executions, %d events, %d problems\n", report.Executions, report.Events, found)
	if found > 0 {
		return errProblems
	}
	return nil
}
