package tenant_test

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/decorators/tenant"
	"github.com/loomgate/loomgate/spi"
)

// fragments are what hostile names are made of: the parts of a scope, what databases
// and orders treat specially, the ends of the order and of its gaps.
var fragments = []string{
	"a", "b", "A", "/", "_", "%", ":", "0", "1", "2", "1:a/", "1:a", "a/", "\\", "'", `"`, "*", " ", "\x01", "\x7f", "é", "e\u0301", "ﬀ", "\u00a0", "\u202e", "\ufeff",
	"\ud7ff", "\ue000", "\ufffd", "\uffff", "𝄞", "\U0010fffe", "\U0010ffff", "aaaaaaaaaa", strings.Repeat("𝄞", 20),
}

func hostile(most int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(fragments), 1, most).Draw(t, "fragments"), "")
	}).Filter(func(s string) bool { return len(s) <= spi.MaxTenantName })
}

// hostileTenants draws distinct tenants, some of which continue, begin or scope another.
func hostileTenants(t *rapid.T) []spi.TenantName {
	names := []spi.TenantName{"a", "a/"}
	for range 30 {
		name := spi.TenantName(hostile(3).Draw(t, "tenant"))
		other := rapid.SampledFrom(names).Draw(t, "other")
		switch rapid.IntRange(0, 4).Draw(t, "relation") {
		case 0:
			name = other + name
		case 1:
			name = spi.TenantName(scopeOf(other)) + name
		case 2:
			name = spi.TenantName([]rune(other)[:1])
		}
		if name.Validate() == nil && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func scopeOf(tenant spi.TenantName) string {
	scope, err := spi.ScopeOf(tenant)
	if err != nil {
		panic(err)
	}
	return scope.Prefix()
}

// hostileChooser draws names that the calls of few tenants cannot avoid to share, and
// that look like what is another's in the shared store.
func hostileChooser(t *rapid.T, tenants []spi.TenantName) *chooser {
	pool := rapid.SliceOfN(hostile(3), 2, 4).Draw(t, "pool")
	from := func(label string, extra ...string) string {
		name := rapid.SampledFrom(append(pool, extra...)).Draw(t, label)
		if rapid.IntRange(0, 5).Draw(t, "scoped") == 5 {
			name = scopeOf(oneOf(t, tenants)) + name
		}
		return name
	}
	return &chooser{
		name:   func() string { return from("name") },
		prefix: func() string { return from("prefix", "", "", "", "") },
		cursor: func() string {
			return from("cursor", "", "", "", "", "\x00", "a\x00", "\U0010ffff\U0010ffff", strings.Repeat("a", 2000))
		},
		below:    func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") },
		versions: map[reflect.Type][]int64{},
	}
}

// oneOf draws a tenant, mostly one of the first: they meet each other more often.
func oneOf(t *rapid.T, tenants []spi.TenantName) spi.TenantName {
	if rapid.IntRange(0, 9).Draw(t, "crowd") > 0 {
		tenants = tenants[:min(3, len(tenants))]
	}
	return rapid.SampledFrom(tenants).Draw(t, "tenant")
}

// TestAViewAmongOthersAnswersAsAStoreOfTheTenantsOwn lets many tenants work on one
// store through views, and each do the same on a store that has never heard of
// tenants. If all that they are told is the same, to the last byte of the last error,
// then nothing of the others, and nothing of the scope, has reached them.
func TestAViewAmongOthersAnswersAsAStoreOfTheTenantsOwn(t *testing.T) {
	const steps = 800
	methods := slices.Sorted(maps.Keys(calls))
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
		clock := func() time.Time { return now }
		open := func() *spi.Store {
			s, err := memory.New(memory.WithClock(clock))
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		tenants := hostileTenants(t)
		choose := hostileChooser(t, tenants)
		shared, own := open(), map[spi.TenantName]*spi.Store{}
		for _, name := range tenants {
			own[name] = open()
		}
		for range steps {
			// A second between two steps: versions are times, and so the same in both stores.
			now = now.Add(time.Second)
			name := oneOf(t, tenants)
			method := rapid.SampledFrom(methods).Draw(t, "method")
			do := calls[method](*choose)
			amongOthers := told(t, name, shared, do)
			res, err := do(t.Context(), own[name])
			if alone := (answer{res, textOf(err)}); !reflect.DeepEqual(amongOthers, alone) {
				t.Fatalf("%s of %q\namong others: %+v\nalone:        %+v", method, name, amongOthers, alone)
			}
			choose.remember(reflect.ValueOf(res))
		}
	})
}

// An answer is all that a caller is told.
type answer struct {
	res any
	err string
}

// told makes a view for one call, checks that all that it asks the shared store for is
// in the tenant's range, and returns what it answers.
func told(t *rapid.T, name spi.TenantName, shared *spi.Store, do call) answer {
	watch, watched := spyOn(t, shared)
	watch.sees = func(req any) {
		eachName(reflect.ValueOf(req), func(field string, inner reflect.Value) {
			if !strings.HasPrefix(inner.String(), scopeOf(name)) {
				t.Fatalf("%T of %q asks the shared store for the %s %q", req, name, field, inner)
			}
		})
	}
	s, err := tenant.New(name, watched)
	if err != nil {
		t.Fatal(err)
	}
	res, err := do(t.Context(), s)
	return answer{res, textOf(err)}
}

// textOf returns all that can be seen of an error: its chain of types, and its text.
func textOf(err error) string {
	var text strings.Builder
	for e := err; e != nil; e = errors.Unwrap(e) {
		fmt.Fprintf(&text, "%T %+[1]v\n", e)
	}
	return text.String()
}
