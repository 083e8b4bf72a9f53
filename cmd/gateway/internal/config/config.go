// Package config reads the gateway's configuration: a strict YAML file, the
// environment over it and flags over both.
//
// The fields of [Config] are the one list of settings. A field's path in the file is
// that of its yaml tags, such as http.listen or shards[0].dsn, and its variable in
// the environment is the same in capitals: LOOMGATE_HTTP_LISTEN,
// LOOMGATE_SHARDS_0_DSN. What is not a setting is an error, in the file and, with
// that prefix, in the environment.
//
// [Load] finds everything that is wrong, each with its place, and repeats no value:
// a secret may be in any of them by mistake.
package config

import "time"

// Config is everything that a gateway is told. A tag says what a setting is unless
// given (default), between which values it has to be (range), which it can take
// (oneof), and whether it is a path: one in the file is relative to the file's folder,
// any other to the working directory. A [Config] from [Load] holds absolute paths.
type Config struct {
	GRPC GRPC `yaml:"grpc"`
	HTTP HTTP `yaml:"http"`
	TLS  TLS  `yaml:"tls"`

	Identity Identity `yaml:"identity"`

	// InsecureBind is true to allow addresses without TLS that other machines reach:
	// API keys and data then cross the network in the clear, unless something in front
	// encrypts.
	InsecureBind bool `yaml:"insecure_bind" default:"false"`

	// DataDir is the folder of the embedded shards, which are used if no shard is
	// given.
	DataDir string `yaml:"data_dir" default:"loomgate-data" path:"true"`

	// Shards are the databases, in the order of their names: the order in which they
	// are given means nothing.
	Shards []Shard `yaml:"shards"`

	// Placement is what an execution's shard depends on: its id, which spreads a
	// tenant over all shards, or its tenant, which keeps it together. It can never
	// change once something is stored.
	Placement Placement `yaml:"placement" default:"execution" oneof:"execution tenant"`

	Crypto Crypto `yaml:"crypto"`

	// Coalescing is true to make one transaction of appends that come at the same time.
	Coalescing bool `yaml:"coalescing" default:"true"`

	Control   Control   `yaml:"control"`
	Limits    Limits    `yaml:"limits"`
	Deadlines Deadlines `yaml:"deadlines"`
	Log       Log       `yaml:"log"`

	Admin     Admin     `yaml:"admin"`
	Telemetry Telemetry `yaml:"telemetry"`

	origins map[string]Origin
}

// GRPC is the gRPC listener.
type GRPC struct {
	// Listen is the address of gRPC, HOST:PORT; port 0 takes a free one.
	Listen string `yaml:"listen" default:"127.0.0.1:7070"`
}

// HTTP is the HTTP listener.
type HTTP struct {
	// Listen is the address of HTTP and JSON, HOST:PORT; port 0 takes a free one.
	Listen string `yaml:"listen" default:"127.0.0.1:7071"`

	// CORSOrigins are the origins whose pages may call, such as
	// https://console.example.com; none unless given. There is no wildcard.
	CORSOrigins Texts `yaml:"cors_origins"`
}

// TLS is for both listeners. Without it they are on loopback.
type TLS struct {
	// CertFile is the certificate and its chain, PEM; read again when it changes.
	CertFile string `yaml:"cert_file" path:"true"`

	// KeyFile is the certificate's private key, PEM; read again when it changes.
	KeyFile string `yaml:"key_file" path:"true"`

	// ClientCAFile holds the authorities whose certificates clients may bring, PEM; read
	// again when it changes.
	ClientCAFile string `yaml:"client_ca_file" path:"true"`

	// ClientAuth is whether clients bring a certificate: off asks for none, optional
	// verifies one that is there, required refuses connections without.
	ClientAuth ClientAuth `yaml:"client_auth" default:"off" oneof:"off optional required"`
}

// Enabled reports whether the listeners speak TLS.
func (t TLS) Enabled() bool { return t.CertFile != "" }

// ClientAuth is whether clients bring a certificate.
type ClientAuth string

// The ways to ask for a client's certificate.
const (
	ClientAuthOff      ClientAuth = "off"
	ClientAuthOptional ClientAuth = "optional"
	ClientAuthRequired ClientAuth = "required"
)

// Identity is who is let in besides the holders of API keys.
type Identity struct {
	// Providers are the OpenID Connect providers whose tokens are trusted.
	Providers []Provider `yaml:"providers"`

	// Certificates say what the clients' TLS certificates are for: the first that matches.
	Certificates []Certificate `yaml:"certificates"`
}

