package sim

// A script goes through all sequences of choices, one a run: the next run differs in
// the last choice that was not the last possible.
type script struct {
	choices []int // of this run
	widths  []int
	at      int
}

// choose decides what happens next: one of n things, counted from 0.
func (s *script) choose(n int) int {
	if s.at == len(s.choices) {
		s.choices, s.widths = append(s.choices, 0), append(s.widths, n)
	}
	s.at++
	return s.choices[s.at-1]
}

// fresh reports whether the next choice is one that no run has made yet.
func (s *script) fresh() bool { return s.at == len(s.choices) }

// next prepares the next run, and reports whether there is one.
func (s *script) next() bool {
	s.at = 0
	for i := len(s.choices) - 1; i >= 0; i-- {
		if s.choices[i]+1 < s.widths[i] {
			s.choices[i]++
			s.choices, s.widths = s.choices[:i+1], s.widths[:i+1]
			return true
		}
	}
	return false
}
