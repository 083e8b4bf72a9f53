package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// poolSetting is the driver's name of a pool's size, in a DSN.
const poolSetting = "pool_max_conns"

// PoolDSN returns the DSN with the size of the pool in it.
func (s Shard) PoolDSN() Secret {
	dsn := s.DSN.Reveal()
	size := fmt.Sprintf("%s=%d", poolSetting, s.PoolSize)
	if u, err := url.Parse(dsn); isURL(dsn) && err == nil {
		u.RawQuery = strings.TrimPrefix(u.RawQuery+"&"+size, "&")
		return NewSecret(u.String())
	}
	return NewSecret(dsn + " " + size)
}

// An address is a place where a Postgres listens: a host name, an IP address or the
// folder of a socket, and a port.
type address struct {
	host string
	port uint16
}

// A dsn is what may be told of one.
type dsn struct {
	addresses      []address
	database, user string
	pool           bool // it sets the pool's size
}

// parseDSN reads a DSN as the driver does, with the defaults that it takes from the
// environment. The driver's own error would repeat the password.
func parseDSN(text string) (d dsn, ok bool) {
	config, err := pgxpool.ParseConfig(text)
	if err != nil {
		return d, false
	}
	c := config.ConnConfig
	d = dsn{database: c.Database, user: c.User, pool: strings.Contains(text, poolSetting)}
	d.add(address{c.Host, c.Port})
	for _, other := range c.Fallbacks {
		d.add(address{other.Host, other.Port})
	}
	return d, true
}

// tlsFault returns what is wrong with a DSN that only its settings for TLS spoil, or "".
func tlsFault(text string) string {
	_, err := pgxpool.ParseConfig(text)
	if err == nil || !strings.Contains(err.Error(), "failed to configure TLS") {
		return ""
	}
	if file, unreadable := errors.AsType[*fs.PathError](err); unreadable {
		return fmt.Sprintf("names a file in sslrootcert, sslcert or sslkey that cannot be read: %v", file.Err)
	}
	return "has settings for TLS that do not hold: sslmode, or what is in the files sslrootcert, sslcert and sslkey"
}

// VerifiesServer reports whether every way to reach the database proves by TLS that it is
// the host that is named (sslmode=verify-full), or stays on this machine.
func (s Shard) VerifiesServer() bool {
	config, err := pgxpool.ParseConfig(s.DSN.Reveal())
	if err != nil {
		return false
	}
	c := config.ConnConfig
	verifies := func(host string, secure *tls.Config) bool {
		return strings.HasPrefix(host, "/") || loopback(host) || secure != nil && !secure.InsecureSkipVerify
	}
	return verifies(c.Host, c.TLSConfig) && !slices.ContainsFunc(c.Fallbacks, func(f *pgconn.FallbackConfig) bool { return !verifies(f.Host, f.TLSConfig) })
}

// add adds an address once: the driver lists one for each way to speak TLS there.
func (d *dsn) add(a address) {
	for _, known := range d.addresses {
		if known == a {
			return
		}
	}
	d.addresses = append(d.addresses, a)
}

// identities returns one name for each address that is the same however it is spelt.
func (d dsn) identities() []string {
	var names []string
	for _, a := range d.addresses {
		names = append(names, fmt.Sprintf("%s port %d database %q", canonicalHost(a.host), a.port, d.database))
	}
	return names
}

func canonicalHost(host string) string {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	ip, err := netip.ParseAddr(host)
	switch {
	case host == "localhost", err == nil && (ip.Unmap() == netip.AddrFrom4([4]byte{127, 0, 0, 1}) || ip == netip.IPv6Loopback()):
		return "loopback"
	case err == nil:
		return ip.Unmap().String()
	}
	return host
}

// String returns the DSN without what may be secret.
func (d dsn) String() string {
	var hosts, ports []string
	for _, a := range d.addresses {
		hosts, ports = append(hosts, a.host), append(ports, fmt.Sprint(a.port))
	}
	return fmt.Sprintf("host=%s port=%s dbname=%s user=%s",
		quoteDSN(strings.Join(hosts, ",")), strings.Join(ports, ","), quoteDSN(d.database), quoteDSN(d.user))
}

func quoteDSN(value string) string {
	if value != "" && !strings.ContainsAny(value, ` '\`) {
		return value
	}
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value) + "'"
}

func isURL(dsn string) bool {
	return strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://")
}

var passwordPair = regexp.MustCompile(`(?i)password\s*=`)

// hasPassword reports whether a DSN may hold a password, or that of a client's key. It
// is looked for in the text: the driver would also find one elsewhere.
func hasPassword(dsn string) bool {
	if passwordPair.MatchString(dsn) {
		return true
	}
	if !isURL(dsn) {
		return false
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return false // and no DSN
	}
	_, set := u.User.Password()
	for key := range u.Query() {
		set = set || strings.HasSuffix(strings.ToLower(key), "password")
	}
	return set
}

// fileIdentity returns a file's name without links on the way, as far as it exists.
func fileIdentity(path string) string {
	if whole, err := filepath.EvalSymlinks(path); err == nil {
		return whole
	}
	if dir := filepath.Dir(path); dir != path {
		return filepath.Join(fileIdentity(dir), filepath.Base(path))
	}
	return path
}
