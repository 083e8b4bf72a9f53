package spi

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// events is a backend that counts what reaches it.
type events struct {
	EventMethods
	appends int
	last    AppendRequest
	err     error
}

func (e *events) Append(_ context.Context, req AppendRequest) (AppendResponse, error) {
	e.appends++
	e.last = req
	return AppendResponse{Head: 1}, e.err
}

func mustOpen(t testing.TB, b Backend) *Store {
	t.Helper()
	s, err := Open(b)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func someEvents(n int) []Event {
	all := make([]Event, n)
	for i := range all {
		all[i] = Event{ID: NewEventID(), Kind: "Noted"}
	}
	return all
}

func TestABackendNeedsEvents(t *testing.T) {
	_, err := Open(Backend{Timers: struct{ TimerMethods }{}})
	if _, ok := errors.AsType[*InvalidArgumentError](err); !ok {
		t.Error(err)
	}
}

func TestANilStoreOffersNothing(t *testing.T) {
	_, err := Append(t.Context(), nil, AppendRequest{Execution: "e", Events: someEvents(1)})
	if !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
}

func TestWhatIsNotOfferedIsNotCalled(t *testing.T) {
	s := Only(mustOpen(t, Backend{Events: struct{ EventMethods }{}}), CapEvents)
	_, err := AcquireFence(t.Context(), s, AcquireFenceRequest{Execution: "e"})
	if unsupported, ok := errors.AsType[*UnsupportedError](err); !ok || unsupported.Cap != CapAcquireFence || !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
	if text := err.Error(); text != "AcquireFence: AcquireFence is not offered by this store" {
		t.Error(text)
	}
}

func TestAnOptionalMethodIsNotOfferedWithoutItsGroup(t *testing.T) {
	all := mustOpen(t, Backend{
		Events: struct{ EventMethods }{}, Timers: struct{ TimerMethods }{}, Refs: struct{ RefMethods }{},
		Leases: struct{ LeaseMethods }{}, DataKeys: struct{ DataKeyMethods }{}, Ownership: struct{ OwnershipMethods }{},
	})
	for _, g := range optionalOf {
		if got := Only(all, ^g.group).Offered(); got != AllCaps&^g.group&^g.optional {
			t.Errorf("without %v it offers %v", g.group, got)
		}
	}
}

func TestAMalformedRequestReachesNoLayer(t *testing.T) {
	e := &events{}
	_, err := Append(t.Context(), mustOpen(t, Backend{Events: e}), AppendRequest{Execution: "e"})
	if _, ok := errors.AsType[*InvalidArgumentError](err); !ok || e.appends > 0 {
		t.Error(err, e.appends)
	}
}

func TestContentIsValidatedOnceAndAnAddressAtEachLayer(t *testing.T) {
	e := &events{}
	s := mustOpen(t, Backend{Events: e})
	req := AppendRequest{Execution: "e", Events: someEvents(1)}
	if _, err := Append(t.Context(), s, req); err != nil {
		t.Fatal(err)
	}
	inner := e.last // as a layer has it, which may encrypt
	inner.Events = []Event{{ID: req.Events[0].ID, Kind: "Noted", Payload: make([]byte, MaxPayload+100)}}
	if _, err := Append(t.Context(), s, inner); err != nil {
		t.Errorf("a layer's own content: %v", err)
	}
	inner.Execution = ExecutionID(strings.Repeat("e", MaxID+1))
	if _, err := Append(t.Context(), s, inner); err == nil {
		t.Error("a layer's own id is not validated")
	}
	inner.Execution, inner.Events = "e", nil
	if _, err := Append(t.Context(), s, inner); err == nil {
		t.Error("a layer may append nothing")
	}
	req.Events[0].Kind = ""
	if _, err := Append(t.Context(), s, req); err == nil {
		t.Error("the caller's request was marked as valid")
	}
}

func TestTheItemsOfAValidBatchAreValid(t *testing.T) {
	req := AppendBatchRequest{Appends: []AppendRequest{{Execution: "e", Events: make([]Event, 1)}}}
	if err := req.Item(0).Validate(); err == nil {
		t.Error("an item of a batch that was not validated is not either")
	}
	req.contentValid = true
	if err := req.Item(0).Validate(); err != nil {
		t.Error(err)
	}
	req.Appends = append(req.Appends, req.Appends[0]) // as of a layer that gathers
	if err := req.Validate(); err == nil {
		t.Error("a layer may name an execution twice")
	}
}

func TestAnErrorNamesItsMethodOnce(t *testing.T) {
	e := &events{err: &ConflictError{Execution: "e", Head: 3}}
	s := mustOpen(t, Backend{Events: e})
	_, err := Append(t.Context(), s, AppendRequest{Execution: "e", Events: someEvents(1)})
	if text := err.Error(); text != `Append: execution "e" is at head 3` {
		t.Error(text)
	}
	e.err = &OpError{"AppendIfUnchanged", e.err} // as from a layer that calls another method
	_, err = Append(t.Context(), s, AppendRequest{Execution: "e", Events: someEvents(1)})
	if text := err.Error(); text != `Append: execution "e" is at head 3` {
		t.Error(text)
	}
}

func TestAResponseThatComesWithAnErrorIsEmpty(t *testing.T) {
	s := mustOpen(t, Backend{Events: &events{err: errors.New("no")}})
	if res, _ := Append(t.Context(), s, AppendRequest{Execution: "e", Events: someEvents(1)}); res != (AppendResponse{}) {
		t.Errorf("%+v", res)
	}
}

// The decorators of the refusal tests: complete, and wrong.
type (
	embedsStore     struct{ *Store } // which has none of the methods
	embedsInterface struct{ EventBackend }
	embedsDecorator struct{ *stub }
	embedsDeep      struct{ nested }
	nested          struct{ inner }
	inner           struct{ TimerMethods }
	embedsItself    struct{ *embedsItself }
	holdsFields     struct{ Store, Methods any }
)

func TestADecoratorThatEmbedsAMethodIsRefused(t *testing.T) {
	for _, c := range []struct {
		decorator any
		refused   bool
	}{
		{&embedsStore{}, false},
		{&holdsFields{}, false},
		{&embedsItself{}, false},
		{holdsFields{}, false},
		{&embedsInterface{}, true},
		{embedsInterface{}, true},
		{&embedsDecorator{}, true},
		{&embedsDeep{}, true},
	} {
		for range 2 { // the second answer is remembered
			err := checkEmbedding(reflect.TypeOf(c.decorator))
			if embedding, ok := errors.AsType[*EmbeddingError](err); ok != c.refused || ok && embedding.Method == "" {
				t.Errorf("%T: %v", c.decorator, err)
			}
		}
	}
}

func TestWrapRefusesWhatIsNoStack(t *testing.T) {
	s := mustOpen(t, Backend{Events: struct{ EventMethods }{}})
	for what, inner := range map[string][]*Store{"no inner store": {}, "a nil store": {s, nil}} {
		if _, err := Wrap(&stub{}, inner...); err == nil {
			t.Errorf("%s is accepted", what)
		}
	}
	if _, err := Wrap(nil, s); err == nil {
		t.Error("no decorator is accepted")
	}
	if Only(nil, AllCaps) != nil || (*Store)(nil).Layers() != nil {
		t.Error("a nil store has something")
	}
}

func TestAnUnsafeOrderIsRefusedUnderAnyInnerStore(t *testing.T) {
	plain := mustOpen(t, Backend{Events: struct{ EventMethods }{}})
	isolates, encrypts := Layer{Name: "tenant", Isolates: true}, Layer{Name: "crypto", Encrypts: true}
	batches, caches := Layer{Name: "coalescing", Batches: true}, Layer{Name: "cache", Caches: true}
	between := Layer{Name: "profiling"}
	for _, c := range []struct {
		outer, inner Layer
		safe         bool
	}{
		{isolates, batches, true},
		{isolates, caches, true},
		{isolates, encrypts, true},
		{isolates, isolates, true},
		{encrypts, isolates, true},
		{encrypts, caches, true},
		{encrypts, batches, true},
		{batches, encrypts, true},
		{batches, isolates, false},
		{caches, isolates, false},
		{caches, encrypts, false},
		{encrypts, encrypts, false},
	} {
		below := mustWrap(t, &stub{layer: c.inner}, plain)
		for what, inner := range map[string][]*Store{
			"directly":                  {below},
			"two layers below":          {mustWrap(t, &stub{layer: between}, below)},
			"under another inner store": {plain, below},
			"deep under another":        {plain, mustWrap(t, &stub{layer: between}, plain, below)},
		} {
			_, err := Wrap(&stub{layer: c.outer}, inner...)
			order, refused := errors.AsType[*LayerOrderError](err)
			if refused == c.safe {
				t.Errorf("%s over %s, %s: %v", c.outer.Name, c.inner.Name, what, err)
			}
			if refused && (order.Outer != c.outer.Name || order.Inner != c.inner.Name || order.Reason == "") {
				t.Errorf("the error is %v", err)
			}
		}
	}
}

func TestAStackOffersWhatItsDecoratorSays(t *testing.T) {
	all := mustOpen(t, Backend{Events: struct{ EventMethods }{}, Timers: struct{ TimerMethods }{}})
	fewer := Only(all, ^(CapAppendBatch | CapTimers))
	var saw Caps
	s := mustWrap(t, &stub{caps: func(inner Caps) Caps { saw = inner; return inner&^CapCopyPrefix | CapAppendBatch | CapPromoteRef }}, all, fewer)
	if saw != fewer.Offered() {
		t.Errorf("it was asked about %v", saw)
	}
	if want := fewer.Offered()&^CapCopyPrefix | CapAppendBatch; s.Offered() != want {
		t.Errorf("it offers %v, not %v", s.Offered(), want) // and no PromoteRef without refs
	}
}

func TestCapsHaveNames(t *testing.T) {
	if got := ParseCaps(append(AllCaps.Names(), "FromANewerPeer")); got != AllCaps {
		t.Errorf("%v are lost", AllCaps&^got)
	}
	if text := (CapTimers | CapAppendBatch).String(); text != "Timers, AppendBatch" {
		t.Error(text)
	}
}

func mustWrap(t testing.TB, d Decorator, inner ...*Store) *Store {
	t.Helper()
	s, err := Wrap(d, inner...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestVersionsOfAnotherMajorAreRefused(t *testing.T) {
	for _, c := range []struct {
		have    map[Group]Version
		refused Group
	}{
		{Versions(), ""},
		{nil, ""},
		{map[Group]Version{Events: {2, 7}, "groups to come": {9, 0}}, ""},
		{map[Group]Version{Events: {1, 5}}, Events},
		{map[Group]Version{Events: {2, 0}, Refs: {1, 2}}, Refs},
		{map[Group]Version{Timers: {2, 0}}, Timers},
	} {
		err := CheckCompatibility(c.have)
		refused := Group("")
		if e, ok := errors.AsType[*CompatibilityError](err); ok {
			refused = e.Group
		}
		if refused != c.refused {
			t.Errorf("%v: %v", c.have, err)
		}
	}
	if text := CheckCompatibility(map[Group]Version{Events: {1, 5}}).Error(); text != "events has version 1.5, not 2.x as here" {
		t.Error(text)
	}
}

func ExampleOpError() {
	err := error(&OpError{"Append", &StaleFenceError{Execution: "order-1", Current: 3}})
	if stale, ok := errors.AsType[*StaleFenceError](err); ok {
		fmt.Println("somebody holds", stale.Current)
	}
	fmt.Println(err)
	// Output:
	// somebody holds 3
	// Append: execution "order-1" is fenced at 3
}
