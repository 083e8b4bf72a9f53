package conformance

import (
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/spi"
)

// TestMethodsAreComplete finds a method that the claims would leave out.
func TestMethodsAreComplete(t *testing.T) {
	var want, got []string
	for m := range reflect.TypeFor[spi.Decorator]().Methods() {
		if m.Name != "Caps" && m.Name != "Layer" {
			want = append(want, m.Name)
		}
	}
	for _, m := range methods {
		got = append(got, m.name)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the claims are about %v, not %v", got, want)
	}
}

// TestEveryInvariantIsNamed finds one of docs/contract.md that no case of Store
// claims to prove. The fifteenth is Isolation's.
func TestEveryInvariantIsNamed(t *testing.T) {
	named := regexp.MustCompile(`\d+`)
	seen := map[string]bool{}
	for _, sentence := range Sentences() {
		if _, invariants, ok := strings.Cut(sentence, "(invariant"); ok {
			for _, n := range named.FindAllString(invariants, -1) {
				seen[n] = true
			}
		}
	}
	for n := 1; n <= 14; n++ {
		if !seen[strconv.Itoa(n)] {
			t.Errorf("no case names invariant %d", n)
		}
	}
}

// TestRoutedCallsAreComplete finds a method with a route that nobody tries at the
// wrong shard.
func TestRoutedCallsAreComplete(t *testing.T) {
	f := newFixture(t, func(t *testing.T) *spi.Store { return must(t)(memory.New()) })
	tried := map[string]bool{}
	for _, c := range f.routedCalls(spi.Route{}) {
		method, _, _ := strings.Cut(c.name, " ") // some are tried in several ways
		tried[method] = true
	}
	for m := range reflect.TypeFor[spi.Decorator]().Methods() {
		if m.Type.NumIn() < 2 {
			continue
		}
		if _, routed := m.Type.In(1).FieldByName("Route"); routed && !tried[m.Name] {
			t.Errorf("%s is not tried", m.Name)
		}
	}
}
