package config

import (
	"iter"
	"reflect"
	"strconv"
	"strings"
)

// A setting is a field of [Config] that holds a value.
type setting struct {
	path  string // shards[].dsn: as in the file, for any element of a list
	field reflect.StructField
}

// settings are all of them, in the order of the fields.
var settings = settingsIn(reflect.TypeFor[Config](), "")

func settingsIn(section reflect.Type, path string) (all []setting) {
	for f := range keys(section) {
		path := join(path, f.Tag.Get("yaml"))
		switch {
		case f.Type.Kind() == reflect.Struct && f.Type != secretType:
			all = append(all, settingsIn(f.Type, path)...)
		case f.Type.Kind() == reflect.Slice && f.Type != textsType:
			all = append(all, settingsIn(f.Type.Elem(), path+"[]")...)
		default:
			all = append(all, setting{path, f})
		}
	}
	return all
}

// keys are the fields of a section that the file can name.
func keys(section reflect.Type) iter.Seq[reflect.StructField] {
	return func(yield func(reflect.StructField) bool) {
		for f := range section.Fields() {
			if f.Tag.Get("yaml") != "" && !yield(f) {
				return
			}
		}
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func element(list string, i int) string { return list + "[" + strconv.Itoa(i) + "]" }

// variable returns the name that a setting has in the environment. A list's element
// has its number in place of [].
func variable(path string) string {
	return prefix + strings.ToUpper(strings.NewReplacer("[].", "_N_", "[", "_", "].", "_", ".", "_").Replace(path))
}

// each calls do with every setting of a section and the value that it has in c, with
// its whole path. The lists have the elements that they have.
func each(section reflect.Value, path string, do func(path string, f reflect.StructField, v reflect.Value)) {
	for f := range keys(section.Type()) {
		path, v := join(path, f.Tag.Get("yaml")), section.FieldByIndex(f.Index)
		switch {
		case f.Type.Kind() == reflect.Struct && f.Type != secretType:
			each(v, path, do)
		case f.Type.Kind() == reflect.Slice && f.Type != textsType:
			for i := range v.Len() {
				each(v.Index(i), element(path, i), do)
			}
		default:
			do(path, f, v)
		}
	}
}
