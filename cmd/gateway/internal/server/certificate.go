package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/loomgate/loomgate/cmd/gateway/internal/config"
)

// A certificate is read from its files again when they change.
type certificate struct {
	files config.TLS
	log   *slog.Logger

	mu     sync.Mutex
	read   *tls.Certificate
	stamps [2]time.Time // of the files when they were read
	looked time.Time
}

// lookAgain is how far apart two looks at the files are.
const lookAgain = time.Second

// serverTLS returns the configuration of both listeners, nil without TLS.
func serverTLS(files config.TLS, log *slog.Logger) (*tls.Config, error) {
	if !files.Enabled() {
		return nil, nil
	}
	c := &certificate{files: files, log: log}
	if err := c.load(); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current(), nil },
	}, nil
}

// current returns the certificate as its files are. Files that do not fit, as while
// they are being replaced one after the other, leave it as it was.
func (c *certificate) current() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.looked) < lookAgain {
		return c.read
	}
	c.looked = time.Now()
	if stamps, err := c.stat(); err != nil || stamps != c.stamps {
		if err = errors.Join(err, c.load()); err != nil {
			c.log.Warn("the certificate could not be read again, the last one serves", "error", err)
		} else {
			c.log.Info("the certificate was read again")
		}
	}
	return c.read
}

func (c *certificate) stat() (stamps [2]time.Time, err error) {
	for i, path := range []string{c.files.CertFile, c.files.KeyFile} {
		info, err := os.Stat(path)
		if err != nil {
			return stamps, fmt.Errorf("tls: %w", err)
		}
		stamps[i] = info.ModTime()
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
	c.read, c.stamps = &read, stamps
	return nil
}
