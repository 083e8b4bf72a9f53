package config

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

const password = "hunter2"

// decimals returns text as fmt writes its bytes.
func decimals(text string) string { return strings.Trim(fmt.Sprintf("%d", []byte(text)), "[]") }

// wantHidden looks for the password, also as fmt writes it in bytes and in hex.
func wantHidden(t *testing.T, where, text string) {
	t.Helper()
	for _, form := range []string{password, fmt.Sprintf("%x", password), fmt.Sprintf("%X", password), decimals(password)} {
		if strings.Contains(text, form) {
			t.Errorf("%s shows it: %s", where, text)
		}
	}
}

// holders are values that a secret can be printed in.
func holders() map[string]any {
	secret := NewSecret(password)
	shard := Shard{Name: "a", DSN: secret}
	return map[string]any{
		"itself":           secret,
		"pointer":          &secret,
		"exported field":   shard,
		"pointer to one":   &shard,
		"unexported field": struct{ s Secret }{secret},
		"deeper":           struct{ s []struct{ s *Secret } }{[]struct{ s *Secret }{{&secret}}},
		"map":              map[string]Secret{"a": secret},
		"slice":            []any{secret},
		"config":           Config{Shards: []Shard{shard}, Crypto: Crypto{Secret: secret}},
	}
}

func TestNoVerbPrintsASecret(t *testing.T) {
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "% X", "%d", "%c", "%t", "%10.3s"} {
		if got := fmt.Sprintf(verb, NewSecret(password)); got != hidden {
			t.Errorf("%s prints %s", verb, got)
		}
	}
	for name, v := range holders() {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "% x", "%d", "%c", "%U", "%t", "%p", "%b", "%10.3s", "%!"} {
			wantHidden(t, name+" with "+verb, fmt.Sprintf(verb, v))
		}
		wantHidden(t, name+" in an error", fmt.Errorf("with %w and %v", errors.New("x"), v).Error())
	}
}

func TestNoEncodingHoldsASecret(t *testing.T) {
	for name, v := range holders() {
		text, _ := json.Marshal(v) // what cannot be encoded shows nothing either
		wantHidden(t, name+" in JSON", string(text))
		text, _ = yaml.Marshal(v)
		wantHidden(t, name+" in YAML", string(text))
		text, _ = xml.Marshal(v)
		wantHidden(t, name+" in XML", string(text))
		var b bytes.Buffer
		_ = gob.NewEncoder(&b).Encode(v)
		wantHidden(t, name+" in gob", b.String())
	}
}

func TestNoLogHoldsASecret(t *testing.T) {
	var b bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&b, nil), slog.NewJSONHandler(&b, nil)} {
		for name, v := range holders() {
			slog.New(h).With(name, v).Info(name, "value", v, slog.Group("group", slog.Any("value", v)))
		}
	}
	if !strings.Contains(b.String(), "exported field") {
		t.Fatal("nothing was logged")
	}
	wantHidden(t, "a log", b.String())
}

// TestNoCrashShowsASecret lets a process of its own die with each value.
func TestNoCrashShowsASecret(t *testing.T) {
	const variable = "CRASH_WITH"
	if name := os.Getenv(variable); name != "" {
		panic(holders()[name])
	}
	for name := range holders() {
		crash := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNoCrashShowsASecret$")
		crash.Env = append(os.Environ(), variable+"="+name)
		out, err := crash.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "panic: ") {
			t.Fatalf("%s did not crash: %v\n%s", name, err, out)
		}
		wantHidden(t, "a crash with "+name, string(out))
	}
}

func TestWhatIsRevealedIsWhatWentIn(t *testing.T) {
	if got := NewSecret(password).Reveal(); got != password {
		t.Errorf("%q", got)
	}
	var none Secret
	if !none.IsZero() || none.Reveal() != "" || !NewSecret("").IsZero() || NewSecret(password).IsZero() {
		t.Error("zero is not empty")
	}
}

// TestNoErrorRepeatsAValue puts the password into every setting, in every way in which it
// can be wrong there.
func TestNoErrorRepeatsAValue(t *testing.T) {
	wrong := 0
	check := func(what string, err error) {
		if err != nil {
			wrong++
			wantHidden(t, "the error about "+strings.ReplaceAll(what, password, "…"), err.Error())
		}
	}
	for _, value := range []string{
		"%", `"%`, "'%", "[%", "{%", "[%]", "{a: %}", "&% x", "*%", "!% x", "|\n    %", "%: x: y",
		"postgres://u:%@h/d", "postgres://u:%@h:port/d", "postgres://u:%@[h/d", "postgres://h/d?password=%", "postgres://h/d?%70assword=%",
		"host=h password=%", "host=h password = '%", "host=h sslpassword=%", "postgres://u:%@h/d?pool_max_conns=1",
	} {
		value = strings.ReplaceAll(value, "%", password)
		for _, s := range settings {
			name := variable(strings.Replace(s.path, "[]", "[0]", 1))
			_, err := read("", name+"="+value, name+"_X="+value)
			check(name+"="+value, err)

			text := s.path + ": " + value
			section, key, nested := strings.Cut(s.path, ".")
			if list, in := strings.CutSuffix(section, "[]"); in {
				text = list + ":\n  - " + key + ": " + value
			} else if nested {
				text = section + ":\n  " + key + ": " + value
			}
			_, err = read(text)
			check(text, err)
			_, err = read(section + ": " + value)
			check(section+": "+value, err)
		}
	}
	if wrong < 1000 {
		t.Errorf("only %d were wrong", wrong)
	}
}
