package auth

import (
	"regexp"
	"strings"

	"github.com/loomgate/loomgate/cmd/gateway/internal/control"
)

// redacted is in the place of a secret.
const redacted = "[redacted]"

// jwtText is a JSON Web Token, also one that is cut short: its first part begins with {" in
// base64.
var jwtText = regexp.MustCompile(`eyJ[A-Za-z0-9_-]*\.[A-Za-z0-9._-]*`)

// Redact returns text without the tokens, and without the secrets of the API keys, in it,
// also of those that are cut short. The ids of keys stay.
func Redact(text string) string {
	if strings.Contains(text, "eyJ") {
		text = jwtText.ReplaceAllLiteralString(text, redacted)
	}
	var b strings.Builder
	done := 0        // up to here, text is in b
	for at := 0; ; { // goes on right behind each prefix: another may be in what looks like an id
		i := strings.Index(text[at:], control.KeyPrefix)
		if i < 0 {
			break
		}
		at += i + len(control.KeyPrefix)
		id := alphanumerics(text[at:])
		if id == 0 || !strings.HasPrefix(text[at+id:], "_") {
			continue
		}
		from := at + id + 1
		b.WriteString(text[done:from])
		if done = from + alphanumerics(text[from:]); done > from {
			b.WriteString(redacted)
		}
	}
	if done == 0 {
		return text
	}
	return b.String() + text[done:]
}

// alphanumerics returns how many letters and digits text begins with.
func alphanumerics(text string) int {
	n := strings.IndexFunc(text, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9')
	})
	if n < 0 {
		return len(text)
	}
	return n
}
