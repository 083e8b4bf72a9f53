package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loomgate/loomgate/cmd/gateway/internal/config"
)

// issue returns a certificate of that serial number and its key, PEM.
func issue(t *testing.T, serial int64) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
}

func TestACertificateIsReadAgainWhenItsFilesHaveChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		files := config.TLS{CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}
		changes := time.Now()
		replace := func(path string, text []byte) {
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
			changes = changes.Add(time.Second) // whatever the file system's clock can tell apart
			if err := os.Chtimes(path, changes, changes); err != nil {
				t.Fatal(err)
			}
		}
		firstCert, firstKey := issue(t, 1)
		secondCert, secondKey := issue(t, 2)
		replace(files.CertFile, firstCert)
		replace(files.KeyFile, firstKey)
		secure, _, err := serverTLS(files, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		want := func(when string, serial int64) {
			t.Helper()
			time.Sleep(lookAgain)
			served, err := secure.GetCertificate(&tls.ClientHelloInfo{})
			if err != nil || served.Leaf.SerialNumber.Int64() != serial {
				t.Errorf("%s: %v is served (%v)", when, served.Leaf.SerialNumber, err)
			}
		}
		want("at first", 1)
		replace(files.CertFile, secondCert)
		want("a certificate without its key", 1)
		replace(files.KeyFile, secondKey)
		want("both replaced", 2)
		if err := os.Remove(files.KeyFile); err != nil {
			t.Fatal(err)
		}
		want("no key", 2)
		replace(files.KeyFile, []byte("no key at all"))
		want("a broken key", 2)
		replace(files.CertFile, firstCert)
		replace(files.KeyFile, firstKey)
		want("back again", 1)
	})
}
