package transfer

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf16"
)

// A value is a JSON value in a line: its bytes as they stand there, and their place.
// The zero value is one that is not there.
type value struct {
	raw []byte
	at  int
}

func (v value) missing() bool { return v.raw == nil }

// A scanner walks over JSON that is known to be valid, where strings, brackets and
// commas are all that has to be told apart.
type scanner struct {
	line []byte
	at   int
}

// eachMember calls f for each member of the object that is the scanner's line, until f
// returns an error. It reports false if the line is another value.
func (s *scanner) eachMember(f func(name, v value) error) (object bool, err error) {
	s.space()
	if s.line[s.at] != '{' {
		return false, nil
	}
	for {
		s.at++ // the brace or the comma
		s.space()
		if s.line[s.at] == '}' {
			return true, nil // there is no member
		}
		name := s.value()
		s.space()
		s.at++ // the colon
		s.space()
		v := s.value()
		if err := f(name, v); err != nil {
			return true, err
		}
		if s.space(); s.line[s.at] == '}' {
			return true, nil
		}
	}
}

func (s *scanner) space() {
	for s.at < len(s.line) && isSpace(s.line[s.at]) {
		s.at++
	}
}

// value moves past the value that begins here and returns it.
func (s *scanner) value() value {
	start, depth := s.at, 0
	for {
		switch s.line[s.at] {
		case '"':
			s.string()
		case '{', '[':
			s.at++
			depth++
			continue
		case '}', ']':
			s.at++
			depth--
		case ',', ':', ' ', '\t', '\r', '\n':
			s.at++
			continue // inside brackets: a value does not begin with one of them
		default:
			s.scalar()
		}
		if depth == 0 {
			return value{s.line[start:s.at], start}
		}
	}
}

func (s *scanner) string() {
	for s.at++; s.line[s.at] != '"'; s.at++ {
		if s.line[s.at] == '\\' {
			s.at++
		}
	}
	s.at++
}

// scalar moves past a number, true, false or null.
func (s *scanner) scalar() {
	for s.at < len(s.line) {
		switch c := s.line[s.at]; {
		case isSpace(c), c == ',', c == ']', c == '}':
			return
		}
		s.at++
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// text returns the string that a value is, and what is wrong with it if it is none. A
// lone surrogate is no character; encoding/json would replace it.
func (v value) text() (s, rule string) {
	switch {
	case v.raw[0] != '"':
		return "", "is no string"
	case bytes.IndexByte(v.raw, '\\') < 0:
		return string(v.raw[1 : len(v.raw)-1]), ""
	case hasLoneSurrogate(v.raw):
		return "", "has a lone surrogate, which is no character"
	}
	return unescaped(v.raw)
}

// unescaped is apart from text, which else would allocate.
func unescaped(raw []byte) (s, rule string) {
	if json.Unmarshal(raw, &s) != nil {
		return "", "is no string"
	}
	return s, ""
}

// hasLoneSurrogate reports whether one of the escapes in a JSON string stands for half
// a character.
func hasLoneSurrogate(raw []byte) bool {
	var high rune // the half that the escape before was, or 0
	for i := 0; i < len(raw); i++ {
		unit := rune(0)
		if raw[i] == '\\' {
			if i++; raw[i] == 'u' {
				n, _ := strconv.ParseUint(string(raw[i+1:i+5]), 16, 16)
				unit, i = rune(n), i+4
			}
		}
		switch whole := utf16.DecodeRune(high, unit); {
		case whole != '\uFFFD':
			high = 0
		case high != 0:
			return true
		case utf16.IsSurrogate(unit):
			high = unit
		}
	}
	return false // not even the last one: the closing quote has followed it
}
