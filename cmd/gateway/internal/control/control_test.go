package control

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loomgate/loomgate/spi"
)

// run keeps a gateway's copy up to date until the test ends.
func run(t *testing.T, r *Records) {
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	t.Cleanup(func() { stop(); running.Wait() })
}

func TestARevocationReachesAnotherGatewayWithItsNextLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t)
		one, other := New(store, Options{}), New(store, Options{})
		run(t, other)
		must(t, one.CreateTenant(t.Context(), admin, "acme"))
		id, secret := newKeyFor(t, one, "acme")
		time.Sleep(time.Second)
		synctest.Wait()
		if !usable(t, other, id, secret) {
			t.Fatal("the key is not known")
		}
		must(t, one.RevokeAPIKey(t.Context(), admin, id))
		if usable(t, one, id, secret) {
			t.Error("the gateway that revoked it still lets it in")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if usable(t, other, id, secret) {
			t.Error("another gateway still lets it in")
		}
	})
}

func TestTheLastCopyServesForAWhileAndThenNobodyIsLetIn(t *testing.T) {
	for name, fault := range map[string]func(context.Context) error{"down": down, "hanging": hang} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, store := newFaulty(t, newStore(t))
				r := New(store, Options{MaxStaleness: time.Minute})
				run(t, r)
				synctest.Wait()
				must(t, r.CreateTenant(t.Context(), admin, "acme"))
				id, secret := newKeyFor(t, r, "acme")

				f.setRead(fault)
				time.Sleep(time.Minute)
				synctest.Wait()
				if !usable(t, r, id, secret) || r.Ready() != nil {
					t.Error("the last copy does not serve")
				}
				time.Sleep(time.Nanosecond)
				_, _, errVerify := r.Verify(id, secret)
				_, errTenant := r.Tenant("acme")
				_, _, errTenants := r.ListTenants("", 1)
				_, _, errKeys := r.ListAPIKeys("", 1)
				for _, err := range []error{errVerify, errTenant, errTenants, errKeys, r.Ready()} {
					if !is[*spi.UnavailableError](err) {
						t.Errorf("past its time: %v", err)
					}
				}

				f.setRead(nil)
				time.Sleep(readTimeout + time.Second)
				synctest.Wait()
				if !usable(t, r, id, secret) {
					t.Error("it does not recover")
				}
			})
		})
	}
}

func TestUntilTheRecordsAreReadNobodyIsLetIn(t *testing.T) {
	f, store := newFaulty(t, newStore(t))
	f.setRead(down)
	r := New(store, Options{})
	if err := r.Ready(); !is[*spi.UnavailableError](err) {
		t.Errorf("before the first look: %v", err)
	}
	if err := r.Refresh(t.Context()); !is[*spi.UnavailableError](err) {
		t.Errorf("refresh: %v", err)
	}
	if _, _, err := r.Verify("", ""); !is[*spi.UnavailableError](err) {
		t.Errorf("after a look that failed: %v", err)
	}
	if err := r.CreateTenant(t.Context(), admin, "acme"); !is[*spi.UnavailableError](err) {
		t.Errorf("create: %v", err)
	}
}

func TestAHangingShardFailsAChangeWithinItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, store := newFaulty(t, newStore(t))
		f.setRead(hang)
		r := New(store, Options{})
		began := time.Now()
		if err := r.CreateTenant(t.Context(), admin, "acme"); !is[*spi.UnavailableError](err) {
			t.Errorf("%v", err)
		}
		if took := time.Since(began); took != readTimeout {
			t.Errorf("it took %v", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.CreateTenant(ctx, admin, "acme"); !errors.Is(err, context.DeadlineExceeded) || is[*spi.UnavailableError](err) {
			t.Errorf("with a deadline of its own: %v", err)
		}
	})
}

func TestOneWaitsForAnotherNoLongerThanItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, store := newFaulty(t, newStore(t))
		f.setRead(hang)
		r := New(store, Options{})
		var slow sync.WaitGroup
		slow.Go(func() { _ = r.CreateTenant(t.Context(), admin, "slow") })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		for _, err := range []error{r.CreateTenant(ctx, admin, "acme"), r.Refresh(ctx)} {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("it took %v", took)
		}
		slow.Wait()
	})
}

