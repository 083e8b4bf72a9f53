// Package remote is a store that a gateway serves: a client over gRPC that is a
// backend. It offers what the gateway offers to the credential.
//
// A call whose answer is lost is sent again where that is safe: what only reads, and
// what is known by its event ids. A write whose outcome stays open is an
// [spi.AmbiguousError]; one that was never sent, because there is no connection, is
// an [spi.UnavailableError]. Both come after a few tries within a second or so.
// Whoever has to outlast an outage puts a layer above that tries for longer.
//
// An answer that is not of package spi, such as that the credential is refused, is a
// gRPC status.
package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"net/url"
	"runtime"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/loomgate/loomgate/api"
	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

// mostConnections is how many connections a client has at most by default.
const mostConnections = 4

// Options say how a gateway is reached.
type Options struct {
	// APIKey is the credential, sent with every call. Empty sends none.
	APIKey string

	// Tenant chooses among the tenants that the API key allows. Empty leaves it to the
	// gateway, for a key that allows one.
	Tenant spi.TenantName

	// TLS configures the connections; nil uses the system's roots.
	TLS *tls.Config

	// Plaintext leaves TLS out: the API key and all data are readable on the way.
	Plaintext bool

	// Connections is how many connections calls are spread over: each takes turns
	// within itself, so that one keeps about two processors busy. 0 means one for
	// each two processors here, up to 4.
	Connections int
}

// A Client is a connection to a gateway. It is safe for concurrent use.
type Client struct {
	connections []*grpc.ClientConn
	turn        atomic.Uint32
	store       *spi.Store
}

// Open connects to the gateway at addr, as gRPC names targets, such as
// "gateway.example:7070", and asks it what it offers. The error is an
// [spi.CompatibilityError] where a group there has another major version than here.
func Open(ctx context.Context, addr string, options Options) (*Client, error) {
	c := &Client{}
	if err := c.open(ctx, addr, options); err != nil {
		c.Close()
		return nil, &spi.OpError{Op: "Open", Err: err}
	}
	return c, nil
}

// Dial returns one connection to the gateway at addr, for the services that are not of
// package spi. The error is an [spi.InvalidArgumentError].
func Dial(addr string, options Options) (*grpc.ClientConn, error) {
	if options.Plaintext && options.TLS != nil {
		return nil, &spi.InvalidArgumentError{Field: "plaintext", Rule: "is set, and TLS is configured"}
	}
	connection, err := grpc.NewClient(addr, options.dial()...)
	if err != nil {
		return nil, &spi.InvalidArgumentError{Field: "address", Rule: "is no gRPC target: " + err.Error()}
	}
	return connection, nil
}

func (c *Client) open(ctx context.Context, addr string, options Options) error {
	if options.Connections < 0 {
		return &spi.InvalidArgumentError{Field: "connections", Rule: "is negative"}
	}
	if options.Connections == 0 {
		options.Connections = min((runtime.GOMAXPROCS(0)+1)/2, mostConnections)
	}
	for range options.Connections {
		connection, err := Dial(addr, options)
		if err != nil {
			return err
		}
		c.connections = append(c.connections, connection)
	}
	offered, err := c.handshake(ctx)
	if err != nil {
		return err
	}
	all := backend{c}
	store, err := spi.Open(spi.Backend{Events: all, Timers: all, Refs: all, Leases: all, Ownership: all})
	if err != nil {
		return err
	}
	c.store = spi.Only(store, offered)
	return nil
}

// dial returns the options of one connection.
func (o Options) dial() []grpc.DialOption {
	transport := insecure.NewCredentials()
	if !o.Plaintext {
		transport = credentials.NewTLS(o.TLS)
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(transport),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(api.MaxMessageBytes), grpc.MaxCallSendMsgSize(api.MaxMessageBytes)),
		grpc.WithDisableServiceConfig(), // what is tried again is decided here
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 5 * time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
	}
	brings := map[string]string{}
	if o.APIKey != "" {
		brings["authorization"] = "Bearer " + o.APIKey
	}
	if o.Tenant != "" {
		brings["loomgate-tenant"] = url.PathEscape(string(o.Tenant)) // a header is ASCII
	}
	if len(brings) > 0 {
		options = append(options, grpc.WithPerRPCCredentials(bearer{brings, !o.Plaintext}))
	}
	return options
}

// bearer is a credential that every call brings.
type bearer struct {
	metadata map[string]string
	secure   bool
}

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return b.metadata, nil
}

func (b bearer) RequireTransportSecurity() bool { return b.secure }

// stack is StackService's one method, called as those of spi are.
var stack = &api.Method[struct{}, *pb.GetStackResponse, pb.GetStackRequest, pb.GetStackResponse]{
	Path:           pb.StackService_GetStack_FullMethodName,
	EncodeRequest:  func(struct{}) *pb.GetStackRequest { return &pb.GetStackRequest{} },
	DecodeResponse: func(m *pb.GetStackResponse) (*pb.GetStackResponse, error) { return m, nil },
}

func (c *Client) handshake(ctx context.Context) (spi.Caps, error) {
	m, err := read(ctx, c, stack, struct{}{})
	if err != nil {
		return 0, err
	}
	offered, versions := api.DecodeStack(m)
	return offered, spi.CheckCompatibility(versions)
}

// Store returns the store that the gateway serves.
func (c *Client) Store() *spi.Store { return c.store }

// Close ends the connections. Calls under way fail.
func (c *Client) Close() error {
	var errs []error
	for _, connection := range c.connections {
		errs = append(errs, connection.Close())
	}
	return errors.Join(errs...)
}

// connection returns each connection in turn.
func (c *Client) connection() *grpc.ClientConn {
	return c.connections[c.turn.Add(1)%uint32(len(c.connections))]
}
