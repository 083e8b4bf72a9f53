package commands

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/loomgate/loomgate/spi"
)

func newHealth() *cobra.Command {
	cmd := &cobra.Command{
		Use: "health", Short: "Ask a gateway whether it serves; fails if it does not", Args: arguments(cobra.NoArgs),
		Long: `Health asks the gateway that runs with the same configuration on this machine, at its admin
port if it has one, whether calls can be authenticated, and prints how the shards are. It
is made for images that hold nothing but the gateway. One that does not serve, or does not
answer in time, makes it fail with 5. A shard that is down does not.`,
		Example: `  gateway health -c /etc/loomgate/gateway.yaml
  gateway health --url http://127.0.0.1:7072`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			base, err := healthURL(cmd)
			if err != nil {
				return err
			}
			timeout, _ := cmd.Flags().GetDuration("timeout")
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return askHealth(ctx, cmd, base)
		},
	}
	addConfig(cmd)
	cmd.Flags().String("url", "", "where to ask, instead of what the configuration says")
	cmd.Flags().Duration("timeout", 3*time.Second, "how long the answer may take")
	return cmd
}

// healthURL returns where the gateway is asked.
func healthURL(cmd *cobra.Command) (*url.URL, error) {
	if text, _ := cmd.Flags().GetString("url"); text != "" {
		at, err := url.Parse(text)
		if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
			return nil, &usageError{fmt.Errorf("--url %q is no address such as http://127.0.0.1:7072", text)}
		}
		return at, nil
	}
	cfg, err := loadConfig(cmd)
	if err != nil {
		return nil, err
	}
	at := &url.URL{Scheme: "http", Host: nearby(cmp.Or(cfg.Admin.Listen, cfg.HTTP.Listen))}
	if cfg.TLS.Enabled() && cfg.Admin.Listen == "" {
		at.Scheme = "https"
	}
	return at, nil
}

// nearby is where this machine reaches what listens at an address of the configuration.
func nearby(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return listen
}

var errNotReady = errors.New("the gateway does not serve")

func askHealth(ctx context.Context, cmd *cobra.Command, base *url.URL) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath("readyz").String(), http.NoBody)
	if err != nil {
		return &usageError{err}
	}
	// The certificate is for the names that clients use. Nothing that is secret is sent.
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	res, err := client.Do(req)
	if err != nil {
		return &spi.UnavailableError{Cause: err}
	}
	defer res.Body.Close()
	var state struct {
		Ready   bool
		Problem string
		Shards  map[string]bool
	}
	if err := json.NewDecoder(res.Body).Decode(&state); err != nil {
		return &spi.UnavailableError{Cause: fmt.Errorf("the answer is no gateway's (%s): %w", res.Status, err)}
	}
	for _, name := range slices.Sorted(maps.Keys(state.Shards)) {
		if !state.Shards[name] {
			fmt.Fprintf(cmd.OutOrStdout(), "shard %s does not answer\n", name)
		}
	}
	if res.StatusCode != http.StatusOK || !state.Ready {
		return &spi.UnavailableError{Cause: fmt.Errorf("%w: %s", errNotReady, state.Problem)}
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), "the gateway serves")
	return err
}
