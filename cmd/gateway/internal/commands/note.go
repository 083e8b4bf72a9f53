package commands

import (
	"context"
	"fmt"
	"os"
	"os/user"

	"github.com/spf13/cobra"

	"github.com/loomgate/loomgate/cmd/gateway/internal/config"
	"github.com/loomgate/loomgate/cmd/gateway/internal/control"
	"github.com/loomgate/loomgate/cmd/gateway/internal/stack"
)

// note leaves records of what a command does that no gateway sees.
func note(ctx context.Context, cfg *config.Config, leave func(*control.Records, control.Actor) error) error {
	return withStack(ctx, cfg, func(s *stack.Stack) error {
		own, err := s.Tenant(control.Tenant)
		if err != nil {
			return err
		}
		return leave(control.New(own, control.Options{}), local())
	})
}

// local is whoever runs a command beside the databases.
func local() control.Actor {
	by := control.Actor{APIKey: "local:?"}
	if who, err := user.Current(); err == nil {
		by.APIKey = "local:" + who.Username
	}
	if host, err := os.Hostname(); err == nil {
		by.APIKey += "@" + host
	}
	return by
}

// noteMigrated leaves a record for each shard whose schema has changed: only then can the
// records be reached, and not before the databases are a cluster.
func noteMigrated(ctx context.Context, cmd *cobra.Command, cfg *config.Config, shards []string) {
	if len(shards) == 0 {
		return
	}
	err := note(ctx, cfg, func(r *control.Records, by control.Actor) error {
		for _, shard := range shards {
			if err := r.NoteShard(ctx, by, control.ShardMigrated, shard); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "there is no record of it in the databases: %v\n", err)
	}
}
