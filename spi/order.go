package spi

import (
	"strings"
	"unicode/utf8"
)

// CompareIDs returns -1, 0 or +1 as a is before, equal to or after b in Unicode
// code point order. For well-formed UTF-8 that is the order of the bytes, SQL's
// COLLATE "C" and SQLite's BINARY. It is neither the order of UTF-16 code units,
// which puts U+FFFD after astral characters, nor any locale's, which may call two
// distinct ids equal.
func CompareIDs[S ~string](a, b S) int { return strings.Compare(string(a), string(b)) }

// A Range is a contiguous part of the order: the names after After, or from From
// on where that is later, and before End. Seek makes one; a backend turns it into
// two comparisons.
type Range struct {
	After string // exclusive; "" is before every name
	From  string // inclusive
	End   string // exclusive; "" is after every name
}

// Seek returns the names that start with prefix and come strictly after cursor.
//
// A cursor is any well-formed string, also one that no store ever returned. Names
// hold no U+0000, so whatever follows one in a cursor cannot separate two names:
// it is cut off, which also lets databases that cannot store U+0000 answer
// exactly.
func Seek(prefix, cursor string) Range {
	if nul := strings.IndexByte(cursor, 0); nul >= 0 {
		cursor = cursor[:nul]
	}
	return Range{After: cursor, From: prefix, End: PrefixEnd(prefix)}
}

// Contains reports whether name is in r.
func (r Range) Contains(name string) bool {
	return name > r.After && name >= r.From && !r.Past(name)
}

// Past reports whether name, and so every name after it, lies beyond r.
func (r Range) Past(name string) bool { return r.End != "" && name >= r.End }

// Start returns the earliest string that a name in r can equal, and whether a
// name equal to it is in r.
func (r Range) Start() (start string, inclusive bool) {
	if r.From > r.After {
		return r.From, true
	}
	return r.After, false
}

// PrefixEnd returns the first well-formed string after all those that start with
// prefix, or "" if there is none: prefix is empty or repeats U+10FFFF.
func PrefixEnd(prefix string) string {
	for prefix != "" {
		last, size := utf8.DecodeLastRuneInString(prefix)
		prefix = prefix[:len(prefix)-size]
		switch last {
		case utf8.MaxRune: // nothing follows: its predecessor has to grow
		case 0xD7FF: // the surrogates between are no characters
			return prefix + "\uE000"
		default:
			return prefix + string(last+1)
		}
	}
	return ""
}
