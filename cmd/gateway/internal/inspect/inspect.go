// Package inspect looks at the databases of a configuration as they are now, past
// everything that a running gateway keeps of them.
package inspect

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loomgate/loomgate/cmd/gateway/internal/config"
	"github.com/loomgate/loomgate/cmd/gateway/internal/stack"
)

// A Severity says how much a finding matters.
type Severity string

// The severities.
const (
	OK      Severity = "ok"
	Warning Severity = "warning"
	Bad     Severity = "bad" // a gateway would not serve, or not keep its promises
)

// A Finding is what was seen of a shard, or of all of them together (Shard "").
type Finding struct {
	Shard    string
	Subject  string // such as "connection" or "clock"
	Severity Severity
	Text     string
}

const (
	// timeout is how long a shard may take to answer everything.
	timeout = 10 * time.Second

	// maxSkew is how far a shard's clock may be from this machine's. Timers and leases
	// go by the shards' clocks.
	maxSkew = time.Second
)

// Inspect looks at every shard, and at whether they make one cluster.
func Inspect(ctx context.Context, cfg *config.Config) []Finding {
	each := make([][]Finding, len(cfg.Shards))
	var looking sync.WaitGroup
	for i, shard := range cfg.Shards {
		if shard.SQLite != "" {
			continue // that it opens, the cluster tells
		}
		looking.Go(func() { each[i] = inspectPostgres(ctx, shard) })
	}
	looking.Wait()
	var all []Finding
	for _, findings := range each {
		all = append(all, findings...)
	}
	return append(all, inspectCluster(ctx, cfg))
}

// inspectCluster looks at identities and slots, as a gateway does at its start.
func inspectCluster(ctx context.Context, cfg *config.Config) Finding {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	f := Finding{Subject: "identities and slots", Severity: OK, Text: "each slot is owned once, and all are one cluster"}
	if err := stack.Check(ctx, cfg); err != nil {
		f.Severity, f.Text = Bad, err.Error()
	}
	return f
}

// inspectPostgres looks at one Postgres.
func inspectPostgres(ctx context.Context, shard config.Shard) (findings []Finding) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tell := func(subject string, severity Severity, format string, args ...any) {
		findings = append(findings, Finding{shard.Name, subject, severity, fmt.Sprintf(format, args...)})
	}
	if shard.VerifiesServer() {
		tell("tls", OK, "the server is verified, or on this machine")
	} else {
		tell("tls", Warning, "whoever stands between can pose as the server: give sslmode=verify-full, and sslrootcert, in the DSN")
	}
	conn, err := connect(ctx, shard)
	if err != nil {
		tell("connection", Bad, "%v", err)
		return findings
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var s server
	if err := s.read(ctx, conn); err != nil {
		tell("connection", Bad, "%v", err)
		return findings
	}
	tell("connection", OK, "answers")
	s.judge(tell)
	return findings
}

func connect(ctx context.Context, shard config.Shard) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(shard.DSN.Reveal())
	if err != nil {
		return nil, errors.New("the DSN is malformed") // the error repeats it, password and all
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeExec // a pooler may stand between
	return pgx.ConnectConfig(ctx, config)
}

// A server is what a Postgres says of itself.
type server struct {
	version           int
	collation         string
	schema            *int // nil: there is none
	synchronousCommit string
	fsync, fullPages  string
	standby           bool
	asyncStandbys     int
	skew              time.Duration
	maxConnections    int
}

const question = `
	SELECT current_setting('server_version_num')::int,
	       (SELECT coalesce(datcollate, '') || ' (' || datlocprovider::text || ')' FROM pg_database WHERE datname = current_database()),
	       current_setting('synchronous_commit'), current_setting('fsync'), current_setting('full_page_writes'),
	       pg_is_in_recovery(),
	       (SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'async')::int,
	       current_setting('max_connections')::int,
	       clock_timestamp()`

func (s *server) read(ctx context.Context, conn *pgx.Conn) error {
	before := time.Now()
	var now time.Time
	err := conn.QueryRow(ctx, question).Scan(&s.version, &s.collation, &s.synchronousCommit, &s.fsync, &s.fullPages,
		&s.standby, &s.asyncStandbys, &s.maxConnections, &now)
	if err != nil {
		return err
	}
	took := time.Since(before)
	s.skew = now.Sub(before.Add(took / 2)).Abs()
	if s.skew < took { // no more is known than that
		s.skew = 0
	}
	var there bool
	if err := conn.QueryRow(ctx, "SELECT to_regclass('loomgate.schema_version') IS NOT NULL").Scan(&there); err != nil || !there {
		return err
	}
	s.schema = new(int)
	return conn.QueryRow(ctx, "SELECT version FROM loomgate.schema_version").Scan(s.schema)
}

// oldest is the oldest Postgres that the backend is tested on.
const oldest = 150000

// judge tells what is good and what is not.
func (s *server) judge(tell func(subject string, severity Severity, format string, args ...any)) {
	if s.version < oldest {
		tell("version", Warning, "Postgres %d, older than the oldest that is tested (15)", s.version/10000)
	} else {
		tell("version", OK, "Postgres %d.%d", s.version/10000, s.version%10000)
	}
	tell("collation", OK, "%s; the order of ids does not depend on it", s.collation)
	if s.schema == nil {
		tell("schema", Bad, "there is none: run gateway migrate")
	} else {
		tell("schema", OK, "version %d", *s.schema)
	}
	switch {
	case s.fsync == "off":
		tell("durability", Bad, "fsync is off: a crash can lose and damage everything")
	case s.fullPages == "off":
		tell("durability", Warning, "full_page_writes is off: a crash can damage pages, unless the disk writes them whole")
	case s.synchronousCommit == "off":
		tell("durability", Bad, "synchronous_commit is off: a crash loses acknowledged events")
	default:
		tell("durability", OK, "synchronous_commit is %s", s.synchronousCommit)
	}
	if s.standby {
		tell("role", Bad, "it is a standby, which only reads")
	}
	if s.asyncStandbys > 0 {
		tell("standbys", Warning, "%d are asynchronous: a failover to one loses acknowledged events", s.asyncStandbys)
	}
	if s.skew > maxSkew {
		tell("clock", Warning, "%v from this machine's; timers and leases go by it", s.skew.Round(time.Millisecond))
	} else {
		tell("clock", OK, "within %v of this machine's", maxSkew)
	}
}
