package control

import (
	"encoding/json"
	"time"

	"github.com/loomgate/loomgate/spi"
)

// The kinds of the events.
const (
	tenantCreated  = "TenantCreated"
	tenantDisabled = "TenantDisabled"
	tenantPurged   = "TenantPurged"
	tenantLimits   = "TenantLimitsSet"
	apiKeyCreated  = "APIKeyCreated"
	apiKeyRevoked  = "APIKeyRevoked"
)

// The kinds of what is only noted, see [Records.Note].
const (
	TenantKeyRotated  NoteKind = "TenantKeyRotated"
	TenantShredded    NoteKind = "TenantShredded"
	ExecutionShredded NoteKind = "ExecutionShredded"
	ConfigReloaded    NoteKind = "ConfigReloaded"
	KeyringRotated    NoteKind = "KeyringRotated"
	ShardRecovered    NoteKind = "ShardRecovered"
	ShardMigrated     NoteKind = "ShardMigrated"
	WriterRequired    NoteKind = "WriterRequired"
)

// version is the highest one of a payload that this build knows. A new field that may
// be ignored does not raise it.
const version = 1

// A record is the payload of an event, as JSON. When it happened is the event's own.
type record struct {
	// Every version has these.
	Version   int             `json:"v"`
	By        string          `json:"by"`             // an API key's id, or what acted in its place
	From      string          `json:"from,omitempty"` // the client's address
	Tenant    spi.TenantName  `json:"tenant,omitempty"`
	APIKey    string          `json:"api_key,omitempty"` // the id
	Execution spi.ExecutionID `json:"execution,omitempty"`
	Shard     string          `json:"shard,omitempty"`
	Restricts bool            `json:"restricts,omitempty"` // whoever does not know the kind refuses Tenant and APIKey

	// Of an APIKeyCreated.
	Hash       []byte           `json:"sha256,omitempty"`
	Tenants    []spi.TenantName `json:"tenants,omitempty"`
	AllTenants bool             `json:"all_tenants,omitempty"`
	Scopes     []string         `json:"scopes,omitempty"`
	ExpiresAt  time.Time        `json:"expires_at,omitzero"`

	// Of a TenantLimitsSet: all that the tenant has from then on.
	Limits TenantLimits `json:"limits,omitzero"`
}

// event returns the event of a decision.
func (d decision) event() (spi.Event, error) {
	d.Version = version
	payload, err := json.Marshal(d.record)
	return spi.Event{ID: spi.NewEventID(), Kind: d.kind, RecordedAt: time.Now().UTC().Truncate(time.Microsecond), Payload: payload}, err
}

// decode returns the record of an event, and whether this build knows what it means.
func decode(e *spi.Event) (rec record, known bool, err error) {
	if err := json.Unmarshal(e.Payload, &rec); err != nil {
		return rec, false, &RecordError{e.Sequence, "is no JSON of a record"} // the decoder's error may repeat some of it
	}
	if rec.Version < 1 {
		return rec, false, &RecordError{e.Sequence, "has no version"}
	}
	_, known = folds[e.Kind]
	return rec, known && rec.Version <= version, nil
}
