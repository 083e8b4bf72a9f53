package config

import (
	"cmp"
	"fmt"
)

// An Origin says where a value came from.
type Origin struct {
	// Source is the file's name, a variable's or a flag's. It is "" for a default.
	Source string

	// Line and Column are the place in a file, from 1.
	Line, Column int
}

func (o Origin) String() string {
	switch {
	case o.Source == "":
		return "default"
	case o.Line == 0:
		return o.Source
	}
	return fmt.Sprintf("%s:%d:%d", o.Source, o.Line, o.Column)
}

func (o Origin) compare(p Origin) int {
	return cmp.Or(cmp.Compare(o.Source, p.Source), cmp.Compare(o.Line, p.Line), cmp.Compare(o.Column, p.Column))
}

// A given is what one source says about a setting.
type given struct {
	text   string
	origin Origin
	dir    string // what a path is relative to; "" is the working directory
	open   bool   // others may read the source: it is no place for a secret
}

// A reading is what the sources say together.
type reading struct {
	values  map[string]given  // by setting, such as shards[0].dsn
	places  map[string]Origin // of sections and list elements in the file
	invalid InvalidError
}

// fault notes something that is wrong. The rule repeats no value.
func (r *reading) fault(origin Origin, setting, rule string, args ...any) {
	r.invalid.Problems = append(r.invalid.Problems, Problem{origin, setting, fmt.Sprintf(rule, args...)})
}