func TestRecordsOfAnotherLogAreReadAnew(t *testing.T) {
	restored := newStore(t)
	f, store := newFaulty(t, newStore(t))
	one := gateway(t, restored)
	must(t, one.CreateTenant(t.Context(), admin, "kept"))

	r := gateway(t, store)
	must(t, r.CreateTenant(t.Context(), admin, "lost"))
	must(t, r.CreateTenant(t.Context(), admin, "lost too"))

	f.inner = restored
	refresh(t, r)
	tenants, _, err := r.ListTenants("", 10)
	must(t, err)
	if len(tenants) != 1 || tenants[0].Name != "kept" {
		t.Errorf("%+v", tenants)
	}
	must(t, r.CreateTenant(t.Context(), admin, "new"))

	// The same length, other events.
	third := newStore(t)
	other := gateway(t, third)
	must(t, other.CreateTenant(t.Context(), admin, "a"))
	must(t, other.CreateTenant(t.Context(), admin, "b"))
	f.inner = third
	refresh(t, r)
	if _, err := r.Tenant("a"); err != nil {
		t.Error(err)
	}
}

func TestRecordsThatWereDeletedAreGone(t *testing.T) {
	store := newStore(t)
	r := gateway(t, store)
	must(t, r.CreateTenant(t.Context(), admin, "acme"))
	_, err := spi.DeleteExecution(t.Context(), store, spi.DeleteExecutionRequest{Execution: Execution, Incarnation: 1})
	must(t, err)
	refresh(t, r)
	if _, err := r.Tenant("acme"); !is[*NotFoundError](err) {
		t.Errorf("%v", err)
	}
	must(t, r.CreateTenant(t.Context(), admin, "acme"))
}

func TestALogThatIsCutOffIsNotServed(t *testing.T) {
	store := newStore(t)
	r := gateway(t, store)
	must(t, r.CreateTenant(t.Context(), admin, "a"))
	must(t, r.CreateTenant(t.Context(), admin, "b"))
	_, err := spi.TruncatePrefixKeeping(t.Context(), store, spi.TruncatePrefixKeepingRequest{Execution: Execution, Incarnation: 1, Before: 2})
	must(t, err)
	refresh(t, r) // it has read the beginning

	fresh := New(store, Options{})
	if err := fresh.Refresh(t.Context()); !is[*RecordError](err) {
		t.Errorf("%v", err)
	}
	if fresh.Ready() == nil {
		t.Error("it serves")
	}
}

func TestALogOfManyPagesIsReadToItsEnd(t *testing.T) {
	store := newStore(t)
	var events []spi.Event
	for i := range 2*pageSize + 1 {
		event, err := decision{kind: tenantCreated, record: record{Tenant: spi.TenantName(fmt.Sprint(i))}}.event()
		must(t, err)
		events = append(events, event)
	}
	_, err := spi.Append(t.Context(), store, spi.AppendRequest{Execution: Execution, Events: events})
	must(t, err)
	tenants, _, err := gateway(t, store).ListTenants("", spi.MaxLimit)
	must(t, err)
	if len(tenants) != len(events) {
		t.Errorf("%d tenants of %d", len(tenants), len(events))
	}
}

func TestACopyIsAsOldAsTheBeginningOfItsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, store := newFaulty(t, newStore(t))
		f.setRead(func(context.Context) error { time.Sleep(4 * time.Second); return nil })
		r := New(store, Options{MaxStaleness: 6 * time.Second})
		refresh(t, r)
		time.Sleep(2 * time.Second)
		must(t, r.Ready())
		time.Sleep(time.Nanosecond)
		if r.Ready() == nil {
			t.Error("it is older than it says")
		}
	})
}

func TestWhatReadersHaveDoesNotChange(t *testing.T) {
	r := gateway(t, newStore(t))
	must(t, r.CreateTenant(t.Context(), admin, "acme"))
	id, secret := newKeyFor(t, r, "acme")
	had := r.copy.Load()
	must(t, r.CreateTenant(t.Context(), admin, "other"))
	must(t, r.RevokeAPIKey(t.Context(), admin, id))
	must(t, r.DisableTenant(t.Context(), admin, "acme"))
	acme, _ := had.tenants.Get("acme")
	key, _ := had.keys.Get(id)
	if had.tenants.Len() != 1 || !acme.Usable() || !key.provenBy(secret) || !key.Usable(time.Now()) {
		t.Errorf("%+v, %+v", acme, key.APIKey)
	}
}

func TestTheReservedTenantIsNoCustomers(t *testing.T) {
	if err := Tenant.Validate(); err != nil {
		t.Fatal(err)
	}
	if err := gateway(t, newStore(t)).CreateTenant(t.Context(), admin, Tenant); !is[*spi.InvalidArgumentError](err) {
		t.Errorf("%v", err)
	}
}

func TestFailuresToReadAreLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, store := newFaulty(t, newStore(t))
		log, text := newLog()
		run(t, New(store, Options{Log: log}))
		synctest.Wait()
		f.setRead(down)
		time.Sleep(10 * time.Second)
		f.setRead(nil)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := text(); strings.Count(got, "level=ERROR") != 1 || strings.Count(got, "can be read again") != 1 {
			t.Errorf("%s", got)
		}
	})
}
