package auth

import (
	"context"
	"crypto/x509"
	"net/url"
	"slices"
	"time"

	"github.com/loomgate/loomgate/cmd/gateway/internal/config"
	"github.com/loomgate/loomgate/cmd/gateway/internal/control"
	"github.com/loomgate/loomgate/spi"
)

// A subject is who some certificates are of.
type subject struct {
	name    string // as the audit trail has it, such as certificate:CN=worker
	matches func(*x509.Certificate) bool
	grant   control.Grant
}

// certificates is an [Authenticator].
type certificates struct {
	records  Records
	subjects []subject
	now      func() time.Time
}

// Certificates returns an authenticator by the client's TLS certificate, whose first
// match in the configuration says what it is for.
func Certificates(records Records, mapped []config.Certificate, o Options) Authenticator {
	c := certificates{records: records, now: o.clock()}
	for _, m := range mapped {
		c.subjects = append(c.subjects, subjectOf(m))
	}
	return c
}

func subjectOf(m config.Certificate) subject {
	s := subject{grant: grantOf(m.Tenants, m.Scopes)}
	switch {
	case m.CommonName != "":
		s.name = "certificate:CN=" + m.CommonName
		s.matches = func(c *x509.Certificate) bool { return c.Subject.CommonName == m.CommonName }
	case m.URI != "":
		s.name = "certificate:URI=" + m.URI
		s.matches = func(c *x509.Certificate) bool {
			return slices.ContainsFunc(c.URIs, func(u *url.URL) bool { return u.String() == m.URI })
		}
	default:
		s.name = "certificate:DNS=" + m.DNS
		s.matches = func(c *x509.Certificate) bool { return slices.Contains(c.DNSNames, m.DNS) }
	}
	return s
}

// grantOf returns a grant in its one form. Scopes that there are not allow nothing.
func grantOf(tenants, scopes []string) control.Grant {
	var g control.Grant
	for _, name := range tenants {
		g.Tenants = append(g.Tenants, spi.TenantName(name))
	}
	slices.Sort(g.Tenants)
	g.Tenants = slices.Compact(g.Tenants)
	g.Scopes, _ = control.ParseScopes(scopes)
	return g
}

func (c certificates) Authenticate(_ context.Context, brought Credentials) (Identity, error) {
	at := slices.IndexFunc(c.subjects, func(s subject) bool { return s.matches(brought.Certificate) })
	if at < 0 {
		return Identity{}, &UnauthenticatedError{"a certificate is of nobody in identity.certificates"}
	}
	s := c.subjects[at]
	now := c.now() // a connection may outlast its certificate
	if now.Before(brought.Certificate.NotBefore) || now.After(brought.Certificate.NotAfter) {
		return Identity{}, &UnauthenticatedError{s.name + " has expired, or is not valid yet"}
	}
	return identify(c.records, "", s.name, s.grant, brought)
}
