package config

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// prefix is that of the gateway's variables.
const prefix = "LOOMGATE_"

// clientVariables are read by clients of a gateway.
var clientVariables = []string{"LOOMGATE_ADDR", "LOOMGATE_KEY"}

// Kubernetes gives every container of a namespace variables about each service, so a
// service whose name begins with "loomgate" puts these beside ours. A NAME_PORT is
// only taken for one if it is an address.
var (
	serviceVariable = regexp.MustCompile(`_SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)$|_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$`)
	serviceAddress  = regexp.MustCompile(`^(tcp|udp|sctp)://`)
)

func setByKubernetes(name, value string) bool {
	return serviceVariable.MatchString(name) || strings.HasSuffix(name, "_PORT") && serviceAddress.MatchString(value)
}

// listNumber finds the number of a list's element in a variable's name.
var listNumber = regexp.MustCompile(`_(0|[1-9]\d{0,8})_`)

// readEnviron takes the variables of ours, as [os.Environ] returns them.
func (r *reading) readEnviron(environ []string) {
	paths := map[string]string{}
	for _, s := range settings {
		paths[variable(s.path)] = s.path
	}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, prefix) || slices.Contains(clientVariables, name) || setByKubernetes(name, value) {
			continue
		}
		path, number := paths[name], ""
		if match := listNumber.FindStringSubmatch(name); match != nil {
			number = match[1]
			path = paths[strings.Replace(name, match[0], "_N_", 1)]
		}
		list := strings.Contains(path, "[]")
		if path == "" || list != (number != "") {
			names := slices.Sorted(maps.Keys(paths))
			r.fault(Origin{Source: name}, "", "is no variable of the gateway%s", suggestVariable(name, number, names))
			continue
		}
		r.values[strings.Replace(path, "[]", "["+number+"]", 1)] = given{text: value, origin: Origin{Source: name}}
	}
}

func suggestVariable(name, number string, names []string) string {
	for i := range names {
		names[i] = strings.Replace(names[i], "_N_", "_"+cmp.Or(number, "0")+"_", 1)
	}
	return suggest(name, names)
}

// readFlags takes what the command line says.
func (r *reading) readFlags(flags []Flag) {
	for _, f := range flags {
		origin := Origin{Source: f.Name}
		known := slices.ContainsFunc(settings, func(s setting) bool { return s.path == anyElement(f.Setting) })
		if !known {
			r.fault(origin, f.Setting, "is no setting")
			continue
		}
		r.values[f.Setting] = given{text: f.Value, origin: origin, open: true}
	}
}

var elementNumber = regexp.MustCompile(`\[(0|[1-9]\d{0,8})\]`)

// anyElement returns the path without the numbers of elements.
func anyElement(path string) string { return elementNumber.ReplaceAllString(path, "[]") }

// elements returns how many elements a list has, and notes those that are left out.
func (r *reading) elements(list string) int {
	said := map[int]Origin{}
	note := func(path string, origin Origin) {
		if rest, in := strings.CutPrefix(path, list+"["); in {
			digits, _, _ := strings.Cut(rest, "]")
			i, _ := strconv.Atoi(digits)
			if first, again := said[i]; !again || origin.compare(first) < 0 {
				said[i] = origin
			}
		}
	}
	for path, v := range r.values {
		note(path, v.origin)
	}
	for path, origin := range r.places {
		note(path, origin)
	}
	for n, i := range slices.Sorted(maps.Keys(said)) {
		if n != i {
			r.fault(said[i], element(list, i), "is given, but not %s", element(list, n))
			return n
		}
	}
	return len(said)
}
