package auth_test

import (
	"errors"
	"testing"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/cmd/gateway/internal/auth"
	"github.com/loomgate/loomgate/cmd/gateway/internal/control"
	"github.com/loomgate/loomgate/spi"
)

const peer = "192.0.2.1:1234"

var admin = control.Actor{APIKey: "test"}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// is reports whether an error of type E is in err.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// newRecords returns records with tenants.
func newRecords(t testing.TB, tenants ...spi.TenantName) *control.Records {
	t.Helper()
	store, err := memory.New()
	must(t, err)
	records := control.New(store, control.Options{})
	must(t, records.Refresh(t.Context()))
	for _, name := range tenants {
		must(t, records.CreateTenant(t.Context(), admin, name))
	}
	return records
}

// newKey returns the id and the text of a new API key.
func newKey(t testing.TB, records *control.Records, g control.Grant) (id, text string) {
	t.Helper()
	key, text, err := records.CreateAPIKey(t.Context(), admin, g)
	must(t, err)
	return key.ID, text
}

// bearer returns the credentials of an API key that chooses tenants.
func bearer(key string, tenants ...string) auth.Credentials {
	return auth.Credentials{Authorization: []string{"Bearer " + key}, Tenant: tenants, Peer: peer}
}
