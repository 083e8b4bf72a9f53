package control

import (
	"crypto/sha256"
	"time"

	"github.com/tidwall/btree"

	"github.com/loomgate/loomgate/spi"
)

// A state is what the log up to its head comes to. What the trees point at never
// changes: a fold puts another in its place.
type state struct {
	tenants *btree.Map[spi.TenantName, *TenantRecord]
	keys    *btree.Map[string, *storedKey]

	head        int64
	last        spi.EventID // of the event at head
	incarnation int64
	unknown     int64 // the sequence of the first event that this build does not know; 0 if none
}

// A storedKey is an API key with what proves it.
type storedKey struct {
	APIKey
	hash [sha256.Size]byte
}

func newState() *state {
	return &state{tenants: new(btree.Map[spi.TenantName, *TenantRecord]), keys: new(btree.Map[string, *storedKey])}
}

// snapshot returns a state that further folds do not change. Only the trees returned are
// given to readers: copying a tree writes to the one that is copied.
func (s *state) snapshot() state {
	c := *s
	c.tenants, c.keys = s.tenants.Copy(), s.keys.Copy()
	return c
}

// folds are what the kinds mean. They are lenient: the log is what happened, and what
// its writers should not have written changes nothing.
var folds = map[string]func(*state, *record, time.Time){
	tenantCreated: func(s *state, rec *record, at time.Time) {
		if _, taken := s.tenants.Get(rec.Tenant); !taken {
			s.tenants.Set(rec.Tenant, &TenantRecord{Name: rec.Tenant, State: TenantActive, CreatedAt: at})
		}
	},
	tenantDisabled: func(s *state, rec *record, at time.Time) {
		s.changeTenant(rec.Tenant, func(t *TenantRecord) {
			if t.State == TenantActive {
				t.State, t.DisabledAt = TenantDisabled, at
			}
		})
	},
	tenantPurged: func(s *state, rec *record, at time.Time) {
		s.changeTenant(rec.Tenant, func(t *TenantRecord) {
			if t.State == TenantDisabled {
				t.State, t.PurgedAt = TenantPurged, at
			}
		})
	},
	tenantLimits: func(s *state, rec *record, _ time.Time) {
		s.changeTenant(rec.Tenant, func(t *TenantRecord) { t.Limits = rec.Limits })
	},
	apiKeyCreated: func(s *state, rec *record, at time.Time) {
		if _, taken := s.keys.Get(rec.APIKey); taken {
			return
		}
		s.keys.Set(rec.APIKey, &storedKey{
			APIKey: APIKey{
				ID:        rec.APIKey,
				Grant:     Grant{rec.Tenants, rec.AllTenants, scopesOf(rec.Scopes), rec.ExpiresAt},
				CreatedAt: at,
				CreatedBy: rec.By,
			},
			hash: [sha256.Size]byte(rec.Hash),
		})
	},
	apiKeyRevoked: func(s *state, rec *record, at time.Time) {
		s.changeKey(rec.APIKey, func(k *storedKey) {
			if k.RevokedAt.IsZero() {
				k.RevokedAt = at
			}
		})
	},
	string(TenantKeyRotated):  nothing,
	string(TenantShredded):    nothing,
	string(ExecutionShredded): nothing,
	string(ConfigReloaded):    nothing,
	string(KeyringRotated):    nothing,
	string(WriterRequired):    nothing,
	string(ShardRecovered):    nothing,
	string(ShardMigrated):     nothing,
}

// nothing is what an action that is only noted changes.
func nothing(*state, *record, time.Time) {}

func (s *state) changeTenant(name spi.TenantName, change func(*TenantRecord)) {
	if old, found := s.tenants.Get(name); found {
		t := *old
		change(&t)
		s.tenants.Set(name, &t)
	}
}

func (s *state) changeKey(id string, change func(*storedKey)) {
	if old, found := s.keys.Get(id); found {
		k := *old
		change(&k)
		s.keys.Set(id, &k)
	}
}

// apply folds the event after the head.
func (s *state) apply(e *spi.Event) error {
	rec, known, err := decode(e)
	switch {
	case err != nil:
		return err
	case e.Sequence != s.head+1:
		return &RecordError{s.head + 1, "is missing"}
	case !known:
		s.restrict(&rec, e.Sequence)
	case e.Kind == apiKeyCreated && len(rec.Hash) != sha256.Size:
		return &RecordError{e.Sequence, "has no hash"}
	default:
		folds[e.Kind](s, &rec, e.RecordedAt)
	}
	s.head, s.last = e.Sequence, e.ID
	return nil
}

// restrict folds an event that this build does not know.
func (s *state) restrict(rec *record, sequence int64) {
	if s.unknown == 0 {
		s.unknown = sequence
	}
	if rec.Restricts {
		s.changeTenant(rec.Tenant, func(t *TenantRecord) { t.Restricted = true })
		s.changeKey(rec.APIKey, func(k *storedKey) { k.Restricted = true })
	}
}
