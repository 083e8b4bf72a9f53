package main

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const ourModule = "github.com/loomgate/loomgate"

// newMethod adds an optional method to spi, with its capability, as whoever
// contributes one has to. The interface and the function are in testdata/newmethod.
var newMethod = []edit{
	{"spi/caps.go", "\n\tCapPromoteRef\n", "\tCapSnapshotExecution\n"},
	{"spi/caps.go", "\t\"PromoteRef\", \"RefLineage\",\n", "\t\"SnapshotExecution\",\n"},
	{"spi/caps.go", "CapAppendBatch | CapAcquireFence |", "CapSnapshotExecution | "},
	{"spi/events.go", "\tTombstoneSweeper\n}\n", "\tSnapshotter\n"},
	{"spi/store.go", "\n\tTimerBackend\n\n\tRefBackend\n", "\tSnapshotter\n"},
	{"spi/store.go", "\t\toffer(&m.TimerBackend, ", "\t\toffer(&m.Snapshotter, b.Events, CapSnapshotExecution) |\n"},
}

// missingMethod is the compiler's objection to a decorator without it.
const missingMethod = "missing method SnapshotExecution"

// proveUndecided adds a method and a kernel kind to a copy of the module, and
// counts those who are stopped because they have not decided about them.
func proveUndecided(ctx context.Context, refused *proofs, root, temp string) error {
	testdata := filepath.Join(root, "conformance", "prove", "testdata")
	changed := filepath.Join(temp, "changed")
	if err := copyModule(changed, root); err != nil {
		return err
	}
	if err := os.CopyFS(filepath.Join(changed, "spi"), os.DirFS(filepath.Join(testdata, "newmethod"))); err != nil {
		return err
	}
	for _, e := range newMethod {
		if err := e.in(changed); err != nil {
			return err
		}
	}
	if _, err := goTool(ctx, changed, "build", "./spi"); err != nil {
		return fmt.Errorf("the method that prove adds to a copy of spi is no longer right: %w", err)
	}
	if _, err := goTool(ctx, changed, "test", "-skip=^TestOffersEverything$", "./backends/memory"); err != nil {
		return fmt.Errorf("a backend has to build and pass its tests without a method that is optional: %w", err)
	}
	if err := proveOurs(ctx, refused, changed); err != nil {
		return err
	}
	if err := proveTheirs(ctx, refused, testdata, root, changed, filepath.Join(temp, "theirs")); err != nil {
		return err
	}
	return proveKinds(ctx, refused, changed)
}

// proveOurs builds every package that calls spi.Wrap: the compiler has to object to
// each of the calls.
func proveOurs(ctx context.Context, refused *proofs, changed string) error {
	wraps, err := wrapCalls(changed)
	if err != nil {
		return err
	}
	if len(wraps) == 0 {
		return fmt.Errorf("no file calls spi.Wrap: give prove another way to find decorators")
	}
	for _, file := range slices.Sorted(maps.Keys(wraps)) {
		out, _ := goTool(ctx, changed, "build", "-gcflags=-e", "./"+filepath.Dir(file))
		objection := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(file) + `:.*` + missingMethod)
		objections := len(objection.FindAllString(out, -1))
		for i := range wraps[file] {
			refused.count("a decorator in "+file, unless(i < objections, out))
		}
	}
	return nil
}

// wrapCall is a line of code, and no comment, in which a decorator becomes a store.
var wrapCall = regexp.MustCompile(`(?m)^[^/\n]*\bspi\.Wrap\(`)

// wrapCalls returns how often each file of a module calls spi.Wrap, tests left out.
func wrapCalls(module string) (map[string]int, error) {
	calls := map[string]int{}
	err := filepath.WalkDir(module, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "prove"):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := filepath.Rel(module, path)
		if n := len(wrapCall.FindAll(text, -1)); n > 0 {
			calls[file] = n
		}
		return err
	})
	return calls, err
}

// proveTheirs builds a decorator in a module of somebody else's, which has to
// compile as spi is and not as it is changed; and runs decorators that embed, which
// compile either way and have to be refused when they wrap.
func proveTheirs(ctx context.Context, refused *proofs, testdata, root, changed, theirs string) error {
	if err := os.CopyFS(theirs, os.DirFS(testdata)); err != nil {
		return err
	}
	if err := requireOurs(theirs, root); err != nil {
		return err
	}
	if _, err := goTool(ctx, theirs, "build", "-mod=mod", "./thirdparty"); err != nil {
		return fmt.Errorf("the decorator in another module has to compile as things are: give it what is missing: %w", err)
	}
	if err := requireOurs(theirs, changed); err != nil {
		return err
	}
	out, err := goTool(ctx, theirs, "build", "-mod=mod", "./thirdparty")
	refused.count("a decorator in another module", unless(err != nil && strings.Contains(out, missingMethod), out))
	out, err = goTool(ctx, theirs, "run", "-mod=mod", "./embedding")
	if err != nil {
		return fmt.Errorf("decorators that embed have to compile: %w", err)
	}
	for line := range strings.Lines(out) {
		what := strings.TrimSpace(line)
		refused.count("a decorator that embeds", unless(strings.HasPrefix(what, "refused "), what))
	}
	return nil
}

// requireOurs makes a module require ours as it is in a directory. Since spi needs
// nothing else, that needs neither a go.sum nor a network, only -mod=mod.
func requireOurs(module, ours string) error {
	text := fmt.Sprintf("module example.com/theirs\n\ngo 1.26\n\nrequire %[1]s v0.0.0\n\nreplace %[1]s => %[2]s\n", ourModule, ours)
	return os.WriteFile(filepath.Join(module, "go.mod"), []byte(text), 0o600)
}

// proveKinds adds a kernel kind without a row in the table of classes, and then its
// row without a class.
func proveKinds(ctx context.Context, refused *proofs, changed string) error {
	for _, step := range []struct {
		what, says string
		edit       edit
	}{
		{"a kernel kind without a row", "KernelKind{…}", edit{"spi/kinds.go", "\n\tkernelKindCount = iota", "\tKindExecutionEnchanted = \"EXECUTION_ENCHANTED\"\n"}},
		{"a kernel kind without a class", "too few values", edit{"spi/kinds.go", "\t{KindExecutionStarted, Ignorable},\n", "\t{KindExecutionEnchanted},\n"}},
	} {
		if err := step.edit.in(changed); err != nil {
			return err
		}
		out, err := goTool(ctx, changed, "build", "./spi")
		refused.count(step.what, unless(err != nil && strings.Contains(out, step.says), out))
	}
	return nil
}

// unless returns what went wrong, or "" if it was refused.
func unless(refused bool, out string) string {
	if refused {
		return ""
	}
	return "it is not refused for what it leaves undecided:\n" + out
}

// copyModule copies the files of a module, without the tools' and hidden ones.
func copyModule(to, from string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "tools" || name != "." && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, name), 0o700)
		case !d.Type().IsRegular():
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), data, 0o600)
	})
}

// An edit puts text before an anchor that a file holds once.
type edit struct{ file, anchor, text string }

func (e edit) in(module string) error {
	path := filepath.Join(module, e.file)
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if n := strings.Count(string(old), e.anchor); n != 1 {
		return fmt.Errorf("%s holds %q %d times, not once: give the edit in conformance/prove another anchor", e.file, e.anchor, n)
	}
	return os.WriteFile(path, []byte(strings.Replace(string(old), e.anchor, e.text+e.anchor, 1)), 0o600)
}
