package commands

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryCommandOfARunbookParses finds each "gateway …" line of a block of shell: the
// command has to be there, with those flags and so many arguments.
func TestEveryCommandOfARunbookParses(t *testing.T) {
	pages, err := filepath.Glob("../../../../docs/runbooks/*.md")
	if err != nil || len(pages) < 7 {
		t.Fatalf("%d runbooks (%v)", len(pages), err)
	}
	for _, page := range pages {
		raw, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(page)
		commands := shellLines(string(raw))
		if len(commands) == 0 && name != "README.md" {
			t.Errorf("%s has no command", name)
		}
		for _, line := range commands {
			args, ok := strings.CutPrefix(line, "gateway ")
			if !ok {
				t.Errorf("%s: %q is no command of the gateway", name, line)
				continue
			}
			found, rest, err := newRoot().Find(strings.Fields(args))
			if err != nil || !found.Runnable() {
				t.Errorf("%s: %q: %v", name, line, err)
				continue
			}
			found.InitDefaultHelpFlag()
			if err := found.ParseFlags(rest); err != nil {
				t.Errorf("%s: %q: %v", name, line, err)
			} else if err := found.ValidateArgs(found.Flags().Args()); err != nil {
				t.Errorf("%s: %q: %v", name, line, err)
			}
		}
		if name == "README.md" {
			continue
		}
		for _, part := range []string{"## What is seen", "## What it means", "## What to do", "## How to know that it is over"} {
			if strings.Count(string(raw), "\n"+part+"\n") != 1 {
				t.Errorf("%s has no part %q", name, part)
			}
		}
	}
}

// shellLines returns the lines of all blocks of shell.
func shellLines(page string) (all []string) {
	shell := false
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		switch {
		case line == "```sh":
			shell = true
		case strings.HasPrefix(line, "```"):
			shell = false
		case shell && line != "":
			all = append(all, line)
		}
	}
	return all
}
