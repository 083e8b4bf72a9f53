package auth

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/loomgate/loomgate/cmd/gateway/internal/control"
	"github.com/loomgate/loomgate/spi"
)

// Records is what authenticating by API key asks of [control.Records].
type Records interface {
	Verify(id, secret string) (key control.APIKey, proven bool, err error)
	Tenant(spi.TenantName) (control.TenantRecord, error)
}

// apiKeys is an [Authenticator].
type apiKeys struct{ records Records }

// APIKeys returns an authenticator by API key.
func APIKeys(records Records) Authenticator { return apiKeys{records} }

func (a apiKeys) Authenticate(_ context.Context, c Credentials) (Identity, error) {
	id, secret, _ := control.ParseKey(bearer(c.Authorization))
	key, proven, err := a.records.Verify(id, secret) // also for a text that is no key: the same work
	switch {
	case err != nil:
		return Identity{}, err
	case id == "":
		return Identity{}, &UnauthenticatedError{"there is no API key"}
	case !proven && key.ID == "":
		return refuse(id, "is unknown")
	case !proven:
		return refuse(id, "comes with a wrong secret")
	case !key.RevokedAt.IsZero() || key.Restricted:
		return refuse(id, "is revoked")
	case !key.Usable(time.Now()):
		return refuse(id, "has expired")
	}
	return identify(a.records, "API key ", key.ID, key.Grant, c)
}

func refuse(id, reason string) (Identity, error) {
	return Identity{}, &UnauthenticatedError{fmt.Sprintf("API key %s %s", id, reason)}
}

// bearer returns the token of an Authorization header, or "".
func bearer(values []string) string {
	if len(values) != 1 {
		return ""
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.Trim(token, " ")
}
