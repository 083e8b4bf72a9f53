package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// A wanted is a figure that a package's own benchmark prints.
type wanted struct {
	name      string
	dir       string // of the package
	benchmark string
	args      string // after -args
	line      string // what the benchmark's line begins with
	unit      string
	target    float64
	better    string
}

var wants = []wanted{
	{"Postgres: batched appends / inserts by hand, 64 workers", "./backends/postgres", "Append", "", "BenchmarkAppend/workers=64", "batched/by-hand", 4, higher},
	{"Postgres: batched appends / inserts by hand, 256 workers", "./backends/postgres", "Append", "", "BenchmarkAppend/workers=256", "batched/by-hand", 7, higher},
	{"Postgres: batched appends / our single ones, 64 workers", "./backends/postgres", "Append", "", "BenchmarkAppend/workers=64", "batched/single", 5, higher},
	{"Postgres: batched appends / our single ones, 256 workers", "./backends/postgres", "Append", "", "BenchmarkAppend/workers=256", "batched/single", 8, higher},
	{"Postgres: page of 1,000 of 1 million / the bare query", "./backends/postgres", "Page", "", "BenchmarkPage", "1000000-executions-of-0/bare", 1.3, lower},
	{"Postgres: page of 1,000 of 1 million / of 10 thousand", "./backends/postgres", "Page", "", "BenchmarkPage", "1000000-executions-of-0/first", 0, lower},
	{"Postgres: page of 1,000 with 100 events an execution / with none", "./backends/postgres", "Page", "", "BenchmarkPage", "10000-executions-of-100/first", 0, lower},
	{"Postgres: conditional / unconditional acquires a second", "./backends/postgres", "Acquire", "", "BenchmarkAcquire", "conditional/unconditional", 0.8, higher},
	{"Postgres: conditional acquires a second / of six round trips by hand", "./backends/postgres", "Acquire", "", "BenchmarkAcquire", "conditional/by-hand", 1.6, higher},
	{"SQLite: grouped appends / one transaction each", "./backends/sqlite", "Append$", "", "BenchmarkAppend", "ratio", 10, higher},
	{"sharded: stateless page of 4 shards, 1 million ids / of one database", "./decorators/sharded", "Pages", "-ids 1000000", "BenchmarkPages/ids=1000000/page", "page/unsharded", 1.8, lower},
	{"sharded: streaming pass of 4 shards, 1 million ids / of one database", "./decorators/sharded", "Pages", "-ids 1000000", "BenchmarkPages/ids=1000000/pass", "pass/unsharded", 0.7, lower},
	{"the full stack without crypto over memory: ns added to an append of 1 KiB", "./decorators", "Stack", "", "BenchmarkStack", "ns-added", 1500, lower},
	{"the full stack without crypto over memory: allocations added to an append", "./decorators", "Stack", "", "BenchmarkStack", "allocs-added", 6, lower},
	{"crypto in the full stack over memory: ns added to an append of 1 KiB", "./decorators", "Stack", "", "BenchmarkStack", "crypto-ns-added", 4000, lower},
	{"coalescing: appends a second of 64 goroutines with / without", "./decorators/coalescing", "Postgres/workers=64", "", "BenchmarkPostgres/workers=64", "throughput-ratio", 5, higher},
	{"coalescing: p50 of 64 goroutines with / without", "./decorators/coalescing", "Postgres/workers=64", "", "BenchmarkPostgres/workers=64", "p50-ratio", 1, lower},
	{"profiling: ns added to a call when nothing exports", "./decorators/profiling", "Call/Append/global", "", "BenchmarkCall/Append/global,_nothing_exports", "ns-added/call", 500, lower},
	{"runtime: ns to prune 100,000 refs in memory", "./runtime/retention", "Prune", "", "BenchmarkPrune", "ns/op", 60e9, lower},
	{"remote: CPU of a unary append / a bare echo", "./backends/remote", "Append", "", "BenchmarkAppend/remote", "×bare", 1.5, lower},
	{"remote: CPU of a streamed append / a bare stream", "./backends/remote", "Append", "", "BenchmarkAppend/stream", "×bare", 2, lower},
}

// packages runs the packages' own benchmarks, each command once.
func packages(ctx context.Context, b *bench) error {
	printed := map[string]string{}
	for _, w := range wants {
		command := strings.TrimSpace(fmt.Sprintf("go test -run ^$ -bench %s %s", w.benchmark, w.dir))
		if w.args != "" {
			command += " -args " + w.args
		}
		if _, done := printed[command]; !done {
			cmd := exec.CommandContext(ctx, "go", strings.Fields(command)[1:]...)
			cmd.Dir = ".."
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil {
				return fmt.Errorf("%s: %w\n%s%s", command, err, out, &stderr)
			}
			printed[command] = string(out)
		}
		value, err := metric(printed[command], w.line, w.unit)
		if err != nil {
			return fmt.Errorf("%s: %w", command, err)
		}
		b.report.figure(result{w.name, value, w.target, w.better, command})
	}
	b.report.say("")
	return nil
}

// metric finds the value of a unit in the line of a benchmark, whose name has the number
// of processors at its end.
func metric(out, name, unit string) (float64, error) {
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.TrimRight(strings.TrimRight(fields[0], "0123456789"), "-") != name && fields[0] != name {
			continue
		}
		for i := 2; i+1 < len(fields); i += 2 {
			if fields[i+1] == unit {
				return strconv.ParseFloat(fields[i], 64)
			}
		}
	}
	return 0, fmt.Errorf("it prints no %s of %s:\n%s", unit, name, out)
}
