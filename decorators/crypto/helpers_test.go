package crypto_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/tink-crypto/tink-go/v2/aead/subtle"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/decorators/crypto"
	"github.com/loomgate/loomgate/spi"
)

// A testKMS keeps its keys in memory, counts its calls, and fails when it is told to.
type testKMS struct {
	mu             sync.Mutex
	keys           map[string]*subtle.AESGCM
	present        string
	wraps, unwraps int
	down           error
}

func newKMS(t testing.TB) *testKMS {
	k := &testKMS{keys: map[string]*subtle.AESGCM{}}
	k.rotate(t)
	return k
}

// rotate makes a key that wraps from now on.
func (k *testKMS) rotate(t testing.TB) {
	t.Helper()
	raw := make([]byte, 32)
	rand.Read(raw)
	key := must[*subtle.AESGCM](t)(subtle.NewAESGCM(raw))
	k.mu.Lock()
	defer k.mu.Unlock()
	k.present = fmt.Sprintf("kms/%d", len(k.keys)+1)
	k.keys[k.present] = key
}

// lose forgets a key.
func (k *testKMS) lose(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.keys, name)
}

// fail makes every call fail until it is told nil.
func (k *testKMS) fail(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.down = err
}

// calls returns how often it was called, and begins to count anew.
func (k *testKMS) calls() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := k.wraps + k.unwraps
	k.wraps, k.unwraps = 0, 0
	return n
}

func (k *testKMS) Wrap(_ context.Context, key, associated []byte) ([]byte, string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.wraps++; k.down != nil {
		return nil, "", k.down
	}
	wrapped, err := k.keys[k.present].Encrypt(key, associated)
	return wrapped, k.present, err
}

func (k *testKMS) Unwrap(_ context.Context, by string, wrapped, associated []byte) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.unwraps++; k.down != nil {
		return nil, k.down
	}
	key, ok := k.keys[by]
	if !ok {
		return nil, fmt.Errorf("no key %q: %w", by, crypto.ErrCannotUnwrap)
	}
	raw, err := key.Decrypt(wrapped, associated)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", crypto.ErrCannotUnwrap, err)
	}
	return raw, nil
}

// must returns a value, or ends the test.
func must[V any](t testing.TB) func(V, error) V {
	return func(v V, err error) V {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// want checks that err is an E and returns it.
func want[E error](t testing.TB, err error) E {
	t.Helper()
	e, ok := errors.AsType[E](err)
	if !ok {
		t.Fatalf("the error is %v, not a %T", err, e)
	}
	return e
}

// A rig is a store in memory under one or more nodes.
type rig struct {
	*testing.T
	inner *spi.Store
	kms   *testKMS
	opts  crypto.Options
}

func newRig(t *testing.T) *rig {
	return &rig{t, must[*spi.Store](t)(memory.New()), newKMS(t), crypto.Options{}}
}

// node returns a store that encrypts, with its own keys in memory.
func (r *rig) node() *spi.Store {
	r.Helper()
	return must[*spi.Store](r)(crypto.New(r.inner, r.kms, r.opts))
}

// nodeOver returns a node over a layer of the test's own.
func (r *rig) nodeOver(b *below) *spi.Store {
	r.Helper()
	b.inner = r.inner
	return must[*spi.Store](r)(crypto.New(must[*spi.Store](r)(spi.Wrap(b, r.inner)), r.kms, r.opts))
}

func (r *rig) keys() *crypto.Keys {
	r.Helper()
	return must[*crypto.Keys](r)(crypto.NewKeys(r.inner, r.kms, r.opts))
}

// noted returns an event with an id of its own.
func noted(payload string) spi.Event {
	return spi.Event{ID: spi.NewEventID(), Kind: "Noted", Payload: []byte(payload), Metadata: map[string]string{"about": payload}}
}

// append appends events at a head.
func (r *rig) append(s *spi.Store, id spi.ExecutionID, head int64, events ...spi.Event) {
	r.Helper()
	must[spi.AppendResponse](r)(spi.Append(r.Context(), s, spi.AppendRequest{Execution: id, ExpectedHead: head, Events: events}))
}

func (r *rig) read(s *spi.Store, id spi.ExecutionID) ([]spi.Event, error) {
	res, err := spi.Read(r.Context(), s, spi.ReadRequest{Execution: id, Limit: 100})
	return res.Events, err
}

// wantRead checks that a log is read with these payloads, each also in the metadata.
func (r *rig) wantRead(s *spi.Store, id spi.ExecutionID, payloads ...string) {
	r.Helper()
	events := must[[]spi.Event](r)(r.read(s, id))
	var got []string
	for _, e := range events {
		got = append(got, string(e.Payload))
		if e.Metadata["about"] != string(e.Payload) {
			r.Errorf("the metadata of event %d is %v", e.Sequence, e.Metadata)
		}
	}
	if !slices.Equal(got, payloads) {
		r.Errorf("%q holds %q, not %q", id, got, payloads)
	}
}

// dataKey returns a key as the store has it.
func (r *rig) dataKey(owner spi.KeyOwner, version int64) spi.DataKey {
	r.Helper()
	return must[spi.GetDataKeyResponse](r)(spi.GetDataKey(r.Context(), r.inner, spi.GetDataKeyRequest{Owner: owner, Version: version})).Key
}

// sealedEvent returns an event as the store has it, ready to be appended elsewhere.
func (r *rig) sealedEvent(id spi.ExecutionID, sequence int64) spi.Event {
	r.Helper()
	res := must[spi.ReadResponse](r)(spi.Read(r.Context(), r.inner, spi.ReadRequest{Execution: id, After: sequence - 1, Limit: 1}))
	e := res.Events[0]
	e.Sequence, e.Fence = 0, 0
	return e
}

// plant appends events past the layer, under the execution's key.
func (r *rig) plant(id spi.ExecutionID, head int64, events ...spi.Event) {
	r.Helper()
	must[spi.AppendResponse](r)(spi.Append(r.Context(), r.inner, spi.AppendRequest{
		Execution: id, ExpectedHead: head, KeyID: r.dataKey(spi.KeyOwner(id), 1).ID, Events: events,
	}))
}
