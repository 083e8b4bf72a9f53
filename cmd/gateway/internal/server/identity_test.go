package server_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/loomgate/loomgate/cmd/gateway/internal/config"
	"github.com/loomgate/loomgate/cmd/gateway/internal/server"
	"github.com/loomgate/loomgate/internal/throwaway"
	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

// An authority signs certificates.
type authority struct {
	testing.TB
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{TB: t}
	a.certificate, a.key = a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "an authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	return a
}

// sign returns a certificate for a new key.
func (a *authority) sign(template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.Helper()
	check := func(err error) {
		if err != nil {
			a.Helper()
			a.Fatal(err)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(err)
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, by := a.certificate, a.key
	if parent == nil {
		parent, by = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	check(err)
	certificate, err := x509.ParseCertificate(der)
	check(err)
	return certificate, key
}

// client returns what a client of that name brings.
func (a *authority) client(name string) tls.Certificate {
	a.Helper()
	c, key := a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return tls.Certificate{Certificate: [][]byte{c.Raw}, PrivateKey: key}
}

// write writes a certificate, and its key if there is one, PEM.
func write(t testing.TB, certificate *x509.Certificate, certFile string, key *ecdsa.PrivateKey, keyFile string) {
	t.Helper()
	files := map[string][]byte{certFile: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})}
	if key != nil {
		raw, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		files[keyFile] = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
	}
	for file, text := range files {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// An issuer is an identity provider in this process.
type issuer struct {
	*httptest.Server
	testing.TB
	key *ecdsa.PrivateKey
}

func newIssuer(t testing.TB) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{TB: t, key: key}
	i.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer any = jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "1"}}}
		if r.URL.Path == "/.well-known/openid-configuration" {
			answer = map[string]string{"issuer": i.URL, "jwks_uri": i.URL + "/keys"}
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(i.Close)
	return i
}

// token returns one for the demo tenant, with changes.
func (i *issuer) token(life time.Duration, changes map[string]any) string {
	i.Helper()
	claims := map[string]any{"iss": i.URL, "sub": "alice", "aud": "loomgate", "tenants": []string{server.DemoTenant}, "scope": "read write", "exp": time.Now().Add(life).Unix()}
	for name, value := range changes {
		claims[name] = value
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: i.key, KeyID: "1"}}, nil)
	if err != nil {
		i.Fatal(err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		i.Fatal(err)
	}
	object, err := signer.Sign(payload)
	if err != nil {
		i.Fatal(err)
	}
	text, err := object.CompactSerialize()
	if err != nil {
		i.Fatal(err)
	}
	return text
}

// A secured gateway listens with TLS, over embedded shards.
type secured struct {
	testing.TB
	server.Addresses
	dir   string
	roots *x509.CertPool
	log   *buffer
}

