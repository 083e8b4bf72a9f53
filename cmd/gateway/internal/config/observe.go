package config

import (
	"net/url"
	"strings"
)

func (r *reading) checkAdmin(c *Config) {
	if c.Admin.Listen == "" {
		return
	}
	host, ok := splitAddress(c.Admin.Listen)
	switch {
	case !ok:
		r.wrong("admin.listen", "is no address, such as 127.0.0.1:7072")
	case !c.Admin.InsecureBind && !loopback(host):
		r.wrong("admin.listen", "is not on loopback, and asks for no key: allow it by admin.insecure_bind")
	case strings.HasSuffix(c.Admin.Listen, ":0"):
	case c.Admin.Listen == c.GRPC.Listen:
		r.wrong("admin.listen", "is grpc.listen too")
	case c.Admin.Listen == c.HTTP.Listen:
		r.wrong("admin.listen", "is http.listen too")
	}
}

// maxTenants is how many tenants metrics may name: each has series of its own.
const maxTenants = 100

func (r *reading) checkTelemetry(t Telemetry) {
	if t.Traces.Enabled() {
		at, err := url.Parse(t.Traces.Endpoint)
		if err != nil || !isOrigin(at) {
			r.wrong("telemetry.traces.endpoint", "is no endpoint, such as http://127.0.0.1:4317")
		}
	}
	if len(t.Tenants) > maxTenants {
		r.wrong("telemetry.tenants", "names more than %d", maxTenants)
	}
}

func (r *reading) checkOrigins(origins Texts) {
	for _, origin := range origins {
		if at, err := url.Parse(origin); err != nil || !isOrigin(at) || at.String() != origin || strings.Contains(origin, "*") {
			r.wrong("http.cors_origins", "has what is no origin, such as https://console.example.com; there is no wildcard")
		}
	}
}

// isOrigin reports whether a URL is a scheme, a host and perhaps a port, and no more.
func isOrigin(u *url.URL) bool {
	return (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil &&
		u.Path == "" && u.RawQuery == "" && !u.ForceQuery && u.Fragment == "" && u.Opaque == ""
}
