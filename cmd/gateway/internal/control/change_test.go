package control

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loomgate/loomgate/spi"
)

func TestOfManyWhoCreateOneTenantOneDoes(t *testing.T) {
	store := newStore(t)
	var made, taken atomic.Int32
	var creating sync.WaitGroup
	for range 8 {
		r := New(store, Options{})
		for range 2 {
			creating.Go(func() {
				switch err := r.CreateTenant(t.Context(), admin, "acme"); {
				case err == nil:
					made.Add(1)
				case is[*TakenError](err):
					taken.Add(1)
				default:
					t.Error(err)
				}
			})
		}
	}
	creating.Wait()
	if made.Load() != 1 || taken.Load() != 15 || count(t, store) != 1 {
		t.Errorf("made %d, taken %d, records %d", made.Load(), taken.Load(), count(t, store))
	}
}

func TestChangesOfOneGatewayDoNotGetInEachOthersWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, store := newFaulty(t, newStore(t))
		r := gateway(t, store)
		var appends atomic.Int32
		f.append = func(do func() (spi.AppendResponse, error)) (spi.AppendResponse, error) {
			appends.Add(1)
			time.Sleep(time.Second) // whoever can come in between does
			return do()
		}
		var creating sync.WaitGroup
		for i := range 10 {
			creating.Go(func() {
				if err := r.CreateTenant(t.Context(), admin, spi.TenantName(fmt.Sprint(i))); err != nil {
					t.Error(err)
				}
			})
		}
		creating.Wait()
		if appends.Load() != 10 {
			t.Errorf("%d appends for 10 changes", appends.Load())
		}
	})
}

func TestALookThatComesBeforeTheWriterSeesTheSame(t *testing.T) {
	f, store := newFaulty(t, newStore(t))
	r := gateway(t, store)
	f.append = func(do func() (spi.AppendResponse, error)) (spi.AppendResponse, error) {
		res, err := do()
		refresh(t, r)
		return res, err
	}
	for n, name := range []spi.TenantName{"a", "b"} {
		must(t, r.CreateTenant(t.Context(), admin, name))
		if _, err := r.Tenant(name); err != nil || r.folded.head != int64(n+1) {
			t.Errorf("%v at head %d", err, r.folded.head)
		}
	}
}

// TestWhoComesTooLateDecidesAgain puts another gateway's record between a decision and its
// append.
func TestWhoComesTooLateDecidesAgain(t *testing.T) {
	inner := newStore(t)
	f, store := newFaulty(t, inner)
	r, rival := gateway(t, store), gateway(t, inner)
	f.append = func(do func() (spi.AppendResponse, error)) (spi.AppendResponse, error) {
		f.append = nil
		must(t, rival.CreateTenant(t.Context(), admin, "acme"))
		return do()
	}
	if err := r.CreateTenant(t.Context(), admin, "acme"); !is[*TakenError](err) {
		t.Errorf("%v", err)
	}
	f.append = func(do func() (spi.AppendResponse, error)) (spi.AppendResponse, error) {
		f.append = nil
		must(t, rival.CreateTenant(t.Context(), admin, "other"))
		return do()
	}
	must(t, r.CreateTenant(t.Context(), admin, "mine"))
	if got := count(t, inner); got != 3 {
		t.Errorf("%d records", got)
	}
	for _, name := range []spi.TenantName{"acme", "other", "mine"} {
		if _, err := r.Tenant(name); err != nil {
			t.Errorf("the writer does not see %s: %v", name, err)
		}
	}
}

func TestALostAnswerIsFoundOutAndNothingIsMadeTwice(t *testing.T) {
	lost := &spi.AmbiguousError{Cause: errors.New("connection reset")}
	unavailable := &spi.UnavailableError{Cause: errors.New("down")}
	type answer struct {
		lands bool
		err   error
	}
	for name, answers := range map[string][]answer{
		"it landed":                             {{true, lost}},
		"it did not land":                       {{false, lost}},
		"lost twice":                            {{true, lost}, {true, lost}},
		"in between, the shard is down":         {{true, lost}, {false, unavailable}},
		"in between, a context of the shard's":  {{false, lost}, {false, context.DeadlineExceeded}},
		"it lands with the second try's answer": {{false, lost}, {true, lost}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner := newStore(t)
				f, store := newFaulty(t, inner)
				r := gateway(t, store)
				f.append = func(do func() (spi.AppendResponse, error)) (spi.AppendResponse, error) {
					if len(answers) == 0 {
						return do()
					}
					a := answers[0]
					answers = answers[1:]
					if a.lands {
						_, err := do()
						must(t, err)
					}
					return spi.AppendResponse{}, a.err
				}
				must(t, r.CreateTenant(t.Context(), admin, "acme"))
				if _, err := r.Tenant("acme"); err != nil {
					t.Errorf("the writer does not see it: %v", err)
				}
				if got := count(t, inner); got != 1 {
					t.Errorf("%d records", got)
				}
			})
		})
	}
}

// TestALostAnswerAndARivalAtOnce loses the answer of an append that landed, and puts a
// rival's record after it.
func TestALostAnswerAndARivalAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := newStore(t)
		f, store := newFaulty(t, inner)
		r, rival := gateway(t, store), gateway(t, inner)
		f.append = func(do func() (spi.AppendResponse, error)) (spi.AppendResponse, error) {
			f.append = nil
			_, err := do()
			must(t, err)
			must(t, rival.CreateTenant(t.Context(), admin, "rival"))
			return spi.AppendResponse{}, &spi.AmbiguousError{Cause: errors.New("connection reset")}
		}
		must(t, r.CreateTenant(t.Context(), admin, "acme"))
		if _, err := r.Tenant("acme"); err != nil {
			t.Errorf("the writer does not see it: %v", err)
		}
		refresh(t, r)
		if got := count(t, inner); got != 2 {
			t.Errorf("%d records", got)
		}
	})
}

