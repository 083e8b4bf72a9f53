package auth

import (
	"log/slog"
	"time"

	"github.com/loomgate/loomgate/cmd/gateway/internal/control"
)

// Options are of authenticators by tokens and certificates.
type Options struct {
	Log *slog.Logger     // nil for none
	Now func() time.Time // [time.Now] unless set
}

func (o Options) log() *slog.Logger {
	if o.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Log
}

func (o Options) clock() func() time.Time {
	if o.Now == nil {
		return time.Now
	}
	return o.Now
}

// identify returns who calls, given what the credential is for. The name is the one that
// the audit trail has; the log has the kind before it.
func identify(records Records, kind, name string, grant control.Grant, brought Credentials) (Identity, error) {
	tenant, reason, err := choose(records, grant, brought.Tenant)
	if err != nil {
		return Identity{}, err
	}
	if reason != "" {
		return Identity{}, &UnauthenticatedError{kind + name + " " + reason}
	}
	return Identity{
		Actor:   control.Actor{APIKey: name, Address: brought.Peer},
		Tenant:  tenant,
		Scopes:  grant.Scopes,
		choices: grant.Tenants,
	}, nil
}
