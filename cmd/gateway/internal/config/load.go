package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// Sources are where settings come from. A flag counts more than a variable, which
// counts more than the file.
type Sources struct {
	File    string   // the YAML file's path; "" if there is none
	Environ []string // as [os.Environ] returns it
	Flags   []Flag
}

// A Flag is a setting on the command line, where everybody can read it: a secret there
// is refused.
type Flag struct {
	Name    string // as the user writes it, such as --http-listen
	Setting string // such as http.listen or shards[0].pool_size
	Value   string
}

// Load returns what the sources say, whole and valid. The error is an [InvalidError]
// with everything that is wrong, or says that the file cannot be read.
func Load(from Sources) (*Config, error) {
	text := ""
	if from.File != "" {
		raw, err := readFile(from.File, maxFile)
		if err != nil {
			return nil, fmt.Errorf("configuration %s: %w", from.File, err)
		}
		text = raw
	}
	return load(from, text)
}

func load(from Sources, text string) (*Config, error) {
	r := &reading{values: map[string]given{}, places: map[string]Origin{}}
	r.readYAML(from.File, text)
	r.readEnviron(from.Environ)
	r.readFlags(from.Flags)
	c := r.config()
	r.readSecrets(c)
	r.check(c)
	if err := r.invalid.err(); err != nil {
		return nil, err
	}
	c.dropPools()
	c.sortShards()
	return c, nil
}

// config gives every setting its value, or its default where it has none.
func (r *reading) config() *Config {
	c := &Config{origins: map[string]Origin{}}
	c.Shards = list[Shard](r, "shards")
	c.Identity.Providers = list[Provider](r, "identity.providers")
	c.Identity.Certificates = list[Certificate](r, "identity.certificates")
	each(reflect.ValueOf(c).Elem(), "", func(path string, f reflect.StructField, v reflect.Value) {
		value, found := r.values[path]
		if !found {
			value.text, found = f.Tag.Lookup("default")
		}
		if !found {
			return
		}
		c.origins[path] = value.origin
		if rule := set(v, f, value.text, value.dir); rule != "" {
			r.fault(value.origin, path, "%s", rule)
		}
	})
	if c.Shards == nil {
		c.Shards = embeddedShards(c.DataDir)
	}
	return c
}

// list returns the elements that a list has, still empty; nil if it has none.
func list[E any](r *reading, path string) []E {
	if n := r.elements(path); n > 0 {
		return make([]E, n)
	}
	return nil
}

// embeddedCount is how many shards there are if none is given. It can never change:
// what is stored would lie on the wrong ones.
const embeddedCount = 4

func embeddedShards(dir string) []Shard {
	shards := make([]Shard, embeddedCount)
	for i := range shards {
		name := fmt.Sprintf("embedded-%d", i)
		shards[i] = Shard{Name: name, SQLite: filepath.Join(dir, name+".db")}
	}
	return shards
}

// readSecrets puts in what the files of secrets hold.
func (r *reading) readSecrets(c *Config) {
	for i := range c.Shards {
		r.readSecret(element("shards", i)+".dsn_file", c.Shards[i].DSNFile, &c.Shards[i].DSN)
	}
	r.readSecret("crypto.secret_file", c.Crypto.SecretFile, &c.Crypto.Secret)
}

// maxSecret is the largest file of a secret, in bytes.
const maxSecret = 64 << 10

func (r *reading) readSecret(setting, path string, to *Secret) {
	if path == "" {
		return
	}
	if !to.IsZero() {
		r.fault(r.origin(setting), setting, "is given, and %s too", strings.TrimSuffix(setting, "_file"))
		return
	}
	text, err := readFile(path, maxSecret)
	text = strings.TrimRight(text, "\r\n")
	switch {
	case err != nil:
		r.fault(r.origin(setting), setting, "cannot be read: %v", err)
	case text == "":
		r.fault(r.origin(setting), setting, "is an empty file")
	default:
		*to = NewSecret(text)
	}
}

// readFile returns what a file holds, at most limit bytes. The error does not say the
// path, which may be a secret in the wrong place.
func readFile(path string, limit int64) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", withoutPath(err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return "", withoutPath(err)
	}
	if int64(len(text)) > limit {
		return "", fmt.Errorf("it is larger than %d bytes", limit)
	}
	return string(text), nil
}

func withoutPath(err error) error {
	if inPath, ok := errors.AsType[*fs.PathError](err); ok {
		return inPath.Err
	}
	return err
}

// origin returns where a setting or a section is said, or what it is part of.
func (r *reading) origin(setting string) Origin {
	if v, found := r.values[setting]; found {
		return v.origin
	}
	for path := setting; path != ""; path = path[:max(0, strings.LastIndexAny(path, ".["))] {
		if place, found := r.places[path]; found {
			return place
		}
		for _, s := range slices.Sorted(maps.Keys(r.values)) {
			if strings.HasPrefix(s, path+".") {
				return r.values[s].origin
			}
		}
	}
	return Origin{}
}

// dropPools leaves no pool in a shard that has none.
func (c *Config) dropPools() {
	for i := range c.Shards {
		if s := &c.Shards[i]; s.SQLite != "" {
			s.PoolSize = 0
			delete(c.origins, element("shards", i)+".pool_size")
			delete(c.origins, element("shards", i)+".behind_pooler")
		}
	}
}

// sortShards orders the shards by name, and what is known of their origins.
func (c *Config) sortShards() {
	type placed struct {
		shard Shard
		at    string
	}
	all := make([]placed, len(c.Shards))
	for i, s := range c.Shards {
		all[i] = placed{s, element("shards", i)}
	}
	slices.SortFunc(all, func(a, b placed) int { return strings.Compare(a.shard.Name, b.shard.Name) })
	origins := map[string]Origin{}
	for path, origin := range c.origins {
		for i, p := range all {
			if rest, in := strings.CutPrefix(path, p.at+"."); in {
				path = element("shards", i) + "." + rest
				break
			}
		}
		origins[path] = origin
	}
	for i, p := range all {
		c.Shards[i] = p.shard
	}
	c.origins = origins
}
