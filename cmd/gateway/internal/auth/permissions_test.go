package auth

import (
	"errors"
	"reflect"
	"testing"

	"github.com/loomgate/loomgate/cmd/gateway/internal/control"
	"github.com/loomgate/loomgate/spi"
)

// storageMethods are those of every group: what a decorator has but for what describes
// itself.
func storageMethods() map[string]bool {
	methods := map[string]bool{}
	for m := range reflect.TypeFor[spi.Decorator]().Methods() {
		if m.Name != "Caps" && m.Name != "Layer" {
			methods[m.Name] = true
		}
	}
	return methods
}

func TestEveryMethodHasItsScopes(t *testing.T) {
	methods := storageMethods()
	if len(methods) < 30 {
		t.Fatalf("only %d methods were found", len(methods))
	}
	for name := range methods {
		if _, has := scopesOf[name]; !has {
			t.Errorf("nobody has said who may call %s", name)
		}
	}
	for name := range scopesOf {
		if !methods[name] {
			t.Errorf("there is no method %s", name)
		}
	}
}

func TestNoScopeImpliesAnother(t *testing.T) {
	for scopes := control.Scopes(0); scopes <= control.ScopeRead|control.ScopeWrite|control.ScopeAdmin; scopes++ {
		id := Identity{Tenant: "acme", Scopes: scopes}
		for name, need := range scopesOf {
			err := id.Permit(name)
			if denied, ok := errors.AsType[*PermissionError](err); ok != (err != nil) || ok && denied.Call != name {
				t.Errorf("%v calls %s: %v", scopes, name, err)
			}
			if want := need != nobody && scopes&need == need; want != (err == nil) {
				t.Errorf("%v calls %s: %v", scopes, name, err)
			}
		}
		if err := id.PermitAdmin(); (err == nil) != scopes.Has(control.ScopeAdmin) {
			t.Errorf("%v administers: %v", scopes, err)
		}
	}
}

func TestWhatChangesDataTakesMoreThanReading(t *testing.T) {
	reader, admin := Identity{Tenant: "acme", Scopes: control.ScopeRead}, Identity{Tenant: "acme", Scopes: control.ScopeAdmin}
	for name := range scopesOf {
		reads := map[string]bool{"Read": true, "Head": true, "ListExecutions": true, "DueTimers": true, "GetRef": true, "ListRefs": true, "RefLineage": true, "GetOwnership": true}[name]
		if err := reader.Permit(name); reads != (err == nil) {
			t.Errorf("a reader calls %s: %v", name, err)
		}
		if admin.Permit(name) == nil {
			t.Errorf("an admin calls %s", name)
		}
	}
}

func TestWhatThereIsNotIsPermittedToNobody(t *testing.T) {
	all := Identity{Tenant: "acme", Scopes: control.ScopeRead | control.ScopeWrite | control.ScopeAdmin}
	for _, name := range []string{"", "append", "Nothing", "GetDataKey", "ChangeOwnership"} {
		if err := all.Permit(name); err == nil {
			t.Errorf("%q is permitted", name)
		}
	}
	nobodyAtAll := Identity{}
	if nobodyAtAll.Permit("Read") == nil || nobodyAtAll.PermitAdmin() == nil {
		t.Error("the zero identity is permitted something")
	}
}
