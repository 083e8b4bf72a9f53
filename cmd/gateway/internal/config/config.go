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
}

// TLS is for both listeners. Without it they are on loopback.
type TLS struct {
	// CertFile is the certificate and its chain, PEM; read again when it changes.
	CertFile string `yaml:"cert_file" path:"true"`

	// KeyFile is the certificate's private key, PEM; read again when it changes.
	KeyFile string `yaml:"key_file" path:"true"`
}

// Enabled reports whether the listeners speak TLS.
func (t TLS) Enabled() bool { return t.CertFile != "" }

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

// Limits are on single messages.
type Limits struct {
	// MaxMessage is the largest request or response. The largest append needs the
	// default.
	MaxMessage Size `yaml:"max_message" default:"80MiB" range:"64KiB..256MiB"`
}

// Deadlines are how long things may take.
type Deadlines struct {
	// Call is the deadline of a call whose client states none.
	Call time.Duration `yaml:"call" default:"30s" range:"10ms..1h"`

	// Drain is how long calls under way may go on after a signal to stop.
	Drain time.Duration `yaml:"drain" default:"20s" range:"0s..1h"`
}

// Log is about what the gateway logs, to standard error.
type Log struct {
	// Level is the least severe that is logged.
	Level string `yaml:"level" default:"info" oneof:"debug info warn error"`

	// Format is the format of a line.
	Format string `yaml:"format" default:"text" oneof:"text json"`
}
