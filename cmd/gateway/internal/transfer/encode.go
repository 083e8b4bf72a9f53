package transfer

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/loomgate/loomgate/spi"
)

// AppendLine appends an event of an execution to dst as a line. The floor is told by
// full lines of a log that was truncated.
//
// A payload that does not come back byte for byte as a JSON value in a line is told in
// base64: one that is no JSON, holds a line break, or begins or ends with space.
func AppendLine(dst []byte, format Format, id spi.ExecutionID, e *spi.Event, floor int64) []byte {
	dst = append(dst, `{"executionId":`...)
	dst = appendString(dst, string(id))
	if format == Full {
		dst = append(dst, `,"id":"`...)
		dst = append(dst, e.ID.String()...)
		dst = append(dst, `","sequence":`...)
		dst = strconv.AppendInt(dst, e.Sequence, 10)
		if floor > 1 {
			dst = append(dst, `,"floor":`...)
			dst = strconv.AppendInt(dst, floor, 10)
		}
	}
	dst = append(dst, `,"kind":`...)
	dst = appendString(dst, e.Kind)
	if format == Full {
		dst = append(dst, `,"kernel":`...)
		dst = strconv.AppendBool(dst, e.Kernel)
		dst = append(dst, `,"fence":`...)
		dst = strconv.AppendInt(dst, e.Fence, 10)
	}
	dst = append(dst, `,"recordedAt":"`...)
	dst = e.RecordedAt.UTC().AppendFormat(dst, time.RFC3339Nano)
	dst = append(dst, '"')
	if format == Full && len(e.Metadata) > 0 {
		dst = appendMetadata(append(dst, `,"metadata":`...), e.Metadata)
	}
	return appendPayload(dst, e.Payload)
}

func appendMetadata(dst []byte, metadata map[string]string) []byte {
	dst = append(dst, '{')
	for i, name := range slices.Sorted(maps.Keys(metadata)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, name), ':')
		dst = appendString(dst, metadata[name])
	}
	return append(dst, '}')
}

// maxDepth is how deep encoding/json reads. A payload is one level down in its line.
const maxDepth = 10_000

// appendPayload ends a line with its payload.
func appendPayload(dst, payload []byte) []byte {
	if standsInLine(payload) {
		line := append(dst, `,"payload":`...)
		line = append(append(line, payload...), "}\n"...)
		if len(payload) < maxDepth || json.Valid(line[bytes.LastIndexByte(dst, '\n')+1:]) {
			return line
		}
	}
	dst = append(dst, `,"payloadBase64":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, payload)
	return append(dst, "\"}\n"...)
}

// standsInLine reports whether a payload in a line is the value that is read back.
func standsInLine(payload []byte) bool {
	return len(payload) > 0 && !isSpace(payload[0]) && !isSpace(payload[len(payload)-1]) &&
		bytes.IndexByte(payload, '\n') < 0 && bytes.IndexByte(payload, '\r') < 0 &&
		utf8.Valid(payload) && json.Valid(payload)
}

// appendString appends well-formed UTF-8 as a JSON string.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"', c == '\\':
			dst = append(dst, '\\', c)
		case c < 0x20:
			const digits = "0123456789abcdef"
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&0xf])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}
