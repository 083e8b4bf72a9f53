package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// An InvalidError holds everything that is wrong with a configuration, in the order
// of the places.
type InvalidError struct{ Problems []Problem }

// A Problem is one thing that is wrong.
type Problem struct {
	Origin  Origin
	Setting string // such as shards[1].pool_size; "" if it is none's
	Rule    string // the rule that is broken; it repeats no value
}

func (e *InvalidError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

func (p Problem) String() string {
	text := p.Rule
	if p.Setting != "" {
		text = p.Setting + " " + text
	}
	return fmt.Sprintf("%v: %s", p.Origin, text)
}

// err returns the error in order, or nil.
func (e *InvalidError) err() error {
	if len(e.Problems) == 0 {
		return nil
	}
	slices.SortStableFunc(e.Problems, func(p, q Problem) int {
		return cmp.Or(p.Origin.compare(q.Origin), cmp.Compare(p.Setting, q.Setting))
	})
	return e
}

// suggest returns "; did you mean …?" with the name that is nearest to a wrong one, or
// "" if none is near.
func suggest(wrong string, names []string) string {
	best, distance := "", 1+max(1, len(wrong)/3)
	for _, name := range names {
		if d := edits(wrong, name); d < distance {
			best, distance = name, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
}

// edits returns how many letters have to be put in, left out or changed, or swapped with
// the next, to make b of a.
func edits(a, b string) int {
	older, old, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		older, old, row = old, row, older
		row[0] = i + 1
		for j := range len(b) {
			change := old[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, old[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], older[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
