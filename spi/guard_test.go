package spi

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// groups is the one table that the guard test compares everything with: a group,
// what it takes to offer it, and the interfaces of its required and all methods.
var groups = []struct {
	group         Group
	cap           Caps
	required, all reflect.Type
}{
	{Events, CapEvents, reflect.TypeFor[EventBackend](), reflect.TypeFor[EventMethods]()},
	{Timers, CapTimers, reflect.TypeFor[TimerBackend](), reflect.TypeFor[TimerMethods]()},
	{Refs, CapRefs, reflect.TypeFor[RefBackend](), reflect.TypeFor[RefMethods]()},
	{Leases, CapLeases, reflect.TypeFor[LeaseBackend](), reflect.TypeFor[LeaseMethods]()},
	{DataKeys, CapDataKeys, reflect.TypeFor[DataKeyBackend](), reflect.TypeFor[DataKeyMethods]()},
	{Ownership, CapOwnership, reflect.TypeFor[OwnershipBackend](), reflect.TypeFor[OwnershipMethods]()},
}

// TestInStep holds methods, caps, Open, package functions and requests together:
// whoever adds a method is told what else to write.
func TestInStep(t *testing.T) {
	if n := len(capNames); AllCaps != 1<<n-1 {
		t.Fatalf("%d names for the caps %b", n, AllCaps)
	}
	bodies := functionBodies(t)
	seen := map[string]bool{}
	for _, g := range groups {
		for m := range g.all.Methods() {
			if seen[m.Name] {
				t.Errorf("%s is in two groups", m.Name)
			}
			seen[m.Name] = true
			_, required := g.required.MethodByName(m.Name)
			checkCap(t, g.cap, m.Name, required)
			checkShape(t, m)
			checkFunction(t, g.cap, m, required, bodies[m.Name])
			if _, has := reflect.TypeFor[*Store]().MethodByName(m.Name); has {
				t.Errorf("Store has the method %s: a decorator that embeds one would not decide about it", m.Name)
			}
		}
	}
	if n := reflect.TypeFor[methods]().NumMethod(); n != len(seen) {
		t.Errorf("a Decorator has %d methods, the groups have %d", n, len(seen))
	}
	for name := range bodies {
		if !seen[name] {
			t.Errorf("func %s calls no method of a group", name)
		}
	}
}

// checkCap checks that an optional method has a cap of its name, in its group.
func checkCap(t *testing.T, group Caps, name string, required bool) {
	c := ParseCaps([]string{name})
	switch {
	case required && c != 0:
		t.Errorf("%s is required and has a cap of its own", name)
	case !required && c == 0:
		t.Errorf("%s is optional and has no Cap%s", name, name)
	case !required && !slices.ContainsFunc(optionalOf[:], func(o struct{ group, optional Caps }) bool {
		return o.group == group && o.optional.Has(c)
	}):
		t.Errorf("%s is not among the optional methods of %v", name, group)
	}
}

// checkShape checks that a method takes its request and returns its response.
func checkShape(t *testing.T, m reflect.Method) {
	want := fmt.Sprintf("func(context.Context, spi.%[1]sRequest) (spi.%[1]sResponse, error)", m.Name)
	if got := m.Type.String(); got != want {
		t.Errorf("%s is %s, not %s", m.Name, got, want)
	}
}

// checkFunction checks that a method's package function does nothing but call it.
func checkFunction(t *testing.T, group Caps, m reflect.Method, required bool, got string) {
	offer, next := m.Name, "methods."+m.Name
	if required {
		offer = group.String()
	}
	if _, content := m.Type.In(1).FieldByName("contentValid"); content {
		next = "valid" + m.Name
	}
	want := fmt.Sprintf("func(ctx context.Context, s *Store, req %[1]sRequest) (%[1]sResponse, error) { return call(ctx, s, Cap%[2]s, %[1]q, req, %[3]s) }", m.Name, offer, next)
	if got != want {
		t.Errorf("func %s:\n got %s\nwant %s", m.Name, got, want)
	}
}

