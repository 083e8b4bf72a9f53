package crypto_test

import (
	"slices"
	"testing"

	"github.com/loomgate/loomgate/decorators/crypto"
	"github.com/loomgate/loomgate/spi"
)

// header is the length of an envelope's up to the metadata.
const header = 1 + len(spi.KeyID{}) + 4

// stateKey puts another key's id into an envelope.
func stateKey(envelope []byte, id spi.KeyID) { copy(envelope[1:], id[:]) }

// TestWhatIsMovedToAnotherExecutionDoesNotOpen writes an event of one execution into
// another, under that one's key: the store below takes it.
func TestWhatIsMovedToAnotherExecutionDoesNotOpen(t *testing.T) {
	const from = "4:acme/order-1"
	for _, c := range []struct {
		name       string
		to         spi.ExecutionID
		claimed    bool // the envelope says that it is under the key of to
		sequence   int64
		wantsField string
	}{
		{"of another tenant", "4:bolt/order-1", false, 2, "key id"},
		{"of another tenant, under its key's id", "4:bolt/order-1", true, 2, "metadata"},
		{"of the same tenant", "4:acme/order-2", false, 2, "key id"},
		{"of the same tenant, under its key's id", "4:acme/order-2", true, 2, "metadata"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			s := r.node()
			r.append(s, from, 0, noted("secret"))
			r.append(s, c.to, 0, noted("first"))
			moved := r.sealedEvent(from, 1)
			if c.claimed {
				stateKey(moved.Payload, r.dataKey(spi.KeyOwner(c.to), 1).ID)
			}
			r.plant(c.to, 1, moved)
			r.wantTampered(s, c.to, crypto.TamperedError{Execution: c.to, Sequence: 2, Field: c.wantsField})
			r.wantRead(s, from, "secret")
		})
	}
}

// TestWhatIsChangedInItsExecutionDoesNotOpen changes what the store holds.
func TestWhatIsChangedInItsExecutionDoesNotOpen(t *testing.T) {
	const id = "4:acme/order-1"
	for _, c := range []struct {
		name   string
		change func(events []spi.Event)
		want   crypto.TamperedError
	}{
		{"two events change what they hold", func(e []spi.Event) { e[0].Payload, e[1].Payload = e[1].Payload, e[0].Payload }, crypto.TamperedError{Sequence: 1, Field: "metadata"}},
		{"an event gets another id", func(e []spi.Event) { e[1].ID[7]++ }, crypto.TamperedError{Sequence: 2, Field: "metadata"}},
		{"an event gets another kind", func(e []spi.Event) { e[1].Kind = "Denoted" }, crypto.TamperedError{Sequence: 2, Field: "metadata"}},
		{"an event gets the stamp", func(e []spi.Event) { e[1].Kernel = true }, crypto.TamperedError{Sequence: 2, Field: "metadata"}},
		{"metadata and payload change places", func(e []spi.Event) {
			body := e[1].Payload[header:] // two of one length
			half := len(body) / 2
			e[1].Payload = slices.Concat(e[1].Payload[:header], body[half:], body[:half])
		}, crypto.TamperedError{Sequence: 2, Field: "metadata"}},
		{"metadata are those of another event", func(e []spi.Event) {
			half := header + (len(e[1].Payload)-header)/2
			e[1].Payload = slices.Concat(e[0].Payload[:half], e[1].Payload[half:])
		}, crypto.TamperedError{Sequence: 2, Field: "metadata"}},
		{"the payload is that of another event", func(e []spi.Event) {
			half := header + (len(e[1].Payload)-header)/2
			e[1].Payload = slices.Concat(e[1].Payload[:half], e[0].Payload[half:])
		}, crypto.TamperedError{Sequence: 2, Field: "payload"}},
		{"readable metadata come in", func(e []spi.Event) { e[1].Metadata = map[string]string{"a": "b"} }, crypto.TamperedError{Sequence: 2, Field: "envelope"}},
		{"a readable payload comes in", func(e []spi.Event) { e[0].Payload = []byte("paid") }, crypto.TamperedError{Sequence: 1, Field: "envelope"}},
		{"another format is stated", func(e []spi.Event) { e[1].Payload[0]++ }, crypto.TamperedError{Sequence: 2, Field: "envelope"}},
		{"another key is stated", func(e []spi.Event) { e[0].Payload[1]++ }, crypto.TamperedError{Sequence: 1, Field: "key id"}},
		{"the payload is cut", func(e []spi.Event) { e[1].Payload = e[1].Payload[:len(e[1].Payload)-1] }, crypto.TamperedError{Sequence: 2, Field: "payload"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			var change func([]spi.Event)
			s := r.nodeOver(&below{read: func(res *spi.ReadResponse) {
				if change != nil {
					change(res.Events)
				}
			}})
			// The payloads are what metadata are packed to: as long, and as well-formed.
			one, two := noted("\x00\x00\x00\x01k\x00\x00\x00\x011"), noted("\x00\x00\x00\x01k\x00\x00\x00\x012")
			one.Metadata, two.Metadata = map[string]string{"k": "3"}, map[string]string{"k": "4"}
			r.append(s, id, 0, one, two)
			if _, err := r.read(s, id); err != nil {
				t.Fatal(err)
			}
			change = c.change
			c.want.Execution = id
			r.wantTampered(s, id, c.want)
		})
	}
}

