// Package commands is the command line of the gateway.
package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/loomgate/loomgate/cmd/gateway/internal/build"
	"github.com/loomgate/loomgate/cmd/gateway/internal/config"
	"github.com/loomgate/loomgate/spi"
)

// Exit codes; docs/commands.md tells them to scripts.
const (
	exitOK          = 0
	exitFailed      = 1 // it was tried, and failed
	exitUsage       = 2 // the command line is wrong
	exitConfig      = 3 // the configuration is wrong
	exitRefused     = 4 // the key does not allow it
	exitUnavailable = 5 // a server or a shard does not answer; try again
	exitProblems    = 6 // a check has found problems
)

// Main runs a command line and returns its exit code.
func Main(args []string, in io.Reader, out, errOut io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintln(errOut, "gateway:", message(err))
	}
	return exitCode(err)
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "gateway",
		Short: "A sharded, multi-tenant storage gateway for durable executions",
		Long: `gateway keeps durable executions as append-only event logs in several Postgres
databases, or in SQLite files where none is configured.

Begin with "gateway serve": it makes four SQLite files under ./loomgate-data, a tenant
and a key, and prints a curl line that works.`,
		Version:       fmt.Sprintf("%v, writes as %v", build.Read(), build.Writer),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	root.AddGroup(
		&cobra.Group{ID: "server", Title: "The server and its databases:"},
		&cobra.Group{ID: "admin", Title: "What operators ask of a running server:"},
		&cobra.Group{ID: "data", Title: "A tenant's data:"},
	)
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add("server", newServe(), newInit(), newMigrate(), newBackfill(), newCheck(), newHealth(), newConfig(), newKeyring())
	add("admin", newTenants(), newAPIKeys(), newShards(), newWhere(), newAudit())
	add("data", newExecutions(), newImport(), newExport(), newRetention(), newVerify())
	return root
}

// A usageError is a command line that is wrong.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() + "; see --help" }
func (e *usageError) Unwrap() error { return e.err }

// errProblems says that a check has reported what it found.
var errProblems = errors.New("there are problems")

// arguments makes a wrong number of arguments a usageError.
func arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return &usageError{err}
		}
		return nil
	}
}

// message is an error as people read it: of an answer over the wire what it says.
func message(err error) string {
	if st, ok := status.FromError(err); ok && st.Code() != codes.OK {
		return st.Message()
	}
	return err.Error()
}

func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	if is[*usageError](err) {
		return exitUsage
	}
	if is[*config.InvalidError](err) {
		return exitConfig
	}
	if errors.Is(err, errProblems) {
		return exitProblems
	}
	if is[*spi.UnavailableError](err) {
		return exitUnavailable
	}
	switch status.Code(err) {
	case codes.Unauthenticated, codes.PermissionDenied:
		return exitRefused
	case codes.Unavailable, codes.DeadlineExceeded:
		return exitUnavailable
	}
	return exitFailed
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
