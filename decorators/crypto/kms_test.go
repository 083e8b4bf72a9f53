package crypto_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loomgate/loomgate/conformance/small"
	"github.com/loomgate/loomgate/decorators/crypto"
	"github.com/loomgate/loomgate/spi"
)

// TestTheKMSIsAskedOnceATenant whatever the number of executions and events, and once
// again by a node that starts.
func TestTheKMSIsAskedOnceATenant(t *testing.T) {
	const tenants, executions = 100, 100
	r := newRig(t)
	id := func(tenant, execution int) spi.ExecutionID {
		scope := must[spi.Scope](t)(spi.ScopeOf(spi.TenantName(fmt.Sprintf("tenant-%d", tenant))))
		return spi.ExecutionID(fmt.Sprintf("%sorder-%d", scope.Prefix(), execution))
	}
	each := func(do func(id spi.ExecutionID)) {
		for e := range executions {
			for tenant := range tenants {
				do(id(tenant, e))
			}
		}
	}
	s := r.node()
	each(func(id spi.ExecutionID) { r.append(s, id, 0, noted("one"), noted("two")) })
	each(func(id spi.ExecutionID) { r.wantRead(s, id, "one", "two") })
	if n := r.kms.calls(); n > tenants {
		t.Errorf("to write and read, it is called %d times", n)
	}
	s = r.node()
	each(func(id spi.ExecutionID) { r.wantRead(s, id, "one", "two") })
	each(func(id spi.ExecutionID) { r.append(s, id, 2, noted("three")) })
	each(func(id spi.ExecutionID) { r.append(s, id+"-new", 0, noted("one")) })
	if n := r.kms.calls(); n > tenants {
		t.Errorf("opened again, it is called %d times", n)
	}
}

// TestTheKMSIsNotAskedWhenAKeysLifeInMemoryEnds as long as the store still has the key,
// for five minutes.
func TestTheKMSIsNotAskedWhenAKeysLifeInMemoryEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		s := r.node()
		r.append(s, "4:acme/e", 0, noted("one"))
		r.kms.calls()
		for range 20 {
			time.Sleep(life)
			r.wantRead(s, "4:acme/e", "one")
		}
		if n := r.kms.calls(); n != 0 {
			t.Errorf("in 200 s it is called %d times", n)
		}
		r.kms.lose("kms/1")
		time.Sleep(2 * time.Minute)
		_, err := r.read(s, "4:acme/e")
		want[*crypto.KeyLostError](t, err)
	})
}

func TestALostKeyIsToldFromAShreddedOne(t *testing.T) {
	const id = "4:acme/e"
	for _, c := range []struct {
		name string
		lose func(r *rig, b *below)
	}{
		{"the store has lost the data key", func(_ *rig, b *below) {
			b.before = func(_ string, req any) error {
				switch req := req.(type) {
				case spi.GetDataKeyRequest:
					if req.Owner == id {
						return &spi.NotFoundError{What: "data key", Name: id}
					}
				case spi.CreateDataKeyRequest:
					if req.Key.Owner == id { // which has events
						return &spi.ConflictError{Execution: id, Head: 1}
					}
				}
				return nil
			}
		}},
		{"the KMS has lost its key", func(r *rig, _ *below) { r.kms.lose("kms/1") }},
		{"the KMS's key does not open the tenant's", func(r *rig, _ *below) {
			must[spi.RewrapDataKeyResponse](r)(spi.RewrapDataKey(r.Context(), r.inner, spi.RewrapDataKeyRequest{
				Owner: "4:acme/", Version: 2, OldWrappedBy: "kms/1", WrappedBy: "kms/1", Wrapped: []byte("damaged"),
			}))
		}},
		{"the tenant's key was retired", func(r *rig, _ *below) {
			must[int64](r)(r.keys().RotateTenant(r.Context(), "acme"))
			must[spi.DestroyDataKeyResponse](r)(spi.DestroyDataKey(r.Context(), r.inner, spi.DestroyDataKeyRequest{Owner: "4:acme/", Version: 2}))
		}},
		{"the tenant's key never was", func(r *rig, _ *below) {
			must[spi.RewrapDataKeyResponse](r)(spi.RewrapDataKey(r.Context(), r.inner, spi.RewrapDataKeyRequest{
				Owner: id, Version: 1, OldWrappedBy: "tenant/2", WrappedBy: "tenant/9", Wrapped: r.dataKey(id, 1).Wrapped,
			}))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.append(r.node(), id, 0, noted("secret"))
			var b below
			c.lose(r, &b)
			s := r.nodeOver(&b)
			_, read := r.read(s, id)
			_, appended := spi.Append(t.Context(), s, spi.AppendRequest{Execution: id, ExpectedHead: 1, Events: []spi.Event{noted("more")}})
			for what, err := range map[string]error{"read": read, "append": appended} {
				if lost := want[*crypto.KeyLostError](t, err); lost.Owner != id {
					t.Errorf("a %s answers %+v", what, lost)
				}
				if errors.As(err, new(*spi.ShreddedError)) {
					t.Errorf("a %s answers %v", what, err)
				}
			}
		})
	}
}

