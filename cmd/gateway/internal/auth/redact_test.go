package auth_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/loomgate/loomgate/cmd/gateway/internal/auth"
	"github.com/loomgate/loomgate/cmd/gateway/internal/control"
)

func TestAKeyInTextIsRedactedAndItsIDStays(t *testing.T) {
	id, key := newKey(t, newRecords(t), control.Grant{Scopes: control.ScopeAdmin})
	shown := "lg_" + id + "_[redacted]"
	for text, want := range map[string]string{
		key:                              shown,
		"Authorization: Bearer " + key:   "Authorization: Bearer " + shown,
		`{"key":"` + key + `","n":1}`:    `{"key":"` + shown + `","n":1}`,
		key + "," + key + "\n" + key:     shown + "," + shown + "\n" + shown,
		key[:len(key)-40] + "…":          shown + "…",
		"https://h/?k=" + key + "&x=lg_": "https://h/?k=" + shown + "&x=lg_",
		"lg_" + id:                       "lg_" + id,
		"lg_" + id + "_":                 "lg_" + id + "_",
		"lg_" + strings.ToUpper(key[3:]): "lg_" + strings.ToUpper(id) + "_[redacted]",
		"lg__" + key:                     "lg__" + shown,
		"lg_é_x lg_ lg_x":                "lg_é_x lg_ lg_x",
		"no key, not_even lg":            "no key, not_even lg",
		"":                               "",
	} {
		if got := auth.Redact(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func TestATokenInTextIsRedacted(t *testing.T) {
	p := newProvider(t)
	token := p.ec.sign(t, p.claims(nil))
	for text, want := range map[string]string{
		token:                           "[redacted]",
		"Bearer " + token + " of alice": "Bearer [redacted] of alice",
		`{"t":"` + token + `","n":1}`:   `{"t":"[redacted]","n":1}`,
		token[:len(token)-20] + "…":     "[redacted]…",
		"eyJ, heyJude.":                 "eyJ, h[redacted]",
	} {
		if got := auth.Redact(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func TestNoTextAroundAKeyHidesItFromRedaction(t *testing.T) {
	_, key := newKey(t, newRecords(t), control.Grant{Scopes: control.ScopeAdmin})
	secret := key[strings.LastIndex(key, "_")+1:]
	around := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOf(rapid.OneOf(
			rapid.SampledFrom([]string{"lg_", "lg", "_", "a", "Z9", "é", " ", "\xff", key, key[:30]}), rapid.StringN(0, 3, -1))).Draw(t, "parts"), "")
	})
	rapid.Check(t, func(t *rapid.T) {
		before, after := around.Draw(t, "before"), around.Draw(t, "after")
		got := auth.Redact(before + key + after)
		if strings.Contains(got, secret) || strings.Contains(got, secret[:20]) {
			t.Fatalf("%q", got)
		}
		if again := auth.Redact(got); again != got {
			t.Fatalf("%q becomes %q", got, again)
		}
	})
}
