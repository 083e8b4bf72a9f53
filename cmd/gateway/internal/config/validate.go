package config

import (
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// check notes what is wrong with the values together.
func (r *reading) check(c *Config) {
	r.checkListeners(c)
	r.checkClientAuth(c)
	r.checkIdentity(c)
	r.checkShards(c.Shards)
	r.checkCrypto(c.Crypto)
	r.checkAdmin(c)
	r.checkTelemetry(c.Telemetry)
	r.checkOrigins(c.HTTP.CORSOrigins)
	if c.Control.MaxStaleness < 2*c.Control.Poll {
		r.wrong("control.max_staleness", "is less than two of control.poll: the copy would be too old between them")
	}
}

// wrong notes that a setting is wrong where it is said, unless it, or what it is part
// of, is known to be: what follows from one fault is not another.
func (r *reading) wrong(setting, rule string, args ...any) {
	if slices.ContainsFunc(r.invalid.Problems, func(p Problem) bool {
		return p.Setting == setting || strings.HasPrefix(setting, p.Setting+".")
	}) {
		return
	}
	r.fault(r.origin(setting), setting, rule, args...)
}

func (r *reading) checkListeners(c *Config) {
	for setting, address := range map[string]string{"grpc.listen": c.GRPC.Listen, "http.listen": c.HTTP.Listen} {
		host, ok := splitAddress(address)
		switch {
		case !ok:
			r.wrong(setting, "is no address, such as 127.0.0.1:7070")
		case !c.TLS.Enabled() && !c.InsecureBind && !loopback(host):
			r.wrong(setting, "is not on loopback, and there is no TLS: give tls.cert_file and tls.key_file, or allow it by insecure_bind")
		}
	}
	if c.GRPC.Listen == c.HTTP.Listen && !strings.HasSuffix(c.HTTP.Listen, ":0") {
		r.wrong("http.listen", "is grpc.listen too")
	}
	switch {
	case c.TLS.CertFile == "" && c.TLS.KeyFile != "":
		r.wrong("tls.key_file", "is given without tls.cert_file")
	case c.TLS.CertFile != "" && c.TLS.KeyFile == "":
		r.wrong("tls.cert_file", "is given without tls.key_file")
	}
}

// splitAddress returns the host of HOST:PORT, which may be empty: every address of
// this machine.
func splitAddress(address string) (host string, ok bool) {
	colon := strings.LastIndexByte(address, ':')
	if colon < 0 {
		return "", false
	}
	host = address[:colon]
	if inner, bracketed := strings.CutPrefix(host, "["); bracketed {
		host = strings.TrimSuffix(inner, "]")
		_, err := netip.ParseAddr(host)
		bracketed = err == nil && inner != host
		ok = bracketed
	} else {
		ok = hostName.MatchString(host)
	}
	_, err := strconv.ParseUint(address[colon+1:], 10, 16)
	return host, ok && err == nil
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9._-]{0,253}$`)

// loopback reports whether only this machine reaches the host. Of names that is
// localhost; what another one means may change.
func loopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback() || strings.EqualFold(host, "localhost")
}

func (r *reading) checkCrypto(c Crypto) {
	switch {
	case r.values["crypto.secret"].open:
		r.wrong("crypto.secret", "is not for a file or a flag: give it by crypto.secret_file or %s", variable("crypto.secret"))
	case c.Enabled() && c.Secret.IsZero() && c.SecretFile == "":
		r.wrong("crypto.keyring_file", "is given without crypto.secret_file or %s", variable("crypto.secret"))
	case !c.Enabled() && !c.Secret.IsZero():
		r.wrong("crypto.keyring_file", "is missing, but there is a secret for it")
	}
}

var shardName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

func (r *reading) checkShards(shards []Shard) {
	named := map[string]int{}
	databases := map[string]int{}
	for i, s := range shards {
		at := element("shards", i)
		if !shardName.MatchString(s.Name) {
			r.wrong(at+".name", "is not 1 to 63 small letters, digits and hyphens")
		} else if first, again := named[s.Name]; again {
			r.wrong(at+".name", "is that of %s", element("shards", first))
		} else {
			named[s.Name] = i
		}
		for _, database := range r.checkDatabase(at, s) {
			if first, again := databases[database]; again && first != i {
				r.wrong(at, "is the database of %s", element("shards", first))
				break
			}
			databases[database] = i
		}
	}
}

// checkDatabase notes what is wrong with a shard's database, and returns what it is
// known by: one name for each way to reach it.
func (r *reading) checkDatabase(at string, s Shard) (names []string) {
	postgres := !s.DSN.IsZero() || s.DSNFile != ""
	switch {
	case s.SQLite == "" && !postgres:
		r.wrong(at, "names no database: give dsn, dsn_file or sqlite")
	case s.SQLite != "" && postgres:
		r.wrong(at, "names a Postgres and a SQLite")
	case s.SQLite != "":
		for _, setting := range []string{at + ".pool_size", at + ".behind_pooler"} {
			if _, given := r.values[setting]; given {
				r.wrong(setting, "is for a Postgres")
			}
		}
		return []string{fileIdentity(s.SQLite)}
	case !s.DSN.IsZero():
		return r.checkDSN(at, s.DSN.Reveal())
	}
	return nil
}

func (r *reading) checkDSN(at, dsn string) (names []string) {
	setting := at + ".dsn"
	if _, given := r.values[setting]; !given {
		setting = at + ".dsn_file"
	}
	if r.values[setting].open && setting == at+".dsn" && hasPassword(dsn) {
		r.wrong(setting, "holds a password: give it by dsn_file or %s", variable(setting))
	}
	d, ok := parseDSN(dsn)
	switch {
	case !ok && tlsFault(dsn) != "":
		r.wrong(setting, "%s", tlsFault(dsn))
	case !ok:
		r.wrong(setting, "is no DSN of Postgres, such as postgres://user@host:5432/database")
	case d.pool:
		r.wrong(setting, "sets pool_max_conns: give pool_size instead")
	}
	return d.identities()
}
