package config

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of settings into the documentation")

const (
	page  = "../../../../docs/configuration.md"
	begin = "<!-- settings: go test ./cmd/gateway/internal/config -run Documented -update -->\n"
	end   = "<!-- end -->\n"
)

// TestEverySettingIsDocumented compares the page with the comments and tags of [Config]
// and the example.
func TestEverySettingIsDocumented(t *testing.T) {
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(raw), begin)
	got, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place for the table", page)
	}
	want := table(t)
	if got == want {
		return
	}
	if !*update {
		t.Fatalf("%s is not what the code says; run with -update. Want\n%s", page, want)
	}
	if err := os.WriteFile(page, []byte(before+begin+want+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// table returns a row for each setting.
func table(t *testing.T) string {
	comments, examples := comments(t), exampleValues(t)
	var b strings.Builder
	b.WriteString("| setting | variable | default | example | meaning |\n|---|---|---|---|---|\n")
	for _, s := range settings {
		tag := s.field.Tag
		meaning := comments[s.path]
		if meaning == "" {
			t.Errorf("%s has no comment", s.path)
		}
		if choices := tag.Get("oneof"); choices != "" {
			meaning += " One of " + strings.Join(strings.Fields(choices), ", ") + "."
		}
		if low, high, bounded := strings.Cut(tag.Get("range"), ".."); bounded {
			meaning += fmt.Sprintf(" %s to %s.", low, high)
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s | %s |\n", s.path, variable(s.path), code(tag.Get("default")), code(examples[s.path]), meaning)
	}
	return b.String()
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// comments returns what the fields' comments say, by setting, without the field's name.
func comments(t *testing.T) map[string]string {
	file, err := parser.ParseFile(token.NewFileSet(), "config.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]*ast.StructType{}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.TypeSpec); ok {
			if s, ok := spec.Type.(*ast.StructType); ok {
				types[spec.Name.Name] = s
			}
		}
		return true
	})
	said := map[string]string{}
	var walk func(name, path string)
	walk = func(name, path string) {
		for _, f := range types[name].Fields.List {
			tag := ""
			if f.Tag != nil {
				tag = reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("yaml")
			}
			inner, path := f.Type, join(path, tag)
			if list, ok := inner.(*ast.ArrayType); ok {
				inner, path = list.Elt, path+"[]"
			}
			if id, ok := inner.(*ast.Ident); ok && types[id.Name] != nil {
				walk(id.Name, path)
				continue
			}
			said[path] = sentence(f.Names[0].Name, f.Doc.Text())
		}
	}
	walk("Config", "")
	return said
}

// sentence returns the first paragraph of a comment, without the field's name.
func sentence(name, doc string) string {
	doc, _, _ = strings.Cut(doc, "\n\n")
	doc = strings.Join(strings.Fields(doc), " ")
	for _, beginning := range []string{name + " is ", name + " "} {
		if rest, has := strings.CutPrefix(doc, beginning); has {
			return strings.ToUpper(rest[:1]) + rest[1:]
		}
	}
	return doc
}

func TestNoTwoSettingsShareAVariable(t *testing.T) {
	seen := map[string]string{}
	for _, s := range settings {
		name := variable(s.path)
		if other, again := seen[name]; again {
			t.Errorf("%s and %s are both %s", s.path, other, name)
		}
		seen[name] = s.path
		if concrete := strings.Replace(s.path, "[]", "[7]", 1); listNumber.MatchString(variable(concrete)) != (concrete != s.path) {
			t.Errorf("%s is not told from a list's element", variable(concrete))
		}
		if setByKubernetes(name, "tcp://10.0.0.1:1") {
			t.Errorf("%s looks like Kubernetes'", name)
		}
	}
	if len(seen) < 20 {
		t.Errorf("only %d settings", len(seen))
	}
}

func TestEveryDefaultIsInItsRange(t *testing.T) {
	for _, s := range settings {
		if text, has := s.field.Tag.Lookup("default"); has {
			if rule := set(reflect.New(s.field.Type).Elem(), s.field, text, ""); rule != "" {
				t.Errorf("%s %s", s.path, rule)
			}
		}
	}
}
