package samplelog

import (
	"fmt"
	"strconv"
	"time"
)

// line appends an event as a line, spaced as many programs write JSON.
func (m *maker) line(dst []byte, e *execution) []byte {
	dst = fmt.Appendf(dst, `{"executionId": "%s", "kind": "%s", "recordedAt": "`, e.id, m.Kinds[m.rng.IntN(len(m.Kinds))])
	if m.Seconds {
		dst = e.recorded.AppendFormat(dst, time.RFC3339)
	} else {
		dst = e.recorded.AppendFormat(dst, "2006-01-02T15:04:05.000000Z07:00")
	}
	dst = append(dst, `", "payload": {"resource": "resource-`...)
	dst = strconv.AppendInt(dst, m.rng.Int64N(80), 10)
	dst = append(dst, '"')
	for _, attribute := range attributes {
		if m.rng.IntN(3) == 0 {
			dst = append(append(dst, ", "...), attribute[m.rng.IntN(len(attribute))]...)
		}
	}
	return append(dst, "}}"...)
}

// attributes of a payload, each spelled in one of several ways. A reader that takes
// numbers for floats, sorts names or reformats does not give them back as they were.
var attributes = [...][]string{
	{`"group": "Group 4"`, `"group":"V30"`, `"group" : null`, `"group": "Org line A2"`},
	{`"amount": 20000`, `"amount": 12.30`, `"amount": 1e3`, `"amount": 1E+3`, `"amount": -0`, `"amount": 9007199254740993`},
	{`"product": "PROD582"`, `"product": "caf\u00e9"`, `"product": "café"`, `"product": "a\/b"`, `"product": "\ud834\udd1e"`, `"product": "𝄞"`},
	{`"lifecycle": "complete"`, `"lifecycle": "In Progress"`},
	{`"case": {"opened": "2021-10-01T00:38:44.546+02:00", "channel": "Internet"}`, `"case": {}`, `"case": {"b": [1, 2.0, {"a": []}], "a": true}`},
	{`"note": "He said: \"later\", and \\ left"`, `"note": ""`, `"note": "` + longText + `"`},
	{`"amount": 1`, `"open": false`}, // also a name twice
}

const longText = `Several people have looked at this by now; all agree that it has to wait until the form is here, which was sent twice.`