// TestOpenOffersEverything finds a method that Open forgets.
func TestOpenOffersEverything(t *testing.T) {
	s, err := Open(Backend{
		struct{ EventMethods }{},
		struct{ TimerMethods }{},
		struct{ RefMethods }{},
		struct{ LeaseMethods }{},
		struct{ DataKeyMethods }{},
		struct{ OwnershipMethods }{},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Offered(); got != AllCaps {
		t.Errorf("it does not offer %v", AllCaps&^got)
	}
	if n := reflect.TypeFor[*backend]().NumMethod(); n != reflect.TypeFor[methods]().NumMethod() {
		t.Errorf("an opened backend has %d methods", n)
	}
}

// TestEveryErrorCanBeRenamed finds an error type whose names a tenant would see.
func TestEveryErrorCanBeRenamed(t *testing.T) {
	renamed := map[string]bool{}
	eachDecl(t, func(d ast.Decl) {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil && fn.Name.Name == "rename" {
			renamed[receiver(fn)] = true
		}
	})
	types := 0
	eachDecl(t, func(d ast.Decl) {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil && fn.Name.Name == "Error" {
			types++
			if !renamed[receiver(fn)] {
				t.Errorf("%s has no rename", receiver(fn))
			}
		}
	})
	if types < 20 {
		t.Errorf("only %d error types were found", types)
	}
}

// TestVersionsNameEveryGroup finds a group without a version.
func TestVersionsNameEveryGroup(t *testing.T) {
	for _, g := range groups {
		if Versions()[g.group].Major == 0 {
			t.Errorf("%s has no version", g.group)
		}
	}
	if len(Versions()) != len(groups) {
		t.Errorf("%d groups have a version", len(Versions()))
	}
}

// TestKernelKindsAreTheConstants finds a row that is there twice, and so one that
// is not there: that their number is right is the compiler's business.
func TestKernelKindsAreTheConstants(t *testing.T) {
	constants := map[string]bool{}
	eachDecl(t, func(d ast.Decl) {
		if gen, ok := d.(*ast.GenDecl); ok && gen.Tok == token.CONST {
			for _, spec := range gen.Specs {
				for i, name := range spec.(*ast.ValueSpec).Names {
					if strings.HasPrefix(name.Name, "Kind") {
						constants[strings.Trim(spec.(*ast.ValueSpec).Values[i].(*ast.BasicLit).Value, `"`)] = true
					}
				}
			}
		}
	})
	rows := map[string]bool{}
	for _, k := range KernelKinds() {
		if rows[k.Kind] || !constants[k.Kind] || k.Class != Answering && k.Class != Ignorable {
			t.Errorf("%+v", k)
		}
		rows[k.Kind] = true
	}
	if len(rows) != len(constants) {
		t.Errorf("%d kinds, %d constants", len(rows), len(constants))
	}
}

// functionBodies returns the source, from the parameters on, of each function
// that calls a method of a store.
func functionBodies(t *testing.T) map[string]string {
	bodies := map[string]string{}
	spaces := regexp.MustCompile(`\s+`)
	eachFile(t, func(src []byte, fset *token.FileSet, file *ast.File) {
		for _, d := range file.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || !fn.Name.IsExported() {
				continue
			}
			text := string(src[fset.Position(fn.Type.Params.Pos()).Offset:fset.Position(fn.End()).Offset])
			if strings.Contains(text, "return call(") {
				bodies[fn.Name.Name] = "func" + spaces.ReplaceAllString(text, " ")
			}
		}
	})
	return bodies
}

func eachDecl(t *testing.T, do func(ast.Decl)) {
	eachFile(t, func(_ []byte, _ *token.FileSet, file *ast.File) {
		for _, d := range file.Decls {
			do(d)
		}
	})
}

// eachFile calls do with each file of this package but the tests.
func eachFile(t *testing.T, do func(src []byte, fset *token.FileSet, file *ast.File)) {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, src, 0)
		if err != nil {
			t.Fatal(err)
		}
		do(src, fset, file)
	}
}

func receiver(fn *ast.FuncDecl) string {
	return fn.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name
}
