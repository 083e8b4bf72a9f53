package commands

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/loomgate/loomgate/backends/remote"
	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

const defaultAddr = "127.0.0.1:7070"

// addClient adds the flags that say which server is called, and as whom.
func addClient(cmd *cobra.Command) {
	flags := cmd.PersistentFlags()
	flags.String("addr", "", "address of the gateway's gRPC port (default $LOOMGATE_ADDR, else "+defaultAddr+")")
	flags.String("key-file", "", "file that holds the API key (default: the key in $LOOMGATE_KEY)")
	flags.String("ca-file", "", "certificates that sign the gateway's, PEM (default: the system's)")
	flags.Bool("plaintext", false, "no TLS; an address on loopback needs no telling")
}

// addTenant adds the flag that chooses a tenant.
func addTenant(cmd *cobra.Command) {
	cmd.PersistentFlags().String("tenant", "", "tenant, where the key allows several")
}

// A target is a server and who calls it.
type target struct {
	addr      string
	key       string
	tenant    spi.TenantName
	plaintext bool
	tls       *tls.Config
}

func targetOf(cmd *cobra.Command) (t target, err error) {
	text := func(flag, variable, otherwise string) string {
		if f := cmd.Flag(flag); f != nil && f.Value.String() != "" {
			return f.Value.String()
		}
		if v := os.Getenv(variable); variable != "" && v != "" {
			return v
		}
		return otherwise
	}
	t.addr = text("addr", "LOOMGATE_ADDR", defaultAddr)
	t.tenant = spi.TenantName(text("tenant", "", ""))
	t.key = os.Getenv("LOOMGATE_KEY")
	if path := text("key-file", "", ""); path != "" {
		raw, err := os.ReadFile(path)
		if err != nil {
			return t, err
		}
		t.key = strings.TrimSpace(string(raw))
	}
	if t.key == "" {
		return t, &usageError{errors.New("there is no API key: give --key-file, or $LOOMGATE_KEY")}
	}
	t.plaintext = cmd.Flag("plaintext").Value.String() == "true" || isLoopback(t.addr)
	if path := text("ca-file", "", ""); path != "" {
		pem, err := os.ReadFile(path)
		if err != nil {
			return t, err
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return t, fmt.Errorf("%s holds no certificate", path)
		}
		t.tls, t.plaintext = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, false
	}
	return t, nil
}

func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// withStore calls do with the tenant's store that the server gives the key.
func withStore(cmd *cobra.Command, do func(ctx context.Context, t target, store *spi.Store) error) error {
	t, err := targetOf(cmd)
	if err != nil {
		return err
	}
	client, err := remote.Open(cmd.Context(), t.addr, remote.Options{APIKey: t.key, Tenant: t.tenant, TLS: t.tls, Plaintext: t.plaintext})
	if err != nil {
		return err
	}
	defer client.Close()
	return do(cmd.Context(), t, client.Store())
}

// withAdmin calls do with the server's AdminService.
func withAdmin(cmd *cobra.Command, do func(ctx context.Context, admin pb.AdminServiceClient) error) error {
	t, err := targetOf(cmd)
	if err != nil {
		return err
	}
	return t.admin(cmd.Context(), do)
}

func (t target) admin(ctx context.Context, do func(ctx context.Context, admin pb.AdminServiceClient) error) error {
	transport := insecure.NewCredentials()
	if !t.plaintext {
		transport = credentials.NewTLS(t.tls)
	}
	conn, err := grpc.NewClient(t.addr, grpc.WithTransportCredentials(transport), grpc.WithPerRPCCredentials(keyCredential{t.key, !t.plaintext}))
	if err != nil {
		return &usageError{err}
	}
	defer conn.Close()
	return do(ctx, pb.NewAdminServiceClient(conn))
}

// A keyCredential is an API key that goes with every call.
type keyCredential struct {
	key    string
	secure bool
}

func (k keyCredential) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + k.key}, nil
}

func (k keyCredential) RequireTransportSecurity() bool { return k.secure }
