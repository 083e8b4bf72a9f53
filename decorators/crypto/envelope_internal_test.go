package crypto

import (
	"bytes"
	"errors"
	"maps"
	"testing"

	"pgregory.net/rapid"

	"github.com/loomgate/loomgate/spi"
)

var testRaw = bytes.Repeat([]byte{7}, keySize)

// place is all that the associated data of an event binds it to.
type place struct {
	tenant    spi.TenantName
	execution spi.ExecutionID
	keyID     spi.KeyID
	eventID   spi.EventID
	kind      string
	kernel    bool
}

func (p place) key(t interface{ Fatal(...any) }) *dataKey {
	key, err := newDataKey(p.tenant, p.execution, p.keyID, testRaw)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (p place) at(e spi.Event) spi.Event {
	e.ID, e.Kind, e.Kernel = p.eventID, p.kind, p.kernel
	return e
}

// TestEachPartOfAnEventsPlaceIsBoundByItself uses one and the same data key everywhere,
// so that nothing but the associated data can refuse.
func TestEachPartOfAnEventsPlaceIsBoundByItself(t *testing.T) {
	home := place{"acme", "4:acme/order-1", spi.KeyID{1}, spi.EventID{1}, "Noted", false}
	sealed, err := home.key(t).seal(home.at(spi.Event{Payload: []byte("secret")}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := home.key(t).open(home.execution, sealed); err != nil {
		t.Fatal(err)
	}
	for name, move := range map[string]func(*place){
		"tenant":    func(p *place) { p.tenant = "bolt" },
		"execution": func(p *place) { p.execution = "4:acme/order-2" },
		"key id":    func(p *place) { p.keyID = spi.KeyID{2} },
		"event id":  func(p *place) { p.eventID = spi.EventID{2} },
		"kind":      func(p *place) { p.kind = "Other" },
		"stamp":     func(p *place) { p.kernel = true },
		// What one field loses another gains.
		"tenant and execution": func(p *place) { p.tenant, p.execution = "acme4", ":acme/order-1" },
	} {
		t.Run(name, func(t *testing.T) {
			there := home
			move(&there)
			moved := there.at(sealed)
			moved.Payload = bytes.Clone(moved.Payload)
			copy(moved.Payload[1:], there.keyID[:])
			var tampered *TamperedError
			if _, err := there.key(t).open(there.execution, moved); !errors.As(err, &tampered) || tampered.Field != "metadata" {
				t.Errorf("it answers %v", err)
			}
		})
	}
}

func TestAnyEventComesBackAsItWasSealed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := spi.Event{
			ID:       spi.EventID{1},
			Kind:     rapid.StringN(1, 20, spi.MaxKind).Draw(t, "kind"),
			Kernel:   rapid.Bool().Draw(t, "kernel"),
			Payload:  rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "payload"),
			Metadata: rapid.MapOfN(rapid.String(), rapid.String(), 0, 5).Draw(t, "metadata"),
		}
		key := place{"acme", "e", spi.KeyID{1}, e.ID, "", false}.key(t)
		sealed, err := key.seal(e)
		if err != nil {
			t.Fatal(err)
		}
		if len(e.Payload) >= 8 && bytes.Contains(sealed.Payload, e.Payload) || sealed.Metadata != nil {
			t.Fatal("it is not encrypted")
		}
		got, err := key.open("e", sealed)
		if err != nil || !bytes.Equal(got.Payload, e.Payload) || !maps.Equal(got.Metadata, e.Metadata) {
			t.Fatalf("it comes back as %+v (%v)", got, err)
		}
		if len(e.Payload) == 0 && got.Payload != nil || len(e.Metadata) == 0 && got.Metadata != nil {
			t.Fatalf("nothing comes back as %#v and %#v", got.Payload, got.Metadata)
		}
	})
}

func TestTheSameEventIsNeverSealedTheSameWay(t *testing.T) {
	p := place{"acme", "e", spi.KeyID{1}, spi.EventID{1}, "Noted", false}
	key := p.key(t)
	seen := map[string]bool{}
	for range 100 {
		sealed, err := key.seal(p.at(spi.Event{Payload: []byte("secret")}))
		if err != nil || seen[string(sealed.Payload)] {
			t.Fatalf("again, or %v", err)
		}
		seen[string(sealed.Payload)] = true
	}
}

// FuzzOpenEnvelope gives the layer what a store may hold by mistake or by malice: it
// opens what was sealed there and nothing else.
func FuzzOpenEnvelope(f *testing.F) {
	p := place{"acme", "e", spi.KeyID{1}, spi.EventID{1}, "Noted", false}
	key := p.key(f)
	sealed, err := key.seal(p.at(spi.Event{Payload: []byte("payload"), Metadata: map[string]string{"k": "v"}}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sealed.Payload)
	f.Add(sealed.Payload[:headerSize])
	f.Add(sealed.Payload[:len(sealed.Payload)-1])
	f.Add([]byte{format})
	f.Add([]byte{})
	f.Add(append(bytes.Repeat([]byte{format}, headerSize-4), 0xff, 0xff, 0xff, 0xff))
	f.Fuzz(func(t *testing.T, content []byte) {
		got, err := key.open("e", p.at(spi.Event{Sequence: 1, Payload: content}))
		if bytes.Equal(content, sealed.Payload) {
			if err != nil || string(got.Payload) != "payload" || got.Metadata["k"] != "v" {
				t.Fatalf("what was sealed opens as %+v (%v)", got, err)
			}
			return
		}
		var tampered *TamperedError
		if !errors.As(err, &tampered) || tampered.Execution != "e" || tampered.Sequence != 1 {
			t.Fatalf("%x opens as %+v (%v)", content, got, err)
		}
	})
}

// FuzzUnpackMetadata reads what comes after decryption.
func FuzzUnpackMetadata(f *testing.F) {
	f.Add(packMetadata(map[string]string{"k": "v", "": ""}))
	f.Add([]byte{0, 0, 0, 1})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0})
	f.Fuzz(func(t *testing.T, packed []byte) {
		metadata, err := unpackMetadata(packed)
		if err != nil {
			return
		}
		again, err := unpackMetadata(packMetadata(metadata))
		if err != nil || !maps.Equal(metadata, again) {
			t.Fatalf("%v becomes %v (%v)", metadata, again, err)
		}
	})
}