// A Provider is an OpenID Connect provider.
type Provider struct {
	// Issuer is the provider's URL, https, as its tokens have it in iss; the keys are found
	// from there.
	Issuer string `yaml:"issuer"`

	// Audience is what a token has to have in aud, one of these.
	Audience Texts `yaml:"audience"`

	// TenantClaim is the name of the claim with the tenants that a token may choose: one
	// text, or a list.
	TenantClaim string `yaml:"tenant_claim" default:"tenants"`

	Scopes ScopesClaim `yaml:"scopes"`

	// ClockSkew is how far the provider's clock may be from this machine's: tokens hold so
	// much longer, and earlier.
	ClockSkew time.Duration `yaml:"clock_skew" default:"30s" range:"0s..5m"`

	// Algorithms are what tokens may be signed with, of RS256, RS384, RS512, PS256, PS384,
	// PS512, ES256, ES384, ES512 and EdDSA.
	Algorithms Texts `yaml:"algorithms" default:"RS256,ES256"`

	// KeysRefresh is how often the provider's keys are fetched, and so how long a token
	// holds whose key was withdrawn.
	KeysRefresh time.Duration `yaml:"keys_refresh" default:"10m" range:"1m..24h"`

	// KeysMinRefresh is how long after a fetch the next one comes at the earliest, also if a
	// token names a key that is not known, and so how long a new key may be refused.
	KeysMinRefresh time.Duration `yaml:"keys_min_refresh" default:"30s" range:"1s..10m"`

	// CAFile holds the authorities that the provider's own certificate is of, PEM; those of
	// the system unless given.
	CAFile string `yaml:"ca_file" path:"true"`
}

// A ScopesClaim says which scopes a token has.
type ScopesClaim struct {
	// Claim is the name of the claim with a token's scopes: a list, or one text with spaces
	// between them.
	Claim string `yaml:"claim" default:"scope"`

	// Read is what stands for the scope read there, any of these.
	Read Texts `yaml:"read" default:"read"`

	// Write is what stands for the scope write there, any of these.
	Write Texts `yaml:"write" default:"write"`

	// Admin is what stands for the scope admin there, any of these; nothing unless given.
	Admin Texts `yaml:"admin"`
}

// A Certificate says what the certificates of a subject are for. It is named by exactly
// one of CommonName, URI and DNS.
type Certificate struct {
	// CommonName is the subject's common name, exactly.
	CommonName string `yaml:"common_name"`

	// URI is one of the alternative names that are URIs, exactly, such as a SPIFFE ID.
	URI string `yaml:"uri"`

	// DNS is one of the alternative names that are DNS names, exactly.
	DNS string `yaml:"dns"`

	// Tenants are those whose data the subject reaches; none for one that only
	// administers.
	Tenants Texts `yaml:"tenants"`

	// Scopes are what the subject may do, of read, write and admin.
	Scopes Texts `yaml:"scopes"`
}

// A Shard is one database, named by exactly one of DSN, DSNFile and SQLite.
type Shard struct {
	// Name is what the shard is called for good, in its own database too: 1 to 63
	// small letters, digits and hyphens.
	Name string `yaml:"name"`

	// DSN is a Postgres database: a URL or key=value pairs. In the file it holds no
	// password.
	//
	// From [Load] it is what DSNFile holds, where that was given.
	DSN Secret `yaml:"dsn"`

	// DSNFile is a file that holds the DSN, with its password.
	DSNFile string `yaml:"dsn_file" path:"true"`

	// SQLite is a database file, which is made if it is not there.
	SQLite string `yaml:"sqlite" path:"true"`

	// PoolSize is how many connections this gateway opens to a Postgres at most.
	PoolSize int `yaml:"pool_size" default:"16" range:"1..256"`

	// BehindPooler is true if a pooler in transaction mode, such as PgBouncer, stands
	// before the Postgres.
	BehindPooler bool `yaml:"behind_pooler" default:"false"`
}

// Placement is what an execution's shard depends on.
type Placement string

// The placements.
const (
	PlaceByExecution Placement = "execution"
	PlaceByTenant    Placement = "tenant"
)

// Crypto is the encryption of payloads. It is on if there is a keyring.
type Crypto struct {
	// KeyringFile is a file with the keys that wrap the tenants' keys, encrypted under
	// the secret.
	KeyringFile string `yaml:"keyring_file" path:"true"`

	// Secret opens the keyring. It is not for the file.
	//
	// From [Load] it is what SecretFile holds, where that was given.
	Secret Secret `yaml:"secret"`

	// SecretFile is a file that holds the secret.
	SecretFile string `yaml:"secret_file" path:"true"`

	// CacheLife is how long an unwrapped key stays in memory, and so how long a
	// shred takes.
	CacheLife time.Duration `yaml:"cache_life" default:"10s" range:"1s..1h"`
}

// Enabled reports whether payloads are encrypted.
func (c Crypto) Enabled() bool { return c.KeyringFile != "" }