// TestAfterALostAnswerARivalsRecordIsTheEndOfTheFirstTry loses an append altogether, and
// puts a rival's in its place.
func TestAfterALostAnswerARivalsRecordIsTheEndOfTheFirstTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := newStore(t)
		f, store := newFaulty(t, inner)
		r, rival := gateway(t, store), gateway(t, inner)
		f.append = func(func() (spi.AppendResponse, error)) (spi.AppendResponse, error) {
			f.append = nil
			must(t, rival.CreateTenant(t.Context(), admin, "rival"))
			return spi.AppendResponse{}, &spi.AmbiguousError{Cause: errors.New("connection reset")}
		}
		must(t, r.CreateTenant(t.Context(), admin, "acme"))
		if got := count(t, inner); got != 2 {
			t.Errorf("%d records", got)
		}
	})
}

func TestWhatCannotBeFoundOutIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, store := newFaulty(t, newStore(t))
		r := gateway(t, store)
		tries := 0
		f.append = func(func() (spi.AppendResponse, error)) (spi.AppendResponse, error) {
			if tries++; tries == 1 {
				return spi.AppendResponse{}, &spi.AmbiguousError{Cause: errors.New("connection reset")}
			}
			return spi.AppendResponse{}, &spi.UnavailableError{Cause: errors.New("down")}
		}
		if err := r.CreateTenant(t.Context(), admin, "acme"); !is[*spi.AmbiguousError](err) || tries != maxTries {
			t.Errorf("%v after %d tries", err, tries)
		}
		tries = 0
		ctx, cancel := context.WithTimeout(t.Context(), firstPause/2)
		defer cancel()
		if err := r.CreateTenant(ctx, admin, "acme"); !is[*spi.AmbiguousError](err) || tries != 1 {
			t.Errorf("%v after %d tries", err, tries)
		}
	})
}

func TestAShardThatIsDownHasChangedNothing(t *testing.T) {
	f, store := newFaulty(t, newStore(t))
	r := gateway(t, store)
	tries := 0
	f.append = func(func() (spi.AppendResponse, error)) (spi.AppendResponse, error) {
		tries++
		return spi.AppendResponse{}, &spi.UnavailableError{Cause: errors.New("down")}
	}
	if err := r.CreateTenant(t.Context(), admin, "acme"); !is[*spi.UnavailableError](err) || tries != 1 {
		t.Errorf("%v after %d tries", err, tries)
	}
}

func TestWhatAWriterSeesDoesNotMakeItsCopyOlder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, store := newFaulty(t, newStore(t))
		r := gateway(t, store)
		f.append = func(do func() (spi.AppendResponse, error)) (spi.AppendResponse, error) {
			time.Sleep(time.Hour) // a commit that takes its time
			must(t, r.Refresh(t.Context()))
			return do()
		}
		must(t, r.CreateTenant(t.Context(), admin, "acme"))
		if err := r.Ready(); err != nil {
			t.Error(err)
		}
	})
}

// lifeOfAKey makes a tenant and its key and revokes it, and says where the gateway does not
// see what it did.
func lifeOfAKey(ctx context.Context, r *Records, name spi.TenantName) error {
	if err := r.CreateTenant(ctx, admin, name); err != nil {
		return err
	}
	_, text, err := r.CreateAPIKey(ctx, admin, Grant{Tenants: []spi.TenantName{name}, Scopes: ScopeRead})
	if err != nil {
		return err
	}
	id, secret, _ := ParseKey(text)
	if key, proven, err := r.Verify(id, secret); err != nil || !proven || !key.Usable(time.Now()) {
		return fmt.Errorf("key %s is not usable at once: %v, %w", id, proven, err)
	}
	if err := r.RevokeAPIKey(ctx, admin, id); err != nil {
		return err
	}
	if key, _, err := r.Verify(id, secret); err != nil || key.Usable(time.Now()) {
		return fmt.Errorf("key %s is usable, %w", id, err)
	}
	_, _, err = r.ListTenants("", 100)
	return err
}

// TestManyGatewaysAtOnce lets gateways change and ask at the same time, and compares what
// they end with.
func TestManyGatewaysAtOnce(t *testing.T) {
	store := newStore(t)
	ctx, stop := context.WithCancel(t.Context())
	var running, changing sync.WaitGroup
	var gateways []*Records
	for range 3 {
		r := New(store, Options{Poll: time.Millisecond})
		refresh(t, r)
		running.Go(func() { r.Run(ctx) })
		gateways = append(gateways, r)
	}
	for i, r := range gateways {
		for j := range 2 {
			changing.Go(func() {
				for n := range 10 {
					if err := lifeOfAKey(ctx, r, spi.TenantName(fmt.Sprintf("t%d-%d-%d", i, j, n))); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	changing.Wait()
	stop()
	running.Wait()
	for _, r := range gateways {
		refresh(t, r)
		tenants, _, err := r.ListTenants("", 1000)
		must(t, err)
		keys, _, err := r.ListAPIKeys("", 1000)
		must(t, err)
		if len(tenants) != 60 || len(keys) != 60 {
			t.Errorf("%d tenants, %d keys", len(tenants), len(keys))
		}
	}
}
