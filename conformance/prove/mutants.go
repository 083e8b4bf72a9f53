package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/loomgate/loomgate/conformance/mutants"
)

// patience is how long a mutant may keep the kit busy. A kit that hangs has caught
// nothing: it has to end and say what is wrong.
const patience = time.Minute

// proveMutants runs the kit over each mutant, in a process of its own, and over a
// store and decorators that are sound, where it has to pass.
func proveMutants(ctx context.Context, caught *proofs, root, temp string) error {
	kit := filepath.Join(temp, "mutants.test")
	if _, err := goTool(ctx, root, "test", "-c", "-o", kit, "./conformance/mutants"); err != nil {
		return err
	}
	if out, err := runKit(ctx, kit, mutants.Control, ""); err != nil {
		return fmt.Errorf("the kit does not pass over what the mutants are made of, so it proves nothing: %w\n%s", err, out)
	}
	all := mutants.All()
	wrong := make([]string, len(all))
	next := make(chan int)
	var running sync.WaitGroup
	for range 2 { // the races in the kit need a processor each
		running.Go(func() {
			for i := range next {
				wrong[i] = missed(ctx, kit, all[i])
			}
		})
	}
	for i := range all {
		next <- i
	}
	close(next)
	running.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for i, m := range all {
		caught.count(fmt.Sprintf("mutant %q", m.Name), wrong[i])
	}
	return nil
}

// missed returns "" if the case that should catch a mutant did, or what happened.
func missed(ctx context.Context, kit string, m mutants.Mutant) string {
	out, err := runKit(ctx, kit, m.Name, part(m))
	failed := failures(out)
	switch {
	case failed[caseName(m.CaughtBy)]:
		return ""
	case err == nil:
		return "the kit passes over it: " + m.Breaks
	case len(failed) == 0:
		return "the kit did not end with a failure: " + tail(out)
	}
	return fmt.Sprintf("the kit fails, but not in the case %q", m.CaughtBy)
}

// part returns the part of the kit that a mutant is for, as a pattern of test names:
// a decorator's is one of its many variants, anything else's the whole kit.
func part(m mutants.Mutant) string {
	if !strings.HasPrefix(m.CaughtBy, "decorator/") {
		return ""
	}
	variant := strings.Split(caseName(m.CaughtBy), "/")[1]
	return "/^decorator$/^" + variant + "$"
}

// runKit runs a part of the kit over a mutant and returns what it printed. As for test2json,
// the runner reports a case as soon as it ends, so that those before a panic count.
func runKit(ctx context.Context, kit, mutant, part string) (string, error) {
	cmd := exec.CommandContext(ctx, kit, "-test.v=test2json", "-test.run=^TestMutant$"+part, "-test.timeout="+patience.String())
	cmd.Env = append(os.Environ(), "MUTANT="+mutant)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// failure is how the test runner says that a case has failed.
var failure = regexp.MustCompile(`(?m)^\x16?\s*--- FAIL: TestMutant/(.+) \([0-9.]+s\)$`)

// failures returns the cases that failed.
func failures(out string) map[string]bool {
	failed := map[string]bool{}
	for _, match := range failure.FindAllStringSubmatch(out, -1) {
		failed[match[1]] = true
	}
	return failed
}

// caseName is a case as the test runner prints it.
func caseName(sentence string) string { return strings.ReplaceAll(sentence, " ", "_") }

// tail returns the end of an output.
func tail(out string) string {
	const most = 2000
	return out[max(0, len(out)-most):]
}
