package crypto_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loomgate/loomgate/decorators/crypto"
	"github.com/loomgate/loomgate/spi"
)

// TestAnOldEventOpensAfterEachStepOfARotation rotates the KMS's key and the tenant's.
func TestAnOldEventOpensAfterEachStepOfARotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		running := r.node()
		r.append(running, "4:acme/old", 0, noted("old"))
		r.append(running, "4:bolt/old", 0, noted("old"))
		keys := r.keys()
		check := func(step string) {
			t.Helper()
			for _, s := range []*spi.Store{running, r.node()} {
				r.wantRead(s, "4:acme/old", "old")
				r.wantRead(s, "4:bolt/old", "old")
			}
			if t.Failed() {
				t.Fatalf("after %s", step)
			}
		}
		r.kms.rotate(t)
		check("the KMS's rotation")

		if version := must[int64](t)(keys.RotateTenant(t.Context(), "acme")); version != 3 {
			t.Errorf("the next version is %d", version)
		}
		check("the tenant's rotation")
		r.append(running, "4:acme/between", 0, noted("between"))
		if by := r.dataKey("4:acme/between", 1).WrappedBy; by != "tenant/2" {
			t.Errorf("within its life in memory, the older version does not wrap, but %q", by)
		}
		time.Sleep(life)
		r.append(running, "4:acme/new", 0, noted("new"))
		if by := r.dataKey("4:acme/new", 1).WrappedBy; by != "tenant/3" {
			t.Errorf("a new execution's key is wrapped by %q", by)
		}

		early := must[crypto.Retirement](t)(keys.Retire(t.Context(), "acme"))
		if len(early.Versions) != 0 || early.InUse != 2 {
			t.Errorf("before the data keys are wrapped anew, it retires %+v", early)
		}
		check("a retirement that came too early")

		want := crypto.Rewrapped{TenantKeys: 1, DataKeys: 2} // version 3 was wrapped by the KMS's present key
		if got := must[crypto.Rewrapped](t)(keys.Rewrap(t.Context(), "acme")); got != want {
			t.Errorf("it rewraps %+v, not %+v", got, want)
		}
		if got := must[crypto.Rewrapped](t)(keys.Rewrap(t.Context(), "acme")); got != (crypto.Rewrapped{}) {
			t.Errorf("again, it rewraps %+v", got)
		}
		check("the rewrapping")

		late := must[crypto.Retirement](t)(keys.Retire(t.Context(), "acme"))
		if !slices.Equal(late.Versions, []int64{2}) || late.InUse != 0 {
			t.Errorf("then it retires %+v", late)
		}
		check("the retirement")
		if by := r.dataKey("4:acme/", 0).WrappedBy; by != "kms/2" {
			t.Errorf("the tenant's key is wrapped by %q", by)
		}
		if r.dataKey("4:bolt/", 0).WrappedBy != "kms/1" || r.dataKey("4:bolt/old", 1).WrappedBy != "tenant/2" {
			t.Error("another tenant's keys have changed")
		}

		must[crypto.Rewrapped](t)(keys.Rewrap(t.Context(), "bolt"))
		r.kms.lose("kms/1") // nothing needs it any more
		time.Sleep(time.Hour)
		check("the end of the KMS's older key")
		r.append(running, "4:acme/old", 1, noted("goes on"))
		r.wantRead(r.node(), "4:acme/old", "old", "goes on")
	})
}

// TestADataKeyThatArrivesAfterARetirementIsWrappedAnew lets the store take so long to
// create a data key that the version which wraps it is retired before.
func TestADataKeyThatArrivesAfterARetirementIsWrappedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.append(r.node(), "4:acme/first", 0, noted("first"))
		stall := make(chan struct{})
		slow := r.nodeOver(&below{before: func(op string, _ any) error {
			if op == "CreateDataKey" {
				<-stall
			}
			return nil
		}})
		done := make(chan error)
		go func() {
			_, err := spi.Append(t.Context(), slow, spi.AppendRequest{Execution: "4:acme/slow", Events: []spi.Event{noted("slow")}})
			done <- err
		}()
		synctest.Wait()
		keys := r.keys()
		must[int64](t)(keys.RotateTenant(t.Context(), "acme"))
		must[crypto.Rewrapped](t)(keys.Rewrap(t.Context(), "acme"))
		if got := must[crypto.Retirement](t)(keys.Retire(t.Context(), "acme")); !slices.Equal(got.Versions, []int64{2}) {
			t.Fatalf("it retires %+v", got)
		}
		close(stall)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if by := r.dataKey("4:acme/slow", 1).WrappedBy; by != "tenant/3" {
			t.Errorf("it is wrapped by %q", by)
		}
		r.wantRead(r.node(), "4:acme/slow", "slow")
	})
}

func TestWithoutRewrappingThereIsNoRotation(t *testing.T) {
	r := newRig(t)
	r.append(r.node(), "4:acme/e", 0, noted("e"))
	r.inner = spi.Only(r.inner, ^spi.CapRewrapDataKey)
	_, err := r.keys().RotateTenant(t.Context(), "acme")
	unsupported := *want[*spi.UnsupportedError](t, err)
	_, rewrap := r.keys().Rewrap(t.Context(), "acme")
	_, retire := r.keys().Retire(t.Context(), "acme")
	for _, err := range []error{rewrap, retire} {
		if got := *want[*spi.UnsupportedError](t, err); got != unsupported || got.Cap != spi.CapRewrapDataKey {
			t.Errorf("it answers %+v", got)
		}
	}
	r.wantRead(r.node(), "4:acme/e", "e")
}

func TestATenantThatNeverHadAKeyIsNotRotated(t *testing.T) {
	r := newRig(t)
	_, rotate := r.keys().RotateTenant(t.Context(), "acme")
	_, rewrap := r.keys().Rewrap(t.Context(), "acme")
	_, retire := r.keys().Retire(t.Context(), "acme")
	for _, err := range []error{rotate, rewrap, retire} {
		want[*spi.NotFoundError](t, err)
	}
	if keys := must[spi.ListDataKeysResponse](t)(spi.ListDataKeys(t.Context(), r.inner, spi.ListDataKeysRequest{Limit: 10})); len(keys.Keys) != 0 {
		t.Errorf("there are keys: %v", keys.Keys)
	}
}

// TestALostKeyDoesNotStopARewrapping counts it and goes on.
func TestALostKeyDoesNotStopARewrapping(t *testing.T) {
	r := newRig(t)
	s := r.node()
	for i := range 30 {
		r.append(s, spi.ExecutionID(fmt.Sprintf("4:acme/e%d", i)), 0, noted("e"))
	}
	must[spi.RewrapDataKeyResponse](t)(spi.RewrapDataKey(t.Context(), r.inner, spi.RewrapDataKeyRequest{
		Owner: "4:acme/e7", Version: 1, OldWrappedBy: "tenant/2", WrappedBy: "tenant/2", Wrapped: []byte("damaged"),
	}))
	keys := r.keys()
	must[int64](t)(keys.RotateTenant(t.Context(), "acme"))
	if got := must[crypto.Rewrapped](t)(keys.Rewrap(t.Context(), "acme")); got != (crypto.Rewrapped{DataKeys: 29, Lost: 1}) {
		t.Errorf("it rewraps %+v", got)
	}
}
