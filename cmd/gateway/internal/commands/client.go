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

	"github.com/loomgate/loomgate/backends/remote"
	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

const defaultAddr = "127.0.0.1:7070"

// addClient adds the flags that say which server is called, and as whom.
func addClient(cmd *cobra.Command) {
	flags := cmd.PersistentFlags()
	flags.String("addr", "", "address of the gateway's gRPC port (default $LOOMGATE_ADDR, else "+defaultAddr+")")
	flags.String("key-file", "", "file that holds the API key, or a token (default: what is in $LOOMGATE_KEY)")
	flags.String("client-cert-file", "", "certificate that says who calls, PEM; then no key is needed")
	flags.String("client-cert-key-file", "", "private key of the certificate, PEM")
	flags.String("ca-file", "", "certificates that sign the gateway's, PEM (default: the system's)")
	flags.Bool("plaintext", false, "no TLS; an address on loopback needs no telling")
}

// addTenant adds the flag that chooses a tenant.
func addTenant(cmd *cobra.Command) {
	cmd.PersistentFlags().String("tenant", "", "tenant, where the key allows several")
}

// A target is a server and who calls it.
type target struct {
	addr string
	remote.Options
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
	t.Tenant = spi.TenantName(text("tenant", "", ""))
	t.APIKey = os.Getenv("LOOMGATE_KEY")
	if path := text("key-file", "", ""); path != "" {
		raw, err := os.ReadFile(path)
		if err != nil {
			return t, err
		}
		t.APIKey = strings.TrimSpace(string(raw))
	}
	own, err := clientCertificate(text("client-cert-file", "", ""), text("client-cert-key-file", "", ""))
	if err != nil {
		return t, err
	}
	if t.APIKey == "" && own == nil {
		return t, &usageError{errors.New("there is no API key: give --key-file, or $LOOMGATE_KEY, or --client-cert-file")}
	}
	t.Plaintext = cmd.Flag("plaintext").Value.String() == "true" || isLoopback(t.addr)
	if path := text("ca-file", "", ""); path != "" {
		pem, err := os.ReadFile(path)
		if err != nil {
			return t, err
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return t, fmt.Errorf("%s holds no certificate", path)
		}
		t.TLS, t.Plaintext = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, false
	}
	if own != nil {
		if t.TLS == nil {
			t.TLS, t.Plaintext = &tls.Config{MinVersion: tls.VersionTLS12}, false
		}
		t.TLS.Certificates = []tls.Certificate{*own}
	}
	return t, nil
}

// clientCertificate returns what the client brings; nil for nothing.
func clientCertificate(certFile, keyFile string) (*tls.Certificate, error) {
	if certFile == "" && keyFile == "" {
		return nil, nil
	}
	if certFile == "" || keyFile == "" {
		return nil, &usageError{errors.New("--client-cert-file and --client-cert-key-file go together")}
	}
	own, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, err
	}
	return &own, nil
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
func withStore(cmd *cobra.Command, do func(ctx context.Context, store *spi.Store) error) error {
	t, err := targetOf(cmd)
	if err != nil {
		return err
	}
	return t.store(cmd.Context(), do)
}

func (t target) store(ctx context.Context, do func(ctx context.Context, store *spi.Store) error) error {
	client, err := remote.Open(ctx, t.addr, t.Options)
	if err != nil {
		return err
	}
	defer client.Close()
	return do(ctx, client.Store())
}

// withAdmin calls do with the server's AdminService.
func withAdmin(cmd *cobra.Command, do func(ctx context.Context, admin pb.AdminServiceClient) error) error {
	t, err := targetOf(cmd)
	if err != nil {
		return err
	}
	return t.admin(cmd.Context(), do)
}

// admin leaves the tenant out: what operators do is nobody's in particular.
func (t target) admin(ctx context.Context, do func(ctx context.Context, admin pb.AdminServiceClient) error) error {
	t.Tenant = ""
	conn, err := remote.Dial(t.addr, t.Options)
	if err != nil {
		return &usageError{err}
	}
	defer conn.Close()
	return do(ctx, pb.NewAdminServiceClient(conn))
}
