package crypto

import (
	"encoding/binary"
	"errors"

	"github.com/tink-crypto/tink-go/v2/tink"

	"github.com/loomgate/loomgate/spi"
)

// An envelope is what the store holds as the payload of an event:
//
//	format    1 byte
//	key id    16 bytes
//	length    4 bytes, of the encrypted metadata
//	metadata  nonce, ciphertext, tag
//	payload   nonce, ciphertext, tag
//
// Both are encrypted by AES-256-GCM, also where they are empty, each with associated
// data that says where it belongs.
const (
	format     = 1
	headerSize = 1 + len(spi.KeyID{}) + 4
)

// A field is a part of an event that is encrypted by itself.
type field string

const (
	metadataField field = "metadata"
	payloadField  field = "payload"
)

// A dataKey encrypts the events of one execution in one incarnation.
type dataKey struct {
	id         spi.KeyID
	aead       tink.AEAD // nil: the execution was written unencrypted
	associated []byte    // what the associated data of all its events begins with

	incarnation int64 // of an unencrypted execution
}

func newDataKey(tenant spi.TenantName, execution spi.ExecutionID, id spi.KeyID, raw []byte) (*dataKey, error) {
	aead, err := newAEAD(raw)
	if err != nil {
		return nil, err
	}
	return &dataKey{id: id, aead: aead, associated: associate("loomgate event", tenant, execution, id)}, nil
}

// seal returns an event as the store is to hold it. What the store judges by stays
// readable: id, kind, stamp and time.
func (k *dataKey) seal(e spi.Event) (spi.Event, error) {
	binding, rest := k.bind(&e)
	metadata, err := k.aead.Encrypt(packMetadata(e.Metadata), append(binding, metadataField...))
	if err != nil {
		return spi.Event{}, err
	}
	payload, err := k.aead.Encrypt(e.Payload, append(binding[:rest], payloadField...))
	if err != nil {
		return spi.Event{}, err
	}
	envelope := make([]byte, 0, headerSize+len(metadata)+len(payload))
	envelope = append(append(envelope, format), k.id[:]...)
	envelope = binary.BigEndian.AppendUint32(envelope, uint32(len(metadata)))
	e.Metadata, e.Payload = nil, append(append(envelope, metadata...), payload...)
	return e, nil
}

// open returns an event as it was sealed. The error names what does not open.
func (k *dataKey) open(id spi.ExecutionID, e spi.Event) (spi.Event, error) {
	tampered := func(what string) (spi.Event, error) { return spi.Event{}, &TamperedError{id, e.Sequence, what} }
	env, err := parseEnvelope(e.Payload)
	switch {
	case err != nil || len(e.Metadata) > 0:
		return tampered("envelope")
	case env.keyID != k.id:
		return tampered("key id")
	}
	binding, rest := k.bind(&e)
	packed, err := k.aead.Decrypt(env.metadata, append(binding, metadataField...))
	if err != nil {
		return tampered(string(metadataField))
	}
	if e.Metadata, err = unpackMetadata(packed); err != nil {
		return tampered(string(metadataField))
	}
	payload, err := k.aead.Decrypt(env.payload, append(binding[:rest], payloadField...))
	if err != nil {
		return tampered(string(payloadField))
	}
	if e.Payload = payload; len(payload) == 0 {
		e.Payload = nil
	}
	return e, nil
}

// bind returns the associated data of an event up to the name of the field, with room
// for it, and its length. It holds the key's id, and by that the incarnation; the
// stamp, because it makes kinds that this system does not know answer a park; and
// neither sequence nor token, which the store assigns.
func (k *dataKey) bind(e *spi.Event) (binding []byte, length int) {
	binding = make([]byte, 0, len(k.associated)+len(e.ID)+len(e.Kind)+3*4+1+len(metadataField))
	binding = append(binding, k.associated...)
	binding = appendField(binding, string(e.ID[:]))
	binding = appendField(binding, e.Kind)
	if e.Kernel {
		binding = append(binding, 1)
	} else {
		binding = append(binding, 0)
	}
	return binding, len(binding)
}

// associate returns the beginning of associated data: what it is about, the format,
// and whose it is. Each field has its length in front, so that no two lists of fields
// have one encoding.
func associate(about string, tenant spi.TenantName, name spi.ExecutionID, id spi.KeyID) []byte {
	all := appendField(nil, about)
	all = append(all, format)
	all = appendField(all, string(tenant))
	all = appendField(all, string(name))
	return appendField(all, string(id[:]))
}

func appendField(to []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint32(to, uint32(len(s))), s...)
}

// An envelope in its parts, which share its memory.
type envelope struct {
	keyID             spi.KeyID
	metadata, payload []byte
}

var errMalformed = errors.New("malformed")

func parseEnvelope(b []byte) (env envelope, err error) {
	if len(b) < headerSize || b[0] != format {
		return env, errMalformed
	}
	n := copy(env.keyID[:], b[1:])
	length, rest := binary.BigEndian.Uint32(b[1+n:]), b[headerSize:]
	if uint64(length) > uint64(len(rest)) {
		return env, errMalformed
	}
	env.metadata, env.payload = rest[:length:length], rest[length:]
	return env, nil
}

// packMetadata writes keys and values, each with its length in front.
func packMetadata(metadata map[string]string) []byte {
	var packed []byte
	for key, value := range metadata {
		packed = appendField(appendField(packed, key), value)
	}
	return packed
}

func unpackMetadata(packed []byte) (map[string]string, error) {
	var metadata map[string]string
	next := func() (string, bool) {
		if len(packed) < 4 || uint64(binary.BigEndian.Uint32(packed)) > uint64(len(packed)-4) {
			return "", false
		}
		end := 4 + binary.BigEndian.Uint32(packed)
		s := string(packed[4:end])
		packed = packed[end:]
		return s, true
	}
	for len(packed) > 0 {
		key, ok := next()
		value, also := next()
		if !ok || !also {
			return nil, errMalformed
		}
		if metadata == nil {
			metadata = make(map[string]string)
		}
		metadata[key] = value
	}
	return metadata, nil
}

// sealAll seals the events of one append. The caller's slice stays as it is.
func (k *dataKey) sealAll(events []spi.Event) ([]spi.Event, error) {
	sealed := make([]spi.Event, len(events))
	for i := range events {
		var err error
		if sealed[i], err = k.seal(events[i]); err != nil {
			return nil, err
		}
	}
	return sealed, nil
}

// stripped returns events without what is encrypted.
func stripped(events []spi.Event) []spi.Event {
	bare := make([]spi.Event, len(events))
	for i, e := range events {
		e.Metadata, e.Payload = nil, nil
		bare[i] = e
	}
	return bare
}
