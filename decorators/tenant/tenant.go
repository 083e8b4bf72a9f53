// Package tenant gives each tenant a view of a store that many share: a store of the
// tenant's own, as far as the tenant can tell.
//
//	acme, err := tenant.New("acme", shared)
//
// Every execution id, ref name, lease name and key owner goes in with the tenant's
// scope ([spi.ScopeOf]) in front and comes out without it. No scope begins another,
// so a tenant's names are one range of the shared store, in the tenant's own order;
// pages and sweeps begin in that range and stop at its end. A name that the shared
// store answers and that is not the tenant's fails the call ([ForeignNameError]).
//
// A view never offers to change ownership, and shows no pin of another tenant. What
// shards are called is left as it is: whoever holds a view as a library is an
// operator, and needs to know which shard failed.
//
// A view is cheap to make and keeps nothing: one a request is fine.
package tenant

import "github.com/loomgate/loomgate/spi"

// view is one tenant's. Each method scopes in, calls the shared store, and scopes
// out what it answers or how it failed.
type view struct {
	shared *spi.Store
	tenant spi.TenantName
	scope  spi.Scope
}

// New returns the view that a tenant has of a shared store. It offers what the
// shared store does, but for [spi.CapChangeOwnership]. The error is an
// [spi.InvalidArgumentError] where the name is none or there is no store, or an
// [spi.LayerOrderError].
func New(name spi.TenantName, shared *spi.Store) (*spi.Store, error) {
	scope, err := spi.ScopeOf(name)
	if err != nil {
		return nil, err
	}
	return spi.Wrap(&view{shared, name, scope}, shared)
}

// Caps leaves out what only an operator may do.
func (v *view) Caps(inner spi.Caps) spi.Caps { return inner &^ spi.CapChangeOwnership }
func (v *view) Layer() spi.Layer             { return spi.Layer{Name: "tenant", Isolates: true} }
