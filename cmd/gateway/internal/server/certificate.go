package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"sync"
	"time"

	"github.com/loomgate/loomgate/cmd/gateway/internal/auth"
	"github.com/loomgate/loomgate/cmd/gateway/internal/config"
)

// A certificate, and the authorities of the clients', are read from their files again when
// these change.
type certificate struct {
	files config.TLS
	log   *slog.Logger

	mu      sync.Mutex
	read    *tls.Certificate
	clients *x509.CertPool       // nil: clients bring no certificate
	stamps  map[string]time.Time // of the files when they were read
	looked  time.Time
}

// lookAgain is how far apart two looks at the files are.
const lookAgain = time.Second

// serverTLS returns the configuration of both listeners and its certificate, nil without
// TLS.
func serverTLS(files config.TLS, log *slog.Logger) (*tls.Config, *certificate, error) {
	if !files.Enabled() {
		return nil, nil, nil
	}
	c, err := readCertificate(files, log)
	if err != nil {
		return nil, nil, err
	}
	secure := &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			own, _ := c.current()
			return own, nil
		},
	}
	switch files.ClientAuth {
	case config.ClientAuthOptional:
		secure.ClientAuth = tls.VerifyClientCertIfGiven
	case config.ClientAuthRequired:
		secure.ClientAuth = tls.RequireAndVerifyClientCert
	default:
		return secure, c, nil
	}
	secure.NextProtos = []string{"h2", "http/1.1"} // the listeners would only add theirs to the configuration around this
	asking := secure.Clone()
	secure.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		config := asking.Clone()
		_, config.ClientCAs = c.current()
		return config, nil
	}
	return secure, c, nil
}

func readCertificate(files config.TLS, log *slog.Logger) (*certificate, error) {
	c := &certificate{files: files, log: log}
	return c, c.load()
}

// become takes over what another was read as, and its files.
func (c *certificate) become(other *certificate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.files, c.read, c.clients, c.stamps, c.looked = other.files, other.read, other.clients, other.stamps, time.Time{}
}

// current returns the certificate and the clients' authorities as their files are. Files
// that do not fit, as while they are being replaced one after the other, leave them as
// they were.
func (c *certificate) current() (own *tls.Certificate, clients *x509.CertPool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.looked) < lookAgain {
		return c.read, c.clients
	}
	c.looked = time.Now()
	if stamps, err := c.stat(); err != nil || !maps.Equal(stamps, c.stamps) {
		if err = errors.Join(err, c.load()); err != nil {
			c.log.Warn("the certificate could not be read again, the last one serves", "error", err)
		} else {
			c.log.Info("the certificate was read again")
		}
	}
	return c.read, c.clients
}

func (c *certificate) stat() (stamps map[string]time.Time, err error) {
	stamps = map[string]time.Time{}
	for _, path := range []string{c.files.CertFile, c.files.KeyFile, c.files.ClientCAFile} {
		if path == "" {
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("tls: %w", err)
		}
		stamps[path] = info.ModTime()
	}
	return stamps, nil
}

func (c *certificate) load() error {
	stamps, err := c.stat()
	if err != nil {
		return err
	}
	read, err := tls.LoadX509KeyPair(c.files.CertFile, c.files.KeyFile)
	if err != nil {
		return fmt.Errorf("tls: %w", err)
	}
	var clients *x509.CertPool
	if c.files.ClientCAFile != "" {
		if clients, err = auth.ReadAuthorities(c.files.ClientCAFile); err != nil {
			return fmt.Errorf("tls: %w", err)
		}
	}
	c.read, c.clients, c.stamps = &read, clients, stamps
	return nil
}
