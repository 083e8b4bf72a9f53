package commands

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/loomgate/loomgate/cmd/gateway/internal/config"
	"github.com/loomgate/loomgate/cmd/gateway/internal/control"
	"github.com/loomgate/loomgate/cmd/gateway/internal/stack"
)

func newInit() *cobra.Command {
	cmd := &cobra.Command{
		Use: "init", Short: "Give the shards their identity and slots, and make the first admin key", Args: arguments(cobra.NoArgs),
		Long: `Init makes one cluster of the configured databases: each gets its name, and its share of
the slots. It prints a key for everything, once; with --key-file it writes that to a new
file instead, which only its owner can read. Databases that have an identity already are
left as they are, and so is a key that is there.`,
		Example: `  gateway init -c gateway.yaml --cluster production
  gateway init -c gateway.yaml --cluster production --key-file admin.key`,
		RunE: withConfig(func(ctx context.Context, cmd *cobra.Command, cfg *config.Config) error {
			cluster, _ := cmd.Flags().GetString("cluster")
			if cluster == "" {
				return &usageError{errors.New("give the cluster a name with --cluster")}
			}
			keyFile, _ := cmd.Flags().GetString("key-file")
			if err := mayWrite(ctx, cfg, keyFile); err != nil {
				return err
			}
			if err := stack.Init(ctx, cfg, cluster); err != nil {
				return err
			}
			return withRecords(ctx, cfg, func(records *control.Records) error { return firstKey(ctx, cmd, records, keyFile) })
		}),
	}
	addConfig(cmd)
	cmd.Flags().String("cluster", "", "name of the cluster, the same for all its shards")
	cmd.Flags().String("key-file", "", "new file for the key, which is then not printed")
	_ = cmd.MarkFlagFilename("key-file")
	return cmd
}

// withRecords calls do with the control records as they are now.
func withRecords(ctx context.Context, cfg *config.Config, do func(*control.Records) error) error {
	return withStack(ctx, cfg, func(s *stack.Stack) error {
		own, err := s.Tenant(control.Tenant)
		if err != nil {
			return err
		}
		records := control.New(own, control.Options{})
		if err := records.Refresh(ctx); err != nil {
			return err
		}
		return do(records)
	})
}

// byInit makes the first key.
var byInit = control.Actor{APIKey: "init"}

var errKeyFile = errors.New("is there already, and is not written over")

// mayWrite fails if a key would have to be written over a file: before anything changes.
func mayWrite(ctx context.Context, cfg *config.Config, keyFile string) error {
	if _, err := os.Lstat(keyFile); keyFile == "" || errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	made := false
	err := withRecords(ctx, cfg, func(r *control.Records) (err error) {
		made, err = r.HasAdmin()
		return err
	})
	if !made {
		return errors.Join(fmt.Errorf("%s %w", keyFile, errKeyFile), err)
	}
	return nil
}

// firstKey makes a key, unless there is one, and prints it or writes it to a new file.
func firstKey(ctx context.Context, cmd *cobra.Command, records *control.Records, keyFile string) error {
	made, err := records.HasAdmin()
	if err != nil {
		return err
	}
	var key string
	switch {
	case made:
	case keyFile != "":
		key, err = keyInFile(ctx, records, keyFile)
	default:
		key, err = records.Bootstrap(ctx, byInit)
	}
	switch {
	case err != nil:
		return err
	case key == "":
		fmt.Fprintln(cmd.ErrOrStderr(), "the shards are ready; an admin key was made earlier")
	case keyFile != "":
		fmt.Fprintf(cmd.ErrOrStderr(), "the shards are ready; the admin key is in %s\n", keyFile)
	default:
		fmt.Fprintln(cmd.ErrOrStderr(), "the shards are ready; this admin key is shown once:")
		_, err = fmt.Fprintln(cmd.OutOrStdout(), key)
	}
	return err
}

// keyInFile makes a key, unless there is one, and writes it to a new file. One that cannot
// be written is revoked, so that another can be made.
func keyInFile(ctx context.Context, records *control.Records, path string) (key string, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	if key, err = records.Bootstrap(ctx, byInit); err == nil && key != "" {
		_, err = fmt.Fprintln(f, key)
		if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
			return key, nil
		}
		id, _, _ := control.ParseKey(key)
		return "", errors.Join(err, records.RevokeAPIKey(ctx, byInit, id), os.Remove(path))
	}
	return "", errors.Join(err, f.Close(), os.Remove(path))
}
