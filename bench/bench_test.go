package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAMetricIsFoundInItsBenchmarksLine(t *testing.T) {
	out := "goos: linux\nBenchmarkA/workers=64-2 \t 1\t 106 ns/op\t 4.08 a/b\t 7 c/s\nBenchmarkA/workers=6-16 \t 1\t 2.5 a/b\nBenchmarkB \t 3\t 9 ns/op\n"
	for _, c := range []struct {
		name, unit string
		want       float64
	}{{"BenchmarkA/workers=64", "a/b", 4.08}, {"BenchmarkA/workers=64", "c/s", 7}, {"BenchmarkA/workers=6", "a/b", 2.5}, {"BenchmarkB", "ns/op", 9}} {
		if got, err := metric(out, c.name, c.unit); err != nil || got != c.want {
			t.Errorf("%s of %s is %v (%v)", c.unit, c.name, got, err)
		}
	}
	if _, err := metric(out, "BenchmarkB", "a/b"); err == nil {
		t.Error("a metric that is not printed is found")
	}
}

func TestWhatMissesItsTargetIsTold(t *testing.T) {
	r := newReport(true)
	for _, res := range []result{
		{"enough", 2, 2, higher, "c"},
		{"too little", 1.9, 2, higher, "c"},
		{"little enough", 1.8, 1.8, lower, "c"},
		{"too much", 1.81, 1.8, lower, "c"},
		{"without a target", 9, 0, lower, "c"},
	} {
		r.figure(res)
	}
	dir := t.TempDir()
	if err := r.write(dir); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := checkTargets(&out, dir); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]bool{"enough:": false, "too little:": true, "little enough:": false, "too much:": true, "without a target:": false, "2 of 5 figures": true} {
		if strings.Contains("\n"+out.String(), "\n"+line) != want {
			t.Errorf("%q in\n%s", line, &out)
		}
	}
}

func TestEachSideHasItsTurnAndAFailureEndsTheRun(t *testing.T) {
	var order []string
	sides := []side{
		{"a", func(turn, _ int) (func(context.Context, int64) error, int) {
			order = append(order, "a")
			return func(context.Context, int64) error { return nil }, 3
		}},
		{"b", func(turn, _ int) (func(context.Context, int64) error, int) {
			order = append(order, "b")
			return func(context.Context, int64) error {
				if turn == 2 {
					return os.ErrInvalid
				}
				return nil
			}, 1
		}},
	}
	turns, err := inTurn(t.Context(), 2, 1, time.Millisecond, processes{}, sides)
	if err != nil || strings.Join(order, "") != "abab" {
		t.Fatal(order, err)
	}
	if n := turns[0][0].count; n == 0 || n%3 != 0 {
		t.Errorf("%d appends of three at a time", n)
	}
	if _, err := inTurn(t.Context(), 3, 1, time.Millisecond, processes{}, sides); err == nil || !strings.HasPrefix(err.Error(), "b: ") {
		t.Error(err)
	}
}

func TestAPlotIsAnSVG(t *testing.T) {
	p := plot{title: "Cost over ids", x: "ids", y: "ms", lines: []line{{"page", []point{{X: 10, Y: 1}, {X: 100, Y: 2}}}}}
	dir := t.TempDir()
	if err := p.save(dir); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "cost-over-ids.svg"))
	if err != nil || !strings.Contains(string(raw), "<svg") {
		t.Error(err)
	}
}
