package control

import (
	"fmt"
	"testing"

	"github.com/loomgate/loomgate/spi"
)

// newLogOf returns a store with that many tenants and API keys, and the text of one key.
func newLogOf(b *testing.B, tenants, keys int) (store *spi.Store, key string) {
	b.Helper()
	store = newStore(b)
	var events []spi.Event
	flush := func() {
		_, err := spi.Append(b.Context(), store, spi.AppendRequest{Execution: Execution, ExpectedHead: spi.AnyHead, Events: events})
		must(b, err)
		events = events[:0]
	}
	add := func(kind string, rec record) {
		rec.By, rec.From = "aaaaaaaaaaaaaaaa", "192.0.2.1:1234"
		event, err := decision{kind: kind, record: rec}.event()
		must(b, err)
		if len(events) == spi.MaxEvents {
			flush()
		}
		events = append(events, event)
	}
	tenant := func(i int) spi.TenantName { return spi.TenantName(fmt.Sprintf("tenant-%d", i%tenants)) }
	for i := range tenants {
		add(tenantCreated, record{Tenant: tenant(i)})
	}
	for i := range keys {
		id, secret := newKey()
		hash := digest(secret)
		add(apiKeyCreated, record{APIKey: id, Hash: hash[:], Tenants: []spi.TenantName{tenant(i)}, Scopes: []string{"read", "write"}})
		key = keyText(id, secret)
	}
	flush()
	return store, key
}

// BenchmarkStart reads the records of 10,000 tenants and 20,000 API keys.
func BenchmarkStart(b *testing.B) {
	store, _ := newLogOf(b, 10_000, 20_000)
	for b.Loop() {
		must(b, New(store, Options{}).Refresh(b.Context()))
	}
}

// BenchmarkLook looks at a log that has not grown.
func BenchmarkLook(b *testing.B) {
	store, _ := newLogOf(b, 10_000, 20_000)
	r := New(store, Options{})
	for b.Loop() {
		must(b, r.Refresh(b.Context()))
	}
}

// BenchmarkVerify finds and proves one of 20,000 API keys.
func BenchmarkVerify(b *testing.B) {
	store, key := newLogOf(b, 10_000, 20_000)
	r := New(store, Options{})
	must(b, r.Refresh(b.Context()))
	id, secret, _ := ParseKey(key)
	for b.Loop() {
		if _, proven, err := r.Verify(id, secret); err != nil || !proven {
			b.Fatal(err)
		}
	}
}

// BenchmarkCreateAPIKey makes one more where there are 20,000.
func BenchmarkCreateAPIKey(b *testing.B) {
	store, _ := newLogOf(b, 10_000, 20_000)
	r := New(store, Options{})
	for b.Loop() {
		_, _, err := r.CreateAPIKey(b.Context(), admin, Grant{Tenants: []spi.TenantName{"tenant-1"}, Scopes: ScopeRead})
		must(b, err)
	}
}
