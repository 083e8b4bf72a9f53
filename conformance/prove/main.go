// Command prove shows that the conformance kit and the required-method table are
// worth what they claim: the kit fails over each of the broken stores and decorators
// in conformance/mutants, and no decorator compiles, or wraps, until it has decided
// about a method that is new. Run it from the module with
//
//	go run ./conformance/prove
//
// It prints what it missed and two counts, and exits with status 1 if it missed
// anything.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := prove(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "prove:", err)
		os.Exit(1)
	}
}

func prove(ctx context.Context) error {
	goMod, err := goTool(ctx, ".", "env", "GOMOD")
	if err != nil {
		return err
	}
	root := filepath.Dir(strings.TrimSpace(goMod))
	temp, err := os.MkdirTemp("", "prove")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	caught := proofs{what: "mutants caught"}
	if err := proveMutants(ctx, &caught, root, temp); err != nil {
		return err
	}
	refused := proofs{what: "undecided refused"}
	if err := proveUndecided(ctx, &refused, root, temp); err != nil {
		return err
	}
	fmt.Println(&caught)
	fmt.Println(&refused)
	if caught.good < caught.all || refused.good < refused.all {
		return fmt.Errorf("something was missed; see above")
	}
	return nil
}

// proofs counts what was tried, and what came out as it should.
type proofs struct {
	what      string
	good, all int
}

func (p *proofs) String() string { return fmt.Sprintf("%s %d/%d", p.what, p.good, p.all) }

// count counts a proof, and prints what went wrong unless that is "".
func (p *proofs) count(what, wrong string) {
	p.all++
	if wrong == "" {
		p.good++
		return
	}
	fmt.Printf("%s: %s\n", what, wrong)
}

// goTool runs the go command in a directory and returns what it printed. The error
// holds that too.
func goTool(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("go %s in %s: %w\n%s", strings.Join(args, " "), dir, err, out)
	}
	return string(out), err
}
