package transfer

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/loomgate/loomgate/spi"
)

// members are the fields of a line.
type members [fieldCount]value

// A fault is what is wrong at a place in a line.
type fault struct {
	at   int
	rule string
}

func (f *fault) Error() string { return f.rule }

// parse reads a line without its end. It keeps nothing of text. The error is a fault.
func (l *Line) parse(text []byte) error {
	if err := l.split(text); err != nil {
		return err
	}
	for f, read := range readers {
		if v := l.fields[f]; !v.missing() && read != nil {
			if rule := read(l, v); rule != "" {
				return l.fault(field(f), rule)
			}
		}
	}
	return l.validate()
}

// split finds the fields of a line, and nothing else in it.
func (l *Line) split(text []byte) error {
	if !utf8.Valid(text) {
		return &fault{invalidByte(text), "the line is not well-formed UTF-8"}
	}
	if !json.Valid(text) {
		return syntaxFault(text)
	}
	s := scanner{line: text}
	object, err := s.eachMember(func(name, v value) error {
		f, err := known(name)
		switch {
		case err != nil:
			return err
		case !l.fields[f].missing():
			return &fault{name.at, fmt.Sprintf("the field %v is there twice", f)}
		}
		l.fields[f] = v
		return nil
	})
	switch {
	case err != nil:
		return err
	case !object:
		return &fault{s.at, "the line is no JSON object"}
	}
	for _, f := range [...]field{executionID, kind, recordedAt} {
		if l.fields[f].missing() {
			return &fault{0, fmt.Sprintf("the field %v is missing", f)}
		}
	}
	plain, encoded := l.fields[payload], l.fields[payloadBase64]
	switch {
	case plain.missing() && encoded.missing():
		return &fault{0, "the field payload is missing"}
	case !plain.missing() && !encoded.missing():
		return l.fault(payloadBase64, "is there beside payload")
	}
	return nil
}

func known(name value) (field, error) {
	if f, ok := fieldNamed(string(name.raw[1 : len(name.raw)-1])); ok {
		return f, nil
	}
	text, rule := name.text()
	f, ok := fieldNamed(text)
	switch {
	case rule != "":
		return 0, &fault{name.at, "a field's name " + rule}
	case !ok:
		return 0, &fault{name.at, fmt.Sprintf("the field %.40q is unknown", text)}
	}
	return f, nil
}

func invalidByte(text []byte) int {
	at := 0
	for {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size <= 1 {
			return at
		}
		at += size
	}
}

// syntaxFault says why a line is no JSON.
func syntaxFault(text []byte) error {
	var raw json.RawMessage
	syntax, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(text, &raw))
	if !ok {
		return &fault{0, "the line is no JSON"}
	}
	return &fault{max(0, int(syntax.Offset)-1), "the line is no JSON: " + syntax.Error()}
}

func (l *Line) fault(f field, rule string) error {
	return &fault{l.fields[f].at, fmt.Sprintf("%v %s", f, rule)}
}

// readers take each field into a line. They return the rule that a value breaks, or "".
var readers = [fieldCount]func(*Line, value) string{
	executionID: func(l *Line, v value) (rule string) {
		text, rule := v.text()
		l.Execution = spi.ExecutionID(text)
		return rule
	},
	kind: func(l *Line, v value) (rule string) {
		l.Event.Kind, rule = v.text()
		return rule
	},
	recordedAt: func(l *Line, v value) string {
		text, rule := v.text()
		if rule == "" && l.Event.RecordedAt.UnmarshalText([]byte(text)) != nil {
			rule = "is no time as of RFC 3339"
		}
		l.Event.RecordedAt = l.Event.RecordedAt.In(time.UTC)
		if rule == "" && l.Event.RecordedAt.IsZero() {
			rule = "is the time that stands for none"
		}
		return rule
	},
	payload: func(l *Line, v value) string {
		l.Event.Payload = append([]byte(nil), v.raw...)
		return ""
	},
	payloadBase64: func(l *Line, v value) string {
		text, rule := v.text()
		if rule != "" {
			return rule
		}
		decoded, err := base64.StdEncoding.Strict().DecodeString(text)
		if err != nil {
			return "is no base64"
		}
		l.Event.Payload = decoded
		return ""
	},
	eventID: func(l *Line, v value) string {
		text, rule := v.text()
		if rule != "" {
			return rule
		}
		id, ok := parseEventID(text)
		if l.Event.ID = id; !ok {
			return "is no UUID"
		}
		return ""
	},
	sequence: func(l *Line, v value) string { return v.number(&l.Event.Sequence, 1) },
	kernel: func(l *Line, v value) string {
		if l.Event.Kernel = string(v.raw) == "true"; !l.Event.Kernel && string(v.raw) != "false" {
			return "is neither true nor false"
		}
		return ""
	},
	fence: func(l *Line, v value) string {
		if rule := v.number(&l.Event.Fence, 0); rule != "" || l.Event.Fence <= MaxFence {
			return rule
		}
		return fmt.Sprintf("is above %d", MaxFence)
	},
	metadata: func(l *Line, v value) (rule string) {
		l.Event.Metadata, rule = v.strings()
		return rule
	},
	floor: func(l *Line, v value) string { return v.number(&l.Floor, 1) },
}

// number sets n to the whole number that a value is.
func (v value) number(n *int64, least int64) (rule string) {
	parsed, err := strconv.ParseInt(string(v.raw), 10, 64)
	if *n = parsed; err != nil || parsed < least {
		return fmt.Sprintf("is no whole number from %d on", least)
	}
	return ""
}

// strings returns the object of strings that a value is.
func (v value) strings() (all map[string]string, rule string) {
	s := scanner{line: v.raw}
	object, _ := s.eachMember(func(name, v value) error {
		key, wrong := name.text()
		if wrong != "" {
			rule = "has a name that " + wrong
			return nil
		}
		text, wrong := v.text()
		_, twice := all[key]
		switch {
		case wrong != "":
			rule = "has a value that " + wrong
		case twice:
			rule = "has a name twice"
		}
		if all == nil {
			all = map[string]string{}
		}
		all[key] = text
		return nil
	})
	if !object {
		rule = "is no object"
	}
	return all, rule
}

// parseEventID is the inverse of [spi.EventID.String]. The nil UUID is no event's.
func parseEventID(text string) (id spi.EventID, ok bool) {
	if len(text) != 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return id, false
	}
	digits := text[:8] + text[9:13] + text[14:18] + text[19:23] + text[24:]
	n, err := hex.Decode(id[:], []byte(digits))
	return id, err == nil && n == len(id) && id != spi.EventID{}
}

// validate asks spi whether the event could be appended.
func (l *Line) validate() error {
	id, err := spi.Scoped(spi.Scope{}, executionID.String(), l.Execution)
	if invalid, ok := errors.AsType[*spi.InvalidArgumentError](err); ok {
		return l.fault(executionID, invalid.Rule)
	}
	event := l.Event
	event.Sequence, event.Fence = 0, 0
	if event.ID == (spi.EventID{}) {
		event.ID[0] = 1 // an import makes one
	}
	err = spi.AppendRequest{Execution: id, Events: []spi.Event{event}}.Validate()
	invalid, ok := errors.AsType[*spi.InvalidArgumentError](err)
	if !ok {
		return nil
	}
	name := strings.TrimPrefix(invalid.Field, "events[0].")
	f, ok := fieldNamed(name)
	switch {
	case !ok:
		return &fault{0, name + " " + invalid.Rule}
	case f == payload && l.fields[payload].missing():
		f = payloadBase64
	}
	return l.fault(f, invalid.Rule)
}
