package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/loomgate/loomgate/cmd/gateway/internal/auth"
	"github.com/loomgate/loomgate/cmd/gateway/internal/config"
	"github.com/loomgate/loomgate/cmd/gateway/internal/greeting"
	"github.com/loomgate/loomgate/cmd/gateway/internal/server"
	"github.com/loomgate/loomgate/spi"
)

// addConfig adds the flags that say what a server is configured by.
func addConfig(cmd *cobra.Command) {
	flags := cmd.PersistentFlags()
	flags.StringP("config", "c", "", "configuration file (default: $LOOMGATE_CONFIG, else none: embedded shards)")
	flags.String("data", "", "folder of the embedded shards (default loomgate-data)")
	_ = cmd.MarkPersistentFlagFilename("config", "yaml", "yml")
	_ = cmd.MarkPersistentFlagDirname("data")
}

// settingFlags are the flags that are settings, by name.
var settingFlags = map[string]string{"data": "data_dir", "grpc-listen": "grpc.listen", "http-listen": "http.listen"}

// loadConfig reads the configuration that the flags, the environment and the file say.
func loadConfig(cmd *cobra.Command) (*config.Config, error) {
	from := config.Sources{Environ: os.Environ()}
	if from.File = cmd.Flag("config").Value.String(); from.File == "" {
		from.File = os.Getenv("LOOMGATE_CONFIG")
	}
	for _, name := range []string{"data", "grpc-listen", "http-listen"} {
		if f := cmd.Flag(name); f != nil && f.Changed {
			from.Flags = append(from.Flags, config.Flag{Name: "--" + name, Setting: settingFlags[name], Value: f.Value.String()})
		}
	}
	return config.Load(from)
}

// newLogger returns a logger that shows no API key.
func newLogger(w io.Writer, cfg config.Log) *slog.Logger {
	log, _ := newAdjustableLogger(w, cfg)
	return log
}

// newAdjustableLogger is newLogger, with a level that can be changed.
func newAdjustableLogger(w io.Writer, cfg config.Log) (*slog.Logger, *slog.LevelVar) {
	level := new(slog.LevelVar) // info, if the configuration's is none: it has been checked
	_ = level.UnmarshalText([]byte(cfg.Level))
	opts := &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch v := a.Value.Any().(type) {
		case string:
			a.Value = slog.StringValue(auth.Redact(v))
		case error:
			a.Value = slog.StringValue(auth.Redact(wholeError(v)))
		}
		return a
	}}
	if cfg.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, opts)), level
	}
	return slog.New(slog.NewTextHandler(w, opts)), level
}

// wholeError is an error with what its text hides from callers.
func wholeError(err error) string {
	if hidden, ok := errors.AsType[*spi.InternalError](err); ok && hidden.Cause != nil {
		return fmt.Sprintf("%v (%s)", err, wholeError(hidden.Cause))
	}
	return err.Error()
}

// gcPercent is how much the heap grows between two collections unless $GOGC says: little
// of it lives long, and a small heap is collected all the time.
const gcPercent = 400

func newServe() *cobra.Command {
	cmd := &cobra.Command{
		Use: "serve", Short: "Run the gateway", Args: arguments(cobra.NoArgs),
		Long: `Serve runs the gateway until it is told to stop, and then lets the calls under way come
to an end. Without a configuration it keeps everything in four SQLite files under --data,
makes a tenant named demo, and leaves a key for everything in admin.key there.`,
		Example: `  gateway serve
  gateway serve -c /etc/loomgate/gateway.yaml`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := loadConfig(cmd)
			if err != nil {
				return err
			}
			if os.Getenv("GOGC") == "" {
				debug.SetGCPercent(gcPercent)
			}
			log, level := newAdjustableLogger(cmd.ErrOrStderr(), cfg.Log)
			hangup := make(chan os.Signal, 1)
			signal.Notify(hangup, syscall.SIGHUP)
			defer signal.Stop(hangup)
			return server.Run(cmd.Context(), server.Options{
				Config: cfg, Log: log, Level: level, Hangup: hangup,
				Load: func() (*config.Config, error) { return loadConfig(cmd) },
				Serving: func(at server.Addresses) {
					log.Info("serving", "grpc", at.GRPC.String(), "http", at.HTTP.String(), "shards", len(cfg.Shards))
					if at.Admin != nil {
						log.Info("metrics, profiles and health", "admin", at.Admin.String())
					}
					if cfg.Embedded() {
						greeting.Print(cmd.OutOrStdout(), at.HTTP.String(), server.AdminKeyFile(cfg), server.DemoTenant)
					}
				},
			})
		},
	}
	addConfig(cmd)
	cmd.Flags().String("grpc-listen", "", "address of gRPC (default 127.0.0.1:7070)")
	cmd.Flags().String("http-listen", "", "address of HTTP and JSON (default 127.0.0.1:7071)")
	return cmd
}

// withConfig calls do with the configuration, for commands that reach the databases
// themselves.
func withConfig(do func(ctx context.Context, cmd *cobra.Command, cfg *config.Config) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		cfg, err := loadConfig(cmd)
		if err != nil {
			return err
		}
		return do(cmd.Context(), cmd, cfg)
	}
}