func TestAKMSThatIsDownMakesCallsUnavailableAndNothingElse(t *testing.T) {
	r := newRig(t)
	r.append(r.node(), "4:acme/e", 0, noted("one"))
	r.kms.fail(errors.New("no route to host"))
	s := r.node()
	_, err := r.read(s, "4:acme/e")
	want[*spi.UnavailableError](t, err)
	_, err = spi.Append(t.Context(), s, spi.AppendRequest{Execution: "4:acme/e", ExpectedHead: 1, Events: []spi.Event{noted("two")}})
	want[*spi.UnavailableError](t, err)
	_, err = spi.Append(t.Context(), s, spi.AppendRequest{Execution: "4:bolt/new", Events: []spi.Event{noted("one")}})
	want[*spi.UnavailableError](t, err)
	_, err = r.keys().VerifyExecution(t.Context(), "4:acme/e")
	want[*spi.UnavailableError](t, err)
	// What needs no key goes on.
	must[spi.HeadResponse](t)(spi.Head(t.Context(), s, spi.HeadRequest{Execution: "4:acme/e"}))
	must[spi.AcquireFenceResponse](t)(spi.AcquireFence(t.Context(), s, spi.AcquireFenceRequest{Execution: "4:acme/e"}))
	r.kms.fail(nil)
	r.append(s, "4:acme/e", 1, noted("two"))
	r.wantRead(s, "4:acme/e", "one", "two")
}

func TestAnErrorTellsNoKeyAndNoPayload(t *testing.T) {
	r := newRig(t)
	r.append(r.node(), "4:acme/e", 0, noted("secret"))
	r.kms.lose("kms/1")
	_, err := r.read(r.node(), "4:acme/e")
	lost := want[*crypto.KeyLostError](t, err)
	if got, want := lost.Error(), `the key of "4:acme/e" is lost: tenant key 2 is not opened by "kms/1"`; got != want {
		t.Errorf("it says %q, not %q", got, want)
	}
	if !errors.Is(err, crypto.ErrCannotUnwrap) {
		t.Error("the cause is not there for operators")
	}
}

// TestAboveAViewATenantIsToldNothingOfKeys and an operator everything.
func TestAboveAViewATenantIsToldNothingOfKeys(t *testing.T) {
	r := newRig(t)
	r.append(r.node(), "4:acme/e", 0, noted("secret"))
	r.kms.lose("kms/1")
	view := must[*spi.Store](t)(small.Prefix("acme", r.node()))
	_, err := r.read(view, "e")
	internal := want[*spi.InternalError](t, err)
	if text := err.Error(); text != "Read: internal error" {
		t.Errorf("it says %q", text)
	}
	if lost := want[*crypto.KeyLostError](t, internal.Cause); lost.Owner != "4:acme/e" {
		t.Errorf("the cause is %+v", lost)
	}
	must[spi.DestroyDataKeyResponse](t)(spi.DestroyDataKey(t.Context(), r.inner, spi.DestroyDataKeyRequest{Owner: "4:acme/e", Version: 1}))
	_, err = r.read(view, "e")
	if got := *want[*spi.ShreddedError](t, err); got.Owner != "e" {
		t.Errorf("it answers %+v", got)
	}
}
