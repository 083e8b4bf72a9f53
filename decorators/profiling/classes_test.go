package profiling

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/loomgate/loomgate/spi"
)

// TestEveryErrorOfTheInterfaceHasAClass finds an error type of package spi that nobody
// has put in a class, and one that is no more.
func TestEveryErrorOfTheInterfaceHasAClass(t *testing.T) {
	var want []string
	files, err := filepath.Glob("../../spi/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil && fn.Name.Name == "Error" {
				want = append(want, "*spi."+fn.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name)
			}
		}
	}
	var got []string
	for _, c := range errorClasses {
		got = append(got, c.of.String())
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("classes are of %q, not of %q", got, want)
	}
}

func TestNoTwoClassesHaveOneName(t *testing.T) {
	names := slices.Clone(classNames)
	slices.Sort(names)
	if all := len(names); len(slices.Compact(names)) != all {
		t.Errorf("they are %q", classNames)
	}
}

func TestAnErrorIsOfTheClassOfTheFirstThatHasOne(t *testing.T) {
	driver := errors.New("driver")
	for _, c := range []struct {
		err  error
		name string
	}{
		{nil, ""},
		{&spi.ConflictError{}, "conflict"},
		{&spi.OpError{Op: "Append", Err: &spi.ShardError{Shard: "s", Err: &spi.StaleFenceError{}}}, "stale_fence"},
		{fmt.Errorf("while: %w", &spi.NotFoundError{}), "not_found"},
		{&spi.AmbiguousError{Cause: context.Canceled}, "ambiguous"},
		{&spi.AmbiguousError{Cause: &spi.UnavailableError{}}, "ambiguous"},
		{&spi.UnavailableError{Cause: context.DeadlineExceeded}, "unavailable"},
		{&spi.OpError{Op: "Read", Err: context.Canceled}, "canceled"},
		{fmt.Errorf("while: %w", context.DeadlineExceeded), "deadline_exceeded"},
		{errors.Join(driver, context.Canceled), "canceled"},
		{&spi.InternalError{Cause: context.Canceled}, "canceled"},
		{&spi.InternalError{Cause: fmt.Errorf("while: %w", context.DeadlineExceeded)}, "deadline_exceeded"},
		{&spi.InternalError{Cause: driver}, "internal"},
		{&spi.OpError{Op: "Read", Err: &spi.UnsupportedError{}}, "unsupported"},
		{driver, "other"},
		{&spi.ShardError{Shard: "s", Err: driver}, "other"},
	} {
		if got := classOf(c.err).String(); got != c.name {
			t.Errorf("%v is of class %q, not %q", c.err, got, c.name)
		}
	}
	for _, c := range errorClasses {
		if err := reflect.New(c.of.Elem()).Interface().(error); c.name != "" && classOf(err).String() != c.name {
			t.Errorf("a %v is of class %q, not %q", c.of, classOf(err), c.name)
		}
	}
}

func TestTheDocumentationNamesEveryClass(t *testing.T) {
	page, err := os.ReadFile("../../docs/profiling.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(page), "is one of: ")
	list, _, _ = strings.Cut(list, ". ")
	var told []string
	for name := range strings.SplitSeq(list, ",") {
		told = append(told, strings.Trim(name, "` \n"))
	}
	if want := slices.Sorted(slices.Values(classNames[1:])); !slices.Equal(told, want) {
		t.Errorf("it names %q, not %q", told, want)
	}
}
