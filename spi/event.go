package spi

import (
	"cmp"
	"fmt"
	"time"
)

// Limits on what an append holds.
const (
	MaxKind          = 128      // bytes of a kind
	MaxPayload       = 8 << 20  // bytes of one payload
	MaxMetadata      = 16 << 10 // bytes of one event's metadata, keys and values
	MaxMetadataPairs = 64       // pairs of one event's metadata
	MaxEvents        = 10_000   // events of one append
	MaxAppendBytes   = 64 << 20 // bytes of one call's events, by [Event.Size]
)

// An Event is one entry of a log.
type Event struct {
	// ID is the writer's and used once. It is required.
	ID EventID

	// Sequence is the event's place: 1, 2, 3, … as written. The store sets it; an
	// append that brings one is refused.
	Sequence int64

	// Kind says what happened: 1 to [MaxKind] bytes of well-formed UTF-8 without
	// U+0000.
	Kind string

	// Kernel is the stamp of the system's own events; see [IsAnswering].
	Kernel bool

	// Fence is the token that the event was written under, 0 if none. The store
	// sets it; an append that brings one is refused.
	Fence int64

	// RecordedAt is the writer's time in whole microseconds, in the years 1 to
	// 9999; the zero Time means the database's. It comes back in UTC.
	RecordedAt time.Time

	// Metadata is small and readable by operators: at most [MaxMetadataPairs]
	// pairs and [MaxMetadata] bytes of well-formed UTF-8 without U+0000. An empty
	// map comes back as nil.
	Metadata map[string]string

	// Payload is opaque: at most [MaxPayload] bytes that come back as they went
	// in. An empty payload comes back as nil.
	Payload []byte
}

// Answering reports whether the event answers a park before it.
func (e *Event) Answering() bool { return IsAnswering(e.Kind, e.Kernel) }

// Size returns how many bytes the event counts against limits: its kind, payload
// and metadata.
func (e *Event) Size() int {
	n := len(e.Kind) + len(e.Payload)
	for k, v := range e.Metadata {
		n += len(k) + len(v)
	}
	return n
}

// AnyAnswering reports whether one of the events answers a park.
func AnyAnswering(events []Event) bool {
	for i := range events {
		if events[i].Answering() {
			return true
		}
	}
	return false
}

// validEvents checks what an append brings, and returns its size. Of content that
// has been validated only the number is checked again.
func validEvents(events []Event, validated bool) (size int, err error) {
	if len(events) == 0 || len(events) > MaxEvents {
		return 0, &InvalidArgumentError{"events", fmt.Sprintf("has %d, not 1 to %d", len(events), MaxEvents)}
	}
	if validated {
		return 0, nil
	}
	for i := range events {
		if field, rule := events[i].fault(); field != "" {
			return 0, &InvalidArgumentError{fmt.Sprintf("events[%d].%s", i, field), rule}
		}
		size += events[i].Size()
	}
	if size > MaxAppendBytes {
		return 0, &InvalidArgumentError{"events", fmt.Sprintf("has %d bytes, more than %d", size, MaxAppendBytes)}
	}
	if i, j := repeated(events); j > 0 {
		return 0, &InvalidArgumentError{fmt.Sprintf("events[%d].id", j), fmt.Sprintf("repeats events[%d].id", i)}
	}
	return size, nil
}

// fault returns the field that is wrong and the rule that it breaks, or "".
func (e *Event) fault() (field, rule string) {
	switch {
	case e.ID == EventID{}:
		return "id", "is missing"
	case e.Sequence != 0:
		return "sequence", "is set, but the store assigns it"
	case e.Fence != 0:
		return "fence", "is set, but the store records it"
	case len(e.Payload) > MaxPayload:
		return "payload", fmt.Sprintf("has %d bytes, more than %d", len(e.Payload), MaxPayload)
	}
	if rule := nameFault(e.Kind, 1, MaxKind); rule != "" {
		return "kind", rule
	}
	if rule := timeFault(e.RecordedAt); rule != "" {
		return "recordedAt", rule
	}
	return e.metadataFault()
}

func (e *Event) metadataFault() (field, rule string) {
	if len(e.Metadata) > MaxMetadataPairs {
		return "metadata", fmt.Sprintf("has %d pairs, more than %d", len(e.Metadata), MaxMetadataPairs)
	}
	size := 0
	for k, v := range e.Metadata {
		size += len(k) + len(v)
		if rule := cmp.Or(nameFault(k, 0, MaxMetadata), nameFault(v, 0, MaxMetadata)); rule != "" {
			return "metadata", rule
		}
	}
	if size > MaxMetadata {
		return "metadata", fmt.Sprintf("has %d bytes, more than %d", size, MaxMetadata)
	}
	return "", ""
}

// timeFault returns the rule that t breaks, or "".
func timeFault(t time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case t.Nanosecond()%int(time.Microsecond) != 0:
		return "is finer than a microsecond"
	case t.UTC().Year() < 1 || t.UTC().Year() > 9999:
		return "is not in the years 1 to 9999"
	}
	return ""
}

// repeated returns the places of two events with one id, or zeros.
func repeated(events []Event) (first, again int) {
	const few = 16 // up to here, comparing all pairs beats a map
	if len(events) <= few {
		for j := range events {
			for i := range j {
				if events[i].ID == events[j].ID {
					return i, j
				}
			}
		}
		return 0, 0
	}
	seen := make(map[EventID]int, len(events))
	for j := range events {
		if i, ok := seen[events[j].ID]; ok {
			return i, j
		}
		seen[events[j].ID] = j
	}
	return 0, 0
}