// Control is about tenants and API keys, which every gateway keeps a copy of.
type Control struct {
	// Poll is how often the copy is brought up to date, and so how long a revocation
	// takes to arrive.
	Poll time.Duration `yaml:"poll" default:"1s" range:"10ms..1m"`

	// MaxStaleness is how old the copy may get while its shard does not answer. Past
	// it, nobody is let in.
	MaxStaleness time.Duration `yaml:"max_staleness" default:"5m" range:"1s..24h"`
}

// Limits are on messages, connections and tenants.
type Limits struct {
	// MaxMessage is the largest request or response. The largest append needs the
	// default.
	MaxMessage Size `yaml:"max_message" default:"80MiB" range:"64KiB..256MiB"`

	// Connections is how many clients' connections each of the two listeners has open.
	// More wait until one is closed.
	Connections int `yaml:"connections" default:"10000" range:"1..1000000"`

	// UntakenAnswers is how much of answers may wait for clients to take them. Past it, the
	// connection is closed that has left the most.
	UntakenAnswers Size `yaml:"untaken_answers" default:"512MiB" range:"80MiB..64GiB"`

	// Tenant is what each tenant may use of this gateway that has no limits of its own.
	Tenant TenantLimits `yaml:"tenant"`

	// CountExecutions is how often the executions are counted of tenants that have a limit
	// of them.
	CountExecutions time.Duration `yaml:"count_executions" default:"1m" range:"1s..24h"`
}

// TenantLimits are of one tenant, in one gateway. 0 refuses everything of the kind.
type TenantLimits struct {
	// RequestsPerSecond is how many calls a tenant makes a second, and once more as many
	// to fences, timers and leases.
	RequestsPerSecond Limit `yaml:"requests_per_second" default:"unlimited" range:"0..unlimited"`

	// BytesPerSecond is how much a tenant appends and reads a second.
	BytesPerSecond ByteLimit `yaml:"bytes_per_second" default:"unlimited" range:"0..unlimited"`

	// EventsPerSecond is how many events a tenant appends a second.
	EventsPerSecond Limit `yaml:"events_per_second" default:"unlimited" range:"0..unlimited"`

	// InFlight is how many calls of a tenant are under way, and once more as many to
	// fences, timers and leases.
	InFlight Limit `yaml:"in_flight" default:"unlimited" range:"0..unlimited"`

	// Executions is how many executions of a tenant are stored.
	Executions Limit `yaml:"executions" default:"unlimited" range:"0..unlimited"`
}

// Deadlines are how long things may take.
type Deadlines struct {
	// Call is the deadline of a call whose client states none.
	Call time.Duration `yaml:"call" default:"30s" range:"10ms..1h"`

	// Request is how long a client may take to send a request.
	Request time.Duration `yaml:"request" default:"1m" range:"1s..1h"`

	// Drain is how long calls under way may go on after a signal to stop.
	Drain time.Duration `yaml:"drain" default:"20s" range:"0s..1h"`
}

// Log is about what the gateway logs, to standard error.
type Log struct {
	// Level is the least severe that is logged.
	Level string `yaml:"level" default:"info" oneof:"debug info warn error"`

	// Format is the format of a line.
	Format string `yaml:"format" default:"text" oneof:"text json"`

	// SlowCall is how long a call takes at least that gets a line of its own, with the
	// time that each layer took; 0s for none.
	SlowCall time.Duration `yaml:"slow_call" default:"0s" range:"0s..1h"`
}

// Admin is the listener of metrics, profiles and health, for operators. It knows no keys
// and no TLS.
type Admin struct {
	// Listen is the address of metrics, profiles and health, such as 127.0.0.1:7072; there
	// is none unless given.
	Listen string `yaml:"listen"`

	// InsecureBind is true to allow an address that other machines reach: whoever reaches
	// it reads metrics and takes profiles, without a key.
	InsecureBind bool `yaml:"insecure_bind" default:"false"`
}

// Telemetry is about traces and metrics.
type Telemetry struct {
	Traces Traces `yaml:"traces"`

	// Tenants are those that metrics name; all others are "other". Unless some are given,
	// no metric tells tenants apart.
	Tenants Texts `yaml:"tenants"`
}

// Traces are sent if there is an endpoint.
type Traces struct {
	// Endpoint is where traces go, by OTLP over gRPC: http://HOST:PORT, or https:// for
	// TLS.
	Endpoint string `yaml:"endpoint"`

	// SampleRatio is the part of the calls that is traced, of those that bring no trace of
	// their own; one that does says itself whether it is.
	SampleRatio float64 `yaml:"sample_ratio" default:"0.01" range:"0..1"`
}

// Enabled reports whether traces are sent.
func (t Traces) Enabled() bool { return t.Endpoint != "" }
