package config

import (
	"fmt"
	"log/slog"
)

// hidden is what is shown in a secret's place.
const hidden = "[redacted]"

// A Secret is text that no printing, encoding or logging shows, whatever the verb, also
// not inside another value, or in a crash. The zero Secret is empty.
type Secret struct {
	// A pointer: fmt prints the unexported fields of a value around it without
	// asking for its methods, but does not follow a pointer.
	text *string
}

// NewSecret returns text as a secret.
func NewSecret(text string) Secret { return Secret{&text} }

// Reveal returns the text.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsZero reports whether there is no text.
func (s Secret) IsZero() bool { return s.Reveal() == "" }

// String, Format (for every verb), MarshalText (for encoders of JSON, YAML and others) and
// LogValue hide the text.

func (s Secret) String() string { return hidden }

func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, hidden) }

func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

func (s Secret) LogValue() slog.Value { return slog.StringValue(hidden) }