// TestRowsThatChangePlacesAreNotNoticed is what the documentation admits: a row moved as
// a whole, with its id and kind, opens where it then stands.
func TestRowsThatChangePlacesAreNotNoticed(t *testing.T) {
	r := newRig(t)
	s := r.nodeOver(&below{read: func(res *spi.ReadResponse) {
		a, b := &res.Events[0], &res.Events[1]
		*a, *b = *b, *a
		a.Sequence, b.Sequence = b.Sequence, a.Sequence
	}})
	r.append(s, "e", 0, noted("first"), noted("second"))
	r.wantRead(s, "e", "second", "first")
}

// TestAWrappedKeyThatIsMovedDoesNotOpen gives an execution the wrapped key of another,
// and a tenant that of another.
func TestAWrappedKeyThatIsMovedDoesNotOpen(t *testing.T) {
	r := newRig(t)
	s := r.node()
	for _, id := range []spi.ExecutionID{"4:acme/order-1", "4:bolt/order-1"} {
		r.append(s, id, 0, noted("secret"))
	}
	for _, c := range []struct {
		name string
		from spi.KeyOwner
		to   spi.ExecutionID
	}{
		{"of the same tenant", "4:acme/order-1", "4:acme/order-2"},
		{"of another tenant", "4:bolt/order-1", "4:acme/order-3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			key := r.dataKey(c.from, 1)
			key.Owner = spi.KeyOwner(c.to)
			must[spi.CreateDataKeyResponse](t)(spi.CreateDataKey(t.Context(), r.inner, spi.CreateDataKeyRequest{Key: key}))
			_, err := spi.Append(t.Context(), s, spi.AppendRequest{Execution: c.to, Events: []spi.Event{noted("more")}})
			if got := *want[*crypto.TamperedError](t, err); got != (crypto.TamperedError{Execution: c.to, Field: "data key"}) {
				t.Errorf("it answers %+v", got)
			}
		})
	}
	t.Run("a tenant's", func(t *testing.T) {
		key := r.dataKey("4:acme/", 2)
		key.Owner = "4:core/"
		must[spi.CreateDataKeyResponse](t)(spi.CreateDataKey(t.Context(), r.inner, spi.CreateDataKeyRequest{Key: key}))
		_, err := spi.Append(t.Context(), s, spi.AppendRequest{Execution: "4:core/order-1", Events: []spi.Event{noted("more")}})
		if lost := want[*crypto.KeyLostError](t, err); lost.Owner != "4:core/order-1" {
			t.Errorf("it answers %+v", lost)
		}
	})
}

func (r *rig) wantTampered(s *spi.Store, id spi.ExecutionID, tampered crypto.TamperedError) {
	r.Helper()
	_, err := r.read(s, id)
	if got := *want[*crypto.TamperedError](r, err); got != tampered {
		r.Errorf("it answers %+v, not %+v", got, tampered)
	}
}
