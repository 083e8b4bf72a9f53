package samplelog_test

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/loomgate/loomgate/cmd/gateway/internal/transfer"
	"github.com/loomgate/loomgate/cmd/gateway/internal/transfer/samplelog"
	"github.com/loomgate/loomgate/spi"
)

func TestALogIsWhatItsShapeSays(t *testing.T) {
	for _, shape := range samplelog.Tenants(7) {
		shape.Executions, shape.Events = shape.Executions/4, shape.Events/4
		var lines, repeats, ties, back, interleaved, whole int
		longest, last := int64(0), spi.ExecutionID("")
		before := map[spi.ExecutionID]transfer.Line{}
		counts := map[spi.ExecutionID]int64{}
		for l, err := range transfer.Lines(bytes.NewReader(write(t, shape))) {
			if err != nil {
				t.Fatalf("%s: %v", shape.Tenant, err)
			}
			lines++
			if l.Execution != last {
				interleaved++
			}
			if last = l.Execution; l.Event.RecordedAt.Nanosecond() == 0 {
				whole++
			}
			if b, ok := before[l.Execution]; ok {
				switch step := l.Event.RecordedAt.Compare(b.Event.RecordedAt); {
				case step < 0:
					back++
				case step == 0 && bytes.Equal(l.Event.Payload, b.Event.Payload) && l.Event.Kind == b.Event.Kind:
					repeats++
				case step == 0:
					ties++
				}
			}
			before[l.Execution] = l
			counts[l.Execution]++
			longest = max(longest, counts[l.Execution])
		}
		if lines != shape.Events || len(counts) != shape.Executions {
			t.Errorf("%s: %d events of %d executions", shape.Tenant, lines, len(counts))
		}
		if repeats == 0 || ties == 0 || back == 0 || interleaved < lines*3/4 || longest < int64(3*shape.Events/shape.Executions) {
			t.Errorf("%s: %d lines repeat, %d times tie, %d step back, %d lines follow another execution's, the longest has %d", shape.Tenant, repeats, ties, back, interleaved, longest)
		}
		if shape.Seconds != (whole == lines) {
			t.Errorf("%s: %d of %d times are whole seconds", shape.Tenant, whole, lines)
		}
		for _, part := range []string{"𝄞", "\uFFFD"} {
			if !slices.ContainsFunc(slices.Collect(maps.Keys(counts)), func(id spi.ExecutionID) bool { return strings.Contains(string(id), part) }) {
				t.Errorf("%s: no id has %q", shape.Tenant, part)
			}
		}
	}
}

func write(t *testing.T, shape samplelog.Shape) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := shape.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestAShapeAlwaysMakesTheSameLines(t *testing.T) {
	shape := samplelog.Tenants(3)[3]
	if !bytes.Equal(write(t, shape), write(t, shape)) {
		t.Error("the second log is another")
	}
	if bytes.Equal(write(t, shape), write(t, samplelog.Tenants(4)[3])) {
		t.Error("the seed makes no difference")
	}
}

func TestFingerprintsTellOrderAndSpelling(t *testing.T) {
	a := `{"executionId":"e","kind":"K","recordedAt":"2024-05-01T09:30:00Z","payload":1.0}` + "\n"
	b := `{"executionId":"e","kind":"K","recordedAt":"2024-05-01T09:30:00Z","payload":1.00}` + "\n"
	f := `{"executionId":"f","kind":"K","recordedAt":"2024-05-01T09:30:00Z","payload":1}` + "\n"
	of := func(text string) samplelog.Fingerprint {
		all, err := samplelog.Fingerprints(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return all["e"]
	}
	if of(a+f+b) != of(f+a+b+f) {
		t.Error("another execution's lines make a difference")
	}
	for _, other := range []string{b + a, a, a + b + b, a + a, strings.Replace(a, "K", "L", 1) + b, strings.Replace(a, ":00Z", ":00.000001Z", 1) + b} {
		if of(other) == of(a+b) {
			t.Errorf("%s is as %s", other, a+b)
		}
	}
}