// secure starts a gateway that trusts an issuer and an authority of clients.
func secure(t testing.TB, trusted *issuer, clients *authority, clientAuth string) *secured {
	t.Helper()
	g := &secured{TB: t, dir: t.TempDir(), roots: x509.NewCertPool(), log: &buffer{}}
	own := newAuthority(t)
	g.roots.AddCert(own.certificate)
	leaf, key := own.sign(&x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	in := func(name string) string { return filepath.Join(g.dir, name) }
	write(t, leaf, in("tls.crt"), key, in("tls.key"))
	write(t, clients.certificate, in("clients.crt"), nil, "")
	write(t, trusted.Certificate(), in("issuer.crt"), nil, "")
	text := fmt.Sprintf(`
grpc: {listen: '127.0.0.1:0'}
http: {listen: '127.0.0.1:0'}
admin: {listen: '127.0.0.1:0'}
data_dir: data
tls: {cert_file: tls.crt, key_file: tls.key, client_ca_file: clients.crt, client_auth: %s}
identity:
  providers:
    - {issuer: '%s', audience: [loomgate], ca_file: issuer.crt, clock_skew: 0s, scopes: {admin: [root]}}
  certificates:
    - {common_name: worker, tenants: [demo], scopes: [read, write]}
    - {common_name: operator, scopes: [admin]}
`, clientAuth, trusted.URL)
	if err := os.WriteFile(in("gateway.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(config.Sources{File: in("gateway.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	serving, ended := make(chan server.Addresses, 1), make(chan error, 1)
	go func() {
		ended <- server.Run(ctx, server.Options{Config: cfg, Log: slog.New(slog.NewTextHandler(g.log, nil)), Serving: func(at server.Addresses) { serving <- at }})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the gateway: %v", err)
		}
	})
	select {
	case g.Addresses = <-serving:
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
	}
	if err := throwaway.AwaitReady(t.Context(), g.Admin.String(), nil); err != nil {
		t.Fatal(err)
	}
	return g
}

// A caller brings a token or key, a certificate, or both.
type caller struct {
	bearer      string
	certificate *tls.Certificate
}

func (g *secured) tls(c caller) *tls.Config {
	config := &tls.Config{RootCAs: g.roots, MinVersion: tls.VersionTLS12}
	if c.certificate != nil {
		// Brought whatever authorities the gateway asks for.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.certificate, nil }
	}
	return config
}

// conn returns a connection of gRPC, and a context with what is brought.
func (g *secured) conn(c caller, headers ...string) (*grpc.ClientConn, context.Context) {
	g.Helper()
	conn, err := grpc.NewClient(g.GRPC.String(), grpc.WithTransportCredentials(credentials.NewTLS(g.tls(c))))
	if err != nil {
		g.Fatal(err)
	}
	g.Cleanup(func() { conn.Close() })
	if c.bearer != "" {
		headers = append(headers, "authorization", "Bearer "+c.bearer)
	}
	return conn, metadata.AppendToOutgoingContext(g.Context(), headers...)
}

// append appends an event both ways, and returns how each went.
func (g *secured) append(c caller, headers ...string) (overGRPC codes.Code, overHTTP int) {
	g.Helper()
	conn, ctx := g.conn(c, headers...)
	id := spi.NewEventID().String()
	_, err := pb.NewEventServiceClient(conn).Append(ctx, &pb.AppendRequest{
		Execution: "order-" + id, Events: []*pb.Event{{Id: id, Kind: "Placed", Content: &pb.Event_Payload{Payload: []byte("1")}}},
	})
	body := fmt.Sprintf(`{"execution":"http-%s","events":[{"id":%q,"kind":"Placed","json":"1"}]}`, id, spi.NewEventID())
	req, reqErr := http.NewRequestWithContext(g.Context(), http.MethodPost, (&url.URL{Scheme: "https", Host: g.HTTP.String(), Path: "/loomgate.v1.EventService/Append"}).String(), bytes.NewBufferString(body))
	if reqErr != nil {
		g.Fatal(reqErr)
	}
	req.Header.Set("Content-Type", "application/json")
	if c.bearer != "" {
		req.Header.Set("Authorization", "Bearer "+c.bearer)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	transport := &http.Transport{TLSClientConfig: g.tls(c), ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	res, reqErr := (&http.Client{Transport: transport}).Do(req)
	if reqErr != nil {
		return status.Code(err), 0
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		g.Fatal(err)
	}
	return status.Code(err), res.StatusCode
}

// want expects how an append goes. No connection is Unavailable, and 0 over HTTP.
func (g *secured) want(what string, code codes.Code, http int, c caller, headers ...string) {
	g.Helper()
	if gotCode, gotHTTP := g.append(c, headers...); gotCode != code || gotHTTP != http {
		g.Errorf("%s: %v over gRPC and %d over HTTP, not %v and %d\n%s", what, gotCode, gotHTTP, code, http, g.log)
	}
}

func TestTokensCertificatesAndKeysAreLetInBothWays(t *testing.T) {
	trusted, clients, strangers := newIssuer(t), newAuthority(t), newAuthority(t)
	g := secure(t, trusted, clients, "optional")
	worker, nobody, forged := clients.client("worker"), clients.client("nobody"), strangers.client("worker")
	text, err := os.ReadFile(filepath.Join(g.dir, "data", "admin.key"))
	if err != nil {
		t.Fatal(err)
	}
	key := strings.TrimSpace(string(text))
	good, expired := trusted.token(time.Hour, nil), trusted.token(-time.Second, nil)

	g.want("a token", codes.OK, 200, caller{bearer: good})
	g.want("a token that chooses", codes.OK, 200, caller{bearer: good}, "loomgate-tenant", "demo")
	g.want("a certificate", codes.OK, 200, caller{certificate: &worker})
	g.want("a key", codes.OK, 200, caller{bearer: key}, "loomgate-tenant", "demo")
	g.want("a key, with a stranger's certificate", codes.Unavailable, 0, caller{bearer: key, certificate: &forged}, "loomgate-tenant", "demo")

	g.want("nothing", codes.Unauthenticated, 401, caller{})
	g.want("an expired token", codes.Unauthenticated, 401, caller{bearer: expired})
	g.want("an expired token, with a certificate", codes.Unauthenticated, 401, caller{bearer: expired, certificate: &worker})
	g.want("a tenant that the token does not name", codes.Unauthenticated, 401, caller{bearer: good}, "loomgate-tenant", "other")
	g.want("a tenant that the certificate is not for", codes.Unauthenticated, 401, caller{certificate: &worker}, "loomgate-tenant", "other")
	g.want("a certificate of nobody", codes.Unauthenticated, 401, caller{certificate: &nobody})
	g.want("a certificate of another authority", codes.Unavailable, 0, caller{certificate: &forged})
	g.want("a token that may not write", codes.PermissionDenied, 403, caller{bearer: trusted.token(time.Hour, map[string]any{"scope": "read"})})

	for _, secret := range append(strings.Split(good, "."), strings.Split(expired, ".")...) {
		if strings.Contains(g.log.String(), secret) {
			t.Errorf("the log has part of a token, %s:\n%s", secret, g.log)
		}
	}
	if !strings.Contains(g.log.String(), "has expired") {
		t.Errorf("the log has no reason:\n%s", g.log)
	}
}

func TestARequiredCertificateIsAskedForBeforeAnythingElse(t *testing.T) {
	trusted, clients := newIssuer(t), newAuthority(t)
	g := secure(t, trusted, clients, "required")
	worker, nobody := clients.client("worker"), clients.client("nobody")
	token := trusted.token(time.Hour, nil)
	g.want("a token without a certificate", codes.Unavailable, 0, caller{bearer: token})
	g.want("a token and anybody's certificate", codes.OK, 200, caller{bearer: token, certificate: &nobody})
	g.want("a certificate", codes.OK, 200, caller{certificate: &worker})
}

func TestWhatTokensAndCertificatesAdministerIsInTheAuditTrail(t *testing.T) {
	trusted, clients := newIssuer(t), newAuthority(t)
	g := secure(t, trusted, clients, "optional")
	operator, worker := clients.client("operator"), clients.client("worker")
	who := map[string]caller{
		"jwt:" + trusted.URL + ":root": {bearer: trusted.token(time.Hour, map[string]any{"sub": "root", "scope": "root", "tenants": nil})},
		"certificate:CN=operator":      {certificate: &operator},
	}
	for name, c := range who {
		conn, ctx := g.conn(c)
		admin := pb.NewAdminServiceClient(conn)
		tenant := "made-by-" + name[:3]
		if _, err := admin.CreateTenant(ctx, &pb.CreateTenantRequest{Name: tenant}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		res, err := admin.ListActions(ctx, &pb.ListActionsRequest{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		last := res.GetActions()[len(res.GetActions())-1]
		host, _, _ := net.SplitHostPort(last.GetFrom())
		if last.GetBy() != name || last.GetTenant() != tenant || last.GetKind() != "TenantCreated" || host != "127.0.0.1" || last.GetAt().AsTime().IsZero() {
			t.Errorf("%s: the last action is %v", name, last)
		}
	}
	conn, ctx := g.conn(caller{certificate: &worker})
	if _, err := pb.NewAdminServiceClient(conn).CreateTenant(ctx, &pb.CreateTenantRequest{Name: "x"}); status.Code(err) != codes.PermissionDenied {
		t.Errorf("a worker's certificate: %v", err)
	}
}

// TestAStreamEndsWhenItsTokenExpires sends appends until one is refused.
func TestAStreamEndsWhenItsTokenExpires(t *testing.T) {
	trusted := newIssuer(t)
	g := secure(t, trusted, newAuthority(t), "optional")
	const life = 2 * time.Second
	conn, ctx := g.conn(caller{bearer: trusted.token(life, nil)})
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	stream, err := pb.NewAppendStreamServiceClient(conn).AppendStream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	appended := 0
	for ; err == nil; appended++ {
		_ = stream.Send(&pb.AppendStreamRequest{Append: &pb.AppendRequest{Execution: fmt.Sprint("order-", appended), Events: []*pb.Event{{
			Id: spi.NewEventID().String(), Kind: "Placed", Content: &pb.Event_Payload{Payload: []byte("1")},
		}}}}) // what is wrong with the stream, Recv tells
		var res *pb.AppendStreamResponse
		if res, err = stream.Recv(); err == nil && res.GetAppended() == nil {
			t.Fatalf("%v", res)
		}
	}
	if status.Code(err) != codes.Unauthenticated || appended < 2 {
		t.Errorf("after %d appends: %v", appended, err)
	}
}

func TestAProviderThatIsDownAtTheStartStopsNoKey(t *testing.T) {
	trusted, clients := newIssuer(t), newAuthority(t)
	token := trusted.token(time.Hour, nil)
	trusted.Close()
	g := secure(t, trusted, clients, "optional")
	worker := clients.client("worker")
	text, err := os.ReadFile(filepath.Join(g.dir, "data", "admin.key"))
	if err != nil {
		t.Fatal(err)
	}
	g.want("a key", codes.OK, 200, caller{bearer: strings.TrimSpace(string(text))}, "loomgate-tenant", "demo")
	g.want("a certificate", codes.OK, 200, caller{certificate: &worker})
	g.want("a token", codes.Unavailable, 503, caller{bearer: token})
}
