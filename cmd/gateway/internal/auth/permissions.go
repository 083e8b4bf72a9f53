package auth

import "github.com/loomgate/loomgate/cmd/gateway/internal/control"

// nobody is in the place of the scopes of a method that no client calls.
const nobody control.Scopes = 0

// scopesOf are what each method of the storage interface takes.
var scopesOf = map[string]control.Scopes{
	"Append":                control.ScopeWrite,
	"AppendBatch":           control.ScopeWrite,
	"AppendIfUnchanged":     control.ScopeWrite,
	"Read":                  control.ScopeRead,
	"Head":                  control.ScopeRead,
	"ListExecutions":        control.ScopeRead,
	"AcquireFence":          control.ScopeWrite,
	"AcquireFenceIf":        control.ScopeWrite,
	"CopyPrefix":            control.ScopeRead | control.ScopeWrite,
	"TruncatePrefixKeeping": control.ScopeWrite,
	"DeleteExecution":       control.ScopeWrite,
	"SweepTombstones":       control.ScopeWrite,

	"ScheduleTimer": control.ScopeWrite,
	"DueTimers":     control.ScopeRead,
	"CompleteTimer": control.ScopeWrite,

	"PutRef":     control.ScopeWrite,
	"GetRef":     control.ScopeRead,
	"DeleteRef":  control.ScopeWrite,
	"ListRefs":   control.ScopeRead,
	"PromoteRef": control.ScopeWrite,
	"RefLineage": control.ScopeRead,

	"AcquireLease": control.ScopeWrite,
	"RenewLease":   control.ScopeWrite,
	"ReleaseLease": control.ScopeWrite,

	// Wrapped keys never leave the gateway.
	"CreateDataKey":  nobody,
	"GetDataKey":     nobody,
	"DestroyDataKey": nobody,
	"ListDataKeys":   nobody,
	"RewrapDataKey":  nobody,

	"GetOwnership":    control.ScopeRead,
	"ChangeOwnership": nobody, // never through a tenant
}

// Permit returns nil if the caller may call a method of the storage interface, on the
// data of the identity's Tenant. The error is a [PermissionError], also for a method that
// there is not, or a [TenantRequiredError].
func (id Identity) Permit(method string) error {
	need := scopesOf[method]
	if need == nobody || !id.Scopes.Has(need) {
		return &PermissionError{method, need}
	}
	if id.Tenant == "" {
		return &TenantRequiredError{id.choices}
	}
	return nil
}

// PermitAdmin returns nil if the caller may administer tenants and API keys and read the
// audit trail, or a [PermissionError]. It takes no tenant, and gives no access to the data
// of one.
func (id Identity) PermitAdmin() error {
	if !id.Scopes.Has(control.ScopeAdmin) {
		return &PermissionError{"to administer", control.ScopeAdmin}
	}
	return nil
}
