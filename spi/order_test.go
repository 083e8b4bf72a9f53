package spi

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// edgeRunes are where orders and encodings differ.
var edgeRunes = []rune("\u0001\u007f\u0080\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010ffffaAbB_-%/0")

var names = rapid.StringOfN(rapid.SampledFrom(edgeRunes), 0, 5, -1)

func TestIDsCompareByCodePoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := names.Draw(t, "a"), names.Draw(t, "b")
		if got, want := CompareIDs(a, b), slices.Compare([]rune(a), []rune(b)); got != want {
			t.Errorf("%q and %q compare as %d, not %d", a, b, got, want)
		}
	})
}

func TestCodePointOrderIsNotUTF16Order(t *testing.T) {
	a, b := "\uffff", "\U00010000"
	if CompareIDs(a, b) >= 0 {
		t.Error("U+FFFF comes after U+10000")
	}
	if slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b))) < 0 {
		t.Error("in UTF-16 it does not: the example shows nothing")
	}
}

func TestSeekFindsWhatAScanFinds(t *testing.T) {
	cursors := rapid.StringOfN(rapid.SampledFrom(append([]rune{0}, edgeRunes...)), 0, 5, -1)
	rapid.Check(t, func(t *rapid.T) {
		prefix, cursor, name := names.Draw(t, "prefix"), cursors.Draw(t, "cursor"), names.Draw(t, "name")
		r := Seek(prefix, cursor)
		want := strings.HasPrefix(name, prefix) && name > cursor
		if name != "" && r.Contains(name) != want {
			t.Errorf("%q after %q with prefix %q: %v", name, cursor, prefix, !want)
		}
		if strings.ContainsRune(r.After+r.From+r.End, 0) {
			t.Errorf("%q: no database can be asked that", r)
		}
		start, inclusive := r.Start()
		if want && (name < start || name == start && !inclusive) {
			t.Errorf("%q is before the start %q", name, start)
		}
	})
}

func TestAPrefixEndsAtTheFirstStringAfterIt(t *testing.T) {
	for prefix, want := range map[string]string{
		"":                     "",
		"a":                    "b",
		"a\U0010ffff":          "b",
		"\U0010ffff\U0010ffff": "",
		"\ud7ff":               "\ue000",
		"a\ud7ff\U0010ffff":    "a\ue000",
		"\u007f":               "\u0080",
		"\uffff":               "\U00010000",
	} {
		if got := PrefixEnd(prefix); got != want || !utf8.ValidString(got) {
			t.Errorf("%q ends at %q, not %q", prefix, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		prefix, name := names.Draw(t, "prefix"), names.Draw(t, "name")
		end := PrefixEnd(prefix)
		with := strings.HasPrefix(name, prefix)
		if got := name >= prefix && (end == "" || name < end); got != with {
			t.Errorf("%q with prefix %q: %v", name, prefix, got)
		}
	})
}

func TestAScopeIsInjectiveAndPrefixFree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tenant := rapid.StringOfN(rapid.SampledFrom(append([]rune("1:/"), edgeRunes...)), 1, 4, -1)
		a, b := TenantName(tenant.Draw(t, "a")), TenantName(tenant.Draw(t, "b"))
		x, y := ExecutionID(tenant.Draw(t, "x")), ExecutionID(tenant.Draw(t, "y"))
		sa, sb := mustScope(t, a), mustScope(t, b)
		ax, err := Scoped(sa, "execution id", x)
		if err != nil {
			t.Fatal(err)
		}
		by, err := Scoped(sb, "execution id", y)
		if err != nil {
			t.Fatal(err)
		}
		if (ax == by) != (a == b && x == y) {
			t.Errorf("%q of %q and %q of %q are %q and %q", x, a, y, b, ax, by)
		}
		if a != b && (strings.HasPrefix(sa.Prefix(), sb.Prefix()) || strings.HasPrefix(string(by), sa.Prefix())) {
			t.Errorf("the scope of %q begins another", a)
		}
		if out, ok := Unscoped(sa, ax); !ok || out != x {
			t.Errorf("%q comes out as %q", x, out)
		}
		if _, ok := Unscoped(sa, by); ok != (a == b) {
			t.Errorf("%q of %q comes out of %q: %v", y, b, a, ok)
		}
		if tenant, outer, ok := SplitScope(ax); !ok || tenant != a || outer != x {
			t.Errorf("%q is split into %q and %q", ax, tenant, outer)
		}
		if tenant, outer, ok := SplitScope(sa.Prefix()); !ok || tenant != a || outer != "" {
			t.Errorf("the bare scope %q is split into %q and %q", sa.Prefix(), tenant, outer)
		}
		if CompareIDs(x, y) != CompareIDs(ax, sa.mustIn(t, y)) {
			t.Errorf("%q and %q change places", x, y)
		}
	})
}

func (s Scope) mustIn(t *rapid.T, id ExecutionID) ExecutionID {
	in, err := Scoped(s, "execution id", id)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func mustScope(t *rapid.T, tenant TenantName) Scope {
	s, err := ScopeOf(tenant)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWhatNoScopeMadeIsNotSplit(t *testing.T) {
	for _, name := range []string{"", ":", "a", "1:", "1:a", "0:/", "01:a/", "+1:a/", "-1:a/", "2:a/", "1:ab/", "129:" + strings.Repeat("a", 129) + "/", "99999999999999999999:a/"} {
		if tenant, outer, ok := SplitScope(name); ok {
			t.Errorf("%q is split into %q and %q", name, tenant, outer)
		}
	}
}

func TestAScopeTakesIDsOf512BytesAndStaysWithinAStacksLimit(t *testing.T) {
	scope, err := ScopeOf(TenantName(strings.Repeat("t", MaxTenantName)))
	if err != nil {
		t.Fatal(err)
	}
	id, err := Scoped(scope, "execution id", ExecutionID(strings.Repeat("i", MaxOuterID)))
	if err != nil || id.Validate() != nil {
		t.Error(err, id.Validate())
	}
	_, err = Scoped(scope, "execution id", ExecutionID(strings.Repeat("i", MaxOuterID+1)))
	if invalid, ok := errors.AsType[*InvalidArgumentError](err); !ok || invalid.Field != "execution id" || invalid.Rule != "has 513 bytes, not 1 to 512" {
		t.Error(err)
	}
}

func TestAnEventIDIsUUIDText(t *testing.T) {
	id := EventID{0x01, 0x90, 0xd2, 0xf6, 0x6d, 0x2f, 0x7c, 0xc1, 0x8a, 0x1c, 0x6f, 0x1d, 0x0e, 0x5b, 0x7a, 0x90}
	if text := id.String(); text != "0190d2f6-6d2f-7cc1-8a1c-6f1d0e5b7a90" {
		t.Error(text)
	}
	a, b := NewEventID(), NewEventID()
	if a == b || a[6]>>4 != 4 || a[8]>>6 != 2 {
		t.Errorf("%v and %v", a, b)
	}
}
