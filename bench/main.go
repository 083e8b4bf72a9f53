// Bench compares Loomgate with what a user would pick instead: every side in turn, within
// one run, on real servers with fsync on. What counts is the ratio.
//
//	go run . -quick          five minutes, prints the table
//	go run . -write .        all of it, writes RESULTS.md, results.json and the plots
//	go run . -only pages     one section
//	go run . -check .        prints the targets that the last run missed
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A bench is what the sections need to know.
type bench struct {
	quick  bool
	rounds int           // how often each side has its turn
	span   time.Duration // of a turn
	ids    string        // a file of execution ids, one a line
	report *report
}

// A section compares one thing. It first proves that all sides do the same work right.
type section struct {
	name  string
	about string
	run   func(context.Context, *bench) error
}

var sections = []section{
	{"fence", "what a fence costs", fences},
	{"append", "appends of one event, by clients at once", appends},
	{"pages", "pages over four shards", pages},
	{"growth", "what a page and an append cost as things grow", growth},
	{"layers", "what each decorator costs", layers},
	{"hop", "what the gateway adds to a call", hop},
	{"packages", "the benchmarks of the packages, against their targets", packages},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	quick := flag.Bool("quick", false, "a short look")
	only := flag.String("only", "", "the sections to run, comma-separated; all unless given")
	write := flag.String("write", "", "the folder that takes RESULTS.md, results.json and the plots")
	check := flag.String("check", "", "the folder whose results.json is checked against the targets; nothing is run")
	ids := flag.String("ids", "", "a file of execution ids for the pages, one a line")
	flag.Parse()
	if *check != "" {
		return checkTargets(os.Stdout, *check)
	}
	b := &bench{rounds: 5, span: 2 * time.Second, ids: *ids, report: newReport(*quick)}
	if *quick {
		b.quick, b.span = true, 500*time.Millisecond
	}
	b.report.machine(ctx)
	chosen := strings.FieldsFunc(*only, func(r rune) bool { return r == ',' })
	for _, s := range sections {
		if len(chosen) > 0 && !slices.Contains(chosen, s.name) || len(chosen) == 0 && *quick && s.name == "packages" {
			continue
		}
		b.report.begin(s)
		if err := s.run(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		if *write != "" { // after each section: what a later one meets costs nothing that was measured
			if err := b.report.write(*write); err != nil {
				return err
			}
		}
	}
	b.report.summary(os.Stdout)
	return nil
}
