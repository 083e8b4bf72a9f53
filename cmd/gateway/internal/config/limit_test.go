package config

import (
	"math"
	"testing"
)

func TestLimitsAreWholeNumbersOrUnlimited(t *testing.T) {
	for text, want := range map[string]Limit{"0": 0, "7": 7, "9223372036854775807": math.MaxInt64, "unlimited": math.MaxInt64} {
		if got, ok := ParseLimit(text); !ok || got != want {
			t.Errorf("%s is %d, %t", text, got, ok)
		}
	}
	for text, want := range map[string]ByteLimit{"0": 0, "8MiB": 8 << 20, "1GiB": 1 << 30, "8589934591GiB": 8589934591 << 30, "unlimited": math.MaxInt64} {
		if got, ok := ParseByteLimit(text); !ok || got != want {
			t.Errorf("%s is %d, %t", text, got, ok)
		}
	}
	for _, text := range []string{"", "-1", "1.5", "none", "Unlimited", "9223372036854775808", "1e9", "8 MiB", "8589934592GiB", "-1KiB", "GiB"} {
		if n, ok := ParseLimit(text); ok {
			t.Errorf("%q is %d", text, n)
		}
		if n, ok := ParseByteLimit(text); ok {
			t.Errorf("%q is %d bytes", text, n)
		}
	}
}

func TestALimitIsShownAsItIsWritten(t *testing.T) {
	for _, text := range []string{"0", "7", "unlimited"} {
		if l, _ := ParseLimit(text); l.String() != text {
			t.Errorf("%s is shown as %v", text, l)
		}
	}
	for _, text := range []string{"0", "7", "8MiB", "unlimited"} {
		if l, _ := ParseByteLimit(text); l.String() != text {
			t.Errorf("%s is shown as %v", text, l)
		}
	}
}
