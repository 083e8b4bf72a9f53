package control

import (
	"context"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/loomgate/loomgate/spi"
)

// model is what three gateways over one log are compared with: what is true, said in
// maps.
type model struct {
	t        *rapid.T
	faults   *faulty
	gateways [3]*Records
	tenants  map[spi.TenantName]TenantState
	keys     map[string]*modelKey
}

type modelKey struct {
	secret  string
	tenants []spi.TenantName
	revoked bool
}

var modelNames = rapid.SampledFrom([]spi.TenantName{"a", "b", "é", "\U0001F600"})

// gateway draws one, and how often the answer to its next append is lost.
func (m *model) gateway() *Records {
	lost := rapid.IntRange(0, 2).Draw(m.t, "lost answers")
	lands := rapid.Bool().Draw(m.t, "lands")
	m.faults.append = func(do func() (spi.AppendResponse, error)) (spi.AppendResponse, error) {
		if lost == 0 {
			return do()
		}
		lost--
		if lands {
			if _, err := do(); err != nil {
				return spi.AppendResponse{}, err
			}
		}
		return spi.AppendResponse{}, &spi.AmbiguousError{Cause: errors.New("connection reset")}
	}
	return m.gateways[rapid.IntRange(0, len(m.gateways)-1).Draw(m.t, "gateway")]
}

// want compares an error with what the model says.
func (m *model) want(err error, want bool, refused func(error) bool) bool {
	if want != (err == nil) || err != nil && !refused(err) {
		m.t.Fatalf("%v; want success: %v", err, want)
	}
	return err == nil
}

func (m *model) createTenant(*rapid.T) {
	name := modelNames.Draw(m.t, "tenant")
	if m.want(m.gateway().CreateTenant(context.Background(), admin, name), m.tenants[name] == 0, is[*TakenError]) {
		m.tenants[name] = TenantActive
	}
}

func (m *model) disableTenant(*rapid.T) {
	name := modelNames.Draw(m.t, "tenant")
	err := m.gateway().DisableTenant(context.Background(), admin, name)
	if m.want(err, m.tenants[name] == TenantActive || m.tenants[name] == TenantDisabled, refusesTenant) {
		m.tenants[name] = TenantDisabled
	}
}

func (m *model) markPurged(*rapid.T) {
	name := modelNames.Draw(m.t, "tenant")
	err := m.gateway().MarkPurged(context.Background(), admin, name)
	if m.want(err, m.tenants[name] == TenantDisabled || m.tenants[name] == TenantPurged, refusesTenant) {
		m.tenants[name] = TenantPurged
	}
}

func (m *model) createKey(*rapid.T) {
	names := rapid.SliceOfNDistinct(modelNames, 1, 2, rapid.ID).Draw(m.t, "tenants")
	_, text, err := m.gateway().CreateAPIKey(context.Background(), admin, Grant{Tenants: names, Scopes: ScopeRead})
	active := !slices.ContainsFunc(names, func(name spi.TenantName) bool { return m.tenants[name] != TenantActive })
	if m.want(err, active, refusesTenant) {
		id, secret, _ := ParseKey(text)
		m.keys[id] = &modelKey{secret, names, false}
	}
}

func (m *model) revokeKey(*rapid.T) {
	ids := []string{"nobody"}
	for id := range m.keys {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	id := rapid.SampledFrom(ids).Draw(m.t, "key")
	if m.want(m.gateway().RevokeAPIKey(context.Background(), admin, id), id != "nobody", is[*NotFoundError]) {
		m.keys[id].revoked = true
	}
}

func refusesTenant(err error) bool { return is[*NotFoundError](err) || is[*TenantStateError](err) }

// check compares every gateway, and one that reads the log anew.
func (m *model) check(*rapid.T) {
	fresh := New(m.faults.inner, Options{})
	for _, r := range append(m.gateways[:], fresh) {
		if err := r.Refresh(context.Background()); err != nil {
			m.t.Fatal(err)
		}
		for name, state := range m.tenants {
			if got, err := r.Tenant(name); err != nil || got.State != state {
				m.t.Fatalf("tenant %q is %v, %v; want %v", name, got.State, err, state)
			}
		}
		listed, _, err := r.ListAPIKeys("", spi.MaxLimit)
		if err != nil || len(listed) != len(m.keys) {
			m.t.Fatalf("%d keys, %v; want %d", len(listed), err, len(m.keys))
		}
		for id, want := range m.keys {
			got, proven, err := r.Verify(id, want.secret)
			slices.Sort(want.tenants)
			if err != nil || !proven || got.RevokedAt.IsZero() == want.revoked || !slices.Equal(got.Tenants, want.tenants) {
				m.t.Fatalf("key %+v, %v, %v; want %+v", got, proven, err, want)
			}
		}
	}
}

func TestGatewaysAgreeWithAModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		faults, store := newFaulty(t, newStore(t))
		m := &model{t: rt, faults: faults, tenants: map[spi.TenantName]TenantState{}, keys: map[string]*modelKey{}}
		for i := range m.gateways {
			m.gateways[i] = New(store, Options{})
			m.gateways[i].pause = 0
		}
		rt.Repeat(map[string]func(*rapid.T){
			"": m.check, "create tenant": m.createTenant, "disable tenant": m.disableTenant, "mark purged": m.markPurged,
			"create key": m.createKey, "revoke key": m.revokeKey,
		})
	})
}
