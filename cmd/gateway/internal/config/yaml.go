package config

import (
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// maxFile is the largest configuration file, in bytes.
const maxFile = 256 << 10

// A document is a file that is being read. It is walked along the fields of [Config],
// so that each value, and each thing that is wrong, has its place.
type document struct {
	*reading
	name string
	dir  string
}

// readYAML takes a file's text. The subset of YAML is what a configuration needs: one
// document of mappings, lists and scalars, without anchors, aliases, tags and merges.
func (r *reading) readYAML(name, text string) {
	d := document{r, name, filepath.Dir(name)}
	start := Origin{name, 1, 1}
	if len(text) > maxFile {
		r.fault(start, "", "the file is larger than %d bytes", maxFile)
		return
	}
	if !utf8.ValidString(text) {
		r.fault(start, "", "the file is not well-formed UTF-8")
		return
	}
	file, err := parser.ParseBytes([]byte(strings.TrimPrefix(text, "\ufeff")), 0, parser.AllowDuplicateMapKey())
	if err != nil {
		r.fault(d.syntax(err))
		return
	}
	var body ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if body != nil {
			d.faultAt(doc.Body, "", "begins a second document")
			return
		}
		body = doc.Body
	}
	if body != nil {
		d.section(body, reflect.TypeFor[Config](), "")
	}
}

// quoted is what a message of the parser repeats of the file.
var quoted = regexp.MustCompile(`"(\\.|[^"\\])*"`)

// syntax returns where the parser gave up, and why.
func (d document) syntax(err error) (place Origin, setting, rule string) {
	syntax, ok := err.(yaml.Error) //nolint:errorlint // it is that or nothing: unwrapping would lose the place
	if !ok || syntax.GetToken() == nil {
		return Origin{d.name, 1, 1}, "", "the file is no YAML"
	}
	at := syntax.GetToken().Position
	return Origin{d.name, max(1, at.Line), max(1, at.Column)}, "", quoted.ReplaceAllString(syntax.GetMessage(), "…")
}

// at returns where a node begins. A block of settings begins with its first key; the
// parser names the colon after it.
func (d document) at(n ast.Node) Origin {
	if m, ok := n.(ast.MapNode); ok && n.GetToken().Type == token.MappingValueType {
		if entry := m.MapRange(); entry.Next() {
			n = entry.Key()
		}
	}
	if t := n.GetToken(); t != nil && t.Position != nil {
		return Origin{d.name, max(1, t.Position.Line), max(1, t.Position.Column)}
	}
	return Origin{d.name, 1, 1}
}

func (d document) faultAt(n ast.Node, path, rule string, args ...any) {
	d.fault(d.at(n), path, rule, args...)
}

// section takes a mapping. One that is empty, such as a key whose lines are commented
// out, says nothing.
func (d document) section(n ast.Node, section reflect.Type, path string) {
	switch n.Type() {
	case ast.NullType:
		return
	case ast.MappingType, ast.MappingValueType:
	default:
		d.faultAt(n, path, "is %s, not settings", kindOf(n))
		return
	}
	fields, names := map[string]reflect.StructField{}, []string{}
	for f := range keys(section) {
		key := f.Tag.Get("yaml")
		fields[key], names = f, append(names, key)
	}
	seen := map[string]Origin{}
	for entry := n.(ast.MapNode).MapRange(); entry.Next(); {
		key := entry.Key()
		name := keyName(key)
		if !plain.MatchString(name) {
			d.faultAt(key, path, "has a key that is no name") // it may be a value by mistake
			continue
		}
		field, known := fields[name]
		path := join(path, name)
		first, again := seen[name]
		seen[name] = d.at(key)
		switch {
		case !known:
			d.faultAt(key, path, "is no setting%s", suggest(name, names))
		case again:
			d.faultAt(key, path, "is given twice, first in line %d", first.Line)
		default:
			d.places[path] = d.at(key)
			d.value(entry.Value(), field, path)
		}
	}
}

// plain is how every key looks.
var plain = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,40}$`)

func keyName(key ast.Node) string {
	if s, ok := key.(*ast.StringNode); ok {
		return s.Value
	}
	return ""
}

func (d document) value(n ast.Node, field reflect.StructField, path string) {
	switch {
	case field.Type == textsType:
		d.texts(n, path)
	case field.Type.Kind() == reflect.Slice:
		d.list(n, field.Type.Elem(), path)
	case field.Type.Kind() == reflect.Struct && field.Type != secretType:
		d.section(n, field.Type, path)
	default:
		d.scalar(n, field, path)
	}
}

func (d document) list(n ast.Node, of reflect.Type, path string) {
	switch n := n.(type) {
	case *ast.NullNode:
	case *ast.SequenceNode:
		for i, value := range n.Values {
			path := element(path, i)
			d.places[path] = d.at(value)
			d.section(value, of, path)
		}
	default:
		d.faultAt(n, path, "is %s, not a list", kindOf(n))
	}
}

// texts takes a list of texts, as the one text that a variable would hold.
func (d document) texts(n ast.Node, path string) {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		d.faultAt(n, path, "is %s, not a list", kindOf(n))
		return
	}
	var all []string
	for _, value := range list.Values {
		text, ok := value.(*ast.StringNode)
		switch {
		case !ok:
			d.faultAt(value, path, "has %s in it, not text: write it in quotes", kindOf(value))
			return
		case text.Value == "" || strings.Contains(text.Value, ","):
			d.faultAt(value, path, "has a text in it that is empty or has a comma")
			return
		}
		all = append(all, text.Value)
	}
	d.values[path] = given{text: strings.Join(all, ","), origin: d.at(n), dir: d.dir, open: true}
}

// scalar takes a value as the file writes it; what it means, its type says.
func (d document) scalar(n ast.Node, field reflect.StructField, path string) {
	var text string
	switch n := n.(type) {
	case *ast.StringNode:
		text = n.Value
	case *ast.LiteralNode:
		text = n.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		text = n.GetToken().Value
	default:
		d.faultAt(n, path, "is %s", kindOf(n))
		return
	}
	if rule := d.kindFault(n, field); rule != "" {
		d.faultAt(n, path, "%s", rule)
		return
	}
	d.values[path] = given{text: text, origin: d.at(n), dir: d.dir, open: true}
}

// kindFault returns why a value is not of its field's kind, or "".
func (d document) kindFault(n ast.Node, field reflect.StructField) string {
	text := n.Type() == ast.StringType || n.Type() == ast.LiteralType
	switch field.Type.Kind() {
	case reflect.Bool:
		if n.Type() != ast.BoolType {
			return fmt.Sprintf("is %s, neither true nor false", kindOf(n))
		}
	case reflect.Int, reflect.Float64:
		if text || n.Type() == ast.BoolType {
			return fmt.Sprintf("is %s, not a number", kindOf(n))
		}
	case reflect.String, reflect.Struct:
		if !text {
			return fmt.Sprintf("is %s, not text: write it in quotes", kindOf(n))
		}
	}
	return ""
}

func kindOf(n ast.Node) string {
	switch n.Type() {
	case ast.StringType, ast.LiteralType:
		return "text"
	case ast.IntegerType, ast.FloatType, ast.InfinityType, ast.NanType:
		return "a number"
	case ast.BoolType:
		return "true or false"
	case ast.NullType:
		return "empty"
	case ast.SequenceType:
		return "a list"
	case ast.MappingType, ast.MappingValueType:
		return "a section"
	case ast.AnchorType, ast.AliasType, ast.TagType, ast.MergeKeyType:
		return "an anchor, an alias or a tag"
	}
	return "no value"
}
