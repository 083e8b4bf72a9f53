package mutants

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/loomgate/loomgate/conformance"
)

// TestMutant runs the kit over the mutant that the environment variable MUTANT
// names, and should fail then; see conformance/prove. Without it no mutant has its
// turn, and the kit runs over the store that they are made of, and should pass.
func TestMutant(t *testing.T) {
	name := os.Getenv("MUTANT")
	switch name {
	case "":
		t.Run("each has a name of its own and a case of the kit", checkNames)
		t.Run("none of them is broken", store(nothing))
		return
	case Control:
		store(nothing)(t)
		decorator(func(s sound) methods { return s })(t)
		isolation(func(t tenant) methods { return t })(t)
		sharding(func(s split) methods { return s })(t)
		return
	}
	i := slices.IndexFunc(All(), func(m Mutant) bool { return m.Name == name })
	if i < 0 {
		t.Fatalf("there is no mutant %q", name)
	}
	All()[i].run(t)
}

func checkNames(t *testing.T) {
	seen := map[string]bool{Control: true}
	for _, m := range All() {
		if seen[m.Name] {
			t.Errorf("two mutants are called %q", m.Name)
		}
		seen[m.Name] = true
		sentence := m.CaughtBy
		if rest, isDecorator := strings.CutPrefix(sentence, "decorator/"); isDecorator {
			_, sentence, _ = strings.Cut(rest, "/")
		}
		ofOtherKit := strings.HasPrefix(sentence, "isolation/") || strings.HasPrefix(sentence, "sharding/")
		if !ofOtherKit && !slices.Contains(conformance.Sentences(), sentence) {
			t.Errorf("the kit has no case %q, which is to catch %q", sentence, m.Name)
		}
	}
}
