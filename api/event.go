package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

// contentType is the metadata that makes a payload come back as JSON text.
const (
	contentType = "content-type"
	contentJSON = "application/json"
)

func isJSON(contentType string) bool {
	return contentType == contentJSON || strings.HasSuffix(contentType, "+json")
}

// encodeWritten encodes the events of an append. Payloads go as bytes, of which a
// server asks nothing.
func encodeWritten(events []spi.Event) []*pb.Event {
	return encodeEvents(events, func(*spi.Event) bool { return false })
}

// encodeRead encodes the events of a read.
func encodeRead(events []spi.Event) []*pb.Event {
	return encodeEvents(events, func(e *spi.Event) bool {
		return isJSON(e.Metadata[contentType]) && utf8.Valid(e.Payload)
	})
}

func encodeEvents(events []spi.Event, text func(*spi.Event) bool) []*pb.Event {
	all := make([]*pb.Event, len(events))
	for i := range events {
		e := &events[i]
		all[i] = &pb.Event{
			Sequence:   e.Sequence,
			Kind:       e.Kind,
			Kernel:     e.Kernel,
			Fence:      e.Fence,
			RecordedAt: encodeTime(e.RecordedAt),
			Metadata:   e.Metadata,
		}
		if e.ID != (spi.EventID{}) {
			all[i].Id = e.ID.String()
		}
		switch {
		case len(e.Payload) == 0:
		case text(e):
			all[i].Content = &pb.Event_Json{Json: string(e.Payload)}
		default:
			all[i].Content = &pb.Event_Payload{Payload: e.Payload}
		}
	}
	return all
}

// decodeWritten decodes the events of an append. JSON text is checked, and noted in
// the metadata.
func decodeWritten(all []*pb.Event) ([]spi.Event, error) {
	events, err := decodeRead(all)
	if err != nil {
		return nil, err
	}
	for i, m := range all {
		if _, text := m.GetContent().(*pb.Event_Json); text {
			if field, rule := noteJSON(&events[i]); field != "" {
				return nil, invalid(fmt.Sprintf("events[%d].%s", i, field), rule)
			}
		}
	}
	return events, nil
}

// noteJSON returns the field that is wrong and the rule that it breaks, or "".
func noteJSON(e *spi.Event) (field, rule string) {
	if len(e.Payload) <= spi.MaxPayload && !json.Valid(e.Payload) { // a larger one is refused anyway
		return "json", "is no JSON text"
	}
	stated, found := e.Metadata[contentType]
	if found && !isJSON(stated) {
		return "metadata", "has a content-type that is not JSON's"
	}
	if !found {
		if e.Metadata == nil {
			e.Metadata = make(map[string]string, 1)
		}
		e.Metadata[contentType] = contentJSON
	}
	return "", ""
}

// decodeRead decodes the events of a read.
func decodeRead(all []*pb.Event) ([]spi.Event, error) {
	if len(all) == 0 {
		return nil, nil
	}
	events := make([]spi.Event, len(all))
	for i, m := range all {
		if field, rule := decodeEvent(&events[i], m); field != "" {
			return nil, invalid(fmt.Sprintf("events[%d].%s", i, field), rule)
		}
	}
	return events, nil
}

// decodeEvent returns the field that is wrong and the rule that it breaks, or "".
func decodeEvent(e *spi.Event, m *pb.Event) (field, rule string) {
	id, isUUID := decodeEventID(m.GetId())
	if !isUUID {
		return "id", "is no UUID"
	}
	recorded, isTime := decodeTime(m.GetRecordedAt())
	if !isTime {
		return "recordedAt", noTime
	}
	*e = spi.Event{
		ID:         id,
		Sequence:   m.GetSequence(),
		Kind:       m.GetKind(),
		Kernel:     m.GetKernel(),
		Fence:      m.GetFence(),
		RecordedAt: recorded,
		Metadata:   m.GetMetadata(),
	}
	switch content := m.GetContent().(type) {
	case *pb.Event_Payload:
		e.Payload = content.Payload
	case *pb.Event_Json:
		e.Payload = []byte(content.Json)
	}
	return "", ""
}
