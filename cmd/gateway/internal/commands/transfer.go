package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/loomgate/loomgate/cmd/gateway/internal/transfer"
	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

func newImport() *cobra.Command {
	cmd := &cobra.Command{
		Use: "import --tenant NAME FILE", Short: "Store a file of events, each once", Args: arguments(cobra.ExactArgs(1)),
		Long: `Import stores the events of a file of newline-delimited JSON, plain or gzip; - reads
standard input. It can be stopped and run again: what is stored already is not stored
again. A missing tenant is made, if the key is an admin's.`,
		Example: `  gateway import --tenant permits permits.ndjson.gz
  zcat permits.ndjson.gz | gateway import --tenant permits -`,
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := targetOf(cmd)
			if err != nil {
				return err
			}
			if err := t.ensureTenant(cmd.Context()); err != nil {
				return err
			}
			return t.store(cmd.Context(), func(ctx context.Context, store *spi.Store) error {
				return runImport(ctx, cmd, t.Tenant, store, args[0])
			})
		},
	}
	addClient(cmd)
	addTenant(cmd)
	addRetry(cmd)
	cmd.Flags().Int("window", 0, "how many lines are gathered before they are sent (default 10000)")
	return cmd
}

// addRetry adds the flag that says how patient to be.
func addRetry(cmd *cobra.Command) {
	cmd.Flags().Duration("retry-for", time.Minute, "how long to go on while a shard does not answer")
}

func retryOf(cmd *cobra.Command, progress *progress) transfer.Retry {
	patience, _ := cmd.Flags().GetDuration("retry-for")
	return transfer.Retry{For: patience, Notify: func(err error) { progress.say("trying again: %v", message(err)) }}
}

// ensureTenant makes the tenant that is named, if the key may. Whether a key that may
// not reaches the tenant, its calls will tell.
func (t target) ensureTenant(ctx context.Context) error {
	if t.Tenant == "" {
		return nil
	}
	return t.admin(ctx, func(ctx context.Context, admin pb.AdminServiceClient) error {
		_, err := admin.CreateTenant(ctx, &pb.CreateTenantRequest{Name: string(t.Tenant)})
		switch status.Code(err) {
		case codes.AlreadyExists, codes.PermissionDenied, codes.Unimplemented:
			return nil
		}
		return err
	})
}

func runImport(ctx context.Context, cmd *cobra.Command, tenant spi.TenantName, store *spi.Store, path string) error {
	in, close, err := openInput(cmd, path)
	if err != nil {
		return err
	}
	defer close()
	progress := newProgress(cmd, "events")
	defer progress.end()
	window, _ := cmd.Flags().GetInt("window")
	report, err := transfer.Import(ctx, store, in, transfer.ImportOptions{
		Tenant: tenant, Window: window, Retry: retryOf(cmd, progress),
		Progress: func(r transfer.ImportReport) { progress.set(r.Lines) },
	})
	progress.end()
	fmt.Fprintf(cmd.OutOrStdout(), "%d events of %d executions: %d new, %d there already\n", report.Lines, report.Executions, report.New, report.Present)
	return err
}

func openInput(cmd *cobra.Command, path string) (io.Reader, func(), error) {
	if path == "-" {
		return cmd.InOrStdin(), func() {}, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	return f, func() { f.Close() }, nil
}

func newExport() *cobra.Command {
	cmd := &cobra.Command{
		Use: "export --tenant NAME [FILE]", Short: "Write all of a tenant's events to a file", Args: arguments(cobra.MaximumNArgs(1)),
		Long: `Export writes every execution in code point order, its events as newline-delimited
JSON, to FILE or to standard output. FILE appears when it is whole. One whose name ends
in .gz is gzip. What --format full writes comes back in as it was.`,
		Example: `  gateway export --tenant permits permits.ndjson.gz
  gateway export --tenant permits --format full --after case-500 rest.ndjson`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return withStore(cmd, func(ctx context.Context, store *spi.Store) error { return runExport(ctx, cmd, store, args) })
		},
	}
	cmd.Flags().String("format", "simple", "simple, or full: also id, sequence, kernel stamp, fence, metadata")
	cmd.Flags().String("prefix", "", "only executions whose id starts with it")
	cmd.Flags().String("after", "", "only executions that come after it: where an earlier export got to")
	cmd.Flags().Bool("gzip", false, "compress, whatever the file is called")
	addClient(cmd)
	addTenant(cmd)
	addRetry(cmd)
	return cmd
}

func runExport(ctx context.Context, cmd *cobra.Command, store *spi.Store, args []string) (err error) {
	format, _ := cmd.Flags().GetString("format")
	if format != string(transfer.Simple) && format != string(transfer.Full) {
		return &usageError{fmt.Errorf("--format is %q, not simple or full", format)}
	}
	progress := newProgress(cmd, "events")
	defer progress.end()
	opts := transfer.ExportOptions{
		Format: transfer.Format(format), Retry: retryOf(cmd, progress),
		Progress: func(r transfer.ExportReport) { progress.set(r.Events) },
	}
	opts.Gzip, _ = cmd.Flags().GetBool("gzip")
	opts.Prefix, _ = cmd.Flags().GetString("prefix")
	opts.After, _ = cmd.Flags().GetString("after")
	w := cmd.OutOrStdout()
	if len(args) == 1 {
		opts.Gzip = opts.Gzip || filepath.Ext(args[0]) == ".gz"
		f, err := os.CreateTemp(filepath.Dir(args[0]), ".export-*")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, keep(f, args[0], err == nil)) }()
		w = f
	}
	report, err := transfer.Export(ctx, store, w, opts)
	progress.end()
	if err != nil {
		return fmt.Errorf("%w (go on with --after %q)", err, report.Last)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%d events of %d executions\n", report.Events, report.Executions)
	return nil
}

// keep gives a whole file its name; of one that is not, a part has a name of its own.
func keep(f *os.File, name string, whole bool) error {
	if !whole {
		name += ".partial"
	}
	if err := errors.Join(f.Chmod(0o600), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
