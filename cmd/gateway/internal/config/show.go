package config

import (
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Show writes the configuration as YAML that [Load] would read, with where each value
// came from beside it. Of a secret it says only that there is one, and of a DSN the
// host, the port, the database and the user.
func (c *Config) Show(w io.Writer) error {
	var b strings.Builder
	c.showSection(&b, reflect.ValueOf(c).Elem(), "", "")
	_, err := io.WriteString(w, b.String())
	return err
}

func (c *Config) showSection(b *strings.Builder, section reflect.Value, path, indent string) {
	for f := range keys(section.Type()) {
		key := f.Tag.Get("yaml")
		path, v := join(path, key), section.FieldByIndex(f.Index)
		switch {
		case f.Type.Kind() == reflect.Struct && f.Type != secretType:
			var inner strings.Builder
			if c.showSection(&inner, v, path, indent+"  "); inner.Len() > 0 {
				fmt.Fprintf(b, "%s%s:\n%s", indent, key, inner.String())
			}
		case f.Type.Kind() == reflect.Slice && f.Type != textsType:
			fmt.Fprintf(b, "%s%s:\n", indent, key)
			for i := range v.Len() {
				var inner strings.Builder
				c.showSection(&inner, v.Index(i), element(path, i), indent+"    ")
				fmt.Fprintf(b, "%s  - %s", indent, strings.TrimPrefix(inner.String(), indent+"    "))
			}
		default:
			if _, said := c.origins[path]; said || !v.IsZero() {
				fmt.Fprintf(b, "%s%s\n", indent, c.line(key, path, v))
			}
		}
	}
}

// line shows one setting.
func (c *Config) line(key, path string, v reflect.Value) string {
	origin, said := c.origins[path]
	secret, isSecret := v.Interface().(Secret)
	switch {
	case !isSecret:
		return fmt.Sprintf("%s: %s  # %v", key, showValue(v), origin)
	case key == "dsn" && said:
		return fmt.Sprintf("%s: %s  # %v", key, strconv.Quote(showDSN(secret)), origin)
	case key == "dsn":
		return fmt.Sprintf("# %s: %s", key, showDSN(secret))
	}
	return fmt.Sprintf("# %s: %v", key, secret)
}

func showValue(v reflect.Value) string {
	switch value := v.Interface().(type) {
	case time.Duration:
		return value.String()
	case Size:
		return value.String()
	case Limit:
		return value.String()
	case ByteLimit:
		return value.String()
	case Texts:
		quoted := make([]string, len(value))
		for i, text := range value {
			quoted[i] = strconv.Quote(text)
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	}
	if v.Kind() == reflect.String {
		return strconv.Quote(v.String())
	}
	return fmt.Sprint(v.Interface())
}

func showDSN(secret Secret) string {
	d, ok := parseDSN(secret.Reveal())
	if !ok {
		return hidden
	}
	return d.String()
}
