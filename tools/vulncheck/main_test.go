package main

import (
	"strings"
	"testing"
)

func TestJudge(t *testing.T) {
	const (
		called   = `{"finding":{"osv":"GO-1","fixed_version":"v1.1.0","trace":[{"module":"example.com/m","version":"v1.0.0","package":"example.com/m/p","function":"F"},{"module":"us","package":"us/q","receiver":"*T","function":"G"}]}}`
		again    = `{"finding":{"osv":"GO-1","trace":[{"module":"example.com/m","version":"v1.0.0","package":"example.com/m/p","function":"Z"},{"module":"us","package":"us/q","function":"H"}]}}`
		imported = `{"finding":{"osv":"GO-2","trace":[{"module":"example.com/m","version":"v1.0.0","package":"example.com/m/p"}]}}`
		required = `{"finding":{"osv":"GO-3","trace":[{"module":"example.com/m","version":"v1.0.0"}]}}`
		standard = `{"finding":{"osv":"GO-4","trace":[{"module":"stdlib","version":"v1.26.0","package":"os","function":"Open"},{"module":"us","package":"us","function":"main"}]}}`
		other    = `{"config":{"protocol_version":"v1.0.0"}} {"osv":{"id":"GO-1"}}`
	)
	tests := []struct {
		name, stream, report string
		fails                bool
	}{
		{"a clean stream passes", other, "", false},
		{"a called function of a module fails, reported once", other + again + called + again, "FAIL: GO-1: us/q.*T.G calls example.com/m/p.F of example.com/m@v1.0.0, fixed in v1.1.0\n", true},
		{"an imported or required module passes", imported + required, "", false},
		{"a called function of the Go installation warns", standard, "warning: GO-4: us.main calls os.Open of stdlib@v1.26.0\n", false},
		{"a stream that is cut fails", called[:40], "", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var report strings.Builder
			err := judge(strings.NewReader(tt.stream), &report)
			if report.String() != tt.report {
				t.Errorf("report %q, want %q", report.String(), tt.report)
			}
			if (err != nil) != tt.fails {
				t.Errorf("error %v, want failure %v", err, tt.fails)
			}
		})
	}
}
