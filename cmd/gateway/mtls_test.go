package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// selfSigned writes a certificate that is its own authority, and its key, and returns the
// files.
func selfSigned(t *testing.T, dir, name string) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	write(t, certFile, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	write(t, keyFile, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})))
	return certFile, keyFile
}

func TestAnOperatorComesWithACertificateInsteadOfAKey(t *testing.T) {
	dir := t.TempDir()
	serverCert, _ := selfSigned(t, dir, "server")
	clientCert, clientKey := selfSigned(t, dir, "operator")
	file := filepath.Join(dir, "gateway.yaml")
	write(t, file, `
data_dir: data
tls: {cert_file: server.crt, key_file: server.key, client_ca_file: operator.crt, client_auth: required}
admin: {listen: '127.0.0.1:0'}
identity: {certificates: [{common_name: operator, scopes: [admin]}]}
`)
	p := start(t, "", "-c", file)
	p.awaitServing()
	as := func(args ...string) (out, errOut string, code int) {
		return gateway(t, append(args, "--addr", p.grpc, "--ca-file", serverCert, "--client-cert-file", clientCert, "--client-cert-key-file", clientKey)...)
	}
	p.until("the gateway answers", func() bool {
		_, _, code := as("shards", "status")
		return code == 0
	})
	if _, errOut, code := as("tenants", "create", "acme"); code != 0 {
		t.Fatalf("exit code %d: %s", code, errOut)
	}
	if out, _, _ := as("audit", "-o", "json"); !strings.Contains(out, `"by":"certificate:CN=operator"`) {
		t.Errorf("the audit trail has not who it was:\n%s", out)
	}
	if _, errOut, code := gateway(t, "tenants", "list", "--addr", p.grpc, "--client-cert-file", clientCert); code != 2 || !strings.Contains(errOut, "go together") {
		t.Errorf("half of a pair: exit code %d: %s", code, errOut)
	}
}
