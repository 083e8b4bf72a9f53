package config

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// A Size is a number of bytes.
type Size int64

// units are the sizes that a Size may be given in, the largest first.
var units = []struct {
	name  string
	bytes Size
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"", 1}}

func (s Size) String() string {
	for _, u := range units {
		if s%u.bytes == 0 && s >= u.bytes {
			return strconv.FormatInt(int64(s/u.bytes), 10) + u.name
		}
	}
	return "0"
}

func parseSize(text string) (Size, bool) {
	for _, u := range units {
		if number, has := strings.CutSuffix(text, u.name); has {
			n, err := strconv.ParseInt(number, 10, 32)
			return Size(n) * u.bytes, err == nil
		}
	}
	return 0, false
}

// Texts are several, which a variable holds with commas between them.
type Texts []string

func parseTexts(text string) (all Texts, rule string) {
	for one := range strings.SplitSeq(text, ",") {
		one = strings.TrimSpace(one)
		if one == "" && text != "" {
			return nil, "has a text in it that is empty"
		}
		if one != "" {
			all = append(all, one)
		}
	}
	return all, ""
}

var (
	secretType    = reflect.TypeFor[Secret]()
	durationType  = reflect.TypeFor[time.Duration]()
	sizeType      = reflect.TypeFor[Size]()
	textsType     = reflect.TypeFor[Texts]()
	limitType     = reflect.TypeFor[Limit]()
	byteLimitType = reflect.TypeFor[ByteLimit]()
)

// set gives a setting the value that text means, and returns the rule that text
// breaks, or "".
func set(v reflect.Value, f reflect.StructField, text, dir string) (rule string) {
	if rule := textFault(text); rule != "" {
		return rule
	}
	switch {
	case f.Type == secretType:
		v.Set(reflect.ValueOf(NewSecret(text)))
		return ""
	case f.Type == textsType:
		all, rule := parseTexts(text)
		if rule == "" {
			v.Set(reflect.ValueOf(all))
		}
		return rule
	case f.Tag.Get("path") != "" && text != "":
		return setPath(v, text, dir)
	case f.Type.Kind() == reflect.String:
		if choices := strings.Fields(f.Tag.Get("oneof")); len(choices) > 0 && !slices.Contains(choices, text) {
			return "is not " + strings.Join(choices, " or ")
		}
		v.SetString(text)
		return ""
	case f.Type.Kind() == reflect.Bool:
		if text != "true" && text != "false" {
			return "is neither true nor false"
		}
		v.SetBool(text == "true")
		return ""
	}
	if f.Type.Kind() == reflect.Float64 {
		return setFloat(v, f, text)
	}
	n, rule := number(f.Type, text)
	if rule != "" {
		return rule
	}
	if low, high, bounded := strings.Cut(f.Tag.Get("range"), ".."); bounded {
		least, _ := number(f.Type, low)
		most, _ := number(f.Type, high)
		if n < least || n > most {
			return fmt.Sprintf("is not in %s to %s", low, high)
		}
	}
	v.SetInt(n)
	return ""
}

func setFloat(v reflect.Value, f reflect.StructField, text string) (rule string) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return "is no number"
	}
	low, high, _ := strings.Cut(f.Tag.Get("range"), "..")
	least, _ := strconv.ParseFloat(low, 64)
	most, _ := strconv.ParseFloat(high, 64)
	if !(x >= least && x <= most) { // nor NaN
		return fmt.Sprintf("is not in %s to %s", low, high)
	}
	v.SetFloat(x)
	return ""
}

func number(t reflect.Type, text string) (n int64, rule string) {
	switch t {
	case durationType:
		d, err := time.ParseDuration(text)
		if err != nil {
			return 0, "is no duration, such as 300ms, 5s or 1h30m"
		}
		return int64(d), ""
	case sizeType:
		size, ok := parseSize(text)
		if !ok {
			return 0, "is no size, such as 65536, 64KiB or 8MiB"
		}
		return int64(size), ""
	case limitType:
		limit, ok := ParseLimit(text)
		if !ok {
			return 0, "is neither a whole number from 0 nor unlimited"
		}
		return int64(limit), ""
	case byteLimitType:
		limit, ok := ParseByteLimit(text)
		if !ok {
			return 0, "is neither a size, such as 65536, 64KiB or 8MiB, nor unlimited"
		}
		return int64(limit), ""
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, "is no whole number"
	}
	return n, ""
}

// setPath makes a path absolute: the process may change its folder.
func setPath(v reflect.Value, text, dir string) (rule string) {
	if !filepath.IsAbs(text) {
		text = filepath.Join(dir, text)
	}
	path, err := filepath.Abs(text)
	if err != nil {
		return "cannot be made an absolute path"
	}
	v.SetString(path)
	return ""
}

// textFault refuses what no value holds, and what would make a mess of a terminal.
func textFault(text string) string {
	switch {
	case !utf8.ValidString(text):
		return "is not well-formed UTF-8"
	case strings.ContainsFunc(text, unicode.IsControl):
		return "has a control character"
	}
	return ""
}
