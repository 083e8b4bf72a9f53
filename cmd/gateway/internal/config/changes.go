package config

import (
	"reflect"
	"slices"
	"strings"
)

// live are the settings that a running gateway takes over, by what their paths begin
// with. All others need a restart.
var live = []string{
	"identity", "limits.tenant", "log.level", "shards[].dsn", "shards[].dsn_file", "shards[].pool_size",
	"tls.cert_file", "tls.key_file", "tls.client_ca_file",
}

// Changes are the paths of settings that two configurations have different values of, in
// their order.
type Changes struct {
	Live    []string // taken over by a running gateway
	Restart []string // that need a restart
}

// Compare returns what is different in next.
func (c *Config) Compare(next *Config) (changes Changes) {
	before, paths := c.values()
	after, more := next.values()
	for _, path := range more {
		if _, there := before[path]; !there {
			paths = append(paths, path)
		}
	}
	for _, path := range paths {
		if reflect.DeepEqual(before[path], after[path]) {
			continue
		}
		if isLive(path) && sameShards(c, next) && c.TLS.Enabled() == next.TLS.Enabled() {
			changes.Live = append(changes.Live, path)
		} else {
			changes.Restart = append(changes.Restart, path)
		}
	}
	return changes
}

func (c *Config) values() (values map[string]any, paths []string) {
	values = map[string]any{}
	each(reflect.ValueOf(c).Elem(), "", func(path string, _ reflect.StructField, v reflect.Value) {
		value := v.Interface()
		if secret, ok := value.(Secret); ok {
			value = secret.Reveal() // to be compared, and to go no further
		}
		values[path], paths = value, append(paths, path)
	})
	return values, paths
}

func isLive(path string) bool {
	pattern := anyElement(path)
	return slices.ContainsFunc(live, func(p string) bool {
		return pattern == p || strings.HasPrefix(pattern, p+".") || strings.HasPrefix(pattern, p+"[")
	})
}

// sameShards reports whether two configurations have the same shards in the same places,
// so that one's settings can be compared with the other's.
func sameShards(a, b *Config) bool {
	return slices.EqualFunc(a.Shards, b.Shards, func(a, b Shard) bool { return a.Name == b.Name })
}
